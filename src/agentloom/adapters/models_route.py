"""Where a model call goes: protocol, server, credential, from the model's name and the environment.

Names: ``gpt-4o``, ``o3`` (OpenAI); ``claude-haiku-4-5`` (Anthropic); ``local:smollm2`` (this machine);
``provider:model`` (``openai:``, ``anthropic:``, or a provider of the library that ``docs/adr/0007`` chose). With
``base_url=`` in the request the name goes as it is to that server, in the OpenAI protocol unless it starts with
``anthropic:``.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from agentloom.errors import ModelError, ProviderError

__all__ = ["Route", "find_route"]

Api = Literal["openai", "anthropic", "any-llm"]

_OPENAI_NAMES = re.compile(r"^(gpt-|chatgpt-|o\d|ft:|codex-|computer-use-)")
_ANTHROPIC_NAMES = re.compile(r"^claude-")
_INSTALL = "pip install 'agentloom-runtime[{extra}]'"
_UNCHECKED_KEY = "unused"  # servers without keys accept anything; the SDKs refuse to send nothing


@dataclass(frozen=True, slots=True)
class Route:
    """``model`` is the name to send; ``api_key`` never appears in a repr, an error or a trace."""

    api: Api
    provider: str
    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    bearer: bool = False


def find_route(request: Mapping[str, Any]) -> Route:
    """Decide where ``request`` goes. Starts nothing but a local model's server; sends nothing.

    ModelError (kind ``auth`` or ``not_found``) or ProviderError, each with the remedy, when it cannot go anywhere.
    """
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise ProviderError(
            "the request names no model", hint='pass a name, for example model("gpt-4o", messages=...)'
        )
    prefix, colon, rest = model.partition(":")
    base_url = _checked(request.get("base_url"))
    if base_url is not None:
        if colon and prefix in ("openai", "anthropic"):
            return _official(prefix, rest, base_url, request)
        return _official("openai", model, base_url, request)
    if colon and prefix == "local":
        return _local(rest)
    if colon and prefix in ("openai", "anthropic"):
        return _official(prefix, rest, None, request)
    if _OPENAI_NAMES.match(model):
        return _official("openai", model, None, request)
    if _ANTHROPIC_NAMES.match(model):
        return _official("anthropic", model, None, request)
    return _other(model, prefix if colon else None, rest, request)


def _checked(base_url: object) -> str | None:
    if base_url is None:
        return None
    if not isinstance(base_url, str) or urlsplit(base_url).scheme not in ("http", "https"):
        raise ProviderError(
            f"base_url {base_url!r} is no http or https address", hint="http://127.0.0.1:8000/v1"
        )
    if "@" in urlsplit(base_url).netloc:
        raise ProviderError(
            "base_url holds a user name or password, which would be written into the trace",
            hint="put the credential in a variable and name it with api_key_env=",
        )
    return base_url


def _official(api: str, model: str, base_url: str | None, request: Mapping[str, Any]) -> Route:
    name: Api = "anthropic" if api == "anthropic" else "openai"
    if importlib.util.find_spec(name) is None:
        raise ProviderError(
            f"calling {model} needs the package {name}, which is not installed",
            hint=_INSTALL.format(extra="models"),
            package=name,
        )
    variable = f"{name.upper()}_BASE_URL"
    url = base_url if base_url is not None else _checked(os.environ.get(variable) or None)
    key, bearer = _key(name, request)
    if key is None:
        if url is None:
            raise ModelError(
                "auth",
                f"no credential for {name}: {name.upper()}_API_KEY is not set",
                provider=name,
                model=model,
                hint=f"set {name.upper()}_API_KEY, or base_url= / {variable} for a server of your own",
            )
        key = _UNCHECKED_KEY
    return Route(name, name, model, url, key, bearer)


def _key(api: str, request: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The credential, and whether it goes as a bearer token (Anthropic has two kinds)."""
    given = request.get("api_key")
    if isinstance(given, str) and given:
        return given, False
    variable = request.get("api_key_env")
    if variable is not None:
        key = os.environ.get(str(variable))
        if not key:
            raise ProviderError(
                f"api_key_env names {variable}, which is not set", hint=f"set {variable} to the key"
            )
        return key, False
    key = os.environ.get(f"{api.upper()}_API_KEY")
    if not key and api == "anthropic" and (token := os.environ.get("ANTHROPIC_AUTH_TOKEN")):
        return token, True
    return key or None, False


def _local(name: str) -> Route:
    from agentloom.adapters import local  # starts a process: only when a local model is asked for

    if importlib.util.find_spec("openai") is None:
        raise ProviderError(
            "calling a local model needs the package openai, which is not installed",
            hint=_INSTALL.format(extra="demo"),
            package="openai",
        )
    place = local.endpoint(name)
    return Route("openai", "local", place.model, place.base_url, place.api_key)


def _other(model: str, prefix: str | None, rest: str, request: Mapping[str, Any]) -> Route:
    if prefix is not None and importlib.util.find_spec("any_llm") is not None:
        from any_llm import LLMProvider

        if prefix in {provider.value for provider in LLMProvider}:
            key, _ = (
                _key(prefix, request)
                if request.get("api_key_env") or request.get("api_key")
                else (None, False)
            )
            return Route("any-llm", prefix, rest, None, key)
    if os.environ.get("OPENAI_BASE_URL"):  # a server of one's own names its models as it likes
        return _official("openai", model, None, request)
    if prefix is None:
        hint = "write provider:model (openai:..., anthropic:..., local:...), or pass base_url= for a server of your own"
        raise ModelError(
            "not_found", f"no provider is known for the model {model!r}", provider="", model=model, hint=hint
        )
    install = _INSTALL.format(extra="providers")
    hint = f"other providers need {install}; or pass base_url= for an OpenAI-compatible server"
    raise ModelError(
        "not_found",
        f"no provider {prefix!r} is known (model {model!r})",
        provider=prefix,
        model=rest,
        hint=hint,
    )
