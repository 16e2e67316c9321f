"""``AGENTLOOM`` flips what the same code does; ``replaying`` does so for a block."""

from __future__ import annotations

import os
import random as sync_random
from pathlib import Path

import pytest

from agentloom import Trace, Workflow, agent, instrument, record, replaying
from agentloom.errors import DivergenceError, TargetError
from agentloom.store import MemoryStore, open_store
from tests.api import recorded_programs as programs
from tests.api.recorded_programs import in_loop


async def recorded(store: MemoryStore, number: int, **tags: str) -> Trace:
    run = record(programs.research(number), store=store, tags=tags)
    await run
    return run.trace


@in_loop
async def test_replay_takes_the_newest_run_with_that_name_and_these_tags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    for number in (1, 2, 3):
        await recorded(store, number, ticket=str(number))
    monkeypatch.setenv("AGENTLOOM", "replay")
    run = record(programs.research(2), store=store, tags={"ticket": "2"})
    answer = await run
    assert type(answer) is programs.Answer
    assert run.report is not None
    assert run.report.verdict == "identical"
    assert len(store.runs()) == 3
    with pytest.raises(DivergenceError):
        await record(programs.research(2), store=store)  # the newest one made three calls
    began = record(programs.research(2), store=store, tags={"ticket": "9"})
    with pytest.raises(TargetError, match="no run of research with ticket=9"):
        await began


@in_loop
async def test_off_leaves_the_coroutine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setenv("AGENTLOOM", "off")
    run = record(programs.research(2), store=store)
    assert (await run).total == 2
    assert run.run_id is None
    with pytest.raises(TargetError, match="AGENTLOOM=off"):
        _ = run.trace
    assert not store.runs()


@in_loop
async def test_an_unknown_mode_is_an_error_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[int] = []

    async def main() -> None:
        began.append(1)

    monkeypatch.setenv("AGENTLOOM", "reply")
    with pytest.raises(TargetError, match="AGENTLOOM='reply' is no mode"):
        await record(main(), store=MemoryStore())
    assert not began


@in_loop
async def test_traces_that_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = MemoryStore()
    for number in (1, 2):
        (await recorded(store, number)).save(tmp_path / f"{number}.loom")
    monkeypatch.setenv("AGENTLOOM", "replay")
    monkeypatch.setenv("AGENTLOOM_TRACE", f"{tmp_path / '1.loom'}, {tmp_path / '2.loom'}")
    for number in (1, 2):
        assert (await record(programs.research(number))).total == number * (number - 1)
    with pytest.raises(TargetError, match=r"once more than .* has traces of it \(2\)"):
        await record(programs.research(1))
    with pytest.raises(TargetError, match="holds no trace of fails; it has traces of: research"):
        await record(programs.fails(1))
    monkeypatch.setenv("AGENTLOOM_TRACE", str(tmp_path / "none.loom"))
    with pytest.raises(TargetError, match=r"there is no trace .*none\.loom"):
        await record(programs.fails(1))
    program = tmp_path / "program.py"
    program.write_text("print(1)\n")
    (tmp_path / "cut.loom.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    for wrong in (program, tmp_path / "cut.loom.zst"):
        monkeypatch.setenv("AGENTLOOM_TRACE", str(wrong))
        with pytest.raises(TargetError, match=rf"{wrong.name} is no trace that can be read: ."):
            await record(programs.fails(1))
        with pytest.raises(TargetError, match=wrong.name), replaying(wrong):
            pass


@in_loop
async def test_a_failed_run_fails_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    run = record(programs.fails(1), store=store)
    with pytest.raises(KeyError):
        await run
    monkeypatch.setenv("AGENTLOOM", "replay")
    with pytest.raises(KeyError) as again:
        await record(programs.fails(1), store=store)
    assert type(again.value.__cause__) is ValueError


@in_loop
async def test_a_block_that_replays(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    run = record(programs.research(2), store=store)
    await run
    path = tmp_path / "two.loom"
    run.trace.save(path)
    for given in (run.trace, path, os.fspath(path)):
        with replaying(given):
            for _ in range(2):  # one trace of a name answers every run of that name
                again = record(programs.research(2), store=store)
                await again
                assert again.report is not None
    with pytest.raises(TargetError, match="there is no trace"), replaying("no-such-run"):
        pass
    assert len(store.runs()) == 1


@agent
def counts(number: int) -> list[int]:
    return [sync_random.randint(0, 10**9) for _ in range(number)]


def test_runs_of_agents_go_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    recorded = counts.run(3, store=store)
    monkeypatch.setenv("AGENTLOOM", "replay")
    again = counts.run(3, store=store)
    assert again.run_id == recorded.run_id
    assert again.output == recorded.output
    assert again.replay().verdict == "identical"
    with pytest.raises(DivergenceError):
        counts.run(2, store=store)
    monkeypatch.setenv("AGENTLOOM", "off")
    assert len(counts.run(2, store=store).output) == 2
    assert len(store.runs()) == 1
    monkeypatch.setenv("AGENTLOOM", "on")
    with pytest.raises(TargetError, match="no mode"):
        counts.run(2, store=store)


@in_loop
async def test_so_do_async_agents_and_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    graph = Workflow()
    graph.step("draw", fn=lambda state: sync_random.random())
    first = await graph.arun("x", store=store)
    awaited = await waits.arun(1, store=store)
    monkeypatch.setenv("AGENTLOOM", "replay")
    assert (await graph.arun("x", store=store)).output == first.output
    assert (await waits.arun(1, store=store)).run_id == awaited.run_id
    with replaying(first):
        assert (await graph.arun("x")).output == first.output
    assert len(store.runs()) == 2


@agent
async def waits(number: int) -> int:
    return await programs.look(number)


def test_a_failed_agent_fails_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()

    @agent
    def fails() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError):
        fails.run(store=store)
    monkeypatch.setenv("AGENTLOOM", "replay")
    with pytest.raises(KeyError, match="gone"):
        fails.run(store=store)


_END = "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW"
KEY = f"sk-proj-{_END}"  # in one piece it would be hidden in the source too


@in_loop
async def test_a_name_that_holds_a_secret_is_written_with_stars(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a request to ``/users/KEY``: it comes from outside, and must not fail the run."""
    store = MemoryStore()

    @instrument(store=store, name=lambda: f"job {KEY}")
    def job() -> int:
        return 3

    async def everything() -> None:
        with record(f"GET /users/{KEY}", store=store) as run:
            run.output = job()
            with record(f"inner {KEY}"):
                await record(programs.look(1), name=f"look {KEY}")
        await record(programs.look(1), name=f"alone {KEY}", store=store)
        job()

    await everything()
    names = [row.agent for row in reversed(store.runs())]
    assert names == ["GET /users/***", "alone ***", "job ***"]
    for row in store.runs():
        assert KEY.encode() not in store.read(row.run), row.agent
    monkeypatch.setenv("AGENTLOOM", "replay")
    await everything()
    assert len(store.runs()) == 3
