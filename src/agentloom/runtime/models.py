"""How the runtime finds who performs model calls. Providers register by entry point, so that this layer never
imports one: group ``agentloom.models``, or ``AGENTLOOM_MODEL_BACKEND=module:attribute``, or ``set_backend``."""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Protocol, cast

from agentloom.errors import ProviderError

__all__ = ["ModelBackend", "backend", "set_backend"]

_VARIABLE = "AGENTLOOM_MODEL_BACKEND"


class ModelBackend(Protocol):
    """Performs model calls. ``request`` is exactly what was recorded; answers and deltas are plain mappings
    (``agentloom.runtime.answers``).

    A backend that changes nothing in the requests, nor hands their parts to somebody who might, may say so with an
    attribute ``reads_only = True``: then long histories are not copied for it.
    """

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]: ...
    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]: ...
    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]: ...
    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]: ...


_backend: ModelBackend | None = None


def set_backend(chosen: ModelBackend | None) -> ModelBackend | None:
    """Use this backend for all model calls of the process (None: find it again). Returns the one before."""
    global _backend
    before, _backend = _backend, chosen
    return before


def backend() -> ModelBackend:
    """The backend of this process. ``ProviderError`` with the remedy when none is installed."""
    global _backend
    if _backend is None:
        _backend = _find()
    return _backend


def _find() -> ModelBackend:
    named = os.environ.get(_VARIABLE)
    if named:
        module, _, attribute = named.partition(":")
        try:
            return cast(ModelBackend, getattr(importlib.import_module(module), attribute or "backend"))
        except (ImportError, AttributeError) as error:
            raise ProviderError(
                f"{_VARIABLE}={named}: {error}", hint="name it module:attribute, as in my_models:backend"
            ) from error
    from importlib import metadata  # costs as much as asyncio to import, and is needed once a process at most

    found = sorted(metadata.entry_points(group="agentloom.models"), key=lambda entry: entry.name)
    if not found:
        raise ProviderError(
            "no model backend is installed",
            hint="pip install 'agentloom-runtime[models]', or set a backend of your own with agentloom.set_backend",
        )
    return cast(ModelBackend, found[0].load())
