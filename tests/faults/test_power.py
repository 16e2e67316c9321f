"""The power fails at every operation of the store: ``power`` loses nothing acknowledged, ``process`` the tail only."""

from __future__ import annotations

import contextlib
import errno
import random
from typing import Any

import pytest

from agentloom.errors import FormatError, MailTaken, RunNotFound, StoreFailed
from agentloom.format.journal import check
from agentloom.store import LocalStore
from agentloom.store.appender import LocalAppender
from agentloom.store.mail import Mail
from agentloom.testing.store_contract import Sample
from tests.faults.disk import Dead, Machine

ROOT = "/home/user/store"
MOST = 200


def parts_of(number: int) -> list[bytes]:
    """The appends of one run."""
    sample = Sample(number)
    parts = [sample.start()]
    for name in ("a", "b"):
        parts += sample.call("tool", name, size=300)
    return [*parts, sample.end()]


RUN, OTHER = Sample(1).run, Sample(2).run


class Told:
    """What was acknowledged: so many appends of each run, and mail."""

    def __init__(self) -> None:
        self.appends = {RUN: 0, OTHER: 0}
        self.mail: list[Mail] = []


def scenario(machine: Machine, at: int, durability: Any, told: Told) -> bool:
    """Two runs, one of them reopened, and mail to it; the process dies at its ``at``-th operation. Whether it did."""
    process = machine.process()
    count = 0

    def trap(name: str, what: object) -> None:
        nonlocal count
        count += 1
        if count == at:
            process.die()

    process.trap = trap
    store = LocalStore(ROOT, durability=durability, system=process)
    writer: LocalAppender | None = None
    try:
        for run, parts in ((RUN, parts_of(1)), (OTHER, parts_of(2))):
            writer = store.create(run)
            for part in parts[:3]:
                writer.append(part)
                told.appends[run] += 1
            writer.close()
        for number in range(2):
            mail = Mail("answer", str(number), value=number)
            store.post(RUN, mail)
            told.mail.append(mail)
        writer = store.reopen(RUN)
        for part in parts_of(1)[3:]:
            writer.append(part)
            told.appends[RUN] += 1
        writer.close()
    except Dead:
        if writer is not None:
            with contextlib.suppress(Dead):
                writer.close()  # the object outlives its process here
        return True
    return False


def after(machine: Machine, told: Told, durability: str) -> int:
    """What is on the disk, and that it can be gone on with; how many acknowledged entries are not."""
    lost = 0
    store = LocalStore(ROOT, system=machine.process())
    for number, run in ((1, RUN), (2, OTHER)):
        parts = parts_of(number)
        try:
            writer = store.reopen(run)
            data = store.read(run)
        except (RunNotFound, StoreFailed, FormatError):
            assert durability == "process" or not told.appends[run], (
                f"{told.appends[run]} acknowledged, and gone"
            )
            lost += told.appends[run]
            continue
        whole = next(count for count in range(len(parts), -1, -1) if data == b"".join(parts[:count]))
        lost += max(0, told.appends[run] - whole)
        assert durability == "process" or not lost
        assert whole <= told.appends[run] + 1
        assert check(data).consistent
        for part in parts[whole:]:
            writer.append(part)
        writer.close()
        assert check(store.read(run)).complete
        if run == RUN and durability == "power":
            assert store.mail(run)[: len(told.mail)] == told.mail
            for mail in told.mail:
                with pytest.raises(MailTaken):
                    store.post(run, mail)
    return lost


@pytest.mark.parametrize("durability", ["power", "process"])
def test_the_power_fails_at_every_operation(durability: Any) -> None:
    lost, died = 0, True
    for at in range(1, MOST):
        for seed in range(4):
            machine, told = Machine(), Told()
            died = scenario(machine, at, durability, told)
            machine.power_cut(random.Random(f"{at} {seed}"))
            try:
                gone = after(machine, told, durability)
            except AssertionError as error:
                error.add_note(f"operation {at}, seed {seed}")
                raise
            lost += gone
        if not died:
            break
    assert not died, f"not through after {MOST} operations"
    assert bool(lost) == (durability == "process")


def test_mail_outlives_the_power_where_another_process_made_its_folders_and_died() -> None:
    """What is told here stands, whoever made the folders that it is in, and however far they got."""
    mail, died = Mail("answer", "1", value=1), True
    for at in range(1, MOST):
        for seed in range(4):
            machine = Machine()
            writer = LocalStore(ROOT, durability="power", system=machine.process()).create(RUN)
            writer.append(parts_of(1)[0])
            writer.close()
            process = machine.process()
            left = iter(range(at))

            def trap(name: str, what: object, process: Any = process, left: Any = left) -> None:
                if next(left, None) is None:
                    process.die()

            process.trap = trap
            died = False
            try:
                LocalStore(ROOT, system=process).post(RUN, Mail("signal", "m1", "paid"))
            except Dead:
                died = True
            LocalStore(ROOT, system=machine.process()).post(RUN, mail)
            machine.power_cut(random.Random(f"{at} {seed}"))
            assert mail in LocalStore(ROOT, system=machine.process()).mail(RUN), (
                f"operation {at}, seed {seed}"
            )
        if not died:
            return
    pytest.fail(f"not through after {MOST} operations")


def test_without_a_cut_the_process_alone_loses_nothing() -> None:
    """What dies with its process was in the cache of the machine, which goes on."""
    for at in range(1, MOST):
        machine, told = Machine(), Told()
        died = scenario(machine, at, "process", told)
        store = LocalStore(ROOT, system=machine.process())
        for number, run in ((1, RUN), (2, OTHER)):
            if told.appends[run]:
                assert store.read(run).startswith(b"".join(parts_of(number)[: told.appends[run]]))
        if not died:
            return
    pytest.fail(f"not through after {MOST} operations")


@pytest.mark.parametrize(
    ("code", "refused"), [(errno.EACCES, False), (errno.EROFS, False), (errno.EIO, True)]
)
def test_folders_above_the_store_that_cannot_be_synced(code: int, refused: bool) -> None:
    process = Machine().process()
    opened: list[object] = []

    def trap(name: str, what: object) -> None:
        opened.append(what if name == "open" else None)
        if name == "fsync" and opened[-2] == "/home":
            raise OSError(code, "cannot")

    store = LocalStore(ROOT, system=process)
    store.create(RUN).close()  # the folders are there
    process.trap = trap
    store = LocalStore(ROOT, durability="power", system=process)
    if refused:
        with pytest.raises(StoreFailed):
            store.create(OTHER)
    else:
        store.create(OTHER).close()
