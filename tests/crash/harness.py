"""Kill real processes, resume what they left, and look whether anything was lost or done twice.

Each process is forked from this one, which has everything imported. It is killed by ``SIGKILL``: from outside after a
random time, or by itself at a boundary. Then another one resumes the run and may be killed in turn, several times.

    python -m tests.crash.harness [random|BOUNDARY|all] [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import gc
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agentloom import Suspended, Trace, Workflow, answer, resume, send_signal
from agentloom.api.answering import waiting
from agentloom.errors import RunNotFound, StoreFailed
from agentloom.format.journal import check
from agentloom.store import LocalStore, MemoryStore
from agentloom.store.appender import LocalAppender
from agentloom.store.osfile import REAL
from spec import verify
from tests.crash.programs import AT, PROGRAMS, World

__all__ = ["BOUNDARIES", "Case", "Lost", "main", "one", "several", "undisturbed"]

BOUNDARIES = (
    "before the write",
    "between blob and entry",
    "after the write",
    "entry and effect",
    "effect and outcome",
)
MOST_KILLS = 5
MOST_PROCESSES = 60
MOST_LOST = 5
ENDED, SUSPENDED, FAILED = 0, 75, 70


class Lost(AssertionError):
    """What must not happen: something lost, done twice, or guessed."""


@dataclass(slots=True)
class Case:
    """What happened in one run: how many processes were killed, and at what; how many questions were asked."""

    seed: int
    program: str
    kills: list[str] = field(default_factory=list[str])
    asked: int = 0


# -- one process -----------------------------------------------------------------------------------------------------


class _Dies:
    """The operating system as it is, for a process that dies at its ``at``-th write, at ``boundary`` of it."""

    def __init__(self, boundary: str, at: int) -> None:
        self.boundary, self.at, self.done = boundary, at, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL, name)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        whole = bytes(data)
        if b'"kind":' not in whole or b'"seq":' not in whole:  # who holds the lease, mail
            return REAL.write(fd, data)
        self.done += 1
        if self.done != self.at:
            return REAL.write(fd, data)
        if self.boundary == "between blob and entry":
            last = whole.rstrip(b"\n").rfind(b"\n") + 1  # 0: an entry without a blob, cut in its middle
            REAL.write(fd, whole[: last or len(whole) // 2])
        if self.boundary == "after the write":
            REAL.write(fd, data)
        if self.boundary in ("before the write", "between blob and entry", "after the write"):
            die()
        return REAL.write(fd, data)


_own: list[int] = []
"""The number of this process: agent code may not ask for it."""


def die() -> None:
    """The end of this process, at this very instruction."""
    os.kill(_own[-1], signal.SIGKILL)


@dataclass(slots=True)
class Plan:
    """How a process dies: at the ``at``-th passing of ``boundary``; after ``seconds``; or (neither) not."""

    boundary: str = ""
    at: int = 0
    seconds: float | None = None

    def __str__(self) -> str:
        return self.boundary or ("random" if self.seconds is not None else "")


def _work(program: Any, root: Path, run: str | None, plan: Plan, told: Path) -> int:
    """The whole life of a process; its exit status. Every entry that the store acknowledged goes to ``told``."""
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    real = LocalAppender.append

    def append(self: LocalAppender, data: bytes) -> None:
        real(self, data)
        os.write(out, data)

    LocalAppender.append = append  # type: ignore[method-assign]
    passed: Counter[str] = Counter()

    def passes(where: str) -> None:
        boundary = {"before": "entry and effect", "after": "effect and outcome"}.get(where, where)
        passed[boundary] += 1
        if boundary == plan.boundary and passed[boundary] == plan.at:
            die()

    AT.passes = passes
    store = LocalStore(root, system=_Dies(plan.boundary, plan.at))
    try:
        if run is not None:
            resume(run, program, store=store)
        elif isinstance(program, Workflow):
            program.run("go", store=store)
        else:
            program.run(store=store)
    except Suspended:
        return SUSPENDED
    return ENDED


def _process(work: Callable[[], int], errors: Path, seconds: float | None) -> int:
    """Fork a process for ``work`` and kill it after ``seconds``; its exit status, negative where it was killed."""
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        status = FAILED
        try:
            _own.append(os.getpid())
            gc.freeze()  # what the parent holds is no garbage of the child's
            status = work()
        except BaseException:  # noqa: BLE001 - told to the parent
            errors.write_text(traceback.format_exc())
        finally:
            os._exit(status)
    if seconds is not None:
        handle = os.pidfd_open(child)
        try:
            if not select.select([handle], [], [], seconds)[0]:
                os.kill(child, signal.SIGKILL)
        finally:
            os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- one run ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Whole:
    """An undisturbed run: its output, its calls by id, its effects, how long it takes and how often what is passed."""

    output: object
    calls: dict[str, tuple[str, str, object]]
    effects: list[str]
    bookings: list[str]
    seconds: float
    writes: int


def calls_of(trace: Trace) -> dict[str, tuple[str, str, object]]:
    """What each call asks for, by the call's id."""
    return {call.id: (call.kind, call.name, call.request) for call in trace.calls}


