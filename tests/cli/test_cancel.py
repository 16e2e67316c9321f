"""``agentloom cancel``: a run that waits ends cancelled, after its own clean-up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentloom.store import LocalStore
from tests.cli.conftest import Result
from tests.cli.scripts import Scripts
from tests.cli.suspending import REFUND, WRITES, begin, ended, reaped, refunds, suspended, until

Call = Callable[..., Result]

CLEANS = """
from agentloom import agent, ask, tool

@tool
async def close() -> None:
    open("closed.txt", "a").write("closed\\n")

@agent
async def support() -> str:
    try:
        return await ask("Shall we?")
    finally:
        await close()
"""

STAYS = """
import asyncio
from agentloom import agent, ask

@agent
async def support() -> str:
    try:
        return await ask("Shall we?")
    except asyncio.CancelledError:
        return await ask("Really?")
"""


__all__ = ["reaped"]
pytestmark = pytest.mark.usefixtures("reaped")


@pytest.fixture
def command(cli: Call, scripts: Scripts) -> Call:
    return lambda *args: cli("--store", str(scripts.store), *args)


@pytest.mark.parametrize("text", [REFUND, WRITES.replace("def shop", "def support")])
def test_a_run_that_waits_ends_cancelled_and_replays(command: Call, scripts: Scripts, text: str) -> None:
    run = suspended(scripts, text, "support", "812")
    done = command("cancel", run, "--by", "ann")
    assert (done.code, done.out) == (0, f"cancelled  {run[-4:]}\n"), done.err
    store = LocalStore(scripts.store)
    assert store.runs()[0].status == "cancelled"
    assert [(mail.kind, mail.who) for mail in store.mail(run)] == [("cancel", "ann")]
    assert command("replay", run).code == 0
    late = command("answer", run, "yes", "--json")
    assert late.error["type"] == "StaleAnswer"
    again = command("cancel", run)
    assert again.code == 1
    assert "has ended (cancelled)" in again.err


def test_it_cleans_up(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, CLEANS)
    assert command("cancel", run, "--json").data["status"] == "cancelled"
    assert refunds(scripts, "closed.txt") == ["closed"]


def test_code_that_goes_on_is_not_stopped_and_that_is_said(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, STAYS)
    done = command("cancel", run)
    assert done.code == 1
    assert "its code caught that, and waits again" in done.out
    assert command("answer", run, "yes").code == 0
    went = command("resume", run)
    assert went.code == 0, went.err
    assert LocalStore(scripts.store).runs()[0].status == "completed"


def test_code_that_no_longer_fits_is_left_as_it_was(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, REFUND, "support", "812")
    before = LocalStore(scripts.store).read(run)
    scripts.write(REFUND.replace("Refund order", "Give back order"))
    done = command("cancel", run)
    assert done.code == 1
    assert "diverged" in done.out
    assert LocalStore(scripts.store).read(run) == before


def test_a_run_that_is_being_run_is_told(command: Call, scripts: Scripts) -> None:
    run = suspended(scripts, WRITES, "shop", "812")
    command("answer", run, "yes")
    owner = begin(scripts, "resume", run)
    until(scripts.folder / "began.txt", owner)
    done = command("cancel", run)
    assert done.code == 0
    assert done.out.startswith("told")
    assert "is being written by process" in done.out
    (scripts.folder / "go.txt").touch()
    assert ended(owner).code == 0
    assert refunds(scripts, "charges.txt") == ["812"]
