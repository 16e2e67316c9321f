"""All SDK adapters of this package, switched on together."""

from __future__ import annotations

from functools import partial

from agentloom.adapters import httpx_seam, openai_sdk
from agentloom.adapters.imports import when_imported

__all__ = ["watch"]


def watch() -> None:
    """Patch every SDK that this package knows, now or when the program imports it. Idempotent."""
    for name in httpx_seam.MODULES:
        when_imported(name, partial(httpx_seam.install, classify=openai_sdk.classify))
    when_imported("openai._base_client", openai_sdk.install)
