"""Calls that belong to no run: they pass as ever, and are told once for each client.

Seams ask here for what they let through, from the first run of a process on (before, nothing is patched). Host work of
a run is not told, nor what somebody left out of the record on purpose.
"""

from __future__ import annotations

import logging
import os
import threading
from types import FrameType

from agentloom.runtime.installed import target_package
from agentloom.runtime.left_out import left_out_here
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.places import PACKAGE, SITES, is_library
from agentloom.runtime.scope import current
from agentloom.runtime.unrecorded import refuse_unrecorded
from agentloom.runtime.work import under_way

__all__ = ["client_of", "passes"]

_MOST = 100  # clients that are told apart
_told: set[str] = set()
_lock = free_in_children(threading.RLock())  # signal handlers and finalisers may ask in the middle of it
_log = logging.getLogger("agentloom.recording")


def passes(client: str, where: str = "") -> bool:
    """Whether a call of ``client`` (such as ``httpx2.AsyncClient``) to ``where`` belongs to no run."""
    if current() is not None:
        return False
    if under_way() is not None or left_out_here() is not None:
        return True
    to = f" to {where}" if where else ""
    if refuse_unrecorded(f"a call of {client}{to}"):
        return True
    with _lock:
        first = client not in _told and len(_told) < _MOST
        if first:
            _told.add(client)
    if first:
        _log.warning(
            "a call of %s%s belongs to no run: it passes, and is not recorded (told once for each client)."
            " If it should be: make it in an agent, or in record(...)",
            client, to,
        )  # fmt: skip
    return True


def client_of(frame: FrameType | None) -> str:
    """The package that acts in ``frame``: the innermost one that is not Python's own nor this one; empty where the
    program does it itself."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name):
            return ""
        if target := target_package(name):
            return target
        for site in SITES:
            if site in name and not name.startswith(PACKAGE):
                return name.partition(site)[2].split(os.sep)[0].removesuffix(".py")
        frame = frame.f_back
    return ""
