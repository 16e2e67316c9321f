"""Whoever sits at the terminal is asked at once, and the run goes on with what they say.

A line is read from the terminal itself. An empty one asks again; the end of input (Ctrl-D) and Ctrl-C leave the
question open: the run is suspended, and nothing of it is lost. Meanwhile it may be answered elsewhere, or become due.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentloom.api.answering import answer, waiting
from agentloom.api.people_values import yes_or_no
from agentloom.cli.asking import ask_lines
from agentloom.cli.options import Settings
from agentloom.cli.render import Screen
from agentloom.errors import AnswerRefused, InvalidAnswer, StoreError, ValueRefused
from agentloom.runtime.calls import Call
from agentloom.runtime.locks import free_in_children
from agentloom.store import Store

if TYPE_CHECKING:
    from agentloom.runtime.asks import OpenAsk

__all__ = ["Terminal"]

_LOOK = 0.5
"""Seconds after which it is looked whether the question was answered elsewhere, or is due."""


class Terminal:
    """Answers questions of the run that ``run`` names, in ``store``, as ``by``. ``ask`` is the run's answerer."""

    def __init__(
        self, store: Store, run: Callable[[], str | None], by: str | None, descriptor: int = 0
    ) -> None:
        self._store = store
        self._run = run
        self._by = by
        self._descriptor = descriptor
        self._lock = free_in_children(threading.Lock())
        self._rest = b""
        self._asking = False
        self._left = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def interrupted(self) -> bool:
        """Ctrl-C: whether it is meant for the question that is being asked, which is left open then."""
        if not self._asking:
            return False
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"x")
        return True

    def ask(self, call: Call) -> None:
        """Ask the question of ``call``, and post to the run's mail what is answered. One question at a time; after one
        that was left open no other is asked."""
        run = self._run()
        with self._lock:
            if self._left or run is None:
                return
            found = self._open(run, call.ask)
            if found is not None:
                self._asking = True
                try:
                    self._left = not self._answered(found)
                finally:
                    self._asking = False

    def _open(self, run: str, ask: str | None) -> OpenAsk | None:
        return next(
            (one for one in waiting(self._store, run) if one.ask == ask and one.answered is None), None
        )

    def _answered(self, ask: OpenAsk) -> bool:
        """Whether the run can go on; False: it was left open."""
        screen = Screen(Settings())
        for spans in ask_lines(ask, 100, several=False, now=time.time_ns(), answers=False):
            screen.note(*spans)
        while True:
            said = self._said(ask)
            if said is None:
                return self._over(ask)
            line, result = said
            if not line.strip():
                continue
            try:
                answer(
                    ask.run, line, ask=ask.ask, by=self._by, store=self._store, via="terminal", from_text=True,
                    **result,
                )  # fmt: skip
            except (InvalidAnswer, ValueRefused) as error:
                screen.problem(error.message, None)
                continue
            except (AnswerRefused, StoreError) as error:
                screen.problem(error.message, error.hint)
                return self._over(ask)
            return True

    def _said(self, ask: OpenAsk) -> tuple[str, dict[str, Any]] | None:
        """What is typed; of a call in doubt that did happen, with its ``result``. None: nothing is said here, as of
        ``_line``."""
        line = self._line(ask, "   answer    ")
        if line is None or not (ask.in_doubt and yes_or_no(line)):
            return None if line is None else (line, {})
        while (text := self._line(ask, "   and gave, as JSON (empty: null)    ")) is not None:
            try:
                return line, {"result": json.loads(text or "null")}
            except ValueError as error:
                Screen(Settings()).problem(f"that is no JSON: {error}", None)
        return None

    def _over(self, ask: OpenAsk) -> bool:
        """Whether the run goes on without what was asked here."""
        return ask.is_due(time.time_ns()) or self._open(ask.run, ask.ask) is None

    def _line(self, ask: OpenAsk, prompt: str) -> str | None:
        """A line; None at the end of input, after Ctrl-C, and where the run need not be answered here any more."""
        sys.stderr.write(prompt)
        sys.stderr.flush()
        while b"\n" not in self._rest:
            ready = select.select([self._descriptor, self._read], [], [], _LOOK)[0]
            if self._read in ready:
                os.read(self._read, 65536)
                sys.stderr.write("\n")
                return None
            if self._descriptor in ready:
                part = self._part()
                if not part:
                    sys.stderr.write("\n")
                    return None
                self._rest += part
            elif self._over(ask):
                sys.stderr.write("\n")
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def _part(self) -> bytes:
        try:
            return os.read(self._descriptor, 65536)
        except OSError:  # the terminal is gone
            return b""
