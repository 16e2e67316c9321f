"""Misuse of workflows: each is refused with the step and the remedy, before anything is written."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom import Retry, State, Workflow, goto, tool
from agentloom.errors import NotSupported, WorkflowError


@tool(effect="read")
def look(x: object) -> object:
    return x


async def slow(state: State) -> int:
    return 1


def one(state: State) -> int:
    return 1


def _one(**given: Any) -> Callable[[], object]:
    return lambda: Workflow("w").step("a", fn=lambda state: 1).step("b", **given)


@pytest.mark.parametrize("name", ["", " ", 3, None, "\ud800"])
def test_a_workflow_needs_a_name_that_can_be_listed(name: Any) -> None:
    with pytest.raises(WorkflowError, match="name is a text"):
        Workflow(name)


@pytest.mark.parametrize("name", [3, None, b"x"])
def test_a_step_needs_a_text_as_name(name: Any) -> None:
    with pytest.raises(WorkflowError, match="a step's name is a text"):
        Workflow("w").step(name, fn=lambda state: 1)


def test_a_name_that_python_reads_as_another_one_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"reads state\.\u017f as state\.s"):
        Workflow("w").step("\u017f", fn=lambda state: 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_one(fn=one, limit="3", each="a"), "limit='3'"),
        (_one(fn=one, limit=None, each="a"), "limit=None"),
        (_one(fn=one, limit=1.5, each="a"), r"limit=1\.5"),
        (_one(fn=slow, timeout="3"), "timeout='3'"),
        (_one(fn=slow, timeout=10**400), "timeout=1000"),
        (_one(fn=one, after=3), "after= takes the name"),
        (_one(fn=one, after=[3]), "after= names 3"),
        (_one(fn=one, after={"a"}), "after= takes the name"),
        (_one(fn=one, inputs=3), "inputs= takes the name"),
        (_one(fn=one, loop="a"), "loop= is a str"),
        (_one(fn=one, loop={3: 1}), "loop= names 3"),
        (_one(fn=one, retry=0), r"step 'b': Retry\(attempts=0\)"),
        (_one(tool=look, args={1: 1}), "args= has the key 1"),
        (_one(model="gpt-4o", prompt="{input!x}"), "!x of {input}"),
        (_one(model="gpt-4o", prompt="{input:{a}}"), "another field in it"),
        (_one(model="gpt-4o", prompt="{input:zz}"), "prompt is no template"),
        (_one(model="gpt-4o", prompt="\ud800{input}"), "surrogate"),
    ],
)
def test_a_word_of_a_wrong_kind_is_refused_with_the_step(make: Callable[[], object], said: str) -> None:
    with pytest.raises(WorkflowError, match=said) as caught:
        make()
    assert caught.value.fields["step"] == "b"


def test_retries_after_nothing_that_can_be_raised() -> None:
    with pytest.raises(TypeError, match=r"Retry\(on=3\)"):
        Retry(on=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_waits_that_grow_without_bound_stay_numbers() -> None:
    assert Retry(attempts=9, factor=1e308, longest=float("inf"), jitter=0).wait(5, None, 0.5) == 1e9


def test_the_state_cannot_be_set_and_says_what_it_holds(tmp_path: Path) -> None:
    def careless(state: State) -> object:
        said = repr(state)
        with pytest.raises(AttributeError, match=r"state\.a cannot be set"):
            state.a = 2
        return [said, state.a]

    graph = Workflow("w").step("a", fn=lambda state: 1).step("b", fn=careless)
    trace = graph.run("go", store=tmp_path)
    assert trace.output == ["<State of input, a>", 1]
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize(
    ("given", "said"), [(3, "list"), (range(2), "list"), ({1}, "sorted"), ({"a": 1}, "sorted")]
)
def test_the_remedy_for_what_is_no_list_fits_it(given: object, said: str, tmp_path: Path) -> None:
    graph = Workflow("w").step("a", fn=lambda state: 1, each=lambda state: given)
    with pytest.raises(WorkflowError) as caught:
        graph.run("go", store=tmp_path)
    assert str(caught.value.hint).startswith(f"{said}(") or f"{said}(" in str(caught.value.hint)


def test_an_async_prompt_is_refused_and_closed(tmp_path: Path) -> None:
    async def prompt(state: State) -> str:
        return "x"

    with pytest.raises(WorkflowError, match="prompt= is an async function"):
        Workflow("w").step("a", model="gpt-4o", prompt=prompt).run("go", store=tmp_path)


def test_an_error_past_a_bound_and_one_of_a_predicate_name_the_workflow(tmp_path: Path) -> None:
    def nothing(state: State) -> bool:
        raise StopIteration

    bound = Workflow("w").step("a", fn=lambda state: goto("a"), loop={"a": 1})
    stop = Workflow("w").step("a", fn=lambda state: 1, when=nothing)
    for graph in (bound, stop):
        with pytest.raises((WorkflowError, RuntimeError)) as caught:
            graph.run("go", store=tmp_path)
        assert caught.value.__notes__.count("in step 'a' of workflow 'w'") == 1


def test_an_error_that_is_raised_twice_has_the_note_once(tmp_path: Path) -> None:
    error = ValueError("always the same object")

    def fail(state: State) -> None:
        raise error

    for _ in range(2):
        with pytest.raises(ValueError, match="same object"):
            Workflow("w").step("a", fn=fail).run("go", store=tmp_path)
    assert error.__notes__.count("in step 'a' of workflow 'w'") == 1


@pytest.mark.parametrize("first", ["outer", "inner"])
def test_a_part_that_later_runs_its_whole_is_found(first: str) -> None:
    outer, inner = Workflow("outer"), Workflow("inner").step("b", fn=lambda state: 1)
    outer.step("a", workflow=inner).build()
    inner.step("c", workflow=outer)
    with pytest.raises(WorkflowError, match="inside itself"):
        (outer if first == "outer" else inner).build()


def test_a_copy_grows_alone() -> None:
    graph = Workflow("w").step("a", fn=lambda state: 1).build()
    other = copy.copy(graph).step("b", fn=lambda state: 2)
    assert "b" in other.draw()
    assert "b<br/>" not in graph.draw()


def test_two_readers_of_one_stream_both_end(tmp_path: Path) -> None:
    graph = Workflow("w").step("a", fn=lambda state: 1).step("b", fn=lambda state: 2)

    async def read_twice() -> int:
        stream = graph.stream("go", store=tmp_path)
        async with asyncio.timeout(10):
            return sum(map(len, await asyncio.gather(_all(stream), _all(stream))))

    assert asyncio.run(read_twice()) == 5


def test_a_stream_that_is_closed_ends_for_who_waits(tmp_path: Path) -> None:
    async def endless(state: State) -> None:
        await asyncio.get_running_loop().create_future()

    async def close() -> list[object]:
        stream = Workflow("w").step("a", fn=endless, after=()).stream("go", store=tmp_path)
        await anext(stream)
        reader = asyncio.create_task(_all(stream))
        await asyncio.sleep(0)  # it waits now
        async with asyncio.timeout(10):
            await stream.aclose()
            return await reader

    assert asyncio.run(close()) == []


async def _all(stream: Any) -> list[object]:
    return [event async for event in stream]


def test_stream_sync_says_what_to_do_inside_a_loop(tmp_path: Path) -> None:
    async def watch() -> None:
        with pytest.raises(NotSupported, match="an event loop is running"):
            Workflow("w").step("a", fn=lambda state: 1).stream_sync("go", store=tmp_path)

    asyncio.run(watch())
    assert not os.listdir(tmp_path)
