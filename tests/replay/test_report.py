"""The text of reports: snapshots of the target forms, the length limit, and the JSON that the docs describe."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentloom.replay.cause import CodeFacts, find_cause, parse_src
from agentloom.replay.code import ModuleSource
from agentloom.replay.fields import compare
from agentloom.replay.report import CallRef, Counts, Finding, Noted, Report
from agentloom.replay.text import plain

OLD = """def build_prompt(question):
    text = "Answer in one sentence."
    text += " Ask before deleting."
    return text

async def turn(question):
    return await model("gpt-4o", build_prompt(question))
"""
DOCS = Path(__file__).parents[2] / "docs" / "report-json.md"


def _facts(text: str) -> CodeFacts:
    return CodeFacts({"agent": ModuleSource(text, "agent.py")}, "a1f9c2e")


def _request(count: int, last: str) -> Any:
    messages: list[Any] = [{"role": "user", "content": f"message {number}"} for number in range(count)]
    messages.append({"role": "system", "content": last})
    return {"model": "gpt-4o", "messages": messages, "tools": ["search"], "temperature": 0}


def _changed() -> Report:
    comparison = compare(
        _request(100, "Answer in one sentence. Ask before deleting."),
        _request(100, "Answer in one sentence."),
    )
    now = CodeFacts(_facts(OLD.replace('    text += " Ask before deleting."\n', "")).modules)
    call = CallRef("root/support/turn[50]#1", "model", "gpt-4o", 99, "agent.py:6 turn", "agent.py:7 turn")
    return Report(
        "7f3a", "support", "diverged", Counts(98, 0, 102),
        Finding("changed", call, "", comparison, reason="request"),
        find_cause(_facts(OLD), now, comparison.items, parse_src(call.src)),
        (
            CallRef("root#96", "tool", "lookup", 96, outcome="found"),
            CallRef("root#98", "tool", "history", 98, outcome="3 rows"),
        ),
        next=(("agentloom show 7f3a 99", "the recorded request and answer"),),
    )  # fmt: skip


def test_a_changed_prompt_late_in_a_long_run() -> None:
    assert str(_changed()) == (
        "DIVERGED  changed  call 99 of 200  model gpt-4o  root/support/turn[50]  exit 3\n"
        "98 calls matched exactly. Nothing was sent; no tool ran.\n"
        "\n"
        "  messages[100].content      agent.py:6 (recorded :7)\n"
        "  - Answer in one sentence. Ask before deleting.\n"
        "  + Answer in one sentence.\n"
        "    same: 100 earlier messages, tools, parameters\n"
        "cause   code changed: build_prompt() (agent.py:3), a1f9c2e..working tree\n"
        '  agent.py:3  - text += " Ask before deleting."\n'
        "before  96 tool lookup -> found  98 tool history -> 3 rows\n"
        "next    agentloom show 7f3a 99   the recorded request and answer"
    )


def test_a_leak() -> None:
    comparison = compare(
        {"args": {"request_id": "3f0c9a52-6b1e-4d7a-9c55-0e2f7a1b8d44"}},
        {"args": {"request_id": "b81d7e03-92f4-4c1a-8a60-5d3c1f6e2b97"}},
    )
    call = CallRef(
        "root/open#7", "tool", "create_ticket", 7, "tickets.py:22 new_ticket", "tickets.py:22 new_ticket"
    )
    cause = find_cause(_facts(OLD), _facts(OLD), comparison.items)
    report = Report("7f3a", "a", "diverged", Counts(6, 0, 25), Finding("leak", call, "", comparison), cause)
    assert str(report) == (
        "DIVERGED  leak  call 7 of 31  tool create_ticket  root/open  exit 3\n"
        "Code and packages are as recorded: something is not deterministic.\n"
        "6 calls matched exactly. Nothing was sent; no tool ran.\n"
        "\n"
        "  args.request_id     tickets.py:22 in new_ticket()\n"
        "  recorded  3f0c9a52-6b1e-4d7a-9c55-0e2f7a1b8d44\n"
        "  now       b81d7e03-92f4-4c1a-8a60-5d3c1f6e2b97\n"
        "looks like  a version 4 UUID; in no earlier outcome\n"
        "likely      uuid.uuid4() or a framework's id, made outside a host call\n"
        "fix         use agentloom's uuid()"
    )


def test_identical_and_noted() -> None:
    report = Report("7f3a", "a", "identical", Counts(5, 0, 0), compared=("stdout", "exit code"), seconds=0.41)
    assert str(report) == "IDENTICAL  5/5 calls, stdout, exit code  0.4 s  $0"
    noted = Noted(CallRef("root#3", "model", "gpt-4o", 3), compare({"user": "ann"}, {"user": "bob"}))
    some = replace(report, verdict="identical except noted", counts=Counts(4, 1, 0), noted=(noted,))
    assert str(some) == (
        "IDENTICAL EXCEPT NOTED (1)  5/5 calls, stdout, exit code  0.4 s  $0\n"
        'noted   call 3 model gpt-4o  user "ann" -> "bob"'
    )
    assert (some.exit_code(), some.exit_code(strict_noted=True)) == (0, 3)


def test_the_text_stays_short_whatever_the_size() -> None:
    big: Any = {f"field{number}": ["x" * 5000, {"y": "z" * 3000}] for number in range(500)}
    other: Any = {f"field{number}": ["w" * 5000, {"y": "v\n" * 3000}] for number in range(500)}
    comparison = compare(big, other)
    call = CallRef(
        "root/" + "deep/" * 400 + "x#1",
        "tool",
        "n" * 500,
        1,
        "f" * 900 + ".py:1 g",
        "h.py:2 g",
        summary="s" * 900,
    )
    report = replace(
        _changed(),
        finding=Finding("changed", call, "m" * 5000, comparison),
        leading=tuple(replace(call, outcome="o" * 900) for _ in range(9)),
        notes=("note " * 500,) * 9,
        next=(("agentloom " + "x" * 500, "y" * 500),) * 9,
    )
    text = str(report)
    assert len(text) < 1200
    assert text.startswith("DIVERGED  changed  call 1 of 200")


def test_segments_make_up_the_text() -> None:
    report = _changed()
    assert plain(report.render(100)) == str(report)
    styles = {style for line in report.render(100) for style, _ in line}
    assert {"bad", "old", "old-part", "new", "label", "path", "dim"} <= styles


def test_every_field_of_the_json_is_in_the_docs() -> None:
    text = DOCS.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)`", text))
    missing = {name for name in _keys(_changed().to_json()) if name not in named and f'"{name}"' not in text}
    assert not missing


def _keys(tree: Any) -> set[str]:
    if isinstance(tree, dict):
        return set(tree) | {name for value in tree.values() for name in _keys(value)}
    if isinstance(tree, list):
        return {name for value in tree for name in _keys(value)}
    return set()


def test_long_lines_show_where_they_part() -> None:
    start = 'client.create(model="gpt-4o", messages=[{"role": "system", "content": PROMPT}], tools=TOOLS'
    old, new = (f"def ask():\n    return {start}, n={number})\n" for number in (1, 2))
    comparison = compare({"n": 1}, {"n": 2})
    cause = find_cause(_facts(old), _facts(new), comparison.items, parse_src("agent.py:2 ask"))
    call = CallRef("root#1", "model", "gpt-4o", 1, "agent.py:2 ask")
    finding = Finding("changed", call, "", comparison, reason="request")
    text = str(Report("7f3a", "support", "diverged", Counts(0, 0, 1), finding, cause))
    assert re.search(r"agent.py:2  - \.\.\..*, n=1\)$", text, re.MULTILINE)
    assert re.search(r"agent.py:2  \+ \.\.\..*, n=2\)$", text, re.MULTILINE)


def test_a_call_beyond_the_recording_is_after_it() -> None:
    call = CallRef("root#5", "tool", "rain", 5, "agent.py:2 ask")
    finding = Finding("extra", call, "The recording has 4 calls; this is one more.")
    text = str(Report("7f3a", "support", "diverged", Counts(4, 0, 0), finding))
    assert text.startswith("DIVERGED  extra  after 4 of 4 calls  tool rain")
