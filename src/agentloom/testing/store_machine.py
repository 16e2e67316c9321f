"""A state machine for stores: random sequences of what a store does, compared with a model that is a few dictionaries.

::

    from agentloom.testing.store_machine import StoreMachine

    class MyMachine(StoreMachine):
        def make_store(self):
            return MyStore(...)

    TestMyMachine = MyMachine.TestCase

Runs are created, written, closed, reopened, imported and removed, and sent mail; writers die without closing
(``crash``), and half of an append is left behind (``tear``); second writers are refused. After each step what the store
reads and lists is what the model says. Needs hypothesis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from agentloom.errors import AmbiguousRun, LeaseHeld, MailTaken, RunNotFound, StoreFailed
from agentloom.store.base import Appender, Query, Store
from agentloom.store.mail import Mail
from agentloom.testing.store_contract import Sample

__all__ = ["StoreMachine"]


@dataclass
class _Run:
    """What the model knows of a run: its appends, how many are in the store, its writer, and bytes of a torn end."""

    sample: Sample
    appends: list[bytes]
    tag: str | None
    present: bool = False
    written: int = 0
    writer: Appender | None = None
    torn: bytes = b""
    mail: list[Mail] = field(default_factory=list[Mail])

    @property
    def data(self) -> bytes:
        return b"".join(self.appends[: self.written])

    @property
    def status(self) -> str:
        if self.writer is not None and self.written < len(self.appends):
            return "running"
        return "completed" if self.written == len(self.appends) else "crashed"


class StoreMachine(RuleBasedStateMachine):
    """Override ``make_store``; ``crash`` and ``tear`` where a store can lose a writer, or keep half of an append."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make_store()
        self.model: dict[int, _Run] = {}

    def make_store(self) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    def crash(self, writer: Appender) -> None:
        """The process of ``writer`` dies. Default: it closes, which leaves the same behind."""
        writer.close()

    def tear(self, run: str, data: bytes) -> bool:
        """Leave ``data``, a part of an append, behind the last one; False where the store cannot come to hold that."""
        return False

    def teardown(self) -> None:
        for run in self.model.values():
            if run.writer is not None:
                run.writer.close()

    # -- steps ---------------------------------------------------------------------------------------------------

    @rule(
        target=runs,
        number=st.integers(0, 8),
        calls=st.integers(0, 3),
        tag=st.sampled_from([None, "ann", "bob"]),
    )
    def prepare(self, number: int, calls: int, tag: str | None) -> Any:
        """Think of a run; nothing is stored."""
        if number in self.model:
            return multiple()  # pyright: ignore[reportUnknownVariableType] - of nothing
        sample = Sample(number, tags={"user": tag} if tag else None)
        appends = [
            sample.start(),
            *(part for _ in range(calls) for part in sample.call(size=200)),
            sample.end(),
        ]
        self.model[number] = _Run(sample, appends, tag)
        return number

    @rule(number=runs)
    def create(self, number: int) -> None:
        run = self.model[number]
        if run.writer is not None:
            self._refused(LeaseHeld, lambda: self.store.create(run.sample.run))
        elif run.present:
            self._refused(StoreFailed, lambda: self.store.create(run.sample.run))
        else:
            run.writer, run.present = self.store.create(run.sample.run), True

    @rule(number=runs)
    def reopen(self, number: int) -> None:
        run = self.model[number]
        if not run.present:
            self._refused(RunNotFound, lambda: self.store.reopen(run.sample.run))
        elif run.writer is not None:
            self._refused(LeaseHeld, lambda: self.store.reopen(run.sample.run))
        else:
            run.writer = self.store.reopen(run.sample.run)
            assert run.writer.cut == len(run.torn)
            run.torn = b""

    @rule(number=runs, count=st.integers(1, 4))
    def append(self, number: int, count: int) -> None:
        run = self.model[number]
        if run.writer is not None:
            for part in run.appends[run.written : run.written + count]:
                run.writer.append(part)
                run.written += 1

    @rule(number=runs)
    def close(self, number: int) -> None:
        self._without_writer(self.model[number], crash=False)

    @rule(number=runs, torn=st.none() | st.floats(0, 1))
    def die(self, number: int, torn: float | None) -> None:
        """The writer's process dies, perhaps in the middle of an append."""
        run = self.model[number]
        if run.writer is None:
            return
        self._without_writer(run, crash=True)
        if torn is None or not run.present or run.written == len(run.appends):
            return
        following = run.appends[run.written]
        part = following[: int(torn * len(following))]
        if 0 < len(part) < len(following) and self.tear(run.sample.run, part):
            run.torn = part

    @rule(number=runs, count=st.integers(1, 12), cut=st.integers(0, 40))
    def add(self, number: int, count: int, cut: int) -> None:
        """Import the first appends of a run, the last of them perhaps torn."""
        run = self.model[number]
        whole = min(count, len(run.appends))
        if whole == 1 and cut:
            return  # a torn start is no trace: see the contract
        data = b"".join(run.appends[:whole])
        data = data[: len(data) - cut]
        if cut:
            whole -= 1
        if run.writer is not None:
            self._refused((LeaseHeld, StoreFailed), lambda: self.store.add(data))
        elif run.present and (run.written != whole or run.torn):
            self._refused(StoreFailed, lambda: self.store.add(data))
        else:
            assert self.store.add(data) == run.sample.run
            run.present, run.written = True, whole

    @rule(number=runs)
    def remove(self, number: int) -> None:
        run = self.model[number]
        if run.writer is not None:
            self._refused(LeaseHeld, lambda: self.store.remove(run.sample.run))
        elif not run.present:
            self._refused(RunNotFound, lambda: self.store.remove(run.sample.run))
        else:
            self.store.remove(run.sample.run)
            run.present, run.written, run.torn = False, 0, b""
            run.mail.clear()

    @rule(number=runs, kind=st.sampled_from(["answer", "signal", "cancel"]), key=st.sampled_from(["1", "2"]))
    def post(self, number: int, kind: Literal["answer", "signal", "cancel"], key: str) -> None:
        run = self.model[number]
        mail = Mail(kind, key, value=len(run.mail))
        if not run.present:
            self._refused(RunNotFound, lambda: self.store.post(run.sample.run, mail))
        elif not run.written:
            return  # nothing can be said to a run that has not begun
        elif any((one.kind, one.key) == (kind, key) for one in run.mail):
            self._refused(MailTaken, lambda: self.store.post(run.sample.run, mail))
        else:
            self.store.post(run.sample.run, mail)
            run.mail.append(mail)

    @rule(word=st.sampled_from(["last", "ann", "user=bob"]))
    def resolve(self, word: str) -> None:
        name = word.rpartition("=")[2]
        fits = [run for run in self._listed() if word == "last" or (run.tag == name and run.written)]
        if not fits:
            self._refused(RunNotFound, lambda: self.store.resolve(word))
        elif len(fits) > 1 and word != "last":
            self._refused(AmbiguousRun, lambda: self.store.resolve(word))
        else:
            assert self.store.resolve(word) == fits[0].sample.run

    @precondition(lambda self: self.model)
    @rule(failed=st.booleans(), tag=st.none() | st.just("ann"), limit=st.none() | st.integers(0, 2))
    def ask(self, failed: bool, tag: str | None, limit: int | None) -> None:
        fits = [
            run
            for run in self._listed()
            if (tag is None or (run.tag == tag and run.written)) and (not failed or run.status == "crashed")
        ]
        rows = self.store.runs(Query(failed=failed, tag=tag, limit=limit))
        assert [row.run for row in rows] == [run.sample.run for run in fits[:limit]]

    # -- what always holds ---------------------------------------------------------------------------------------

    @invariant()
    def what_is_read_is_what_was_acknowledged(self) -> None:
        for run in self.model.values():
            if not run.present:
                self._refused(RunNotFound, partial(self.store.read, run.sample.run))
            elif run.written:
                found = self.store.read(run.sample.run)
                assert found.startswith(run.data)
                assert (run.data + run.torn).startswith(found)

    @invariant()
    def what_is_listed_is_what_is_there(self) -> None:
        rows = self.store.runs()
        assert [(row.run, row.status) for row in rows] == [
            (run.sample.run, run.status) for run in self._listed()
        ]

    @invariant()
    def mail_is_what_was_posted(self) -> None:
        for run in self.model.values():
            if run.present:
                assert self.store.mail(run.sample.run) == run.mail

    # -- helpers -------------------------------------------------------------------------------------------------

    def _listed(self) -> list[_Run]:
        """Runs that are there, newest first."""
        there = [number for number, run in self.model.items() if run.present]
        return [self.model[number] for number in sorted(there, reverse=True)]

    def _without_writer(self, run: _Run, *, crash: bool) -> None:
        writer, run.writer = run.writer, None
        if writer is None:
            return
        if crash:
            self.crash(writer)
        else:
            writer.close()
            writer.close()  # twice is harmless
        if not run.written:
            run.present = False

    @staticmethod
    def _refused(kind: type[Exception] | tuple[type[Exception], ...], attempt: Any) -> None:
        try:
            attempt()
        except kind:
            return
        raise AssertionError(f"was not refused with {kind}")
