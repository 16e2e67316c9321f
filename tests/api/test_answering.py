"""Answers from outside: each that is refused, with its own words, changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import Suspended, agent, answer, inbox, resume, send_signal, tool
from agentloom.errors import (
    AmbiguousAsk,
    AnswerRefused,
    Expired,
    InvalidAnswer,
    LateAnswer,
    NotSupported,
    ReusedAnswer,
    RunNotFound,
    StaleAnswer,
    UnauthorisedAnswer,
    UnknownAsk,
    ValueRefused,
)
from agentloom.store import LocalStore, MemoryStore
from agentloom.store.in_front import InFront
from agentloom.store.memory import MemoryStore as Store
from agentloom.testing.store_contract import Sample, fill

SECRET = "sk-" + "a1B2c3D4e5" * 4


@pytest.fixture
def store() -> Store:
    return MemoryStore()


@agent
async def one(**more: Any) -> Any:
    return await agentloom.ask("refund?", choices=["yes", "no"], **more)


@agent
async def two() -> list[Any]:
    return list(await asyncio.gather(agentloom.ask("first?"), agentloom.ask("second?")))


@agent
async def hears() -> Any:
    return await agentloom.signal("paid")


def left(program: Any, store: Any, **more: Any) -> str:
    with pytest.raises(Suspended) as caught:
        program.run(store=store, **more)
    return str(caught.value.run)


def refused(
    kind: type[AnswerRefused], match: str, run: str, value: object, store: Any, **more: Any
) -> AnswerRefused:
    before = (store.mail(run), store.read(run))
    with pytest.raises(kind, match=match) as caught:
        answer(run, value, store=store, **more)
    assert type(caught.value) is kind
    assert caught.value.run == run
    assert caught.value.hint
    assert (store.mail(run), store.read(run)) == before
    return caught.value


def test_an_unknown_question_lists_those_that_are_open(store: Store) -> None:
    run = left(one, store)
    error = refused(UnknownAsk, "no question '9'", run, "yes", store, ask="9")
    assert "1: refund?" in str(error)
    assert [ask.ask for ask in error.open] == ["1"]
    refused(UnknownAsk, "asks nothing; it waits for 1: signal paid", left(hears, store), "yes", store)


def test_an_ambiguous_answer_lists_what_it_could_mean(store: Store) -> None:
    run = left(two, store)
    error = refused(AmbiguousAsk, "waits for 2 answers: 1: first[?]; 2: second", run, "yes", store)
    assert [ask.ask for ask in error.open] == ["1", "2"]
    answer(run, "b", ask=2, store=store)
    answer(run, "a", store=store)  # one is left: it is meant
    assert resume(run, two, store=store).output == ["a", "b"]


def test_a_late_answer_says_until_when_it_was_open(store: Store) -> None:
    @agent
    async def program() -> Any:
        with contextlib.suppress(Expired):
            await agentloom.ask("quick?", deadline=0.001)
        return await agentloom.ask("slow?", deadline=3600)

    run = left(program, store)
    refused(LateAnswer, "question 1 .* was open until", run, "yes", store, ask=1)
    (ask,) = inbox(store)
    later = time.time_ns() + 3601 * 10**9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentloom.api.answering.time.time_ns", lambda: later)
        refused(LateAnswer, "question 2 .* was open until", run, "yes", store, ask=ask.ask)
    answer(run, "yes", store=store)


def test_a_stale_answer_says_how_the_run_ended(store: Store) -> None:
    run = left(one, store)
    answer(run, "yes", store=store)
    resume(run, one, store=store)
    refused(StaleAnswer, "has ended .completed on", run, "yes", store)
    refused(ReusedAnswer, "was answered on .*, and the run went on", run, "yes", store, ask=1)


def test_a_question_that_nobody_waits_for_any_more_is_stale(store: Store) -> None:
    @agent
    async def program() -> Any:
        first = asyncio.ensure_future(agentloom.ask("first?"))
        await asyncio.sleep(0)
        first.cancel()
        return await agentloom.ask("second?")

    run = left(program, store)
    error = refused(StaleAnswer, "question 1 .* is asked no longer", run, "yes", store, ask=1)
    assert "2: second?" in str(error)


def test_a_second_answer_is_told_whose_the_first_was(store: Store) -> None:
    run = left(one, store)
    answer(run, "yes", by="ann", store=store)
    for more in ({}, {"ask": 1}):
        error = refused(
            ReusedAnswer, "answered before by ann on .*; that answer stands", run, "no", store, **more
        )
        assert isinstance(error, ReusedAnswer)
        assert error.existing.value == "yes"


def test_who_may_answer(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalStore(tmp_path / "s")
    run = left(one, local, approver=["ann", "finance"])
    error = refused(UnauthorisedAnswer, "is for ann or finance; who answers was not said", run, "yes", local)
    assert (error.fields["by"], error.fields["approver"]) == (None, ["ann", "finance"])
    refused(UnauthorisedAnswer, "eve is none of them", run, "yes", local, by="eve")
    refused(UnauthorisedAnswer, "eve is none of them", run, "yes", local, by="eve", roles=["sales"])
    (tmp_path / "s" / "people.toml").write_text('[roles]\nfinance = ["bob"]\nsales = ["eve"]\n')
    refused(UnauthorisedAnswer, "eve is none of them", run, "yes", local, by="eve")
    answer(run, "yes", by="bob", store=local)
    assert inbox(local) == []
    for by, roles in (("ann", ()), ("carl", ("finance",))):
        answer(left(one, store, approver=["ann", "finance"]), "yes", by=by, roles=roles, store=store)


def test_the_value_is_checked_before_anything_is_kept(store: Store) -> None:
    run = left(one, store)
    error = refused(InvalidAnswer, 'none of the choices: "yes", "no"; it is "perhaps"', run, "perhaps", store)
    assert error.fields["problems"] == [
        {"where": "", "what": 'it is none of the choices: "yes", "no"', "got": '"perhaps"'}
    ]
    refused(InvalidAnswer, "only a call in doubt has a result", run, "yes", store, result=1)


def test_a_wrong_part_is_named_by_its_path(store: Store) -> None:
    @agent
    async def program() -> Any:
        schema = {
            "type": "object",
            "properties": {"lines": {"type": "array", "items": {"type": "integer"}}},
            "required": ["lines"],
        }
        return await agentloom.ask("?", schema=schema)

    run = left(program, store)
    error = refused(
        InvalidAnswer, r"lines\[1\]: 'x' is not of type 'integer'", run, {"lines": [1, "x"]}, store
    )
    assert error.fields["problems"][0]["where"] == "lines[1]"


def test_a_secret_is_not_put_on_the_disk(tmp_path: Path) -> None:
    local = LocalStore(tmp_path / "s")

    @agent
    async def program() -> list[Any]:
        return [await agentloom.ask("key?"), await agentloom.signal("key")]

    run = left(program, local)
    for value in (SECRET, {"keys": [SECRET]}, f"it is {SECRET}."):
        with pytest.raises(ValueRefused, match="holds a secret"):
            answer(run, value, store=local)
        with pytest.raises(ValueRefused, match="holds a secret"):
            send_signal(run, "key", value, store=local)
    with pytest.raises(ValueRefused, match="holds a secret"):
        answer(run, "x", by=SECRET, store=local)
    for file in (tmp_path / "s").rglob("*"):
        assert not file.is_file() or file.suffix == ".loom" or SECRET.encode() not in file.read_bytes()
    assert local.mail(run) == []


def test_what_cannot_be_kept_is_refused(store: Store) -> None:
    @agent
    async def program() -> Any:
        return await agentloom.ask("?")

    run = left(program, store)
    with pytest.raises(ValueRefused):
        answer(run, object(), store=store)
    answer(run, {"when": (1, 2.5, b"x", None)}, store=store)
    assert resume(run, program, store=store).output == {"when": (1, 2.5, b"x", None)}


@pytest.mark.parametrize("by", ["", "ann\n", "\x1b[2J", "x" * 300, 3])
def test_a_name_is_one_that_can_be_shown(store: Store, by: Any) -> None:
    run = left(one, store)
    with pytest.raises(ValueError, match="by= is a name"):
        answer(run, "yes", by=by, store=store)
    with pytest.raises(ValueError, match="by= is a name"):
        send_signal(run, "paid", by=by, store=store)


def test_a_run_that_is_not_there(store: Store) -> None:
    with pytest.raises(RunNotFound):
        answer("01m8jb6v7yksr9rmc6jr4w78sj", "yes", store=store)


def test_code_of_a_run_answers_through_a_tool(store: Store) -> None:
    run = left(one, store)

    @tool
    def reply(value: str) -> None:
        answer(run, value, store=store)

    @agent
    def clerk() -> str:
        with pytest.raises(NotSupported, match="put it into a tool"):
            answer(run, "yes", store=store)
        with pytest.raises(NotSupported, match="put it into a tool"):
            send_signal(run, "x", store=store)
        reply("yes")
        return "done"

    assert clerk.run(store=store).output == "done"
    assert resume(run, one, store=store).output == "yes"


def in_doubt(program: Any, store: Store) -> str:
    """A run of ``program`` whose process died in its first call."""
    lines = store_of(program).splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if b'"kind":"request"' in line)
    run = store.add(b"".join(lines[: first + 1]))
    with pytest.raises(Suspended):
        resume(run, program, store=store)
    return run


def store_of(program: Any) -> bytes:
    elsewhere = MemoryStore()
    return elsewhere.read(program.run(store=elsewhere).run_id)


def test_a_call_in_doubt_is_answered_by_whether_it_happened(store: Store) -> None:
    done: list[int] = []

    @tool
    async def charge(number: int) -> int:
        done.append(number)
        return number

    @agent
    async def program() -> int:
        return await charge(7)

    run = in_doubt(program, store)
    (ask,) = inbox(store)
    assert ask.in_doubt
    refused(InvalidAnswer, "neither yes nor no", run, "perhaps", store)
    refused(InvalidAnswer, "result: it happened, but what it gave is not said", run, "yes", store)
    refused(InvalidAnswer, "has no result", run, False, store, result=3)
    answer(run, "yes", result=5, store=store)
    done.clear()
    assert resume(run, program, store=store).output == 5
    assert done == []
    run = in_doubt(program, store)
    answer(run, "no", store=store)
    done.clear()
    assert resume(run, program, store=store).output == 7
    assert done == [7]


def test_the_inbox_is_of_all_runs_oldest_first(store: Store) -> None:
    runs = [left(two, store), left(hears, store), left(one, store)]
    done = left(one, store)
    answer(done, "no", store=store)
    resume(done, one, store=store)
    assert [(ask.run, ask.ask, ask.kind) for ask in inbox(store)] == [
        (runs[0], "1", "answer"), (runs[0], "2", "answer"), (runs[1], "1", "signal"), (runs[2], "1", "answer"),
    ]  # fmt: skip
    send_signal(runs[1], "paid", store=store)
    answer(runs[2], "yes", by="ann", store=store)
    assert {ask.run for ask in inbox(store)} == {runs[0]}
    late = [ask for ask in inbox(store, answered=True) if ask.answered is not None]
    assert [(ask.run, ask.answered and ask.answered.who) for ask in late] == [
        (runs[1], None),
        (runs[2], "ann"),
    ]


def test_the_inbox_reads_no_run_that_asks_nothing(store: Store) -> None:
    run = left(one, store)
    died = Sample(1)
    fill(store, died, died.start(), *died.call())
    read: list[str] = []

    class Told(InFront):
        def read(self, run: str) -> bytes:
            read.append(run)
            return super().read(run)

    assert [ask.run for ask in inbox(Told(store))] == [run]
    assert read == [run]


def test_a_run_that_has_not_begun_or_cannot_be_read_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = LocalStore(tmp_path / "s")
    run, damaged = left(one, local), left(one, local)
    begins = local.create("01m8jb6v7yksr9rmc6jr4w78sj")
    path = Path(local.path(damaged))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"kind":"request"' not in line))
    assert [ask.run for ask in inbox(local)] == [run]
    assert damaged in caplog.text
    begins.close()


PROGRAM = """
import sys
from agentloom import answer
from agentloom.errors import ReusedAnswer
print("ready", flush=True)
sys.stdin.readline()
try:
    answer(sys.argv[2], "yes", by=sys.argv[3], store=sys.argv[1])
    print("won", sys.argv[3])
except ReusedAnswer as error:
    print("lost", error.existing.who)
"""


def test_of_several_who_answer_at_once_one_wins_and_the_others_are_told_who(tmp_path: Path) -> None:
    local = LocalStore(tmp_path / "s")
    run = left(one, local)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s"), run]
    crowd = [
        subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(6)
    ]
    for person in crowd:
        assert person.stdout is not None
        assert person.stdout.readline() == "ready\n"
    said = [person.communicate("go\n", timeout=60)[0].split() for person in crowd]
    winners = [who for what, who in said if what == "won"]
    assert len(winners) == 1
    assert [who for what, who in said if what == "lost"] == winners * 5
    assert resume(run, one, store=local).output == "yes"
