"""What a running workflow tells those who watch it (``Workflow.stream``). Events never change what a run does.

The code inside a step calls ``told_text`` and ``told_retry``; without a watcher they do nothing. The values in events
are copies.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentloom.runtime.contexts import put

if TYPE_CHECKING:
    from agentloom.api.trace import Trace

__all__ = [
    "Decided",
    "Event",
    "Finished",
    "Retried",
    "StepFinished",
    "StepSkipped",
    "StepStarted",
    "Text",
    "at_step",
    "here",
    "is_watched",
    "tell",
    "told_retry",
    "told_text",
    "watched",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a step did. ``step`` is its name; below a sub-workflow ``outer/inner``. ``visit`` counts from 1;
    ``item`` is the index of the item where the step works through a list."""

    step: str
    visit: int = 1
    item: int | None = None


@dataclass(frozen=True, slots=True)
class StepStarted(Event):
    """A step begins."""


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """A step ended with ``value``."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class StepSkipped(Event):
    """A step does not run; ``why`` is ``"when"`` or ``"not taken"``."""

    why: str = "when"


@dataclass(frozen=True, slots=True)
class Decided(Event):
    """A step chose ``goto`` (None: to go on) among ``others``."""

    goto: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retried(Event):
    """Attempt number ``attempt`` failed with ``error``; the next one follows after ``delay`` seconds."""

    attempt: int = 1
    delay: float = 0.0
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Text(Event):
    """A piece of a model's answer, from a step with ``stream=True``."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over; ``trace`` is its record."""

    trace: Trace


Watcher = Callable[[Event], None]

_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("agentloom.watcher", default=None)
_place: contextvars.ContextVar[Event | None] = contextvars.ContextVar("agentloom.step", default=None)


def tell(event: Event) -> None:
    """Hand ``event`` to the watcher, if any."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(event)


def is_watched() -> bool:
    """Whether anybody gets the events; without, their values need not be copied."""
    return _watcher.get() is not None


def here() -> Event | None:
    """The step that runs here, its visit and its item; None outside a workflow."""
    return _place.get()


def told_text(text: str) -> None:
    """The step that runs here got a piece of its model's answer."""
    place = _place.get()
    if place is not None:
        tell(Text(place.step, place.visit, place.item, text))


def told_retry(attempt: int, delay: float, error: BaseException) -> None:
    """Attempt ``attempt`` of the step that runs here failed; the next follows after ``delay`` seconds."""
    place = _place.get()
    if place is not None:
        tell(Retried(place.step, place.visit, place.item, attempt, delay, error))


@contextmanager
def at_step(place: Event) -> Generator[None]:
    """Events of the block are of the step, visit and item of ``place``."""
    token = put(_place, place)
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def watched(watcher: Watcher) -> Generator[None]:
    """Runs that start in the block tell ``watcher`` what they do."""
    token = put(_watcher, watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
