"""The openai SDK, unmodified: its chat completions become ``model`` calls, the waits between its retries ``sleep``.

Nothing of the SDK is imported before the program does; ``install`` gets the module that the program imported.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.httpx_seam import close_outside
from agentloom.adapters.httpx_transports import Classified, Exchange
from agentloom.adapters.models_usage import chat_usage
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.scope import current

__all__ = ["PROFILE", "classify", "install"]

PROFILE = "openai.chat/1"
_log = logging.getLogger("openai._base_client")


def classify(exchange: Exchange) -> Classified | None:
    """``POST .../chat/completions`` as a model call whose request is the body as sent; None for anything else."""
    body = exchange.json
    if exchange.method != "POST" or not exchange.path.endswith("/chat/completions") or body is None:
        return None
    model = body.get("model")
    name = model if isinstance(model, str) and model else "unknown"
    spec = CallSpec("model", name, body, profile=PROFILE, series=f"model:{name}", stream=exchange.streamed)
    return Classified(spec, _usage)


def _usage(answer: Any) -> Mapping[str, int] | None:
    """Token counts of a chat completion or of one chunk of its stream, under the names that all model calls share;
    absent ones are left out."""
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    counts = chat_usage(fields.get("usage")) or {}
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def install(base_client: ModuleType) -> None:
    """Patch ``openai._base_client``. Idempotent; outside a run the SDK waits as it always did."""
    module = cast(Any, base_client)
    if getattr(module, "__agentloom__", False):
        return
    for cls in (module.SyncAPIClient, module.AsyncAPIClient):
        if not callable(getattr(cls, "_sleep_for_retry", None)):
            raise NotSupported(
                f"this release of openai has no {cls.__name__}._sleep_for_retry: its retries cannot be recorded",
                hint="install a release of openai that agentloom's tests name",
            )
    _patch_blocking(module.SyncAPIClient)
    _patch_awaited(module.AsyncAPIClient)
    _patch_finalizer(module.AsyncHttpxClientWrapper)
    module.__agentloom__ = True


def _spec(retry: int) -> CallSpec:
    # The seconds are the outcome, not the request: the SDK draws them at random.
    return CallSpec("sleep", "openai retry", {"retry": retry})


def _seconds(client: Any, kwargs: Mapping[str, Any]) -> float:
    response = kwargs.get("response")
    left = kwargs["max_retries"] - kwargs["retries_taken"]
    headers = None if response is None else response.headers
    return float(client._calculate_retry_timeout(left, kwargs["options"], headers))


def _tell(seconds: Any, kwargs: Mapping[str, Any]) -> None:
    retry, most = kwargs["retries_taken"] + 1, kwargs["max_retries"]
    _log.info("Retrying request in %f seconds (retry %i of %s)", seconds, retry, most)


def _patch_blocking(cls: Any) -> None:
    original = cls._sleep_for_retry

    def _sleep_for_retry(self: Any, **kwargs: Any) -> None:
        if current() is None:
            original(self, **kwargs)
            return

        def wait(_: object) -> float:
            seconds = _seconds(self, kwargs)
            time.sleep(seconds)
            return seconds

        _tell(call_inline(_spec(kwargs["retries_taken"] + 1), wait), kwargs)

    cls._sleep_for_retry = _sleep_for_retry


def _patch_finalizer(cls: Any) -> None:
    """A client that is dropped schedules its own closing on the running loop. When that happens is up to the garbage
    collector, so in a run it must not become a task of the run."""
    original = cls.__del__

    def __del__(self: Any, *, scope: Callable[[], object] = current) -> None:  # noqa: N807 - the name is Python's
        # Bound early: when the interpreter ends, the names of this module may be gone before the last client.
        if scope() is None:
            original(self)
        elif not self.is_closed:
            close_outside(self._transport)

    cls.__del__ = __del__


def _patch_awaited(cls: Any) -> None:
    original = cls._sleep_for_retry

    async def _sleep_for_retry(self: Any, **kwargs: Any) -> None:
        if current() is None:
            await original(self, **kwargs)
            return

        async def wait(_: object) -> float:
            seconds = _seconds(self, kwargs)
            await asyncio.sleep(seconds)
            return seconds

        _tell(await call_async(_spec(kwargs["retries_taken"] + 1), wait), kwargs)

    cls._sleep_for_retry = _sleep_for_retry
