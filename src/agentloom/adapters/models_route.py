"""Where a model call goes: protocol, server, credential, from the model's name and the environment.

Names: ``gpt-4o``, ``o3`` (OpenAI); ``claude-haiku-4-5`` (Anthropic); ``local:smollm2`` (this machine);
``provider:model`` (``openai:``, ``anthropic:``, ``gemini:``, ``vertex:``, ``bedrock:``, ``azure-openai:``, a host of
`models_hosts`, or a provider of the library that ``docs/adr/0007`` chose). With ``base_url=`` in the request the name
goes as it is to that server, in the OpenAI protocol unless a prefix names another. ``api="responses"`` asks for
OpenAI's Responses API in place of chat completions.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from agentloom.adapters.models_hosts import HOSTS, Host
from agentloom.errors import ModelError, ProviderError

__all__ = ["Route", "find_route"]

Api = Literal["openai", "responses", "anthropic", "any-llm", "google", "bedrock", "bedrock-invoke"]

_OPENAI_NAMES = re.compile(r"^(gpt-|chatgpt-|o\d|ft:|codex-|computer-use-)")
_AZURE = ("azure-openai", "azureopenai")
_NATIVE = ("gemini", "google", "vertex", "vertexai", "bedrock")
_GOOGLE_NAMES = re.compile(r"^gemini-")
_ANTHROPIC_NAMES = re.compile(r"^claude-")
_INSTALL = "pip install 'agentloom-runtime[{extra}]'"
_UNCHECKED_KEY = "unused"  # servers without keys accept anything; the SDKs refuse to send nothing


@dataclass(frozen=True, slots=True)
class Route:
    """``api`` is the protocol; ``model`` is the name to send; ``api_key`` never appears in a repr, an error or a trace.
    ``api_version``: of an Azure resource whose addresses have a dated version. ``region``: of AWS, for signatures."""

    api: Api
    provider: str
    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    bearer: bool = False
    api_version: str | None = None
    region: str = ""


def find_route(request: Mapping[str, Any]) -> Route:
    """Decide where ``request`` goes. Starts nothing but a local model's server; sends nothing.

    ModelError (kind ``auth`` or ``not_found``) or ProviderError, each with the remedy, when it cannot go anywhere.
    """
    route = _place(request)
    wanted = request.get("api")
    if wanted in (None, "chat"):
        return route
    if wanted == "invoke" and route.api == "bedrock":
        return replace(route, api="bedrock-invoke")
    if wanted != "responses":
        raise ProviderError(
            f"there is no api {wanted!r}",
            hint='api="chat" (chat completions) or api="responses"; of Bedrock, api="invoke"',
        )
    if route.api != "openai":
        raise ProviderError(
            f"{route.provider} has no Responses API (model {route.model})",
            hint="leave out api=, or name a model of OpenAI or of a server that speaks its protocols",
        )
    return replace(route, api="responses")


def _place(request: Mapping[str, Any]) -> Route:
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise ProviderError(
            "the request names no model", hint='pass a name, for example model("gpt-4o", messages=...)'
        )
    prefix, colon, rest = model.partition(":")
    base_url = _checked(request.get("base_url"))
    if colon and prefix in _AZURE:
        return _azure(rest, base_url, request)
    if colon and prefix in _NATIVE:
        return _native(prefix, rest, base_url, request)
    if base_url is not None:
        if colon and prefix in ("openai", "anthropic"):
            return _official(prefix, rest, base_url, request)
        return _official("openai", model, base_url, request)
    if colon and prefix == "local":
        return _local(rest)
    if colon and prefix in ("openai", "anthropic"):
        return _official(prefix, rest, None, request)
    if colon and prefix in HOSTS:
        return _hosted(prefix, HOSTS[prefix], rest, request)
    if _OPENAI_NAMES.match(model):
        return _official("openai", model, None, request)
    if _ANTHROPIC_NAMES.match(model):
        return _official("anthropic", model, None, request)
    if _GOOGLE_NAMES.match(model):
        return _native("gemini", model, None, request)
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


def _hosted(name: str, host: Host, model: str, request: Mapping[str, Any]) -> Route:
    """A host that speaks OpenAI's protocol, through OpenAI's SDK."""
    _needs_openai(f"{name}:{model}")
    key = _given_key(request) or host.key()
    if key is None and not host.keyless:
        raise ModelError(
            "auth",
            f"no credential for {name}: {host.keys[0]} is not set",
            provider=name,
            model=model,
            hint=f"set {host.keys[0]}",
        )
    return Route("openai", name, model, _checked(host.address()), key or _UNCHECKED_KEY)


def _native(prefix: str, model: str, base_url: str | None, request: Mapping[str, Any]) -> Route:
    """Google and Amazon Bedrock, in their own protocols."""
    from agentloom.adapters import models_native_route  # imports this module for `Route`

    return models_native_route.native_route(prefix, model, base_url, _given_key(request))


def _azure(model: str, base_url: str | None, request: Mapping[str, Any]) -> Route:
    """A deployment of Azure OpenAI: ``model`` is its name. Addresses are those of the v1 API, or, where
    ``OPENAI_API_VERSION`` is set, the dated ones, with the key in a header of its own."""
    _needs_openai(f"azure-openai:{model}")
    endpoint = base_url or _checked(os.environ.get("AZURE_OPENAI_ENDPOINT") or None)
    if endpoint is None:
        raise ProviderError(
            f"it is not known where the deployment {model} is",
            hint="set AZURE_OPENAI_ENDPOINT (https://NAME.openai.azure.com), or pass base_url=",
        )
    key = _given_key(request) or os.environ.get("AZURE_OPENAI_API_KEY")
    token = None if key else os.environ.get("AZURE_OPENAI_AD_TOKEN")
    if not (key or token):
        raise ModelError(
            "auth",
            "no credential for azure-openai: AZURE_OPENAI_API_KEY is not set",
            provider="azure-openai",
            model=model,
            hint="set AZURE_OPENAI_API_KEY, or AZURE_OPENAI_AD_TOKEN",
        )
    root = endpoint.rstrip("/").removesuffix("/openai/v1").removesuffix("/openai")
    version = os.environ.get("OPENAI_API_VERSION") or None
    dated = version is not None and version not in ("v1", "latest", "preview")
    url = f"{root}/openai" if dated else f"{root}/openai/v1"
    return Route("openai", "azure-openai", model, url, key or token, not key, version if dated else None)


def _needs_openai(model: str) -> None:
    if importlib.util.find_spec("openai") is None:
        raise ProviderError(
            f"calling {model} needs the package openai, which is not installed",
            hint=_INSTALL.format(extra="models"),
            package="openai",
        )


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
    given = _given_key(request)
    if given is not None:
        return given, False
    key = os.environ.get(f"{api.upper()}_API_KEY")
    if not key and api == "anthropic" and (token := os.environ.get("ANTHROPIC_AUTH_TOKEN")):
        return token, True
    return key or None, False


def _given_key(request: Mapping[str, Any]) -> str | None:
    """The key that the request gives or names."""
    given = request.get("api_key")
    if isinstance(given, str) and given:
        return given
    variable = request.get("api_key_env")
    if variable is None:
        return None
    key = os.environ.get(str(variable))
    if not key:
        raise ProviderError(
            f"api_key_env names {variable}, which is not set", hint=f"set {variable} to the key"
        )
    return key


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
            return Route("any-llm", prefix, rest, None, _given_key(request))
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
