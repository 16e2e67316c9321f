"""``agentloom inbox`` and ``answer``: what is open, and saying it, in this process."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import agentloom
from agentloom import agent, ask
from agentloom.store import LocalStore
from tests.cli.conftest import Result
from tests.cli.suspending import paid, waits

Call = Callable[..., Result]


@agent
async def two() -> str:
    first, second = await asyncio.gather(
        ask("The first?", choices=["yes", "no"]), ask("The second?", schema=int)
    )
    return f"{first} {second}"


@agent
async def one(question: str = "Shall we?") -> str:
    return str(await ask(question, choices=["yes", "no"], approver="root"))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def test_an_empty_inbox_says_so(cli: Call, folder: str) -> None:
    done = cli("inbox", "--store", folder)
    assert (done.code, done.out, done.err) == (0, "", "nobody is waited for\n")
    assert cli("inbox", "--store", folder, "--json").data == {"asks": []}


def test_open_questions_by_run_with_their_command_lines(cli: Call, folder: str) -> None:
    run, other = waits(two, folder), waits(paid, folder)
    done = cli("inbox", "--store", folder)
    assert done.code == 0
    assert done.out.index("The first?") < done.out.index("The second?") < done.out.index("payment")
    assert f"agentloom answer {run[-4:]} yes --ask 1" in done.out
    assert f"agentloom answer {run[-4:]} VALUE --ask 2" in done.out
    assert f"agentloom signal {other[-4:]} payment [VALUE]" in done.out
    facts = cli("inbox", "--store", folder, "--json").data["asks"]
    assert [(one["run"], one["ask"], one["kind"]) for one in facts] == [
        (run, "1", "answer"), (run, "2", "answer"), (other, "1", "signal"),
    ]  # fmt: skip


def test_answers_are_read_as_the_question_wants_and_kept_with_who(cli: Call, folder: str) -> None:
    run = waits(two, folder)
    assert "--ask" in cli("answer", "last", "yes", "--store", folder).err
    done = cli("answer", run, "YES", "--ask", "1", "--by", "ann", "--store", folder)
    assert done.code == 0, done.err
    assert f"answered {run[-4:]} 1  by ann" in done.out
    assert cli("answer", run, "12", "--ask", "2", "--store", folder, "--json").data == {
        "run": run, "ask": "2", "value": 12, "by": getpass.getuser(),
        "at": LocalStore(folder).mail(run)[1].at,
    }  # fmt: skip
    assert [(mail.key, mail.value, mail.via) for mail in LocalStore(folder).mail(run)] == [
        ("1", "yes", "cli"), ("2", 12, "cli"),
    ]  # fmt: skip
    assert "nobody is waited for" in cli("inbox", "--store", folder).err
    again = cli("inbox", "--answered", "--store", folder)
    assert again.out.count("not resumed yet") == 2
    assert agentloom.resume(run, two, store=folder).output == "yes 12"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("answer", "last", "maybe", "--ask", "1"), "InvalidAnswer"),
        (("answer", "last", "x", "--ask", "2"), "InvalidAnswer"),
        (("answer", "last", "yes"), "AmbiguousAsk"),
        (("answer", "last", "yes", "--ask", "77"), "UnknownAsk"),
        (("answer", "last", "yes", "--ask", "1", "--result", "1"), "InvalidAnswer"),
        (("answer", "nosuchrun", "yes"), "RunNotFound"),
        (("signal", "nosuchrun", "x"), "RunNotFound"),
        (("resume", "nosuchrun"), "RunNotFound"),
        (("cancel", "nosuchrun"), "RunNotFound"),
    ],
)
def test_refusals_exit_1_with_their_own_class_and_change_nothing(
    cli: Call, folder: str, words: tuple[str, ...], kind: str
) -> None:
    run = waits(two, folder)
    before = LocalStore(folder).read(run)
    done = cli(*words, "--store", folder, "--json")
    assert (done.code, done.error["type"]) == (1, kind)
    assert done.error["next"]
    assert LocalStore(folder).mail(run) == []
    assert LocalStore(folder).read(run) == before


def test_a_second_answer_is_told_of_the_first(cli: Call, folder: str) -> None:
    run = waits(one, folder)
    assert "only root" in cli("inbox", "--store", folder).out
    assert (
        cli("answer", run, "yes", "--by", "eve", "--store", folder, "--json").error["type"]
        == "UnauthorisedAnswer"
    )
    assert cli("answer", run, "yes", "--by", "root", "--store", folder).code == 0
    done = cli("answer", run, "no", "--by", "root", "--store", folder)
    assert done.code == 1
    assert "was answered before by root on " in done.err


def test_result_is_json(cli: Call, folder: str) -> None:
    done = cli("answer", "last", "yes", "--result", "{oops", "--store", folder)
    assert done.code == 2
    assert "is no JSON" in done.err


def test_a_question_from_anybody_never_steers_the_terminal(cli: Call, folder: str) -> None:
    waits(one, folder, "Shall \x1b[2J we\r\n --ask 9?")
    done = cli("inbox", "--store", folder)
    assert "\x1b" not in done.out
    assert "\r" not in done.out
    assert json.loads(cli("inbox", "--store", folder, "--json").out)["asks"][0]["question"].startswith(
        "Shall \x1b"
    )
