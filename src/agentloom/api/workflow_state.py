"""``State``: what a step of a workflow sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.format.values import decode, encode
from agentloom.runtime.registry import TYPES

__all__ = ["State"]


class State(Mapping[str, Any]):
    """What a step sees: the run's ``input`` and the results of the steps before, by name; ``item`` and ``index`` where
    the step runs once for each item of a list.

    ``state["classify"]`` and ``state.classify`` are the same. Each read gives a fresh copy and is noted: the trace
    says which fields a step read. A step that did not run has no result: ``state["fix"]`` is a ``KeyError`` that says
    why, ``state.get("fix")`` is None, and ``"fix" in state`` is False.
    """

    def __init__(
        self, given: object, results: Mapping[str, object], *, absent: Mapping[str, str] | None = None
    ) -> None:
        self._fields: dict[str, object] = {"input": given, **results}
        self._absent: Mapping[str, str] = absent or {}
        self._reads: list[str] = []

    @classmethod
    def of(cls, fields: Mapping[str, object], absent: Mapping[str, str]) -> State:
        """A state of exactly ``fields``; ``absent`` says why other names have no result."""
        made = cls(None, {}, absent=absent)
        made._fields = dict(fields)
        return made

    def __getitem__(self, name: str) -> Any:
        known = name in self._fields
        if (known or name in self._absent) and name not in self._reads:
            self._reads.append(name)
        if not known:
            raise KeyError(self._why_not(name))
        return decode(encode(self._fields[name], TYPES), TYPES)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields read so far, in the order of their first reading."""
        return tuple(self._reads)

    def _why_not(self, name: str) -> str:
        if name in self._absent:
            return f"{name!r} has no result here: {self._absent[name]}"
        return f"{name!r} is not a field of the state; it has {', '.join(self._fields) or 'none'}"
