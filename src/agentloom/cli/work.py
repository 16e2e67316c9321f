"""``agentloom work``: a loop that goes on with runs that were answered or are due."""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.asking import span
from agentloom.cli.exits import Exit, describe
from agentloom.cli.options import Settings, common
from agentloom.cli.resume import resumed
from agentloom.cli.runs import short
from agentloom.cli.script_endings import ENDING
from agentloom.cli.working import Backoff, Ready, ready_runs, state_of, still_ready
from agentloom.errors import LoomError, RunNotFound

if TYPE_CHECKING:
    from types import FrameType

    from agentloom.cli.script_parent import Child
    from agentloom.store import Store

__all__ = ["Worker", "command"]

_STYLES = {"completed": "good", "suspended": "warn"}
_ENDING = (signal.SIGINT, *ENDING)
_FINE = ("completed", "failed", "cancelled", "suspended")
"""What can come of a run that went on; anything else is the matter of whoever looks after the machine."""


@click.command(short_help="Go on with runs that were answered or are due.")
@click.option("--once", is_flag=True, help="Go on with what is ready now, and end: for cron.")
@click.option(
    "--every", type=click.FloatRange(0.05), default=5.0, show_default=True, metavar="SECONDS",
    help="How often to look.",
)  # fmt: skip
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="End after N runs.")
@common
def command(settings: Settings, *, once: bool, every: float, most: int | None) -> int:
    """Go on with the runs of the store that were answered, were sent a message, or are due, each in a process of its
    own, one after the other. Also with those whose process died while they were resumed.

    Several `agentloom work` at once share what there is: a run is gone on with by one of them. One that cannot go on
    (its code no longer fits, its file is gone) stops no other, and is left alone for a minute, then for two, up to an
    hour. SIGTERM and Ctrl-C end it when the run under way is over; a second one kills that, and it goes on later.

    JSON: one line for each run. Exit code 0; with --once 1 where a run could not go on.
    """
    worker = Worker(settings, settings.open_store())
    with worker.stopping():
        if not once:
            settings.screen().note(
                ("dim", f"looking every {every:g} s for runs that can go on; Ctrl-C ends it")
            )
        while not worker.stop.is_set():
            went = worker.look(None if most is None else most - worker.done)
            if once or (most is not None and worker.done >= most):
                break
            if not went:
                worker.stop.wait(every)
    worker.last_words()
    return Exit.ERROR if once and worker.troubled else Exit.OK


@dataclass(frozen=True, slots=True)
class Gone:
    """What came of one run. ``error``: why it could not go on."""

    run: str
    why: str
    status: str
    exit: int
    seconds: float
    error: dict[str, Any] | None = None


