"""Locks of this package in processes that are forked: there they are free, whoever held them when that happened.

A thread that holds a lock is not in the child, and would never let go of it there. What a lock guards is left as it was
in the middle of a few steps at worst; nothing here is more than a table.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

__all__ = ["free_in_children"]

L = TypeVar("L")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def free_in_children(lock: L) -> L:
    """``lock`` (of ``threading``), which from now on is free in every process that is forked off this one."""
    _locks.add(lock)
    return lock


def _after_fork() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # what ``threading`` does with its own; there is no public way


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
