"""``agentloom check-deploy``: which suspended runs would go on with the code as it is now."""

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
    return lambda *args: cli("--store", str(scripts.store), *args)


def test_nothing_is_suspended(command: Call, scripts: Scripts) -> None:
    done = command("check-deploy")
    assert (done.code, done.err) == (0, "no suspended run\n")
    assert command("check-deploy", "--json").data == {
        "checked": 0, "compatible": [], "other_targets": 0, "groups": [],
    }  # fmt: skip


def test_a_moved_helper_and_comments_are_compatible_a_changed_question_is_not(
    command: Call, scripts: Scripts
) -> None:
    names = [suspended(scripts, REFUND, "support", str(order)) for order in (1, 2)]
    before = [LocalStore(scripts.store).read(run) for run in names]
    scripts.write("# a comment\n\n" + REFUND.replace("@agent", "def helper() -> None: ...\n\n@agent"))
    good = command("check-deploy")
    assert (good.code, good.out) == (0, "COMPATIBLE  2 suspended runs: 2 would go on\n")
    scripts.write(REFUND.replace("Refund order", "Give back order"))
    bad = command("check-deploy")
    assert bad.code == 3
    assert bad.out.startswith(
        "NOT COMPATIBLE  2 suspended runs: 0 would go on, 2 would not\n2 changed  call 2 ask ask"
    )
    for words in (
        "question",
        "Give back order",
        "code changed: support (agent.py:",
        names[0][-4:],
        names[1][-4:],
    ):
        assert words in bad.out, words
    assert "--at recorded" in bad.err
    facts = command("check-deploy", "--json")
    assert (facts.code, facts.data["checked"], facts.data["compatible"]) == (3, 2, [])
    assert [sorted(group["runs"]) for group in facts.data["groups"]] == [sorted(names)]
    assert facts.data["groups"][0]["first"]["class"] == "changed"
    assert [LocalStore(scripts.store).read(run) for run in names] == before
    assert refunds(scripts) == []


def test_reasons_are_told_apart_and_counted(command: Call, scripts: Scripts) -> None:
    suspended(scripts, REFUND, "support", "1")
    suspended(scripts, REFUND, "support", "2")
    scripts.write(SEVERAL, "other.py")
    assert scripts.call("run", "other.py:nap").code == 75
    scripts.write(REFUND.replace("lookup_order", "find_order"))
    (scripts.folder / "other.py").unlink()
    done = command("check-deploy", "--json")
    assert done.code == 3
    assert [(len(group["runs"]), group["first"]["class"]) for group in done.data["groups"]] == [
        (2, "extra"), (1, "cannot be run"),
    ]  # fmt: skip
    shown = command("check-deploy").out
    assert "2 extra  call 1 tool find_order" in shown
    assert "1 cannot be run" in shown
    assert "other" in shown


def test_a_release_in_another_folder_and_one_agent_of_many(command: Call, scripts: Scripts) -> None:
    suspended(scripts, REFUND, "support", "1")
    scripts.write(SEVERAL, "other.py")
    assert scripts.call("run", "other.py:nap").code == 75
    scripts.write(REFUND.replace("Refund order", "Give back order"), "release/agent.py")
    scripts.write(SEVERAL, "release/other.py")
    done = command("check-deploy", "release", "--json")
    assert (done.code, done.data["checked"], len(done.data["compatible"])) == (3, 2, 1)
    one = command("check-deploy", "release/other.py:nap", "--json")
    assert (one.code, one.data["checked"], one.data["other_targets"]) == (0, 1, 1)
    assert command("check-deploy", "agent.py", "--json").data["checked"] == 1
    (scripts.folder / "release" / "agent.py").unlink()
    gone = command("check-deploy", "release")
    assert gone.code == 3
    assert "release has no agent.py" in gone.out
    assert "no suspended run of that target" in command("check-deploy", "release/other.py:soon").err
    wrong = command("check-deploy", "nowhere.py")
    assert wrong.code == 1
    assert "nowhere.py does not exist" in wrong.err


def test_a_process_that_dies_stops_no_other(command: Call, scripts: Scripts) -> None:
    suspended(scripts, REFUND, "support", "1")
    scripts.write(SEVERAL, "other.py")
    assert scripts.call("run", "other.py:nap").code == 75
    scripts.write("import faulthandler\nfaulthandler._sigsegv()\n" + REFUND)
    done = command("check-deploy", "--json")
    assert done.code == 3
    assert len(done.data["compatible"]) == 1
    assert "139" in done.data["groups"][0]["first"]["error"]["message"]