class Worker:
    """Goes on with runs of ``store``. ``done``: how many went on; ``troubled``: whether one could not; ``stop``: set by
    the first signal that asks it to end."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.stop = threading.Event()
        self.done = 0
        self.troubled = False
        self._backoff = Backoff()
        self._unread: set[tuple[str, str]] = set()
        self._under_way: str | None = None
        self._order = random.Random()

    def look(self, most: int | None = None) -> int:
        """Go on with everything that is ready now, at most ``most``; how many went on."""
        problems: list[tuple[str, LoomError]] = []
        found = ready_runs(self.store, time.time_ns(), problems)
        for run, error in problems:
            self._cannot_read(run, error)
        # Each worker in an order of its own, or all of them would run for the same run.
        self._order.shuffle(found)
        before = self.done
        for ready in found:
            if self.stop.is_set() or (most is not None and self.done - before >= most):
                break
            if self._backoff.free(ready, time.monotonic()):
                self._try(ready)
        return self.done - before

    def _try(self, ready: Ready) -> None:
        began = time.monotonic()
        try:
            if not still_ready(self.store, ready):
                return
            self._under_way = ready.run
            child = resumed(self.settings, self.store, ready.run, steady=True, told=self._told)
            gone = _gone(ready, child, time.monotonic() - began)
        except RunNotFound:
            return  # it was removed meanwhile
        except LoomError as error:
            gone = Gone(ready.run, ready.why, "not resumed", 1, time.monotonic() - began, describe(error))
        finally:
            self._under_way = None
        quicker = gone.error is not None and gone.error.get("type") == "NotSupported" and self._taken(ready)
        if gone.status == "elsewhere" or quicker:
            return
        self._told_of(ready, gone)

    def _taken(self, ready: Ready) -> bool:
        """Whether another process has gone on with the run, and that is why this one could not."""
        try:
            return not still_ready(self.store, ready)
        except RunNotFound:
            return True

    def _told_of(self, ready: Ready, gone: Gone) -> None:
        fine = gone.status in _FINE and not self._unchanged(ready, gone)
        if fine:
            self._backoff.went_on(ready)
            self.done += 1
        else:
            self.troubled = True
        pause = None if fine else self._backoff.failed(ready, time.monotonic(), self._state(ready))
        self._show(gone, pause)

    def _state(self, ready: Ready) -> tuple[str | None, int] | None:
        try:
            return state_of(self.store, ready.run)
        except LoomError:  # it is gone, or cannot be read: the next look says so
            return None

    def _unchanged(self, ready: Ready, gone: Gone) -> bool:
        """Whether it waits as before: what was said to it is not what it waits for."""
        return gone.status == "suspended" and not self._taken(ready)

    # -- signals -------------------------------------------------------------------------------------------------

    @contextmanager
    def stopping(self) -> Generator[None]:
        """For the block, signals that ask a process to end ask the worker to."""

        def handle(number: int, _frame: FrameType | None) -> None:
            self._told(number)

        before: dict[int, Any] = {number: signal.signal(number, handle) for number in _ENDING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _told(self, number: int) -> bool:
        if number not in _ENDING:
            return False
        again = self.stop.is_set()
        self.stop.set()
        if self._under_way is not None and not again:
            run = short(self._under_way)
            self.settings.screen().note(
                f"ending when run {run} has; once more kills it, and it goes on later"
            )
        return again

    # -- words ---------------------------------------------------------------------------------------------------

    def _show(self, gone: Gone, pause: float | None) -> None:
        again = None if pause is None else round(pause)
        if self.settings.json:
            _line(asdict(gone) | {"seconds": round(gone.seconds, 3), "again_in": again})
            return
        screen = self.settings.screen()
        screen.line(
            ("dim", time.strftime("%Y-%m-%d %H:%M:%S  ")), ("name", short(gone.run)), f"  {gone.why}: ",
            (_STYLES.get(gone.status, "bad"), gone.status), f"  {gone.seconds:.1f} s",
        )  # fmt: skip
        if gone.error is not None:
            screen.problem(str(gone.error.get("message")), gone.error.get("next"))
        elif gone.status == "diverged":
            name = short(gone.run)
            screen.note(
                f"   the code no longer fits: agentloom resume {name} says where, check-deploy for all of them"
            )
        if pause is not None:
            screen.note(
                ("dim", f"   tried again in {span(int(pause * 1e9))}, or when something about it changes")
            )
        sys.stdout.flush()

    def _cannot_read(self, run: str, error: LoomError) -> None:
        self.troubled = True
        if (run, error.message) not in self._unread:
            self._unread.add((run, error.message))
            if self.settings.json:
                _line({"run": run, "status": "unreadable", "error": describe(error)})
            else:
                self.settings.screen().problem(f"run {run}: {error.message}", error.hint)

    def last_words(self) -> None:
        """How many went on."""
        self.settings.screen().note(("dim", f"{self.done} run{'' if self.done == 1 else 's'} went on"))


def _gone(ready: Ready, child: Child, seconds: float) -> Gone:
    if child.error is not None:
        status = "elsewhere" if child.error.get("type") == "LeaseHeld" else "not resumed"
        return Gone(ready.run, ready.why, status, int(child.error.get("exit") or 1), seconds, child.error)
    if child.done is None:
        return Gone(ready.run, ready.why, "crashed", child.code, seconds)
    return Gone(ready.run, ready.why, str(child.done["status"]), int(child.done["exit"]), seconds)


def _line(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts, default=str) + "\n")
    sys.stdout.flush()
