"""Taking the network away from this process, where the operating system lets an ordinary user do that (Linux)."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["leave_network"]

_NEWUSER = 0x10000000
_NEWNET = 0x40000000


def leave_network() -> bool:
    """Move this process into a network namespace of its own, which has no way out, not even to loopback.

    Must be called while the process has one thread. False where the system does not allow it; nothing has changed
    then. The process keeps its user and group ids and its rights on files.
    """
    if not sys.platform.startswith("linux"):
        return False
    user, group = os.getuid(), os.getgid()
    if _unshare(_NEWNET):
        return True
    if not _unshare(_NEWUSER | _NEWNET):
        return False
    _map("/proc/self/setgroups", "deny")
    _map("/proc/self/uid_map", f"{user} {user} 1")
    _map("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _unshare(flags: int) -> bool:
    if sys.version_info >= (3, 12):
        try:
            os.unshare(flags)
        except OSError:
            return False
        return True
    libc = ctypes.CDLL(None, use_errno=True)
    function = getattr(libc, "unshare", None)
    return function is not None and function(flags) == 0


def _map(path: str, text: str) -> None:
    """Keep the ids as they were; without a map files still open, only ``getuid`` would answer otherwise."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"agentloom: {path}: {error.strerror}; the program sees other user ids\n")
