"""``print`` of a script, which writes each of its arguments by itself: what other threads print comes before
it or after it. Apart from what else is done to streams: functions of this file stand in the place of Python's
own, and count as those."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from typing import Any, cast

from agentloom.runtime.guard_names import stand_in

__all__ = ["Print", "printing"]

Pieces = list[tuple[str, bytes]]
"""Streams by name, and what was written to them."""


class Print(threading.local):
    """What ``print`` has written so far in this thread (``gathered``); None where it is not under way.
    ``written`` takes it when it is complete."""

    gathered: Pieces | None = None

    def __init__(self, written: Callable[[Pieces], None]) -> None:
        self.written = written


def printing(real: Callable[..., None], held: Print) -> Callable[..., None]:
    """What stands in the place of ``print``, which is ``real``."""

    def printed(_: object, *args: Any, **kwargs: Any) -> None:
        if held.gathered is not None:  # in the text of an argument
            real(*args, **kwargs)
            return
        held.gathered = []
        try:
            real(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = None if error.__traceback__ is None else error.__traceback__.tb_next
            raise
        finally:
            pieces, held.gathered = held.gathered, None
            held.written(pieces)

    return cast("Callable[..., None]", stand_in(builtins, real, printed))
