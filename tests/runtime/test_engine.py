"""The engine: what is written before what, values decoded fresh, the verdict kept."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from agentloom.errors import Diverged, NotSupported, Stopped, StoreFailed, ValueRefused
from agentloom.format.digests import request_key
from agentloom.format.values import Tree, Types
from agentloom.runtime.calls import Arrival, CallSpec
from agentloom.runtime.places import Places
from tests.runtime.fakes import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_request_is_written_before_the_source_hears_of_it(bench: Bench) -> None:
    written: list[list[str]] = []
    bench.source.begin = lambda call: written.append(bench.kinds)  # type: ignore[method-assign]
    call = bench.begin(order=[1])
    assert written == [["start", "request"]]
    assert (call.id, call.index) == ("root/probe#1", 1)


def test_an_outcome_is_written_before_it_is_given(bench: Bench) -> None:
    call = bench.begin()
    delivery = bench.engine.deliver(Arrival("outcome", call, value={"n": 1}, vt=9, dur=4))
    assert delivery.unwrap() == {"n": 1}
    entry = bench.last()
    assert (entry["kind"], entry["d"], entry["vt"], entry["dur"], entry["status"]) == (
        "outcome",
        1,
        9,
        4,
        "ok",
    )


def test_arguments_and_results_are_no_aliases_of_the_worlds_objects(bench: Bench) -> None:
    given, made = [1], {"rows": [1]}
    call = bench.begin(items=given)
    given.append(2)
    assert call.tree == {"items": [1]}
    value: Any = bench.engine.deliver(Arrival("outcome", call, value=made)).unwrap()
    value["rows"].append(3)
    assert made == {"rows": [1]}
    assert bench.payload("val") == {"rows": [1]}


def test_the_types_of_what_comes_back_are_those_of_what_was_written(bench: Bench) -> None:
    with pytest.raises(ValueRefused, match=r"at x: object.*argument of tool find"):
        bench.begin(x=object())
    assert bench.kinds == ["start"]
    call = bench.begin()
    assert call.id == "root/probe#1"  # what was refused took no id
    value = bench.engine.deliver(Arrival("outcome", call, value=(1, b"x", {2})))
    assert value.unwrap() == (1, b"x", {2})


def test_what_cannot_be_kept_becomes_the_error_of_the_call(bench: Bench) -> None:
    delivery = bench.engine.deliver(Arrival("outcome", bench.begin(), value={"db": object()}))
    assert bench.last()["status"] == "error"
    with pytest.raises(ValueRefused, match="db"):
        delivery.unwrap()


def test_an_error_is_raised_as_it_was_written(bench: Bench) -> None:
    error = KeyError("gone", 5)
    delivery = bench.engine.deliver(Arrival("outcome", bench.begin(), error=error))
    with pytest.raises(KeyError) as caught:
        delivery.unwrap()
    assert caught.value is not error
    assert caught.value.args == ("gone", 5)


def test_secrets_are_never_in_the_call(bench: Bench) -> None:
    request = {"model": "m", "messages": [], "api_key": "sk-1", "base_url": "http://u:pw@host/", "user": "u"}
    spec = CallSpec("model", "m", request, profile="agentloom.model/1")
    call = bench.engine.begin(spec, bench.session.root)
    assert call.tree == {"model": "m", "messages": [], "base_url": "http://host/", "user": "u"}
    assert set(call.noted) == {"base_url", "user"}
    assert set(call.key_tree) == {"model", "messages"}
    assert not any(secret in b"".join(bench.tape.parts) for secret in (b"sk-1", b":pw@"))


def test_the_key_is_of_the_load_bearing_fields_alone(bench: Bench) -> None:
    def key(kind: str = "model", **fields: object) -> str:
        spec = CallSpec(kind, "m", {"model": "m", **fields}, profile="agentloom.model/1")
        return bench.engine.begin(spec, bench.session.root).key

    assert key(user="a") == key(user="b") == key()
    assert len({key(), key(seed=1), key(seed=1.0), key(kind="tool")}) == 4


def test_chunks_are_numbered_deliveries_written_before_the_next_entry(bench: Bench) -> None:
    call = bench.begin()
    for number in range(2):
        chunk = Arrival("chunk", call, value=[number], vt=10 + number, offset=number)
        delivery = bench.engine.deliver(chunk)
        assert (delivery.value, delivery.done) == ([number], False)
    assert bench.kinds == ["start", "request"]
    bench.begin("other")
    chunks, request = bench.tape.journal.entries[-2:]
    assert (chunks["kind"], chunks["items"], request["kind"]) == (
        "chunks",
        [[1, 10, 0], [2, 11, 1]],
        "request",
    )
    bench.engine.deliver(Arrival("outcome", call))
    assert bench.last()["d"] == 3
    assert call.chunks == 2


def test_virtual_time_never_goes_back(bench: Bench) -> None:
    one, other = bench.begin(), bench.begin()
    bench.engine.deliver(Arrival("outcome", one, vt=50))
    bench.engine.deliver(Arrival("outcome", other, vt=20))
    assert bench.last()["vt"] == 50


@pytest.mark.parametrize("again", ["outcome", "chunk"])
def test_nothing_is_delivered_to_a_call_that_ended(bench: Bench, again: Any) -> None:
    call = bench.begin()
    bench.engine.deliver(Arrival("outcome", call))
    with pytest.raises(RuntimeError, match="not open"):
        bench.engine.deliver(Arrival(again, call))


def test_a_call_ends_once(bench: Bench) -> None:
    call = bench.begin()
    assert bench.engine.end_by_agent(call, "cancelled") is None
    before = bench.kinds
    bench.engine.end_by_agent(call, "closed")
    assert bench.kinds == before
    assert [told for told in bench.source.told if told[0] == "cancel"] == [("cancel", (call.id, "cancelled"))]
    assert "d" not in bench.last()


def test_a_child_agents_value_that_cannot_be_kept_is_its_error(bench: Bench) -> None:
    call = bench.begin()
    with pytest.raises(ValueRefused):
        bench.engine.end_by_agent(call, "ok", object())
    assert bench.last()["status"] == "error"
    assert bench.source.told[-1][1][1] == "error"  # type: ignore[index]


def test_states_marks_and_the_end(bench: Bench) -> None:
    value = [1]
    kept: Any = bench.engine.state(bench.session.root, "route", value, ("input",))
    kept.append(2)
    assert value == [1]
    entry = bench.last()
    assert (entry["kind"], entry["call"], entry["reads"]) == ("state", "root/probe#1", ["input"])
    bench.engine.mark("note", {"a": 1})
    assert bench.engine.finish("completed", "out") == "out"
    assert bench.kinds == ["start", "state", "note", "end"]
    assert bench.last()["totals"] == {"calls": 0, "deliveries": 0}
    assert bench.source.told[-1] == ("finished", ("completed", "out"))


@dataclass
class Order:
    number: int


class Nowhere(Places):
    def caller(self, above: int = 1) -> str:
        return "?"


def test_a_state_is_written_with_its_key_and_what_it_chose(bench: Bench) -> None:
    engine, root = bench.engine, bench.session.root
    engine.state(root, "route", [1], ("input",), "flow.py:3 route", goto="pay", others=("refuse",))
    fields: Tree = {"type": "state", "name": "route", "fields": {"value": [1]}}
    entry = bench.last()
    assert bench.payload("val") == [1]
    assert {name: entry[name] for name in ("call", "name", "key", "reads", "src", "goto", "others")} == {
        "call": "root/probe#1",
        "name": "route",
        "key": request_key(bytes(32), "state/1", fields),
        "reads": ["input"],
        "src": "flow.py:3 route",
        "goto": "pay",
        "others": ["refuse"],
    }


def test_a_state_set_by_no_code_of_the_agents_is_placed_where_its_scope_started(bench: Bench) -> None:
    bench.engine.state(bench.session.root, "route", 1, ())
    assert bench.last()["src"].startswith("test_engine.py:")
    bench.engine.places = Nowhere("/")
    bench.session.root.src = "flow.py:9 start"
    bench.engine.state(bench.session.root, "route", 1, ())
    assert bench.last()["src"] == "flow.py:9 start"


def test_a_state_of_a_declared_type_comes_back_as_that_type(bench: Bench) -> None:
    bench.engine.types = Types()
    bench.engine.types.register(Order)
    given = Order(3)
    kept = bench.engine.state(bench.session.root, "order", given, ())
    assert kept == given
    assert kept is not given


def test_a_state_that_is_cut_off_in_the_middle_ends_the_run(bench: Bench) -> None:
    bench.source.raises = LookupError("raised by a signal handler")
    with pytest.raises(LookupError):
        bench.engine.state(bench.session.root, "route", 1, ())
    bench.source.raises = None
    with pytest.raises(Stopped, match="cut off in the middle"):
        bench.begin()


def test_after_the_end_nothing_is_written(bench: Bench) -> None:
    call = bench.begin()
    bench.engine.finish("completed", None)
    bench.engine.end_by_agent(call, "closed")  # clean-up of what the agent left open: quiet
    with pytest.raises(NotSupported, match="after the run had ended"):
        bench.begin()
    assert bench.kinds[-1] == "end"


def everything(bench: Bench) -> list[Any]:
    """Each way to make the engine write, on a bench of its own with one open call."""
    call = bench.begin()
    engine = bench.engine
    return [
        bench.begin,
        lambda: engine.deliver(Arrival("outcome", call)),
        lambda: engine.deliver(Arrival("timer")),
        lambda: engine.end_by_agent(call, "cancelled"),
        lambda: engine.state(bench.session.root, "s", 1, ()),
        lambda: engine.mark("note", 1),
        lambda: engine.finish("completed", 1),
    ]


@pytest.mark.parametrize("which", range(7))
def test_a_store_that_fails_ends_the_run_there(which: int) -> None:
    bench = Bench()
    act = everything(bench)[which]
    bench.tape.fail_at = 1
    told = list(bench.source.told)
    finishing = which == 6  # for whoever started the run, all the others for the agent
    with pytest.raises(StoreFailed if finishing else Stopped):
        act()
    assert bench.source.told == told  # nobody is told of what was not written
    bench.tape.fail_at = None
    for other in everything_but_ending(bench):
        with pytest.raises(Stopped) as stopped:
            other()
        assert stopped.value.__cause__ is bench.engine.failure
    with pytest.raises(StoreFailed) as failed:
        bench.engine.finish("completed", "as if nothing had been")
    assert failed.value is bench.engine.failure
    assert bench.kinds == ["start", "request"]


def everything_but_ending(bench: Bench) -> list[Any]:
    return [
        bench.begin,
        lambda: bench.engine.deliver(Arrival("timer")),
        lambda: bench.engine.mark("note", 1),
        lambda: bench.engine.state(bench.session.root, "s", 1, ()),
    ]


def test_the_first_verdict_is_kept_whatever_the_agent_does(bench: Bench) -> None:
    bench.source.raises = first = Diverged("first")
    with pytest.raises(Diverged):
        bench.begin()
    bench.source.raises = Diverged("second")
    with contextlib.suppress(BaseException):
        bench.begin()
    bench.source.raises = None
    with pytest.raises(Diverged) as caught:
        bench.engine.finish("completed", "all is well")
    assert caught.value is first
    assert isinstance(bench.engine.failure, Diverged)


def test_a_run_goes_on_in_one_thread(bench: Bench) -> None:
    bench.engine.take()
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            bench.begin()
        except NotSupported as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "in a thread that carries the run's context" in str(caught[0])
    assert "parallel" in str(caught[0])
    assert bench.kinds == ["start"]
    assert bench.begin().id == "root/probe#1"


def test_usage_is_counted_from_integers_alone(bench: Bench) -> None:
    call = bench.engine.begin(
        CallSpec("model", "m", {"model": "m"}, profile="agentloom.model/1"), bench.session.root
    )
    usage = {"input": 3, "output": 1.5, "cached": None, "reasoning": True}
    bench.engine.deliver(Arrival("outcome", call, value={"usage": usage}))
    assert bench.last()["usage"] == {"input": 3}
