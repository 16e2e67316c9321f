"""``State``: what a step of a workflow sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentloom.format.values import decode, encode
from agentloom.runtime.registry import TYPES

__all__ = ["State", "Why", "state_of", "why_absent"]

Why = Callable[[str], "str | None"]
"""Why a step does not see a name; None where it is no name at all."""


class State(Mapping[str, Any]):
    """What a step sees: the run's ``input`` and the results of the steps before, by name; ``item`` and ``index`` where
    the step runs once for each item of a list.

    ``state["classify"]`` and ``state.classify`` are the same. Each read gives a fresh copy and is noted: the trace
    says which fields a step read. A step that did not run has no result: ``state["fix"]`` is a ``KeyError`` that says
    why, ``state.get("fix")`` is None, and ``"fix" in state`` is False.
    """

    def __init__(self, given: object, results: Mapping[str, object]) -> None:
        self._fields: dict[str, object] = {"input": given, **results}
        self._why: Why = _nothing_known
        self._visit = 1
        self._reads: list[str] = []

    def __getitem__(self, name: str) -> Any:
        known = name in self._fields
        why = None if known else self._why(name)
        if (known or why) and name not in self._reads:
            self._reads.append(name)
        if why:
            raise KeyError(f"{name!r} has no result here: {why}")
        if not known:
            raise KeyError(
                f"{name!r} is not a field of the state; it has {', '.join(self._fields) or 'none'}"
            )
        return decode(encode(self._fields[name], TYPES), TYPES)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"state.{name} cannot be set: a step's result is what it returns", name=name, obj=self
            )
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<State of {', '.join(self._fields) or 'nothing'}>"

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def visit(self) -> int:
        """How often the run has come to this step, from 1: more than 1 where a loop went back."""
        return self._visit

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields read so far, in the order of their first reading."""
        return tuple(self._reads)


def state_of(fields: Mapping[str, object], why: Why, *, visit: int = 1) -> State:
    """A state of exactly ``fields``; ``why`` says of other names why they have no result (None: they are unknown)."""
    made = State(None, {})
    made._fields, made._why, made._visit = dict(fields), why, visit  # pyright: ignore[reportPrivateUsage]
    return made


def why_absent(state: State) -> Why:
    """What the state says of names that it has no result for."""
    return state._why  # pyright: ignore[reportPrivateUsage]


def _nothing_known(name: str) -> None:
    """Nobody knows more of a name than that it is no field."""