def run_alone(name: str, folder: Path) -> Whole:
    """The program in processes of its own that nobody kills."""
    case = Case(0, name)
    began = time.monotonic()
    run, world, _ = _lives(case, random.Random(0), "", None, folder)
    seconds = time.monotonic() - began
    trace = Trace.open(run, LocalStore(folder / "store"))
    return Whole(
        trace.output,
        calls_of(trace),
        sorted(name for (name,) in world.run("select name from effects")),
        sorted(name for (name,) in world.run("select name from bookings")),
        seconds,
        len(trace.journal.entries),
    )


_whole: dict[str, Whole] = {}


def undisturbed(name: str) -> Whole:
    """How the program goes without kills. What it imports is imported here, for all processes to come."""
    if name not in _whole:
        AT.world = None
        program, store = PROGRAMS[name], MemoryStore()
        with suppress(Suspended):
            program.run("go", store=store) if isinstance(program, Workflow) else program.run(store=store)
        with tempfile.TemporaryDirectory() as folder:
            _whole[name] = run_alone(name, Path(folder))
    return _whole[name]


def one(seed: int, how: str) -> Case:
    """One run under ``how`` (``random``, a boundary, ``mixed``), killed and resumed until it ends, and checked."""
    rng = random.Random(f"{how} {seed}")
    name = sorted(PROGRAMS)[seed % len(PROGRAMS)]
    whole = undisturbed(name)
    case = Case(seed, name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run, world, told = _lives(case, rng, how, whole, Path(folder))
            _checked(LocalStore(Path(folder) / "store"), run, PROGRAMS[name], whole, world, told)
        except Exception as error:
            error.add_note(f"seed {seed}, {how}, program {name}, killed at {case.kills}")
            raise
    return case


def _plan(rng: random.Random, how: str, whole: Whole, *, first: bool) -> Plan:
    if how == "mixed":
        how = rng.choice(["random", *BOUNDARIES])
    if how == "random":
        return Plan(seconds=rng.random() * whole.seconds * (1.1 if first else 0.8))
    inside = how in ("entry and effect", "effect and outcome")
    most = len(whole.effects) + len(whole.bookings) if inside else whole.writes
    return Plan(how, rng.randint(1, most if first else max(1, most // 2)))


def _lives(
    case: Case, rng: random.Random, how: str, whole: Whole | None, folder: Path
) -> tuple[str, World, list[bytes]]:
    """Start the run and resume it until it ends. ``whole`` None: nobody kills it. Its id, its effects, and what each
    process was told that the store acknowledged."""
    world = AT.world = World(folder / "world.sqlite")
    world.make()
    root, program = folder / "store", PROGRAMS[case.program]
    told: list[bytes] = []
    run: str | None = None
    want = rng.choice([1, 1, 1, 2, 3, MOST_KILLS])
    for number in range(MOST_PROCESSES):
        plan = Plan()
        if whole is not None and len(case.kills) < want:
            plan = _plan(rng, how, whole, first=not number)
        record = folder / f"told{number}"
        work = partial(_work, program, root, run, plan, record)
        status = _process(work, folder / "error", plan.seconds)
        told.append(record.read_bytes() if record.exists() else b"")
        if status == FAILED:
            raise Lost(f"process {number}: {(folder / 'error').read_text()}")
        if status < 0:
            case.kills.append(str(plan))
        run = _left(root, told)
        if run is None:
            continue  # it died before its first entry: there is no run
        if status == ENDED or Trace.open(run, LocalStore(root)).status == "completed":
            return run, world, told  # or killed when all was written
        doubtful = _acknowledged(root, run, told)
        if status == SUSPENDED:
            case.asked += _answered(run, root, world, doubtful)
    raise Lost(f"never ended in {MOST_PROCESSES} processes")


def _left(root: Path, told: list[bytes]) -> str | None:
    """The run that is in the store; None: none is, and none was acknowledged."""
    try:
        run = LocalStore(root).resolve("last")
        LocalStore(root).reopen(run).close()
    except (RunNotFound, StoreFailed) as error:
        if any(told):
            raise Lost("a run that was acknowledged is gone") from error
        for path in (root / "runs").glob("*.loom") if root.exists() else ():
            path.unlink()
        return None
    return run


def _acknowledged(root: Path, run: str, told: list[bytes]) -> set[str]:
    """Every entry that a process was told of is there, in order; the ids of writing calls that are in doubt."""
    data = LocalStore(root).read(run)
    at = 0
    for part in told:
        at = data.find(part, at)
        if at < 0:
            raise Lost("an acknowledged entry is lost")
        at += len(part)
    return {
        call.id
        for call in Trace.open(run, LocalStore(root)).calls
        if call.status is None
        and call.effect == "write"
        and call.name in ("charge", "acharge", "unsure", "aunsure")
    }


def _answered(run: str, root: Path, world: World, doubtful: set[str]) -> int:
    """Say of each call in doubt what the database says, and answer what else is asked. How many were in doubt."""
    store = LocalStore(root)
    asks = [ask for ask in waiting(store, run) if ask.answered is None]
    if not asks:
        raise Lost("suspended, and nothing is asked")
    for ask in asks:
        if ask.kind == "signal":
            sent = sum(mail.kind == "signal" for mail in store.mail(run))
            send_signal(run, ask.name, f"word {sent}", store=store)
        elif not ask.in_doubt:
            answer(run, "yes", ask=ask.ask, store=store)
        elif ask.call not in doubtful:
            raise Lost(f"asked about {ask.call}, which is not in doubt: {sorted(doubtful)}")
        else:
            request: Any = ask.request
            name = request["args"]["name"]
            if world.happened(name):
                answer(run, "yes", ask=ask.ask, by="the database", result=f"charged {name}", store=store)
            else:
                answer(run, "no", ask=ask.ask, by="the database", store=store)
    return sum(ask.in_doubt for ask in asks)


def _checked(
    store: LocalStore, run: str, program: Any, whole: Whole, world: World, told: list[bytes]
) -> None:
    """The run has ended: what it did, and what its trace says of it."""
    _acknowledged(Path(store.root), run, told)
    trace = Trace.open(run, store)
    _same("output", trace.output, whole.output)
    _same("effects", sorted(name for (name,) in world.run("select name from effects")), whole.effects)
    _same("bookings", sorted(name for (name,) in world.run("select name from bookings")), whole.bookings)
    keys: dict[str, set[str]] = {}
    for name, key in world.run("select name, key from keys"):
        keys.setdefault(name, set()).add(key)
    if any(len(found) != 1 for found in keys.values()):
        raise Lost(f"an idempotency key changed: {keys}")
    for call, asked in calls_of(trace).items():
        # What was interrupted or retried may be asked for more often; the rest is the same call by call.
        if call in whole.calls and whole.calls[call] != asked and not trace_varies(trace):
            raise Lost(f"call {call} asks for {asked}, undisturbed for {whole.calls[call]}")
    if not trace_varies(trace):
        _same("calls", sorted(calls_of(trace)), sorted(whole.calls))
    data = store.read(run)
    verdict = check(data)
    if not (verdict.ok and verdict.complete):
        raise Lost(f"the trace does not verify: {verdict}")
    spec: dict[str, Any] = verify.check(data)
    if "no" in (spec["consistent"], spec["complete"]):
        raise Lost(f"the other checker: {spec}")
    report = trace.replay(agent=program)
    if report.verdict != "identical":
        raise Lost(f"the replay: {report}")


def trace_varies(trace: Trace) -> bool:
    """Whether the agent saw an interruption, or tried again: it rightly asked for more then."""
    return any(call.status == "error" for call in trace.calls)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Lost(f"{what}: {found}, undisturbed {expected}")


def several(how: str, number: int, first: int = 0) -> tuple[Counter[str], int, list[str]]:
    """Runs from seed ``first`` on until ``number`` processes were killed. Kills by boundary, calls that were asked
    about, and what was lost in which run."""
    kills: Counter[str] = Counter()
    asked, seed, lost = 0, first, list[str]()
    while kills.total() < number and len(lost) < MOST_LOST:
        try:
            case = one(seed, how)
        except Exception as error:  # noqa: BLE001 - told by the caller
            notes: list[str] = getattr(error, "__notes__", [])
            lost.append(f"{type(error).__name__}: {str(error)[-800:]} ({'; '.join(notes)})")
        else:
            kills.update(case.kills)
            asked += case.asked
        seed += 1
    return kills, asked, lost


def main(words: list[str]) -> int:
    """The command; 1 where something was lost or done twice."""
    how = words[0] if words else "all"
    count = int(words[1]) if len(words) > 1 else 1000
    first = int(words[2]) if len(words) > 2 else 0
    bad = 0
    for kind in ["random", *BOUNDARIES] if how == "all" else [how]:
        number = count if kind == "random" or how != "all" else max(20, count // 10)
        began = time.monotonic()
        kills, asked, lost = several(kind, number, first)
        seconds = time.monotonic() - began
        print(
            f"{kind}: {kills.total()} processes killed, {asked} calls in doubt asked about, {seconds:.0f} s"
        )
        print("".join(f"  {line}\n" for line in lost), end="", flush=True)
        bad += len(lost)
    print("nothing lost, nothing twice" if not bad else f"{bad} runs failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
