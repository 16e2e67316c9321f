"""The contract of every store, as tests: subclass `StoreContract`, say how a store is made, and run pytest.

::

    import pytest
    pytest.register_assert_rewrite("agentloom.testing.store_contract")   # in conftest.py: readable failures

    from agentloom.testing.store_contract import StoreContract

    class TestMyStore(StoreContract):
        def make_store(self):
            return MyStore(...)          # a new, empty store each time

`Sample` builds small valid traces, entry by entry, for tests of stores and readers. Needs pytest.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from agentloom.errors import (
    AmbiguousRun,
    FormatError,
    IntegrityError,
    LeaseHeld,
    LoomError,
    MailTaken,
    RunNotFound,
    StoreError,
    StoreFailed,
)
from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import Journal, JournalWriter
from agentloom.format.runids import new_run_id
from agentloom.format.values import Tree
from agentloom.store.base import Appender, Query, RunRow, Store
from agentloom.store.mail import Mail

__all__ = ["Sample", "StoreContract"]

_EPOCH = 1_700_000_000_000  # milliseconds: when the first sample run begins


class Sample:
    """A small valid trace under construction. Each method gives the bytes of one append.

    ``number`` makes id, time and salts: equal numbers make equal bytes, a greater number a later run.
    """

    def __init__(
        self,
        number: int = 0,
        *,
        agent: str = "support",
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
        parent: Mapping[str, Tree] | None = None,
    ) -> None:
        source = random.Random(number)
        self.started = (_EPOCH + number * 1000) * 1_000_000
        self.run = new_run_id(_EPOCH + number * 1000, source.randbytes(10))
        self._at = self.started
        self._calls = 0
        self._blobs = BlobWriter(source.randbytes)
        self._journal = JournalWriter()
        self._nonce = source.randbytes(32)
        self._payloads: dict[str, Tree] = {
            "code": {"version": "1"}, "env": {"python": "3.11"}, "input": {"args": ["hello"], "kwargs": {}},
            "policy": {},
        }  # fmt: skip
        if tags is not None:
            self._payloads["tags"] = dict(tags)
        if conversation is not None:
            self._payloads["conversation"] = conversation
        self._facts: dict[str, Tree] = {
            "format": "loom", "version": "1.0", "run": self.run, "digest": "sha256", "flags": [], "keys": 1,
            "agent": agent, "entry": f"{agent}.py:{agent}",
            "clock": {"start": self.started, "resolution": 1}, "epoch": 1,
        }  # fmt: skip
        if parent is not None:
            self._facts["parent"] = dict(parent)

    @property
    def head(self) -> str:
        """The digest of the last entry."""
        return self._journal.head

    def start(self) -> bytes:
        fields = dict(self._facts)
        for name, tree in self._payloads.items():
            fields[name] = self._blobs.put(tree)
        fields["nonce"] = self._blobs.put_nonce(self._nonce)
        line = self._journal.entry("start", fields, at=self._at)
        blobs = self._blobs.take()
        self._journal.skip(len(blobs))
        return line + blobs

    def call(
        self, kind: str = "tool", name: str = "lookup", value: Tree = "found", size: int = 0
    ) -> list[bytes]:
        """A request and its outcome; ``size``: so many characters more in its payload, others in each call."""
        call = f"root#{self._calls}"
        self._calls += 1
        request = self._write(
            "request",
            {"call": call, "type": kind, "name": name, "key": "0" * 32, "profile": "plain/1",
             "req": self._blobs.put({"name": name, "number": self._calls}), "src": "support.py:3 support"},
        )  # fmt: skip
        value = {"value": value, "more": f"{self._calls:08d} " * (size // 9)} if size else value
        outcome = self._write(
            "outcome",
            {
                "call": call,
                "d": self._calls,
                "vt": self._calls,
                "status": "ok",
                "val": self._blobs.put(value),
            },
        )
        return [request, outcome]

    def question(self, ask: str, due: int | None = None) -> bytes:
        """A call that is left waiting for somebody, until ``due`` (nanoseconds since 1970)."""
        call = f"root#{self._calls}"
        self._calls += 1
        facts: dict[str, Tree] = {"question": "yes?"}
        request = self._write(
            "request",
            {"call": call, "type": "ask", "name": "ask", "key": "0" * 32, "profile": "plain/1",
             "req": self._blobs.put(dict(facts)), "src": "support.py:4 support"},
        )  # fmt: skip
        deadline: dict[str, Tree] = {} if due is None else {"deadline": due}
        return request + self._write(
            "suspend", {"ask": ask, "call": call, "val": self._blobs.put(facts), **deadline}
        )

    def mark(self, kind: str, value: Tree) -> bytes:
        """A note, flag or tag entry."""
        return self._write(kind, {"val": self._blobs.put(value)})

    def end(self, status: str = "completed", value: Tree = "bye") -> bytes:
        return self._write(
            "end",
            {
                "status": status,
                "val": self._blobs.put(value),
                "totals": {"calls": self._calls, "deliveries": self._calls},
            },
        )

    def whole(self, *, calls: int = 2, status: str = "completed") -> bytes:
        """A whole trace: start, so many calls, end."""
        parts = [self.start(), *(part for _ in range(calls) for part in self.call()), self.end(status)]
        return b"".join(parts)

    def _write(self, kind: str, fields: dict[str, Tree]) -> bytes:
        self._at += 1_000_000
        pending = self._blobs.take()
        self._journal.skip(len(pending))
        return pending + self._journal.entry(kind, fields, at=self._at)


class StoreContract:
    """Tests that every `agentloom.store.base.Store` passes."""

    def make_store(self) -> Store:
        """A new, empty store. Override it."""
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> Store:
        return self.make_store()

    # -- writing and reading

    def test_what_was_appended_is_read_byte_for_byte(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        parts = [sample.start(), *sample.call(), *sample.call("model", "gpt-4o"), sample.end()]
        written = b""
        for part in parts:
            writer.append(part)
            written += part
            assert store.read(sample.run) == written  # acknowledged means visible to every reader
        writer.close()
        assert store.read(sample.run) == written
        assert Journal.parse(written).closed

    def test_a_run_that_is_not_there(self, store: Store) -> None:
        for attempt in (store.read, store.reopen, store.remove, store.resolve):
            with pytest.raises(RunNotFound, match="empty"):
                attempt(Sample().run)

    def test_an_unsafe_id_makes_no_file(self, store: Store) -> None:
        for name in ("../up", "a/b", "", ".hidden", "nul\0", "x" * 200):
            with pytest.raises(StoreError):
                store.create(name)

    def test_half_a_line_is_refused(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        writer.append(sample.start())
        with pytest.raises(ValueError, match="newline"):
            writer.append(b'{"half":1}')
        with pytest.raises(ValueError, match="newline"):
            writer.append(b"")
        writer.append(sample.end())
        writer.close()
        assert Journal.parse(store.read(sample.run)).closed

    def test_a_closed_writer_writes_nothing(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        start = sample.start()
        writer.append(start)
        writer.close()
        writer.close()
        with pytest.raises(StoreFailed):
            writer.append(sample.end())
        assert store.read(sample.run) == start

    def test_a_run_without_an_entry_leaves_nothing(self, store: Store) -> None:
        sample = Sample()
        store.create(sample.run).close()
        assert store.runs() == []
        store.create(sample.run).close()

    # -- one writer

    def test_the_second_writer_is_told_who_writes(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        writer.append(sample.start())
        for attempt in (store.create, store.reopen):
            with pytest.raises(LeaseHeld) as caught:
                attempt(sample.run)
            assert isinstance(caught.value.fields["pid"], int)
            assert str(caught.value.fields["pid"]) in str(caught.value)
        writer.append(sample.end())
        writer.close()
        store.reopen(sample.run).close()

    def test_an_id_is_taken_once(self, store: Store) -> None:
        sample = Sample()
        fill(store, sample, sample.start())
        with pytest.raises(StoreFailed, match="exists"):
            store.create(sample.run)

    def test_reopening_goes_on_after_the_last_entry(self, store: Store) -> None:
        sample = Sample()
        first = sample.start()
        fill(store, sample, first)
        writer = store.reopen(sample.run)
        assert writer.cut == 0
        rest = [*sample.call(), sample.end()]
        for part in rest:
            writer.append(part)
        writer.close()
        data = store.read(sample.run)
        assert data == first + b"".join(rest)
        assert Journal.parse(data).head == sample.head

    def test_reopening_cuts_payloads_whose_entry_is_missing(self, store: Store) -> None:
        sample = Sample()
        kept = sample.start() + b"".join(sample.call())
        lost = sample.end()
        payload = lost[: lost.index(b"\n") + 1]
        assert payload != lost
        fill(store, sample, kept, payload)
        writer = store.reopen(sample.run)
        assert writer.cut == len(payload)
        writer.close()
        assert store.read(sample.run) == kept

    def test_reopening_refuses_damage_and_changes_nothing(self, store: Store) -> None:
        sample = Sample()
        parts = [sample.start(), *sample.call(), sample.end()]
        parts[2] = parts[2].replace(b'"vt":1', b'"vt":9')
        fill(store, sample, *parts)
        with pytest.raises((FormatError, IntegrityError)) as caught:
            store.reopen(sample.run)
        assert isinstance(caught.value.fields["line"], int)
        assert isinstance(caught.value.fields["offset"], int)
        assert store.read(sample.run) == b"".join(parts)
        with pytest.raises((FormatError, IntegrityError)):  # and the lease was given back
            store.reopen(sample.run)

    # -- listing

    def test_runs_are_listed_newest_first_with_their_facts(self, store: Store) -> None:
        assert store.runs() == []
        old, new = Sample(1, tags={"ticket": "812"}, conversation="c-9"), Sample(2, agent="cleanup")
        fill(store, new, new.whole(calls=1, status="failed"))
        parts = [old.start(), *old.call("model", "gpt-4o"), *old.call(), *old.call(), old.mark("flag", "odd")]
        data = fill(store, old, *parts, old.end())
        rows = store.runs()
        assert [row.run for row in rows] == [new.run, old.run]
        row = rows[1]
        assert row == RunRow(
            run=old.run,
            status="completed",
            agent="support",
            started=old.started,
            ended=row.ended,
            tags=("ticket=812",),
            conversation="c-9",
            flags=1,
            calls={"model": 1, "tool": 2},
            tools={"lookup": 2},
            models={"gpt-4o": 1},
            size=len(data),
            head=old.head,
            guard="off",
        )
        assert row.ended is not None
        assert row.ended > row.started
        assert (rows[0].status, rows[0].agent, rows[0].total) == ("failed", "cleanup", 1)

    def test_a_run_is_running_until_its_writer_closes(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        writer.append(sample.start())
        assert [row.status for row in store.runs()] == ["running"]
        writer.close()
        assert [row.status for row in store.runs()] == ["crashed"]
        writer = store.reopen(sample.run)
        assert [row.status for row in store.runs()] == ["running"]
        writer.append(sample.end("cancelled"))
        assert [row.status for row in store.runs()] == ["cancelled"]
        writer.close()
        assert [row.status for row in store.runs()] == ["cancelled"]

    def test_a_row_says_what_its_run_waits_for(self, store: Store) -> None:
        sample = Sample()
        fill(
            store, sample, sample.start(), *sample.call(), sample.question("2"), sample.question("3", due=99)
        )
        (row,) = store.runs()
        assert (row.status, row.asks, row.due, row.epoch) == ("suspended", ("2", "3"), 99, 1)

    def test_every_question_finds_what_it_asks(self, store: Store) -> None:
        first = Sample(1, tags={"user": "ann"}, conversation="talk")
        second = Sample(2, agent="other")
        third = Sample(3, tags={"user": "bob"})
        fill(store, first, first.start(), *first.call("tool", "refund", 'said "Ünder" it'), first.end())
        fill(store, second, second.start(), second.mark("tag", {"ticket": "7"}), second.end("failed"))
        fill(store, third, third.start())
        asked: list[tuple[Query, list[Sample]]] = [
            (Query(), [third, second, first]),
            (Query(limit=2), [third, second]),
            (Query(limit=0), []),
            (Query(tag="user=ann"), [first]),
            (Query(tag="bob"), [third]),
            (Query(tag="user"), []),
            (Query(tag="ticket=7"), [second]),
            (Query(since=second.started), [third, second]),
            (Query(since=third.started + 1), []),
            (Query(failed=True), [third, second]),
            (Query(tool="refund"), [first]),
            (Query(tool="lookup"), []),
            (Query(text='SAID "Ünder"'), [first]),
            (Query(text="not in there"), []),
            (Query(agent="other"), [second]),
            (Query(conversation="talk"), [first]),
            (Query(failed=True, limit=1), [third]),
            (Query(failed=True, agent="support"), [third]),
        ]
        for query, wanted in asked:
            assert [row.run for row in store.runs(query)] == [sample.run for sample in wanted], query

    def test_a_tag_of_an_old_payload_is_found(self, store: Store) -> None:
        sample = Sample()
        early = sample.mark("tag", {"user": "ann"})
        # The second tag entry names the payload that the first one brought: nothing stands before it.
        parts = [sample.start(), early, *sample.call(), sample.mark("tag", {"user": "ann"}), sample.end()]
        fill(store, sample, *parts)
        assert store.runs()[0].tags == ("user=ann",)

    def test_a_damaged_trace_hides_no_other(self, store: Store) -> None:
        bad, good = Sample(1), Sample(2)
        fill(store, bad, b"this is no trace\n")
        fill(store, good, good.whole())
        rows = store.runs()
        assert [(row.run, row.status) for row in rows] == [(good.run, "completed"), (bad.run, "damaged")]
        assert rows[1].problem
        assert store.resolve("last") == good.run

    # -- finding one

    def test_a_run_is_found_by_id_prefix_suffix_last_and_tag(self, store: Store) -> None:
        old, new = Sample(1, tags={"ticket": "812"}), Sample(10**9)
        for sample in (new, old):
            fill(store, sample, sample.whole())
        assert store.resolve(old.run) == old.run
        assert store.resolve(old.run[:12]) == old.run
        assert store.resolve(new.run[-4:]) == new.run
        assert store.resolve("last") == new.run
        assert store.resolve("ticket=812") == old.run
        assert store.resolve("812") == old.run

    def test_several_fits_are_listed(self, store: Store) -> None:
        samples = [Sample(number, tags={"user": "ann"}) for number in (1, 2)]
        for sample in samples:
            fill(store, sample, sample.whole())
        for ref in (samples[0].run[:4], "ann"):
            with pytest.raises(AmbiguousRun) as caught:
                store.resolve(ref)
            assert caught.value.fields["matches"] == [samples[1].run, samples[0].run]
            for word in (samples[0].run, samples[1].run, "support", "2023-11-14"):
                assert word in str(caught.value)

    def test_no_fit_says_what_is_close(self, store: Store) -> None:
        sample = Sample(1, tags={"ticket": "refund-812"})
        fill(store, sample, sample.whole())
        with pytest.raises(RunNotFound, match="refund-812"):
            store.resolve("refund-813")
        with pytest.raises(RunNotFound, match=sample.run):
            store.resolve(sample.run[:-1] + "!")
        with pytest.raises(RunNotFound, match="at least 4"):
            store.resolve(sample.run[:3])
        with pytest.raises(RunNotFound):
            store.resolve("")

    # -- import and removal

    def test_a_trace_from_elsewhere_is_kept_as_it_is(self, store: Store) -> None:
        sample = Sample()
        data = sample.whole()
        assert store.add(data) == sample.run
        assert store.add(data) == sample.run
        assert store.read(sample.run) == data
        assert [row.status for row in store.runs()] == ["completed"]

    def test_another_trace_of_the_same_id_is_refused(self, store: Store) -> None:
        data = Sample().whole()
        store.add(data)
        with pytest.raises(StoreFailed, match="other content"):
            store.add(Sample().whole(calls=3))
        assert store.read(Sample().run) == data

    def test_a_trace_that_does_not_hold_is_refused(self, store: Store) -> None:
        data = Sample().whole()
        lines = data.splitlines(keepends=True)
        wrong = {
            "empty": b"",
            "foreign": b"PK\x03\x04 not a trace",
            "no start": b"".join(lines[1:]),
            "swapped": b"".join([*lines[:-2], lines[-1], lines[-2]]),
            "dropped": b"".join(line for line in lines if b'"request"' not in line),
            "flipped": data.replace(b"found", b"fount"),
        }
        for what, bad in wrong.items():
            with pytest.raises((FormatError, IntegrityError)) as caught:
                store.add(bad)
            assert caught.value.fields["line"] is not None, what
            assert store.runs() == [], what

    def test_the_torn_end_of_an_import_is_left_out(self, store: Store) -> None:
        sample = Sample()
        kept = sample.start() + b"".join(sample.call())
        store.add(kept + sample.end()[:-9])
        assert store.read(sample.run) == kept
        assert [row.status for row in store.runs()] == ["crashed"]

    def test_a_removed_run_is_gone(self, store: Store) -> None:
        sample, other = Sample(1, tags={"user": "ann"}), Sample(2)
        for each in (sample, other):
            fill(store, each, each.whole())
        assert len(store.runs()) == 2
        store.remove(sample.run)
        assert [row.run for row in store.runs()] == [other.run]
        for attempt in (store.read, store.remove, store.resolve):
            with pytest.raises(RunNotFound):
                attempt(sample.run)
        with pytest.raises(RunNotFound):
            store.resolve("ann")

    def test_a_run_that_is_written_is_not_removed(self, store: Store) -> None:
        sample = Sample()
        writer = store.create(sample.run)
        writer.append(sample.start())
        with pytest.raises(LeaseHeld):
            store.remove(sample.run)
        with pytest.raises(LoomError):
            store.add(sample.start())
        writer.append(sample.end())
        writer.close()
        store.remove(sample.run)
        assert store.runs() == []

    # -- mail

    def test_mail_is_kept_as_it_was_posted_in_its_order(self, store: Store) -> None:
        sample = Sample()
        fill(store, sample, sample.start())
        assert store.mail(sample.run) == []
        posted = [
            Mail("answer", "7", value="yes", who="ann", at=1, via="cli"),
            Mail("signal", "s1", "paid", {"order": 812, "by": [1, 2.5, None, True]}),
            Mail("signal", "s2", "paid", {"$bytes": "AAEC"}),
            Mail("cancel", "cancel"),
        ]
        for mail in posted:
            store.post(sample.run, mail)
        assert store.mail(sample.run) == posted
        store.mail(sample.run).clear()
        assert store.mail(sample.run) == posted

    def test_one_kind_and_key_is_posted_once_for_ever(self, store: Store) -> None:
        sample = Sample()
        fill(store, sample, sample.start())
        first = Mail("answer", "7", value="yes", who="ann", at=5)
        store.post(sample.run, first)
        for again in (first, Mail("answer", "7", value="no", who="bob", at=6)):
            with pytest.raises(MailTaken, match="ann") as caught:
                store.post(sample.run, again)
            assert caught.value.existing == first
        store.post(sample.run, Mail("signal", "7", "paid"))
        store.post(sample.run, Mail("answer", "8"))
        assert [(mail.kind, mail.key) for mail in store.mail(sample.run)] == [
            ("answer", "7"), ("signal", "7"), ("answer", "8"),
        ]  # fmt: skip

    def test_mail_needs_a_run_and_no_lease(self, store: Store) -> None:
        sample, other = Sample(1), Sample(2)
        with pytest.raises(RunNotFound):
            store.post(sample.run, Mail("cancel", "cancel"))
        with pytest.raises(RunNotFound):
            store.mail(sample.run)
        writer = store.create(sample.run)
        writer.append(sample.start())
        store.post(sample.run, Mail("cancel", "cancel", who="ann"))
        fill(store, other, other.whole())
        assert [mail.who for mail in store.mail(sample.run)] == ["ann"]
        assert store.mail(other.run) == []
        writer.append(sample.end())
        writer.close()
        assert [mail.who for mail in store.mail(sample.run)] == ["ann"]

    def test_what_is_no_mail_is_refused(self, store: Store) -> None:
        sample = Sample()
        fill(store, sample, sample.start())
        wrong = [
            Mail("answer", ""),
            Mail("answer", "k" * 64),
            Mail("signal", "a message"),
            Mail("letter", "7"),  # type: ignore[arg-type]
            Mail("answer", "7", at=-1),
            Mail("answer", "7", value=float("nan")),
            Mail("answer", "7", value=b"bytes"),  # type: ignore[arg-type]
            Mail("answer", "7", value="x" * (17 << 20)),
            Mail("answer", "\ud800"),
        ]
        for mail in wrong:
            with pytest.raises(LoomError):
                store.post(sample.run, mail)
        assert store.mail(sample.run) == []

    def test_mail_goes_with_its_run(self, store: Store) -> None:
        sample = Sample()
        fill(store, sample, sample.whole())
        store.post(sample.run, Mail("answer", "7", value="yes"))
        store.remove(sample.run)
        with pytest.raises(RunNotFound):
            store.mail(sample.run)
        fill(store, sample, sample.whole())
        assert store.mail(sample.run) == []


def fill(store: Store, sample: Sample, *parts: bytes) -> bytes:
    """Write the parts as one run and close it; all of its bytes."""
    writer: Appender = store.create(sample.run)
    for part in parts:
        writer.append(part)
    writer.close()
    return b"".join(parts)
