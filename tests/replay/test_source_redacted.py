"""Requests and results that hold secrets are compared as they are written: with placeholders, numbered as the trace
numbers them, whatever the secrets are now."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from agentloom import Trace
from agentloom.format.placeholders import START, placeholder
from agentloom.replay.report import Report
from agentloom.runtime.calls import CallSpec
from tests.replay.benches import record, replaying
from tests.replay.sources import check

# Put together in the program: what stands in its source, which is a part of the trace, is no token.
ONE, TWO, NEW, OTHER = (hashlib.sha256(name).hexdigest()[:36] for name in (b"one", b"two", b"new", b"other"))
TOKENS = tuple("ghp_" + rest for rest in (ONE, TWO, NEW, OTHER))
Edits = tuple[tuple[str, str], ...]
FRESH, BOTH_FRESH = (ONE, NEW), ((ONE, NEW), (TWO, OTHER))

TOOLS = f"""
from agentloom import agent, tool

ONE, TWO = "gh" + "p_{ONE}", "gh" + "p_{TWO}"


@tool(effect="read")
def ask(**fields):
    return "ok"


@tool(effect="read")
def tell(**fields):
    return "ok"


@agent
def run():
    ask(head=ONE, n=1)
    ask(head=TWO, n=2)
    ask(both=[TWO, {{"a": ONE}}], n=3)
    return {{"with": ONE}}
"""

HISTORY = f"""
from agentloom import agent, model

ONE, TWO = "gh" + "p_{ONE}", "gh" + "p_{TWO}"
ASK = "go on"


@agent
def run():
    messages = [{{"role": "system", "content": "the token is " + ONE}}]
    for number in range(3):
        messages.append({{"role": "user", "content": f"{{ASK}} {{number}}"}})
        if number == 1:
            messages[-1]["content"] += " " + TWO
        answer = ask("fake", messages=messages, temperature=0, user="ann")
        messages.append({{"role": "assistant", "content": answer.text}})
    return [message["content"] for message in messages]


from agentloom.sync import model as ask
"""

ALONE = f"""
from agentloom import agent, tool

ONE, TWO = "gh" + "p_{ONE}", "gh" + "p_{TWO}"


@tool(effect="read")
def ask(**fields):
    return "ok"


@agent
def run():
    ask(table={{ONE: 1, "x": 2}})
    return {{"with": TWO}}
"""

CHILD = f"""
import asyncio
from agentloom import agent, tool

ONE, TWO = "gh" + "p_{ONE}", "gh" + "p_{TWO}"


@agent
async def helper(word):
    return {{"said": word, "with": [ONE, TWO]}}


@agent
async def run():
    return len(await helper("a"))
"""

STATE = f"""
from agentloom import Workflow

ONE, TWO = "gh" + "p_{ONE}", "gh" + "p_{TWO}"


def sign(state):
    return [ONE, TWO, state["input"]]


