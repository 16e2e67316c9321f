"""SDKs that Stainless generates (openai, anthropic): waits between their retries become ``sleep`` calls, and clients
that are dropped do not become tasks of the run.

Nothing of an SDK is imported before the program does; ``install`` gets the module that the program imported.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.httpx_seam import close_outside
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.scope import current

__all__ = ["install"]


def install(base_client: ModuleType) -> None:
    """Patch the module ``SDK._base_client``. Idempotent; outside a run the SDK waits as it always did. Raises
    ``NotSupported`` for a release that is built in another way."""
    module = cast(Any, base_client)
    sdk = base_client.__name__.partition(".")[0]
    if getattr(module, "__agentloom__", False):
        return
    for cls in (module.SyncAPIClient, module.AsyncAPIClient):
        if not callable(getattr(cls, "_sleep_for_retry", None)):
            raise NotSupported(
                f"this release of {sdk} has no {cls.__name__}._sleep_for_retry: its retries cannot be recorded",
                hint=f"install a release of {sdk} that agentloom's tests name",
            )
    _patch_blocking(module.SyncAPIClient, sdk, module.log)
    _patch_awaited(module.AsyncAPIClient, sdk, module.log)
    _patch_finalizer(module.AsyncHttpxClientWrapper)
    module.__agentloom__ = True


def _spec(sdk: str, kwargs: Mapping[str, Any]) -> CallSpec:
    # The seconds are the outcome, not the request: the SDK draws them at random.
    return CallSpec("sleep", f"{sdk} retry", {"retry": kwargs["retries_taken"] + 1})


def _seconds(client: Any, kwargs: Mapping[str, Any]) -> float:
    response = kwargs.get("response")
    left = kwargs["max_retries"] - kwargs["retries_taken"]
    headers = None if response is None else response.headers
    return float(client._calculate_retry_timeout(left, kwargs["options"], headers))


def _tell(log: logging.Logger, sdk: str, seconds: Any, kwargs: Mapping[str, Any]) -> None:
    """The SDK's own lines of its log."""
    left = kwargs["max_retries"] - kwargs["retries_taken"]
    log.debug("1 retry left") if left == 1 else log.debug("%i retries left", left)
    if sdk == "openai":
        retry, most = kwargs["retries_taken"] + 1, kwargs["max_retries"]
        log.info("Retrying request in %f seconds (retry %i of %s)", seconds, retry, most)
    else:
        log.info("Retrying request to %s in %f seconds", kwargs["options"].url, seconds)


def _patch_blocking(cls: Any, sdk: str, log: logging.Logger) -> None:
    original = cls._sleep_for_retry

    def _sleep_for_retry(self: Any, **kwargs: Any) -> None:
        if current() is None:
            original(self, **kwargs)
            return

        def wait(_: object) -> float:
            seconds = _seconds(self, kwargs)
            time.sleep(seconds)
            return seconds

        _tell(log, sdk, call_inline(_spec(sdk, kwargs), wait), kwargs)

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


def _patch_awaited(cls: Any, sdk: str, log: logging.Logger) -> None:
    original = cls._sleep_for_retry

    async def _sleep_for_retry(self: Any, **kwargs: Any) -> None:
        if current() is None:
            await original(self, **kwargs)
            return

        async def wait(_: object) -> float:
            seconds = _seconds(self, kwargs)
            await asyncio.sleep(seconds)
            return seconds

        _tell(log, sdk, await call_async(_spec(sdk, kwargs), wait), kwargs)

    cls._sleep_for_retry = _sleep_for_retry
