"""The n-th operation of the operating system fails under a whole run, for every n until the run succeeds.

Whatever fails, and however careless the agent: it never has a result in its hands that is not in the trace, no tool
ran that the trace does not name, nothing acknowledged is lost, what is there verifies and replays as far as it goes,
and the run stops before its next effect instead of going on (or going round) for ever.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom import Workflow
from agentloom.api.trace import Trace
from agentloom.errors import RunNotFound, StoreFailed
from agentloom.format.journal import Journal, check
from agentloom.format.values import decode
from agentloom.replay.recording import Recording
from agentloom.store import LocalStore
from agentloom.store.appender import LocalAppender
from tests.faults.programs import PROGRAMS, SCRIPT, TELL
from tests.faults.test_store_faults import Dies, forks, in_child

MOST = 200


@pytest.fixture
def told() -> Iterator[list[str]]:
    lines: list[str] = []
    TELL.append(lines.append)
    yield lines
    TELL.pop()


@pytest.fixture
def acknowledged(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the store acknowledged, append by append."""
    parts: list[bytes] = []
    real = LocalAppender.append

    def append(self: LocalAppender, data: bytes) -> None:
        real(self, data)
        parts.append(data)

    monkeypatch.setattr(LocalAppender, "append", append)
    return parts


def run(program: Any, store: LocalStore) -> Trace:
    return program.run("go", store=store) if isinstance(program, Workflow) else program.run(store=store)


def values_of(recording: Recording) -> set[str]:
    """Everything that the trace says the agent got."""
    found: set[str] = {"None", ""}
    for call in recording.calls:
        if call.status == "ok":
            found.add(str(decode(recording.outcome(call), None)))
            found |= {str(decode(chunk, None)) for chunk in recording.chunks_of(call)}
        else:
            found |= {str(decode(chunk, None)) for chunk in recording.chunks_of(call)}
    return found


def recovered(root: Path, lines: list[str], acknowledged: bytes, program: Any) -> str:
    """With a healthy system again: what is there holds, and says all that was done. The run's status."""
    assert "spun" not in lines, "the agent went round and round on a store that had failed"
    store = LocalStore(root)
    try:
        name = store.resolve("last")
        writer = store.reopen(name)
    except RunNotFound:
        assert lines == []
        assert acknowledged == b""
        return "nothing"
    except StoreFailed:
        if acknowledged:
            raise
        assert lines == []
        return "nothing"
    writer.close()
    data = store.read(name)
    assert data.startswith(acknowledged)
    verdict = check(data)
    assert verdict.consistent, verdict
    recording = Recording.from_journal(Journal.parse(data))
    did = [line.removeprefix("did ") for line in lines if line.startswith("did ")]
    requested = ["stream" for call in recording.calls if call.type == "model"]
    for call in recording.calls:
        if call.type == "tool":
            asked: Any = decode(recording.request(call), None)
            requested.append(asked["args"]["name"])
    for effect in did:
        assert effect in requested, f"{effect} was done and is not in the trace"
        requested.remove(effect)  # once each
    held = values_of(recording)
    if any(call.type == "model" and call.status is None for call in recording.calls):
        held |= {
            f"chunk{number} done" for number in range(3)
        }  # of a stream in doubt, delivered but not written
    for line in lines:
        if line.startswith("got "):
            assert line.removeprefix("got ") in held, f"{line}: not in the trace"
    if program is not None:
        TELL.append(lambda _: None)
        report = Trace(data).replay(agent=program, check=False)
        TELL.pop()
        if verdict.complete:
            assert report.verdict == "identical", str(report)
        else:
            assert report.verdict == "diverged"
            assert report.finding is not None
            assert report.finding.reason == "recording ends", str(report)
    return str(recording.status)


KINDS = [
    (errno.EIO, False, "process"),
    (errno.ENOSPC, True, "process"),
    ("short", False, "process"),
    (errno.EIO, False, "power"),
    ("short", False, "power"),
]


