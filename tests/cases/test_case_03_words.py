"""Case 3, and the words of a divergence: each class through ``agentloom replay``, as text and as JSON.

The words must not be mixed up: changed, extra (exhausted), missing, reordered, output, ended early, leak.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

import pytest

from agentloom.testing import Seen
from tests.cases.conftest import Scenario


def _echo(seen: Seen) -> str:
    last = seen.body["messages"][-1]["content"]
    return "re " + str(last if isinstance(last, str) else last[0]["text"])


CHAT = """
history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
print(ask(history))
history.append({"role": "user", "content": [{"type": "text", "text": "Refund the order when it is paid."}]})
print(ask(history))
print(ask(user("and now?")))
"""


def test_changed_names_the_path_the_old_and_the_new_text(scenario: Scenario) -> None:
    scenario.record(CHAT, _echo)
    scenario.edit(("when it is paid", "within 30 days"))
    text, data = scenario.diverged()
    assert "changed  call 2 of 3  model gpt-4o" in text
    assert "messages[2].content[0].text" in text
    assert "when it is paid" in text
    assert "within 30 days" in text
    assert "1 call matched exactly. Nothing was sent; no tool ran." in text
    assert "agent.py:" in text
    assert data["reason"] == "request"
    assert data["call"]["index"] == 2
    (item,) = data["differences"]["items"]
    assert item["path"] == "messages[2].content[0].text"
    assert (item["recorded"], item["now"]) == (
        "Refund the order when it is paid.",
        "Refund the order within 30 days.",
    )
    assert data["cause"]["kind"] == "code"


def test_a_call_asked_for_twice_is_exhausted(scenario: Scenario) -> None:
    scenario.record("print(ask(user('a')))\nprint(ask(user('b')))\n", _echo)
    scenario.edit(("print(ask(user('b')))", "print(ask(user('a')))\nprint(ask(user('b')))"))
    text, data = scenario.diverged()
    assert "recorded once, asked a second time at call 2" in text
    assert (data["class"], data["reason"]) == ("extra", "exhausted")
    assert data["call"]["index"] == 2
    assert "agent.py:" in data["call"]["src"]


def test_exhausted_at_the_end(scenario: Scenario) -> None:
    scenario.record("print(ask(user('a')))\n", _echo)
    scenario.edit(("print(ask(user('a')))", "print(ask(user('a')), ask(user('a')))"))
    text, data = scenario.diverged()
    assert "recorded once, asked a second time at call 2" in text
    assert (data["class"], data["reason"]) == ("extra", "exhausted")


def test_a_call_that_was_never_recorded_is_extra(scenario: Scenario) -> None:
    scenario.record(_TOOLS + "print(one(1), one(2))\n", options=("--tool", "one=read"))
    scenario.edit(("print(one(1), one(2))", "print(one(1), other(5), one(2))"))
    text, data = scenario.diverged()
    assert (data["class"], data["reason"]) == ("extra", "unrecorded")
    assert "other" in text
    assert data["call"]["name"] == "other"
    assert data["counts"] == {"calls": 2, "exact": 1, "noted": 0, "unmatched": 1}


NONE: dict[str, str] = {}
_TOOLS = """
from agentloom import agent, tool
@tool(effect="read")
def one(n): return n
@tool(effect="read")
def other(n): return n
"""


def _agent(
    scenario: Scenario, body: str, *, prelude: str = "", is_async: bool = False, env: Mapping[str, str] = NONE
) -> None:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    path = scenario.write("")
    path.write_text(f"{_TOOLS}{prelude}@agent\n{'async ' * is_async}def main():\n{lines}")
    done = scenario.call("run", f"{path}:main", env=env)
    assert done.code == 0, done.all


def test_missing_is_a_recorded_call_that_is_not_made(scenario: Scenario) -> None:
    _agent(scenario, "one(1)\nother(2)\nreturn one(3)")
    scenario.edit(("    other(2)\n", ""))
    text, data = scenario.diverged()
    assert "missing  call 2 of 3  tool other" in text
    assert "was made here when recorded; now it is not" in text
    assert (data["class"], data["reason"]) == ("missing", "skipped")
    assert data["call"]["index"] == 2
    assert data["call"]["src_recorded"].startswith("agent.py:")


def test_several_missing_are_one_finding(scenario: Scenario) -> None:
    _agent(scenario, "one(1)\nfor n in range(20, 25): other(n)\nreturn one(3)")
    scenario.edit(("range(20, 25)", "range(0)"))
    text, data = scenario.diverged()
    assert (data["class"], data["call"]["index"]) == ("missing", 2)
    assert "4 more" in text


SEARCH = """import asyncio
@tool(effect="read")
async def search(q): return "found " + q
@tool(effect="read")
def find(q): return "found " + q
"""
REORDERED = 'recorded  search("a")  search("b")  search("c")'


def test_a_permutation_is_one_reordered_finding(scenario: Scenario) -> None:
    body = 'await search("first")\nreturn await asyncio.gather(*(search(q) for q in ("a", "b", "c")))'
    _agent(scenario, body, prelude=SEARCH, is_async=True)
    scenario.edit(('("a", "b", "c")', '("c", "a", "b")'))
    text, data = scenario.diverged()
    assert "reordered  calls 2-4 of 4" in text
    assert "The same three calls were started in another order; no value differs." in text
    assert "('a')  search('b')  search('c')" in text.replace('"', "'")
    assert "('c')  search('a')  search('b')" in text.replace('"', "'")
    assert (data["class"], data["reason"], data["last_index"]) == ("reordered", "order", 4)
    assert data["call"]["index"] == 2
    assert data["cause"]["kind"] == "code"
    assert data["counts"]["exact"] == 1


def test_a_permutation_of_a_set_is_a_set_order(scenario: Scenario) -> None:
    """The code is the same: the order of a set of plain objects is the cause, and the report says so."""
    # Addresses of two processes may be alike: which of many objects they are is not.
    prelude = SEARCH + "import random\nclass Thing: pass\nmade = [Thing() for _ in range(4000)]\n"
    prelude += "things = random.SystemRandom().sample(made, 40)\n"
    body = "return len(await asyncio.gather(*(search(str(things.index(one))) for one in set(things))))"
    _agent(scenario, body, prelude=prelude, is_async=True)
    text, data = scenario.diverged()
    assert data["class"] == "reordered"
    assert data["cause"]["kind"] == "leak"
    assert data["cause"]["leak"]["kind"] == "set order"
    assert "an order taken from a set" in text
    assert "sorted(" in text
    assert "agent.py:18" in text


@pytest.mark.parametrize("waits", ["", "await "])
def test_a_permutation_of_calls_one_after_the_other_is_one_finding(scenario: Scenario, waits: str) -> None:
    name = "search" if waits else "find"
    body = f'first = {waits}{name}("first")\nreturn first, [{waits}{name}(q) for q in ("a", "b", "c", "d")]'
    _agent(scenario, body, prelude=SEARCH, is_async=bool(waits))
    scenario.edit(('("a", "b", "c", "d")', '("c", "a", "b", "d")'))
    text, data = scenario.diverged()
    assert "reordered  calls 2-4 of 5" in text
    assert (data["class"], data["reason"], data["call"]["index"], data["last_index"]) == (
        "reordered",
        "order",
        2,
        4,
    )
    assert data["orders"]["now"] == [f"{name}({q!r})".replace("'", '"') for q in "cab"]
    assert data["counts"]["exact"] == 1


@pytest.mark.parametrize("waits", ["", "await "])
def test_a_call_left_out_of_a_permutation_is_missing(scenario: Scenario, waits: str) -> None:
    """Once another call than the recorded ones comes, or the agent ends, what was found first stands."""
    name = "search" if waits else "find"
    body = f'return [{waits}{name}(q) for q in ("a", "b", "c", "d")]'
    _agent(scenario, body, prelude=SEARCH, is_async=bool(waits))
    scenario.edit(('("a", "b", "c", "d")', '("c", "a", "x")'))  # more of them in tests/replay/test_shuffle.py
    _, data = scenario.diverged()
    assert (data["class"], data["call"]["index"]) == ("missing", 2)
    assert "more recorded" not in data["message"]
    assert data["counts"]["exact"] == 0


def test_an_output_that_differs_is_output(scenario: Scenario) -> None:
    _agent(scenario, "return {'total': one(1) + 1, 'kind': 'x'}")
    scenario.edit(("one(1) + 1", "one(1) + 2"))
    text, data = scenario.diverged()
    assert data["class"] == "output"
    assert data["reason"] == "value"
    assert "total" in text
    (item,) = data["differences"]["items"]
    assert (item["path"], item["recorded"], item["now"]) == ("output.total", 2, 3)


def test_a_scripts_output_and_exit_code_are_compared(scenario: Scenario) -> None:
    scenario.record("print('one'); print(ask(user('a'))); raise SystemExit(4)\n", _echo)
    scenario.edit(("print('one')", "print('two')"))
    text, data = scenario.diverged()
    assert data["class"] == "output"
    assert "one" in text
    assert "two" in text
    scenario.edit(("print('two')", "print('one')"), ("SystemExit(4)", "SystemExit(5)"))
    text, data = scenario.diverged()
    assert data["class"] == "output"
    assert "exit" in text


def test_an_agent_that_ends_early(scenario: Scenario) -> None:
    _agent(scenario, "one(1)\nif one(2) > 9: return 'no'\nother(3)\nother(4)\nreturn 'yes'")
    scenario.edit(("> 9", "> 1"))
    text, data = scenario.diverged()
    assert (data["class"], data["reason"]) == ("ended early", "agent ends")
    assert "other" in text
    assert "3" in text
    assert data["call"]["index"] == 3


def test_a_recording_that_ends_early(scenario: Scenario) -> None:
    """The recorded process was killed in its second call: everything before matched, that call is in doubt."""
    text = """
print(ask(user("a"), user=os.environ["ME"] or str(os.getpid())))
print(ask(user("b"), user=os.environ["ME"] or str(os.getpid())))
print(ask(user("c")))
"""
    pids: list[str] = []

    def answer(seen: Seen) -> str:
        pids.append(seen.body["user"])
        if seen.number == 2:
            os.kill(int(pids[1]), signal.SIGKILL)
        return _echo(seen)

    # Without a guard, so that the replay can be given what the recorded process was: its number is nobody's to serve.
    done = scenario.record(text, answer, options=("--guard", "off"), ME="")
    assert done.code != 0
    told, data = scenario.diverged(ME=pids[0])
    assert (data["class"], data["reason"]) == ("ended early", "recording ends")
    assert data["counts"] == {"calls": 2, "exact": 2, "noted": 0, "unmatched": 0}
    assert "call 2 (model gpt-4o) has no outcome, it is in doubt" in told
