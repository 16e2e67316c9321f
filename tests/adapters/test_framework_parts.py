"""What the adapters of frameworks share, on a framework of a few lines."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import agentloom
from agentloom.adapters.framework_classes import wrap_overrides
from agentloom.adapters.framework_scopes import in_tool, within
from agentloom.adapters.framework_state import Before, put_back
from agentloom.adapters.framework_tools import Tool, call_tool, call_tool_async
from tests.frameworks.proof import both, kinds, recorded, replayed

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def run(name: str, args: dict[str, Any], body: Any, **more: Any) -> Any:
    """A tool of the framework, sync."""

    def perform(given: Mapping[str, Any]) -> Any:
        RAN.append((name, dict(given)))
        return body(**given)

    return call_tool(Tool("tiny", name, args, **more), perform)


async def run_async(name: str, args: dict[str, Any], body: Any, **more: Any) -> Any:
    async def perform(given: Mapping[str, Any]) -> Any:
        RAN.append((name, dict(given)))
        await asyncio.sleep(0)
        return body(**given)

    return await call_tool_async(Tool("tiny", name, args, **more), perform)


def test_a_tool_gets_copies_of_its_arguments() -> None:
    def agent() -> Any:
        items = ["a"]

        def add(items: list[str]) -> int:
            items.append("b")
            return len(items)

        return run("add", {"items": items}, add), items

    value, trace = both(agent, RAN)
    assert value == (2, ["a"])
    assert trace.calls[0].request == {"args": {"items": ["a"]}}


def test_what_is_said_by_the_user_comes_before_what_the_tool_says() -> None:
    def agent() -> Any:
        return run("look", {}, lambda: 1, effect="read"), run("pay", {}, lambda: 2, effect="read")

    _, trace = both(agent, RAN, tools={"pay": "pure"})
    assert [call.effect for call in trace.calls] == ["read", "pure"]


def test_an_agent_is_no_call() -> None:
    def agent() -> Any:
        return run("research", {}, lambda: run("look", {"n": 1}, lambda n: n + 1))

    _, plain = recorded(agent)
    assert kinds(plain) == ["tool research"]
    RAN.clear()
    value, trace = recorded(agent, tools={"research": "agent"})
    assert value == 2
    assert kinds(trace) == ["tool look"]
    assert trace.calls[0].path.endswith("/research[0]")
    RAN.clear()
    assert replayed(agent, trace) == 2
    assert RAN == [("research", {})]


@pytest.mark.parametrize("said", ["reads", "", None])
def test_another_word_is_refused_before_anything_runs(said: Any) -> None:
    with pytest.raises(ValueError, match="an effect is one of agent, pure, read, write"):
        agentloom.record("agent", tools={"look": said})


@dataclass
class Case:
    number: int
    done: list[str] = field(default_factory=list)
    lock: Any = None


def test_changes_of_shared_objects_are_made_again() -> None:
    def agent() -> Any:
        case, notes = Case(1, lock=threading.Lock()), {"a": 1, "b": 2}
        lock = case.lock

        def work() -> str:
            case.done.append("paid")
            case.number += 1
            notes.pop("a")
            notes["c"] = 3
            return "ok"

        said = run("work", {}, work, shared={"case": case, "notes": notes})
        assert case.lock is lock
        return said, case.number, case.done, notes

    value, trace = both(agent, RAN)
    assert value == ("ok", 2, ["paid"], {"b": 2, "c": 3})
    assert trace.calls[0].request == {"args": {}}


def test_changes_before_an_error_are_made_again() -> None:
    def agent() -> Any:
        case = Case(1)

        def work() -> str:
            case.number = 7
            raise LookupError("nothing")

        try:
            run("work", {}, work, shared={"case": case})
        except LookupError as error:
            return str(error), case.number, hasattr(error, "agentloom_performed")

    value, _ = both(agent, RAN)
    assert value == ("nothing", 7, False)


@pytest.mark.parametrize(
    "shared", [Case(1), {"number": 1}, type("Plain", (), {"number": 1})(), object(), 3, None, Case, [1]]
)
def test_only_fields_are_looked_at(shared: Any) -> None:
    before = Before({"it": shared})
    assert before.changes() == {}
    put_back({"it": shared}, {})


def test_a_field_that_goes_and_one_that_comes() -> None:
    one: Any = type("Plain", (), {})()
    one.kept, one.gone, one.client = 1, 2, object()
    before = Before({"it": one})
    del one.gone
    one.kept, one.new = 1.0, "n"
    changes = before.changes()
    assert changes == {"it": {"set": {"kept": 1.0, "new": "n"}, "gone": ["gone"]}}
    other: Any = type("Plain", (), {})()
    other.kept, other.gone = 1, 2
    put_back({"it": other}, changes)
    assert vars(other) == {"kept": 1.0, "new": "n"}


def test_a_cancelled_tool_is_recorded_as_such() -> None:
    async def agent() -> Any:
        async def forever(given: Mapping[str, Any]) -> Any:
            RAN.append("began")
            try:
                await asyncio.Event().wait()
            finally:
                RAN.append("ended")

        try:
            async with asyncio.timeout(0.01):
                await call_tool_async(Tool("tiny", "wait", {}), forever)
        except TimeoutError:
            return "gave up"

    value, trace = both(agent, RAN)
    assert value == "gave up"
    assert [call.status for call in trace.calls] == ["cancelled"]
    assert RAN == ["began", "ended"]


def test_an_argument_without_a_form_passes_as_plain_code_and_is_told() -> None:
    def agent() -> Any:
        return run("look", {"what": object}, lambda what: what.__name__)

    value, trace = recorded(agent)
    assert value == "object"
    assert trace.calls == []
    assert "tool look: args.what" in str(trace.unrecorded)
    report = trace.replay(call=agent, check=False)
    assert report.verdict == "diverged"
    assert "look" in str(report)


def test_an_async_result_without_a_form_is_given_as_it_is() -> None:
    async def agent() -> Any:
        return (await run_async("look", {}, lambda: object)) is object

    value, trace = recorded(agent)
    assert value is True
    assert "tool look" in str(trace.unrecorded)
    assert len(RAN) == 1


def test_with_the_guard_off_the_trace_says_so_too() -> None:
    value, trace = recorded(lambda: run("look", {}, lambda: object) is object, guard="off")
    assert value is True
    assert "tool look" in str(trace.unrecorded)


def test_a_refusal_that_the_tool_itself_raised_is_its_error() -> None:
    from agentloom.errors import ValueRefused

    def agent() -> Any:
        def work() -> None:
            raise ValueRefused("mine", "x", "no")

        try:
            run("work", {}, work)
        except ValueRefused as refused:
            return refused.path

    value, trace = recorded(agent)
    assert value == "mine"
    assert len(RAN) == 1
    assert trace.calls[0].status == "error"


def test_outside_of_a_run_a_tool_is_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    recorded(lambda: 1)
    items = ["a"]
    with caplog.at_level(logging.WARNING):
        assert run("outside", {"items": items}, lambda items: items) is items
    assert "tool outside (tiny) belongs to no run" in caplog.text


def test_within_names_and_counts() -> None:
    def agent() -> Any:
        for _ in range(2):
            with within("node"):
                run("look", {}, lambda: 1)
        with within("a/b [0]#~"):
            run("look", {}, in_tool)
        return in_tool()

    value, trace = both(agent, RAN)
    assert value is False
    assert [call.path.partition("/")[2].partition("/")[2] for call in trace.calls] == [
        "node[0]",
        "node[1]",
        "a%2Fb%20%5B0%5D%23%7E[0]",
    ]
    with within("nobody"):
        pass


def test_a_generator_that_another_context_closes_keeps_the_path() -> None:
    def agent() -> Any:
        def steps() -> Any:
            with within("inner"):
                yield 1

        made = steps()
        next(made)
        thread = threading.Thread(target=made.close)
        thread.start()
        thread.join()
        return True

    assert recorded(agent)[0] is True


def test_overrides_are_wrapped_in_classes_of_before_and_after() -> None:
    class Base:
        def work(self) -> str:
            return "base"

    class Early(Base):
        def work(self) -> str:
            return "early"

    def loud(method: Any) -> Any:
        @functools.wraps(method)
        def work(self: Any) -> str:
            return str(method(self)) + "!"

        return work

    wrap_overrides(Base, {"work": loud})
    wrap_overrides(Base, {"work": loud})

    class Late(Early):
        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            RAN.append(cls.__name__)

        def work(self) -> str:
            return super().work() + " late"

    class Quiet(Late):
        pass

    assert [one().work() for one in (Base, Early, Late, Quiet)] == [
        "base",
        "early!",
        "early! late!",
        "early! late!",
    ]
    assert RAN == ["Quiet"]