@pytest.mark.parametrize("which", PROGRAMS)
@pytest.mark.parametrize(("kind", "sticky", "durability"), KINDS)
def test_whatever_fails_under_a_run(
    tmp_path: Path,
    faulty: Any,
    told: list[str],
    acknowledged: list[bytes],
    which: str,
    kind: int | str,
    sticky: bool,
    durability: Any,
) -> None:
    program = PROGRAMS[which]
    stopped, statuses = 0, set[str]()
    for n in range(1, MOST):
        told.clear()
        acknowledged.clear()
        system = faulty(n, kind, sticky=sticky)
        root = tmp_path / str(n)
        try:
            trace = run(program, LocalStore(root, system=system, durability=durability))
        except StoreFailed as error:
            stopped += 1
            assert system.failed is not None
            assert error.hint  # noqa: PT017 - one of many ways that it may go
            if (
                kind == "short"
            ):  # nothing else fails: of the entry nothing stays, not even until the run is reopened
                runs = [path.read_bytes() for path in root.glob("runs/*.loom")]
                assert runs in ([b"".join(acknowledged)], [])
        else:
            assert trace.status == "completed"
        lines = [*told]
        statuses.add(recovered(root, lines, b"".join(acknowledged), program))
        if system.failed is None and system.done < n:
            break
    else:
        pytest.fail(f"not through after {MOST} operations")
    print(f"{which}: {n - 1} operations, {stopped} of them stopped the run; {statuses}")
    assert stopped > 10
    assert {"None", "completed"} <= statuses


@forks[0]
@forks[1]
@pytest.mark.parametrize("which", PROGRAMS)
def test_death_at_any_operation_of_a_run(tmp_path: Path, faulty: Any, which: str) -> None:
    program = PROGRAMS[which]
    for n in range(1, MOST):
        root = tmp_path / str(n)

        def work(tell: Callable[[str], None], n: int = n, root: Path = root) -> None:
            TELL.append(tell)
            run(program, LocalStore(root, system=Dies(faulty(), n)))

        status, lines = in_child(work)
        recovered(root, lines, b"", program)
        if status == 0:
            break
        assert status == -signal.SIGKILL
    else:
        pytest.fail(f"not through after {MOST} operations")
    assert n > 20


@forks[0]
@forks[1]
@pytest.mark.parametrize("kind", [errno.ENOSPC, "short", "kill"])
def test_whatever_fails_under_a_script(tmp_path: Path, faulty: Any, kind: Any) -> None:
    """``agentloom run`` in the process that it starts, forked here from one that has everything imported."""
    from agentloom.cli.script_child import Results, leave
    from agentloom.cli.script_record import record

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for n in range(1, MOST):
        root = tmp_path / str(n)
        job = {"mode": "record", "path": str(script), "args": [], "store": str(root), "tools": {}}

        def work(tell: Callable[[str], None], n: int = n, job: dict[str, Any] = job) -> None:
            TELL.append(tell)
            system = Dies(faulty(), n) if kind == "kill" else faulty(n, kind)
            (LocalStore.__init__.__kwdefaults__ or {})["system"] = system
            for name in ("stdin", "stdout", "stderr"):
                setattr(
                    sys,
                    name,
                    io.TextIOWrapper(io.FileIO(os.open(os.devnull, os.O_RDWR), "r+"), write_through=True),
                )
            try:
                code = record(job, Results(os.open(os.devnull, os.O_RDWR)))
            except StoreFailed:
                code = 1
            failed = None if kind == "kill" else system.failed
            tell(f"exit {code} {failed} {system.done < n}")
            leave(code)

        status, lines = in_child(work)
        ended = [line for line in lines if line.startswith("exit")]
        recovered(root, [line for line in lines if line not in ended], b"", None)
        if status == 0 and ended[0].endswith("None True"):
            break
        assert status in ((-signal.SIGKILL,) if kind == "kill" else (0, 1)), lines
    else:
        pytest.fail(f"not through after {MOST} operations")
    assert n > 15
