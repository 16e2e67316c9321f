"""All SDK adapters of this package, switched on together."""

from __future__ import annotations

import platform
from collections.abc import Callable
from types import ModuleType

from agentloom.adapters import (
    aiohttp_seam,
    api_anthropic,
    api_google,
    api_openai,
    httpx_seam,
    stainless_sdk,
    urllib3_seam,
    urllib_seam,
)
from agentloom.adapters.exchanges import claim
from agentloom.adapters.imports import when_imported
from agentloom.adapters.releases import RANGES, check, say
from agentloom.errors import NotSupported

__all__ = ["watch"]

_PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "aiohttp": aiohttp_seam.install,
    "httpx": httpx_seam.install,
    "httpx2": httpx_seam.install,
    "urllib3": urllib3_seam.install,
    "requests": urllib3_seam.install_requests,
    "urllib.request": urllib_seam.install,
    "openai._base_client": stainless_sdk.install,
    "anthropic._base_client": stainless_sdk.install,
}
"""What is done to a module when it is imported."""


def watch() -> None:
    """Patch every SDK that this package knows, now or when the program imports it. Idempotent.

    Call it before a run begins: it also asks for the platform facts that SDKs send, because finding them starts a
    process (``uname -p``) and reads files the first time. The standard library keeps the answers.
    """
    _ = platform.uname().processor
    platform.platform()
    for api in (api_anthropic, api_google, api_openai):
        claim(api.classify)
    for name in {**_PATCHES, **RANGES}:
        when_imported(name, _patch)


def _patch(module: ModuleType) -> None:
    """Check the release and patch. What cannot be patched is named in a warning: the program goes on without it."""
    name = module.__name__
    check(name)
    patch = _PATCHES.get(name)
    if patch is None:
        return
    try:
        patch(module)
    except NotSupported as error:
        known = RANGES.get(name.partition("._")[0])
        tested = f"; tested: {known}" if known else ""
        say(
            f"{name} patch",
            f"the adapter {name} does not fit, so its calls are not recorded: {error}{tested}",
        )
