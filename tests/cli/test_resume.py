"""``agentloom resume``: a process of its own goes on with the run, or says why it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentloom.store import LocalStore
from tests.cli.conftest import Result
from tests.cli.scripts import Scripts
from tests.cli.suspending import REFUND, SEVERAL, refunds, suspended

Call = Callable[..., Result]


@pytest.fixture
def command(cli: Call, scripts: Scripts) -> Call:
    """A command on the store of ``scripts``, in this process."""
    return lambda *args: cli("--store", str(scripts.store), *args)


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """A run that waits, for tests that leave it waiting."""
    scripts = Scripts(tmp_path_factory.mktemp("waits"))
    suspended(scripts, REFUND, "support", "1")
    return scripts


def test_run_of_an_agent_that_waits_says_how_to_answer(command: Call, scripts: Scripts) -> None:
    scripts.write(REFUND)
    done = command("run", "agent.py:support", "--", "812")
    assert done.code == 75
    assert done.out == ""
    (run,) = [row.run for row in LocalStore(scripts.store).runs()]
    for words in (
        f"-- recorded {run[-4:]}  2 calls: 1 tool, 1 ask", "suspended", "question  2  Refund order 812 for $400?",
        'evidence  {"order": 812, "total": 400}', f"agentloom answer {run[-4:]} yes",
        f"agentloom answer {run[-4:]} no", f"agentloom resume {run[-4:]}",
    ):  # fmt: skip
        assert words in done.err, words
    row = LocalStore(scripts.store).runs()[0]
    assert (row.status, row.asks) == ("suspended", ("2",))


def test_run_as_json_holds_the_questions(command: Call, scripts: Scripts) -> None:
    scripts.write(REFUND)
    done = command("--json", "run", "agent.py:support", "--", "812")
    assert (done.code, done.data["status"], done.data["exit"]) == (75, "suspended", 75)
    assert done.data["asks"][0]["choices"] == ["yes", "no"]
    assert "store_dies_with" in done.data


def test_from_exit_75_to_resumed(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, REFUND, "support", "812")
    again = command("resume", run)
    assert again.code == 75, again.err
    assert "0 of them new" in again.err
    assert "agentloom answer" in again.err
    before = LocalStore(scripts.store).read(run)
    assert command("answer", run, "yes").code == 0
    assert LocalStore(scripts.store).read(run) == before
    done = command("resume", run)
    assert (done.code, done.out) == (0, ""), done.err
    assert "3 calls, 1 of them new" in done.err
    assert refunds(scripts) == ["812 400"]
    assert command("replay", run).code == 0
    ended = command("resume", run, "--json")
    assert (ended.code, ended.error["type"]) == (1, "NotSupported")
    assert refunds(scripts) == ["812 400"]


def test_a_store_in_memory_is_warned_about(command: Call, cli: Call, scripts: Scripts) -> None:
    scripts.write(REFUND)
    done = cli("--store", ":memory:", "run", "agent.py:support", "--", "1")
    assert done.code == 75
    assert "kept in memory alone, and is gone with its process" in done.err
    facts = cli("--store", ":memory:", "--json", "run", "agent.py:support", "--", "1").data
    assert (facts["asks"], facts["status"]) == ([], "suspended")
    assert "in memory" in facts["store_dies_with"]


def test_resume_as_json(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, REFUND, "support", "812")
    waits = command("resume", run, "--json")
    assert (waits.code, waits.data["status"], waits.data["new"]) == (75, "suspended", 0)
    assert waits.data["asks"][0]["ask"] == "2"
    command("answer", run, "no")
    done = command("resume", run, "--json")
    assert done.code == 0
    assert {name: done.data[name] for name in ("run", "status", "calls", "new")} == {
        "run": run, "status": "completed", "calls": 2, "new": 0,
    }  # fmt: skip


def test_code_that_no_longer_fits_leaves_the_run_as_it_was(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, REFUND, "support", "812")
    command("answer", run, "yes")
    before = LocalStore(scripts.store).read(run)
    scripts.write(REFUND.replace("Refund order", "Give back order"))
    done = command("resume", run)
    assert done.code == 3
    assert "DIVERGED  changed  call 2 of 2" in done.out
    assert f"agentloom resume {run[-4:]} --at recorded" in done.err
    assert LocalStore(scripts.store).read(run) == before
    facts = command("resume", run, "--json")
    assert (facts.code, facts.data["status"], facts.data["report"]["class"]) == (3, "diverged", "changed")
    old = command("resume", run, "--at", "recorded")
    assert old.code == 0, old.err
    assert "runs the sources kept in the trace" in old.err
    assert LocalStore(scripts.store).runs()[0].status == "completed"


def test_an_agent_that_raises_shows_its_traceback(command: Call, scripts: Scripts) -> None:
    text = REFUND.replace('return f"Refunded', 'raise ValueError("no money"); return f"Refunded')
    run = suspended(scripts, text, "support", "812")
    command("answer", run, "yes")
    done = command("resume", run)
    assert done.code == 1
    assert "failed" in done.err
    assert LocalStore(scripts.store).runs()[0].status == "failed"


def test_a_failed_call_is_tried_again(command: Call, scripts: Scripts) -> None:
    text = REFUND.replace(
        "    with open(", '    if not os.path.exists("open.txt"):\n        raise OSError("closed")\n    with open('
    )  # fmt: skip
    run = suspended(scripts, text, "support", "812")
    command("answer", run, "yes")
    assert command("resume", run).code == 1
    refused = command("resume", run)
    assert "--retry-failed" in refused.err
    (scripts.folder / "open.txt").touch()
    done = command("resume", run, "--retry-failed")
    assert done.code == 0, done.err
    assert refunds(scripts) == ["812 400"]


def test_what_is_not_recorded_is_told_of_the_run_and_beside_it(command: Call, scripts: Scripts) -> None:
    opens = 'open(os.path.join(os.path.dirname(__file__), "{}.txt"), "w").close()'
    text = REFUND.replace("@agent", opens.format("beside") + "\n\n@agent")
    scripts.write(text.replace("    if said ==", f"    {opens.format('within')}\n    if said =="))
    assert scripts.call("run", "--guard", "virtual", "agent.py:support", "--", "812").code == 75
    command("answer", "last", "no")
    told = command("resume", "last", "--json").data["unrecorded"]
    assert [("beside" in one["what"], "within" in one["what"]) for one in told] == [
        (True, False),
        (False, True),
    ]


def test_two_questions_one_answer_at_a_time(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, SEVERAL, "several")
    command("answer", run, "one", "--ask", "1")
    done = command("resume", run)
    assert done.code == 75
    assert "question  2" in done.err
    assert "question  1" not in done.err
    command("answer", run, "2")
    assert command("resume", run).code == 0


def test_a_time_is_said(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, SEVERAL, "nap")
    assert "goes on by itself" in command("resume", run).err
    row = LocalStore(scripts.store).runs()[0]
    assert row.due is not None
    assert "due" in command("ls").out


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (("resume",), 2, "Missing argument"),
        (("resume", "last", "--at"), 2, "requires an argument"),
        (("resume", "run.loom"), 1, "agentloom import"),
        (("resume", "last", "--target", "gone.py:support"), 1, "gone.py does not exist"),
        (("resume", "last", "--target", "agent.py:nobody"), 1, "it has support"),
        (("resume", "last", "--at", "recorded", "--target", "agent.py"), 2, "give one"),
        (("resume", "last", "--at", "recorded", "--json"), 75, "suspended"),
    ],
)
def test_errors_say_what_and_what_next(
    cli: Call, waits: Scripts, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, shown: str
) -> None:
    monkeypatch.chdir(waits.folder)
    done = cli("--store", str(waits.store), *words)
    assert done.code == code, done.err
    assert shown in done.out + done.err


def test_a_script_is_not_resumed(command: Call, scripts: Scripts) -> None:
    assert scripts.run("print(1)").code == 0
    done = command("resume", "last")
    assert done.code == 1
    assert "make the code an @agent" in done.err
