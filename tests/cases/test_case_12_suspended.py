"""Case 12: a run that waits, and code that is deployed meanwhile. Each step is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AGENT = """
from agentloom import agent, ask, tool

LIMIT = 100

@tool
async def lookup(order):
    note("lookup", order)
    return {"total": 40}

@tool
async def refund(order, amount):
    note("refund", order, amount)
    return "ok"

def note(*what):
    with open("effects.txt", "a") as file:
        print(*what, file=file)

def question(order, total):
    return f"Refund {total} for order {order}?"

@agent
async def support(order):
    total = (await lookup(order))["total"]
    if await ask(question(order, total), choices=["yes", "no"]) == "yes":
        await refund(order, total)
        return "refunded"
    return "kept"
"""

HELPERS = '''
# Moved here, with a comment that is new.
def question(order, total):
    """What the person is asked."""
    text = f"Refund {total} for order {order}?"
    return text
'''

DRIVER = """
import json, sys
sys.path.insert(0, ".")
import bot, agentloom
from agentloom import DivergenceError, Suspended
what, *rest = sys.argv[1:]
try:
    if what == "run":
        trace = bot.support.run(812, store="store")
    elif what == "answer":
        agentloom.answer("last", "yes", store="store", by="ann")
        raise SystemExit
    else:
        trace = agentloom.resume("last", bot.support, store="store")
    print(json.dumps({"status": trace.status, "output": trace.output}))
except Suspended as waits:
    print(json.dumps({"status": "suspended", "asks": [ask.question for ask in waits.asks]}))
except DivergenceError as error:
    finding = error.report.finding
    call = None if finding is None or finding.call is None else [finding.call.kind, finding.call.name]
    print(json.dumps({"status": "diverged", "class": finding.cls, "call": call}))
"""


class Here:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deploy(AGENT)

    def deploy(self, agent: str, **modules: str) -> None:
        for name, text in {"bot": agent, **modules}.items():
            (self.folder / f"{name}.py").write_text(text)

    def step(self, what: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-B", "-c", DRIVER, what],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    @property
    def effects(self) -> list[str]:
        return (self.folder / "effects.txt").read_text().splitlines()


@pytest.fixture
def here(tmp_path: Path) -> Here:
    made = Here(tmp_path)
    assert made.step("run") == {"status": "suspended", "asks": ["Refund 40 for order 812?"]}
    made.step("answer")
    return made


def test_the_code_as_it_was(here: Here) -> None:
    assert here.step("resume") == {"status": "completed", "output": "refunded"}
    assert here.effects == ["lookup 812", "refund 812 40"]


def test_a_helper_that_moved_and_comments_that_are_new(here: Here) -> None:
    before, _, after = AGENT.partition("def question")
    moved = before + "from helpers import question\n\n# Asks first.\n@agent" + after.partition("@agent")[2]
    here.deploy(moved, helpers=HELPERS)
    assert here.step("resume") == {"status": "completed", "output": "refunded"}
    assert here.effects == ["lookup 812", "refund 812 40"]


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        (
            'total = (await lookup(order))["total"]\n',
            'total = (await lookup(order))["total"]\n    await refund(order, 1)\n',
            ["tool", "refund"],
        ),
        ('"yes", "no"]', '"yes", "no", "later"]', ["ask", "ask"]),
        ("Refund {total}", "Pay back {total}", ["ask", "ask"]),
        ("await lookup(order)", "await lookup(str(order))", ["tool", "lookup"]),
        (
            "    if await ask(question(order, total)",
            "    if total > LIMIT and await ask(question(order, total)",
            ["ask", "ask"],
        ),
    ],
    ids=["a call before it", "its choices", "its text", "an argument", "a branch"],
)
def test_what_changes_the_run_stops_it_before_any_effect(
    here: Here, then: str, now: str, found: list[str]
) -> None:
    assert then in AGENT
    here.deploy(AGENT.replace(then, now))
    trace = next((here.folder / "store").rglob("*.loom"))
    data = trace.read_bytes()
    said = here.step("resume")
    assert (said["status"], said["call"]) == ("diverged", found)
    assert here.effects == ["lookup 812"]
    assert trace.read_bytes() == data
    here.deploy(AGENT)
    assert here.step("resume") == {"status": "completed", "output": "refunded"}
    assert here.effects == ["lookup 812", "refund 812 40"]


def test_a_change_behind_the_question_is_free(here: Here) -> None:
    here.deploy(AGENT.replace("await refund(order, total)", "await refund(order, total - 5)"))
    assert here.step("resume") == {"status": "completed", "output": "refunded"}
    assert here.effects == ["lookup 812", "refund 812 35"]
