"""Which exit handlers a script registers. Apart from what else is done to a script: functions of this file
stand in the place of Python's own, and count as those."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Callable, Generator
from typing import Any, cast

from agentloom.cli.script_kinds import is_own
from agentloom.runtime.guard_names import stand_in

__all__ = ["EXITS", "exits_told"]

EXITS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
"""Those that the program has registered: the function, its arguments."""


@contextlib.contextmanager
def exits_told() -> Generator[None]:
    """For the block, it is known which exit handlers the program registers; libraries have their own."""
    register, unregister = atexit.register, atexit.unregister

    def registering(_: object, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        made = register(function, *args, **kwargs)
        if is_own(sys.modules.get(getattr(function, "__module__", None) or "")):
            EXITS.append((function, args, kwargs))
        return made

    def unregistering(_: object, function: Any, /) -> None:
        unregister(function)
        EXITS[:] = [one for one in EXITS if one[0] != function]

    cast(Any, atexit).register = stand_in(atexit, register, registering)
    cast(Any, atexit).unregister = stand_in(atexit, unregister, unregistering)
    try:
        yield
    finally:
        cast(Any, atexit).register, cast(Any, atexit).unregister = register, unregister
