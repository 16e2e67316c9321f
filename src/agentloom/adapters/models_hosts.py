"""Hosts that speak OpenAI's chat protocol: where they are, whose key, and where they differ from OpenAI.

They are reached through OpenAI's own SDK, so that what was recorded is what is sent and nothing of an answer is lost.
A line here says only what a host documents or what its recorded traffic shows. Sources: the API references of the
hosts; ``docs/adr/0007-model-providers.md`` says which hosts are not here and why.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

__all__ = ["HOSTS", "OPENAI", "Host", "host_of"]

_LIMIT = MappingProxyType({"max_completion_tokens": "max_tokens"})


@dataclass(frozen=True, slots=True)
class Host:
    """One host.

    ``keys`` and ``urls``: variables that hold its key and that name another address, the first that is set counts.
    ``place``: a variable that names the address without its path, with or without a scheme. ``keyless``: it needs no
    key. ``asks_usage``: a stream may ask for its token counts with ``stream_options`` (the others refuse the field,
    and count without being asked). ``renames``: parameters of OpenAI's that it knows by another name only.
    ``gives_back``: fields of an answer's message that it wants back in the history; ``gives_back_with_calls``: the
    same, in messages with tool calls alone. ``short_ids``: ids of tool calls have nine letters or digits.
    ``padding``: fields of a chunk that hold nothing and differ each time.
    """

    url: str
    keys: tuple[str, ...]
    urls: tuple[str, ...]
    place: str | None = None
    keyless: bool = False
    asks_usage: bool = True
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    gives_back: tuple[str, ...] = ()
    gives_back_with_calls: tuple[str, ...] = ()
    short_ids: bool = False
    padding: frozenset[str] = frozenset(["obfuscation"])

    def key(self) -> str | None:
        """The key of the environment, or None."""
        return _set(self.keys)

    def address(self) -> str:
        """The base URL: of the environment, or the host's own."""
        named = _set(self.urls)
        place = os.environ.get(self.place) if self.place else None
        return named or (_from_place(place, urlsplit(self.url).port) if place else self.url)


def _from_place(place: str, port: int | None) -> str:
    parts = urlsplit(place if "://" in place else f"http://{place}")
    where = parts.netloc if parts.port or "://" in place or port is None else f"{parts.netloc}:{port}"
    return f"{parts.scheme}://{where}/v1"


def _set(variables: tuple[str, ...]) -> str | None:
    return next((value for name in variables if (value := os.environ.get(name))), None)


OPENAI = Host("", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",))
"""OpenAI, and any server whose ways are not known: it gets requests as they are."""


def _variables(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (f"{name}_API_KEY",), (f"{name}_BASE_URL", f"{name}_API_BASE")


HOSTS: Mapping[str, Host] = MappingProxyType(
    {
        "cerebras": Host("https://api.cerebras.ai/v1", *_variables("CEREBRAS")),
        # Tool calls of a thinking model are refused without the thinking that led to them.
        "deepseek": Host(
            "https://api.deepseek.com",
            *_variables("DEEPSEEK"),
            renames=_LIMIT,
            gives_back_with_calls=("reasoning_content",),
        ),
        "fireworks": Host("https://api.fireworks.ai/inference/v1", *_variables("FIREWORKS")),
        "groq": Host("https://api.groq.com/openai/v1", *_variables("GROQ")),
        "huggingface": Host(
            "https://router.huggingface.co/v1",
            ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
            ("HUGGINGFACE_BASE_URL", "HUGGINGFACE_API_BASE"),
        ),
        # Refuses fields that it does not know (422), so OpenAI's names for its own must be turned.
        "mistral": Host(
            "https://api.mistral.ai/v1",
            *_variables("MISTRAL"),
            asks_usage=False,
            renames=MappingProxyType({**_LIMIT, "seed": "random_seed"}),
            short_ids=True,
            padding=frozenset(["obfuscation", "p"]),
        ),
        # Takes `max_completion_tokens` without a word and generates without a limit.
        "ollama": Host(
            "http://127.0.0.1:11434/v1",
            ("OLLAMA_API_KEY",),
            ("OLLAMA_BASE_URL", "OLLAMA_API_BASE"),
            place="OLLAMA_HOST",
            keyless=True,
            renames=_LIMIT,
        ),
        "openrouter": Host(
            "https://openrouter.ai/api/v1", *_variables("OPENROUTER"), gives_back=("reasoning_details",)
        ),
        "perplexity": Host(
            "https://api.perplexity.ai",
            ("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
            ("PERPLEXITY_BASE_URL", "PERPLEXITY_API_BASE"),
            asks_usage=False,
            renames=_LIMIT,
        ),
        "together": Host("https://api.together.xyz/v1", *_variables("TOGETHER"), renames=_LIMIT),
        "xai": Host("https://api.x.ai/v1", *_variables("XAI")),
        "zai": Host("https://api.z.ai/api/paas/v4", *_variables("ZAI")),
    }
)
"""By the prefix of a model's name. Azure is not among them: its addresses are made (`models_route`)."""


def host_of(provider: str) -> Host:
    """The ways of a provider; those of OpenAI for one without an entry."""
    return HOSTS.get(provider, OPENAI)
