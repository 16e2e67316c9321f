"""What finalisers do when the garbage collector comes by is no part of a run: when it comes is nobody's decision.

For the time of a collection the run is left: code in it sees no run, and no inner loop but the one around it, so that a
task which a finaliser starts (clients close their connections so) is born there. A replay has none: then no loop runs.
Not meant: objects that go as soon as nobody holds them, which is the program's doing and the same each time.
"""

# The running loop is set through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
from asyncio import AbstractEventLoop, events
from contextvars import Token
from typing import Any, Literal

from agentloom.runtime.scope import Scope, here, put_back, set_aside

__all__ = ["watch_collector"]

_left: Token[Scope | None] | None = None
_loop: AbstractEventLoop | None = None


def watch_collector() -> None:
    """From now on runs are left while garbage is collected. Idempotent; cheap."""
    if _phase not in gc.callbacks:
        gc.callbacks.append(_phase)


def _phase(phase: Literal["start", "stop"], _: dict[str, int]) -> None:
    """Called by the collector, before and after, in the thread and the context that it came up in; never nested."""
    global _left, _loop
    if phase == "start":
        scope = here()
        if scope is None:
            return
        running: Any = events._get_running_loop()
        _left = set_aside()
        if hasattr(running, "fire_timer"):
            _loop = running
            events._set_running_loop(getattr(scope.session.source, "outer", None))
    elif _left is not None:
        left, _left = _left, None
        put_back(left)
        if _loop is not None:
            loop, _loop = _loop, None
            events._set_running_loop(loop)
