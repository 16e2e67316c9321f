"""The engine, what it knows of a call: who made it, by which rule, in which place; declared types; a run cut off."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agentloom.errors import Diverged, NotSupported, Stopped, StoreFailed, ValueRefused
from agentloom.format.digests import request_key
from agentloom.format.values import Tree, Types, encode
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.changes import change_of, profile, use_profiles
from agentloom.runtime.engine import Engine
from agentloom.runtime.ledger import NoLedger
from agentloom.runtime.places import Places
from agentloom.runtime.profiles import Profile, get
from agentloom.runtime.scope import Attempts
from tests.runtime.fakes import Bench

MODEL = "agentloom.model/1"


@dataclasses.dataclass
class Order:
    number: int


class Lost(Exception):
    """What it holds cannot be kept."""


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def typed() -> Bench:
    """A bench whose engine, and nobody else, knows the type of an order."""
    bench = Bench()
    types = Types()
    types.register(Order)
    bench.engine = Engine(bench.ledger, bench.source, nonce=bytes(32), types=types, places=Places("/"))
    bench.session.engine = bench.engine
    return bench


# -- what a call is ---------------------------------------------------------------------------------------------------


def test_a_call_knows_where_in_the_run_it_was_made(bench: Bench) -> None:
    call = bench.begin(order=1)
    assert (call.path, call.parent, call.attempt, call.rule) == ("root/probe", None, 1, None)
    assert (call.noted, call.profile) == ({}, "plain/1")
    assert bench.last().keys().isdisjoint({"parent", "attempt", "rule"})
    assert bench.last()["src"] == call.src
    assert call.src.endswith(" begin")


def test_calls_of_a_child_agent_name_the_call_that_it_is(bench: Bench) -> None:
    outer = bench.begin()
    scope = bench.session.root.child("support", outer.id)
    call = bench.engine.begin(CallSpec("tool", "find", {}), scope)
    assert (call.parent, bench.last()["parent"]) == (outer.id, outer.id)
    assert call.path == scope.path


def test_a_call_that_is_made_again_says_how_often(bench: Bench) -> None:
    attempts = Attempts(bench.session.root)
    numbers: list[tuple[int, object]] = []
    for _ in range(3):
        call = bench.begin()
        numbers.append((call.attempt, bench.last().get("attempt")))
        attempts.again()
    assert numbers == [(1, None), (2, 2), (3, 3)]


def test_a_tools_change_of_its_profile_sorts_its_call_and_is_written(bench: Bench) -> None:
    change = change_of(noted=["trace"])
    spec = CallSpec("tool", "find", {"order": 1, "trace": 2}, profile="tool/1", change=change)
    call = bench.engine.begin(spec, bench.session.root)
    assert (call.key_tree, call.noted, call.tree) == ({"order": 1}, {"trace": 2}, {"order": 1, "trace": 2})
    assert call.rule is not None
    assert (call.profile, bench.last()["profile"]) == (call.rule.name, call.rule.name)
    assert bench.payload("rule") == {"base": "tool/1", "noted": ["trace"]}


def test_a_replay_is_asked_for_the_rule_by_which_a_request_was_sorted(bench: Bench) -> None:
    asked: list[tuple[str, str, str]] = []
    then = profile("tool/1", noted=["trace"])

    def recorded(call_id: Callable[[], str], spec: CallSpec, rule: Profile) -> Profile:
        asked.append((call_id(), spec.name, rule.name))
        return then

    bench.source.recorded_rule = recorded
    spec = CallSpec("tool", "find", {"trace": 2}, profile="tool/1")
    call = bench.engine.begin(spec, bench.session.root)
    assert asked == [(call.id, "find", "tool/1")]
    assert (call.key_tree, call.noted, call.rule) == ({}, {"trace": 2}, then)


def test_parts_of_fields_are_sorted_apart(bench: Bench) -> None:
    with use_profiles(profile("tool/1", noted=["args.trace"])):
        spec = CallSpec("tool", "find", {"args": {"order": 1, "trace": 2}, "more": 3}, profile="tool/1")
        call = bench.engine.begin(spec, bench.session.root)
    assert call.tree == {"args": {"order": 1, "trace": 2}, "more": 3}
    assert call.key_tree == {"args": {"order": 1}, "more": 3}
    assert call.noted == {"args": {"trace": 2}}


@pytest.mark.parametrize(
    "rule", [get(MODEL), profile(MODEL, noted=["messages[].name"])], ids=["whole", "parts"]
)
@pytest.mark.parametrize("noted", [{}, {"user": "u"}], ids=["", "noted"])
def test_the_key_of_a_growing_history_is_that_of_the_definition(
    bench: Bench, rule: Profile, noted: dict[str, str]
) -> None:
    messages: list[dict[str, str]] = []
    with use_profiles(*[rule] if rule.rule else []):
        for turn in range(4):
            messages.append({"role": "user", "content": f"question {turn} " * 30, "name": f"n{turn}"})
            tools = [{"type": "function", "name": "find"}]
            request = {"model": "m", "messages": messages, "tools": tools, **noted}
            call = bench.engine.begin(CallSpec("model", "m", request, MODEL, series="m"), bench.session.root)
            left = [{k: v for k, v in one.items() if k != "name" or not rule.rule} for one in messages]
            fields = encode({"model": "m", "messages": left, "tools": tools})
            assert call.key == request_key(
                bytes(32), rule.name, {"type": "model", "name": "m", "fields": fields}
            )
            assert call.key_tree == fields


class Counting(Places):
    asked = 0

    def caller(self, above: int = 1) -> str:
        self.asked += 1
        return super().caller(above + 1)


def made_by(bench: Bench, *, waits: bool | None = None) -> Call:
    more = {} if waits is None else {"waits": waits}
    return bench.engine.begin(CallSpec("tool", "find", {}), bench.session.root, **more)


def test_the_place_of_a_call_is_found_before_its_code_goes_on(bench: Bench) -> None:
    bench.engine.ledger = NoLedger()
    call = made_by(bench)
    assert call.src.endswith(" made_by")


def test_the_place_of_a_call_that_waits_is_looked_for_only_when_asked_for(bench: Bench) -> None:
    bench.engine.ledger = NoLedger()
    bench.engine.places = places = Counting("/")
    call = made_by(bench, waits=True)
    assert places.asked == 0
    assert "test_engine_calls.py:" in call.src
    assert places.asked == 1


# -- declared types ---------------------------------------------------------------------------------------------------


def test_types_that_the_program_declared_cross_the_boundary_both_ways(typed: Bench) -> None:
    engine, root, order = typed.engine, typed.session.root, Order(7)
    tree = encode(order, engine.types)
    asked = engine.begin(CallSpec("tool", "find", {"order": order}), root)
    assert asked.tree == {"order": tree}
    chunk = engine.deliver(Arrival("chunk", asked, value=order))
    outcome = engine.deliver(Arrival("outcome", asked, value=order))
    replayed = engine.deliver(
        Arrival.of_record("outcome", engine.begin(CallSpec("tool", "x", {}), root), tree=tree, vt=0)
    )
    child = engine.begin(CallSpec("agent", "child", {}), root)
    results = [chunk.value, outcome.value, replayed.value, engine.end_by_agent(child, "ok", order)]
    engine.mark("note", order)
    assert typed.payload("val") == tree
    results.append(engine.finish("completed", order))
    assert results == [order] * 5
    assert all(type(one) is Order and one is not order for one in results)


def test_errors_that_hold_declared_types_cross_it_too(typed: Bench) -> None:
    engine, root = typed.engine, typed.session.root
    raised = engine.deliver(
        Arrival("outcome", engine.begin(CallSpec("tool", "find", {}), root), error=KeyError(Order(7)))
    )
    assert isinstance(raised.error, KeyError)
    assert raised.error.args == (Order(7),)
    child = engine.begin(CallSpec("agent", "child", {}), root)
    ended: Any = engine.end_by_agent(child, "error", KeyError(Order(8)))
    failed: Any = engine.finish("failed", KeyError(Order(9)))
    assert (ended.args, failed.args) == ((Order(8),), (Order(9),))


# -- what arrives -----------------------------------------------------------------------------------------------------


def test_time_begins_at_nought(bench: Bench) -> None:
    bench.engine.deliver(Arrival("timer"))
    assert bench.last()["vt"] == 0


def test_what_is_delivered_says_which_call_it_is_of(bench: Bench) -> None:
    call = bench.begin()
    chunk = bench.engine.deliver(Arrival("chunk", call, value=[1]))
    assert (chunk.call, chunk.kind, chunk.value, chunk.done) == (call, "chunk", [1], False)
    outcome = bench.engine.deliver(Arrival("outcome", call, value=2))
    assert (outcome.call, outcome.kind, outcome.value, outcome.done) == (call, "outcome", 2, True)
    other = bench.begin()
    failed = bench.engine.deliver(Arrival("outcome", other, error=KeyError("gone")))
    assert (failed.call, failed.kind, failed.done) == (other, "outcome", True)
    timer = bench.engine.deliver(Arrival("timer"))
    assert (timer.call, timer.kind) == (None, "timer")


def test_the_values_of_chunks_are_written(bench: Bench) -> None:
    call = bench.begin()
    for value in ([1], {"a": 2}):
        bench.engine.deliver(Arrival("chunk", call, value=value))
    bench.engine.mark("note", None)
    chunks = bench.tape.journal.entries[-2]
    assert bench.tape.journal.tree(str(chunks["val"])) == [[1], {"a": 2}]


def model_call(bench: Bench) -> Call:
    return bench.engine.begin(CallSpec("model", "m", {"model": "m"}, profile=MODEL), bench.session.root)


def test_usage_that_came_in_one_chunk_of_a_stream_is_that_of_the_call(bench: Bench) -> None:
    call = model_call(bench)
    for chunk in ({"delta": "a"}, {"usage": {"input": 3}}, {"delta": "b"}):
        bench.engine.deliver(Arrival("chunk", call, value=chunk))
    bench.engine.deliver(Arrival("outcome", call))
    assert bench.last()["usage"] == {"input": 3}


def test_recorded_usage_is_taken_as_it_is_and_nothing_else_counts(bench: Bench) -> None:
    said: Tree = {"usage": {"input": 3}}
    call = model_call(bench)
    given = Arrival.of_record("outcome", call, tree=said, vt=0, usage={"input": 9})
    bench.engine.deliver(given)
    assert bench.last()["usage"] == {"input": 9}
    silent = model_call(bench)
    bench.engine.deliver(Arrival.of_record("chunk", silent, tree=said, vt=0))
    assert silent.usage is None
    bench.engine.deliver(Arrival.of_record("outcome", silent, tree=said, vt=0))
    assert "usage" not in bench.last()


def test_usage_that_a_live_source_reports_comes_before_that_of_the_answer(bench: Bench) -> None:
    call = model_call(bench)
    arrival = Arrival("outcome", call, value={"usage": {"input": 3}})
    arrival.usage = {"input": 4}
    bench.engine.deliver(arrival)
    assert bench.last()["usage"] == {"input": 4}


def test_a_recorded_error_that_is_none_is_a_fault_of_the_trace_that_names_the_call(bench: Bench) -> None:
    call = bench.begin()
    with pytest.raises(RuntimeError, match=r"the recorded error of root/probe#1 is not an exception: \[1\]"):
        bench.engine.deliver(Arrival.of_record("outcome", call, "error", tree=[1], vt=0))


def test_a_mark_holds_its_call_its_reason_and_its_value(bench: Bench) -> None:
    call = bench.begin()
    bench.engine.mark("gap", {"lost": [1]}, call=call.id, why="unrecorded")
    assert (bench.last()["kind"], bench.last()["call"], bench.last()["why"]) == ("gap", call.id, "unrecorded")
    assert bench.payload("val") == {"lost": [1]}
    bench.engine.mark("flag", None)
    assert bench.last().keys().isdisjoint({"call", "why", "val"})


# -- what cannot be kept, and the end ---------------------------------------------------------------------------------


def test_what_an_error_holds_and_cannot_be_kept_is_left_out_wherever_errors_cross(bench: Bench) -> None:
    delivery = bench.engine.deliver(Arrival("outcome", bench.begin(), error=Lost(object())))
    ended = bench.engine.end_by_agent(bench.begin(), "error", Lost(object()))
    assert bench.last()["status"] == "error"
    failed = bench.engine.finish("failed", Lost(object()))
    for error in (delivery.error, ended, failed):
        assert isinstance(error, Lost)
        assert error.args == (None,)
    assert (bench.last()["status"], "val" in bench.last()) == ("failed", False)
    assert bench.payload("err")["$error"]["lost"] == ["args[0]"]


def test_an_output_that_cannot_be_kept_is_refused_and_not_written(bench: Bench) -> None:
    with pytest.raises(ValueRefused):
        bench.engine.finish("completed", object())
    assert bench.kinds == ["start"]


def test_a_childs_value_that_cannot_be_kept_is_written_as_the_refusal(bench: Bench) -> None:
    with pytest.raises(ValueRefused) as caught:
        bench.engine.end_by_agent(bench.begin(), "ok", object())
    assert bench.payload("err") == encode(caught.value)


@pytest.mark.parametrize("status", ["cancelled", "closed"])
def test_a_call_that_the_agent_does_not_wait_for_is_told_to_the_source(bench: Bench, status: Any) -> None:
    call = bench.begin()
    bench.engine.end_by_agent(call, status)
    assert bench.source.told[-1] == ("cancel", (call.id, status))
    assert call.ended


def test_a_call_left_open_is_over_after_the_end(bench: Bench) -> None:
    call = bench.begin()
    bench.engine.finish("completed", None)
    assert bench.engine.end_by_agent(call, "closed") is None
    assert call.ended


def test_a_call_after_the_end_is_told_what_to_do(bench: Bench) -> None:
    bench.engine.finish("completed", None)
    with pytest.raises(NotSupported) as caught:
        bench.begin()
    assert "await what the agent starts" in str(caught.value.hint)


def test_a_failure_that_somebody_else_kept_stops_every_call(bench: Bench) -> None:
    bench.engine.failure = Diverged("found by a guard")
    with pytest.raises(Diverged, match="found by a guard"):
        bench.begin()
    assert bench.kinds == ["start"]


class Signal(Exception):
    """Raised by a signal handler in the middle of an append."""


@pytest.mark.parametrize("which", ["request", "outcome", "timer", "child", "state", "note", "end"])
def test_a_run_that_is_cut_off_in_the_middle_of_an_entry_ends_there(bench: Bench, which: str) -> None:
    call = bench.begin()
    engine = bench.engine
    acts: dict[str, Callable[[], object]] = {
        "request": bench.begin,
        "outcome": lambda: engine.deliver(Arrival("outcome", call)),
        "timer": lambda: engine.deliver(Arrival("timer")),
        "child": lambda: engine.end_by_agent(call, "ok", 1),
        "state": lambda: engine.state(bench.session.root, "s", 1, ()),
        "note": lambda: engine.mark("note", 1),
        "end": lambda: engine.finish("completed", 1),
    }
    write = bench.ledger._append

    def interrupted(data: bytes) -> None:
        write(data)
        raise Signal

    bench.ledger._append = interrupted
    with pytest.raises(Signal):
        acts[which]()
    bench.ledger._append = write
    before = bench.kinds
    with pytest.raises(Stopped, match="cut off in the middle"):
        bench.begin()
    with pytest.raises(StoreFailed, match="cut off in the middle") as caught:
        engine.finish("completed", "as if nothing had been")
    assert "interrupted it" in str(caught.value.hint)
    assert bench.kinds == before


def test_a_run_goes_on_in_the_thread_that_it_is_given_back_to(bench: Bench) -> None:
    here = threading.get_ident()
    threads: list[int | None] = []
    bench.engine.take()
    threads.append(bench.engine.thread)
    bench.begin()
    bench.engine.give_back(here + 1)
    threads.append(bench.engine.thread)
    with pytest.raises(NotSupported):
        bench.begin()
    bench.engine.give_back()
    threads.append(bench.engine.thread)
    bench.begin()
    assert threads == [here, here + 1, None]