graph = Workflow()
graph.step("sign", fn=sign)
graph.step("respond", model="fake", prompt="Hello.")
run = graph
"""


def replayed(program: Any, trace: Trace, source: str, *edits: tuple[str, str]) -> Report:
    """The report of a replay with the program edited. It shows no token, of then or of now."""
    program.load(source)
    report = program.replay(trace, *edits)
    assert isinstance(report, Report)
    shown = f"{report} {report.to_json()}"
    assert not any(token in shown for token in TOKENS)
    return report


def without_nonce(trace: Trace) -> None:
    """Keys cannot be made any more: requests are compared themselves."""
    del trace.journal._blobs[trace.journal.entries[0]["nonce"]]


@pytest.mark.parametrize("keyed", [True, False])
def test_other_secrets_at_the_same_places_are_the_same_request(program: Any, keyed: bool) -> None:
    trace = program.record(TOOLS)
    if not keyed:
        without_nonce(trace)
    for edits in ((), (FRESH,), ((TWO, OTHER),), BOTH_FRESH, ((ONE, "-"), (TWO, ONE), ("-", TWO))):
        report = replayed(program, trace, TOOLS, *edits)
        check(report, "identical")
        assert report.counts.exact == 3


@pytest.mark.parametrize(
    "fresh", [(), (FRESH,), ((TWO, OTHER),), BOTH_FRESH], ids=["same", "one", "two", "both"]
)
def test_a_secret_may_be_a_name_and_may_come_in_the_output_first(program: Any, fresh: Edits) -> None:
    trace = program.record(ALONE)
    check(replayed(program, trace, ALONE, *fresh), "identical")
    differs(
        replayed(program, trace, ALONE, *fresh, ('"with": TWO', '"with": ONE')), "output.with", 1, "value"
    )


def differs(report: Report, path: str, matched: int, reason: str) -> None:
    """It diverged after so many calls that matched, and the one difference that it names is at ``path``."""
    print(report)
    assert (report.verdict, report.counts.exact, report.counts.noted) == ("diverged", matched, 0)
    assert report.finding is not None
    assert report.finding.reason == reason
    assert report.finding.comparison is not None
    (item,) = report.finding.comparison.items
    assert item.path == path
    if START not in f"{item.recorded} {item.now}":
        assert report.finding.cls != "redacted"


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("fresh", [(), BOTH_FRESH], ids=["same", "fresh"])
@pytest.mark.parametrize(
    ("edit", "reason", "matched", "path"),
    [
        (("[TWO, {", "[ONE, {"), "request", 2, "args.fields.both[0]"),
        (("ask(head=TWO, n=2)", "ask(head=ONE, n=2)"), "request", 1, "args.fields.head"),
        (("ask(head=TWO", 'ask(head="a " + TWO'), "request", 1, "args.fields.head"),
        (("ask(head=TWO, n=2)", "ask(head=TWO, n=9)"), "request", 1, "args.fields.n"),
        (("ask(head=TWO, n=2)", 'ask(head="none", n=2)'), "request", 1, "args.fields.head"),
        (("ask(head=TWO, n=2)", "ask(head=TWO, n=ONE)"), "request", 1, "args.fields.n"),
        (('both=[TWO, {"a": ONE}]', 'both={"x": TWO}'), "request", 2, "args.fields.both"),
        (('both=[TWO, {"a": ONE}]', 'both=[TWO, ["a", ONE]]'), "request", 2, "args.fields.both[1]"),
        (('both=[TWO, {"a": ONE}]', "both=5"), "request", 2, "args.fields.both"),
        (('"a": ONE}], n=3)', '"a": ONE}], n=[ONE])'), "request", 2, "args.fields.n"),
        (('"with": ONE', '"with": TWO'), "value", 3, "output.with"),
        (('"with": ONE', '"with": [ONE]'), "value", 3, "output.with"),
    ],
    ids=[
        "swapped",
        "repeated",
        "within more",
        "beside it",
        "none",
        "a second one",
        "a mapping",
        "a list within",
        "a number",
        "a list for a number",
        "swapped in the output",
        "in a list",
    ],
)
def test_a_request_that_is_another_one_beside_its_secrets(
    program: Any, keyed: bool, fresh: Edits, edit: tuple[str, str], reason: str, matched: int, path: str
) -> None:
    trace = program.record(TOOLS)
    if not keyed:
        without_nonce(trace)
    differs(replayed(program, trace, TOOLS, edit, *fresh), path, matched, reason)


@pytest.mark.parametrize("fresh", [(), BOTH_FRESH], ids=["same", "fresh"])
def test_another_call_with_the_same_secret_is_another_call(program: Any, fresh: Edits) -> None:
    trace = program.record(TOOLS)
    report = replayed(program, trace, TOOLS, *fresh, ("ask(head=TWO, n=2)", "tell(head=TWO, n=2)"))
    check(report, "diverged", "extra", "unrecorded")
    assert report.counts.exact == 1
    assert report.finding is not None
    assert report.finding.message.startswith('tell({"head": "__redacted....) is not in the recording.')


@pytest.mark.parametrize("fresh", [(), (FRESH,), ((TWO, OTHER),), BOTH_FRESH], ids=len)
def test_a_history_with_secrets_grows_as_it_was_written(program: Any, backend: Any, fresh: Edits) -> None:
    trace = program.record(HISTORY)
    check(replayed(program, trace, HISTORY, *fresh), "identical")
    report = replayed(program, trace, HISTORY, *fresh, ('ASK = "go on"', 'ASK = "go away"'))
    differs(report, "messages[1].content", 0, "request")
    report = replayed(program, trace, HISTORY, *fresh, ('" " + TWO', '" " + ONE'))
    differs(report, "messages[3].content", 1, "request")
    report = replayed(program, trace, HISTORY, *fresh, ('user="ann"', 'user="bob"'))
    check(report, "identical except noted")
    assert (report.counts.exact, report.counts.noted) == (0, 3)


@pytest.mark.parametrize("fresh", [(), (FRESH,), BOTH_FRESH], ids=len)
def test_results_of_child_agents_are_compared_as_they_were_written(program: Any, fresh: Edits) -> None:
    trace = program.record(CHILD)
    check(replayed(program, trace, CHILD, *fresh), "identical")
    for edit, path in (
        (("[ONE, TWO]", "[TWO, TWO]"), "result.with[0]"),
        (("[ONE, TWO]", "[ONE]"), "result.with[1]"),
        (('"said": word', '"said": word + "x"'), "result.said"),
    ):
        differs(replayed(program, trace, CHILD, *fresh, edit), path, 1, "child")


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("fresh", [(), (FRESH,), BOTH_FRESH], ids=len)
def test_states_are_compared_as_they_were_written(
    program: Any, backend: Any, keyed: bool, fresh: Edits
) -> None:
    trace = program.record(STATE, "hello")
    if not keyed:
        without_nonce(trace)
    check(replayed(program, trace, STATE, *fresh), "identical")
    for edit, path in (
        (("[ONE, TWO, ", "[TWO, TWO, "), "sign[0]"),
        (("[ONE, TWO, ", "[ONE, 5, "), "sign[1]"),
        (('state["input"]]', '"more"]'), "sign[2]"),
    ):
        differs(replayed(program, trace, STATE, *fresh, edit), path, 0, "state")


def test_calls_of_another_kind_with_the_same_secret_are_others() -> None:
    """What the trace has is a placeholder; the call that is made has a secret in its place, which gets that number."""
    spec = CallSpec("tool", "find", {"q": f"the {placeholder(1)}"}, "plain/1", "read")
    recording = record(lambda bench: bench.engine.begin(spec, bench.session.root))
    now = replace(spec, request={"q": f"the ghp_{ONE}"})
    for one, matched in (
        (now, 1),
        (replace(now, type="http"), 0),
        (replace(now, name="look"), 0),
        (replace(now, profile="tool/1"), 0),
        (replace(now, type="http", profile="tool/1"), 0),
    ):
        source, session = replaying(recording)
        session.engine.begin(one, session.root)
        assert source.position == matched
