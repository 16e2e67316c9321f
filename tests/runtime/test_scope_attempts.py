"""Attempts: what is done again keeps its ids and paths, told apart by a number; what comes after goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from agentloom.format import callids
from agentloom.runtime.scope import Attempts, Scope


def scope() -> Scope:
    run = SimpleNamespace(engine=SimpleNamespace(redactor=None))
    return Scope(cast(Any, run), "root/a")


def test_an_attempt_that_does_more_or_less_than_the_one_before() -> None:
    here = scope()
    assert here.next_call() == "root/a#1"
    attempts = Attempts(here)
    assert [here.next_call(), here.next_call()] == ["root/a#2", "root/a#3"]
    attempts.again()
    assert here.peek() == "root/a#2~2"
    assert here.next_call() == "root/a#2~2"
    attempts.again()
    assert [here.next_call() for _ in range(3)] == ["root/a#2~3", "root/a#3~2", "root/a#4"]
    attempts.end()
    assert (here.peek(), here.next_call()) == ("root/a#5", "root/a#5")


def test_children_have_the_same_paths_again_and_other_ids() -> None:
    here = scope()
    attempts = Attempts(here)
    first = here.child("task")
    assert first.next_call() == "root/a/task[0]#1"
    attempts.again()
    second = here.child("task")
    assert (second.path, second.next_call()) == ("root/a/task[0]", "root/a/task[0]#1~2")
    assert first.next_call() == "root/a/task[0]#2"  # a task of the first attempt that still runs
    assert second.next_call() == "root/a/task[0]#2~2"
    attempts.end()
    assert here.child("task").path == "root/a/task[1]"


# A program: calls, children (entered for a while), and attempts around parts of it.
STEPS = st.recursive(
    st.just("call"),
    lambda part: st.one_of(
        st.tuples(st.just("child"), st.lists(part, max_size=3)),
        st.tuples(st.just("tries"), st.lists(st.lists(part, max_size=3), min_size=1, max_size=3)),
    ),
    max_leaves=20,
)


def performed(steps: list[Any], here: Scope, ids: list[str]) -> None:
    for step in steps:
        if step == "call":
            ids.append(here.next_call())
        elif step[0] == "child":
            performed(step[1], here.child("task"), ids)
        else:
            attempts = Attempts(here)
            for number, attempt in enumerate(step[1]):
                if number:
                    attempts.again()
                performed(attempt, here, ids)
            attempts.end()


@given(st.lists(STEPS, max_size=5))
def test_no_id_is_ever_given_twice_and_all_are_call_ids(steps: list[Any]) -> None:
    ids: list[str] = []
    performed(steps, scope(), ids)
    assert len(set(ids)) == len(ids)
    assert [str(callids.parse(one)) for one in ids] == ids
    counts: dict[str, int] = {}
    for one in ids:
        parsed = callids.parse(one)
        counts[parsed.logical] = counts.get(parsed.logical, 0) + 1
        assert parsed.attempt == counts[parsed.logical]  # attempts of a call are numbered without a gap
