"""Two runs side by side: where they part, why, what is hidden, and how likely each choice was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentloom.replay.diff import Diff, diff
from tests.replay.sources import answer_with

SOURCE = """
from agentloom import agent, model, now, tool, uuid


@tool(effect="read")
async def runbook(name):
    return "delete inactive accounts"


@tool
async def delete_accounts(target, filter):
    return [{"id": number} for number in range(12 if target == "staging" else 4031)]


@agent
async def run(question):
    text = await runbook("clean-up")
    context = (await now()).isoformat() + " " + str(await uuid())
    answer = await model(
        "smollm2",
        messages=[{"role": "system", "content": text}, {"role": "user", "content": question + " " + context}],
        temperature=0.7,
        response_format={"type": "json_schema"},
        logprobs=True,
    )
    plan = answer.json()
    rows = await delete_accounts(plan["target"], plan["filter"])
    if plan["target"] == "production":
        await runbook("apologise")
    return f"deleted {len(rows)} rows in {plan['target']}"
"""
DOCS = Path(__file__).parents[2] / "docs" / "report-json.md"


@pytest.fixture
def pair(program: Any, backend: Any) -> tuple[Any, Any]:
    backend.answers = [answer_with("staging"), answer_with("production")]
    return program.record(SOURCE, "clean up"), program.record(SOURCE, "clean up")


def test_another_choice_of_the_model(pair: tuple[Any, Any]) -> None:
    found = diff(pair[0].journal, pair[1].journal, names=("good", "bad"))
    assert (found.part, found.why, found.same) == ("outcome", "sampling", False)
    assert str(found).partition("hidden")[0] == (
        "PART at call 4: same request, the model chose another target.\n"
        "good, bad   1-3 same   4-5 changed   1 only in bad\n"
        "\n"
        "  4 model smollm2         same request\n"
        '      target        "staging"  ->  "production"\n'
        "      probability   staging 0.96, production 0.04 (both runs)\n"
        "  5 tool delete_accounts WRITE\n"
        '      args.target   "staging"  ->  "production"\n'
        "      result        12 items  ->  4,031 items\n"
        '  6 tool runbook  only in bad  runbook("apologise")\n'
        '  output        "deleted 12 rows in staging"  ->  "deleted 4031 rows in production"\n'
        "cause   sampling: the request is the same, parameters and model included\n"
    )
    assert found.hidden == {"times": 1, "ids": 2}


def test_equal_runs_are_the_same_whatever_they_mint(program: Any, backend: Any) -> None:
    backend.answers = [answer_with("staging"), answer_with("staging", id="chatcmpl-other", request_id="r2")]
    found = program.record(SOURCE, "q").diff(program.record(SOURCE, "q"))
    assert found.same
    assert str(found).startswith("SAME: 5 calls and the output are equal.")
    assert set(found.hidden) == {"times", "ids"}


def test_changed_code_and_changed_input_are_told_apart(program: Any, backend: Any) -> None:
    backend.answers = [answer_with("staging")] * 4
    here = program.record(SOURCE, "q")
    code = here.diff(program.record(SOURCE.replace('"clean-up"', '"cleanup"'), "q"))
    assert (code.part, code.why) == ("request", "code")
    assert str(code).startswith("PART at call 1: another request, args.name differs.")
    assert "code changed: run() (agent.py:17)" in str(code)
    given = program.record(SOURCE, "q").diff(program.record(SOURCE, "another"))
    assert (given.part, given.why) == ("input", "input")
    assert str(given).startswith("PART at the input: input.args[0].")


def test_another_result_of_the_world(program: Any) -> None:
    source = """
import itertools
from agentloom import agent, tool

COUNT = itertools.count()


@tool(effect="read")
def price(item):
    return {"item": item, "cents": 100 + next(COUNT)}


@agent
def run():
    return price("a")["cents"] + price("b")["cents"]
"""
    module = program.load(source)
    here, there = module.run.run(store=program.store), module.run.run(store=program.store)
    found = here.diff(there)
    assert (found.part, found.why) == ("outcome", "result")
    assert str(found).startswith("PART at call 1: same request, price returned something else.")


def test_moved_and_lost_calls(program: Any) -> None:
    source = """
from agentloom import agent, tool
ORDER = ["a", "b"]

@tool(effect="read")
def search(q):
    return q

@tool(effect="read")
def look(q):
    return q

@agent
def run():
    return sorted([look("x"), *map(search, ORDER)] if ORDER[0] == "a" else [*map(search, ORDER), look("x")])
"""
    here = program.record(source)
    moved = here.diff(program.record(source.replace('["a", "b"]', '["b", "a"]')))
    assert moved.counts()["moved"] == 1
    lost = here.diff(program.record(source.replace('["a", "b"]', '["a"]')))
    assert lost.counts()["only here"] == 1
    assert (lost.part, lost.why) == ("only here", "code")


def test_the_text_is_short_and_the_json_documented(pair: tuple[Any, Any]) -> None:
    found = pair[0].diff(pair[1])
    assert isinstance(found, Diff)
    assert len(str(found)) < 1200
    text = DOCS.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)`", text))
    out = json.loads(json.dumps(found.to_json()))
    assert not set(out) - named
    assert not {name for row in out["rows"] for name in row} - named
    assert out["rows"][0]["odds"]["here"]["staging"] == pytest.approx(0.955, abs=0.01)


def test_a_tool_whose_code_changed_is_the_cause_of_another_result(program: Any) -> None:
    source = """
from agentloom import agent, tool


@tool(effect="read")
def price(item):
    return {"cents": 100}


@agent
def run():
    return price("a")["cents"]
"""
    here = program.record(source)
    there = program.record(source.replace('"cents": 100', '"cents": 200'))
    found = here.diff(there)
    assert (found.part, found.why) == ("outcome", "code")
    assert "cause   code changed: price() (agent.py:7)" in str(found)
