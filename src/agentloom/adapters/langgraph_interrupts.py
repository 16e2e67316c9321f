"""A tool of a graph that asks a person: what ``interrupt()`` did in it is done again where it does not run.

LangGraph keeps the answers with the task that asked: how many were asked for, and which were given. A tool that runs
gets a counter of its own and a place of its own for what it writes; both reach the task with the tool's result, in both
modes, so that tools side by side do not depend on each other's timing.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, cast

__all__ = ["ToolInterrupts"]

_SCRATCHPAD, _SEND, _RESUME = "__pregel_scratchpad", "__pregel_send", "__resume__"


class ToolInterrupts:
    """Of one tool call in a node of a graph (``framework_tools.Also``)."""

    def __init__(self, config: dict[str, Any], scratchpad: Any) -> None:
        self._config = config
        self._scratchpad = scratchpad
        self._send: Any = config["configurable"].get(_SEND)
        self._asked = 0
        self._given: list[list[Any]] = []
        self._taken: list[Any] = []

    @classmethod
    def here(cls) -> ToolInterrupts | None:
        """For a tool that runs in a node of a graph; None elsewhere."""
        if "langgraph.types" not in sys.modules:
            return None
        from langgraph.config import get_config

        try:
            config = cast("dict[str, Any]", get_config())
        except RuntimeError:
            return None
        scratchpad = config.get("configurable", {}).get(_SCRATCHPAD)
        if scratchpad is None or not dataclasses.is_dataclass(scratchpad):
            return None
        return cls(config, scratchpad)

    def before(self) -> None:
        """In the tool's own context ``interrupt()`` counts and writes here."""
        from langchain_core.runnables.config import var_child_runnable_config

        pad: Any = dataclasses.replace(
            self._scratchpad, interrupt_counter=self._count, get_null_resume=self._take
        )
        inner = {**self._config["configurable"], _SCRATCHPAD: pad, _SEND: self._write}
        var_child_runnable_config.set(cast(Any, {**self._config, "configurable": inner}))

    def _count(self) -> int:
        self._asked += 1
        return int(self._scratchpad.interrupt_counter())

    def _take(self, consume: bool = False) -> Any:
        value = self._scratchpad.get_null_resume(consume)
        if consume and value is not None:
            self._taken.append(value)
        return value

    def _write(self, writes: Any) -> None:
        others: list[Any] = []
        for channel, value in writes:
            if channel == _RESUME:
                self._given.append(list(value))
            else:
                others.append((channel, value))
        if others:
            self._send(others)

    def after(self, error: BaseException | None) -> dict[str, Any] | None:
        """What it asked, which answers it had, and which of them were given to whoever asks next."""
        del error  # a question without an answer is one that was asked
        if not self._asked:
            return None
        return {"asked": self._asked, "given": self._given, "taken": self._taken}

    def again(self, done: dict[str, Any], *, ran: bool) -> None:
        """With the tool's result, in both modes; ``ran``: what it asked and took it did itself."""
        if not ran:
            for _ in range(done["asked"]):
                self._scratchpad.interrupt_counter()
            for _ in done["taken"]:
                value = self._scratchpad.get_null_resume(True)
                if value is not None:
                    self._scratchpad.resume.append(value)
        for answers in done["given"]:
            # Of tools side by side the one that had the most answers counts, as where they share one list.
            written = getattr(self._send, "__self__", ())
            most = max((len(value) for channel, value in written if channel == _RESUME), default=0)
            if len(answers) > most:
                self._send([(_RESUME, answers)])
