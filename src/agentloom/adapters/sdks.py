"""All SDK adapters of this package, switched on together."""

from __future__ import annotations

import platform
from functools import partial

from agentloom.adapters import httpx_seam, openai_sdk
from agentloom.adapters.imports import when_imported

__all__ = ["watch"]


def watch() -> None:
    """Patch every SDK that this package knows, now or when the program imports it. Idempotent.

    Call it before a run begins: it also asks for the platform facts that SDKs send, because finding them starts a
    process (``uname -p``) and reads files the first time. The standard library keeps the answers.
    """
    _ = platform.uname().processor
    platform.platform()
    for name in httpx_seam.MODULES:
        when_imported(name, partial(httpx_seam.install, classify=openai_sdk.classify))
    when_imported("openai._base_client", openai_sdk.install)
