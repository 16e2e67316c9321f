"""What the measurement asks of a contestant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from benchmarks.agent import workload
from benchmarks.agent.workload import Message

__all__ = ["Contestant", "typed"]

_Decorated = TypeVar("_Decorated")


def typed(decorator: Any) -> Callable[[_Decorated], _Decorated]:
    """The decorator of a package that is not installed where types are checked, as one that changes no type."""
    return cast("Callable[[_Decorated], _Decorated]", decorator)


class Contestant:
    """A recorder with workload W written for it. Subclasses override what they can do."""

    records = True
    replays = True
    """Whether ``replay`` runs the agent again, answered from what was recorded."""
    grows = True
    """Whether a run four times as long is recorded too, to see how what it leaves grows."""
    folder: Path

    def prepare(self, folder: Path) -> None:
        """Not timed, before each recording. ``folder`` is new and empty."""
        self.folder = folder

    def bare(self, turns: int) -> list[Message]:
        """The agent without the recorder."""
        return workload.loop(workload.model, workload.tool, turns)

    def record(self, turns: int) -> Any:
        """Run the agent, recording into ``folder``; the messages, or a number of them."""
        raise NotImplementedError

    def replay(self, turns: int, edited_at: int | None = None) -> Any:
        """Run the agent from ``folder``. ``edited_at``: as in `workload.loop`; who notices it raises."""
        raise NotImplementedError

    def size(self) -> int:
        """Bytes of what the last ``record`` left."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def close(self) -> None:
        """Stop what was started."""
