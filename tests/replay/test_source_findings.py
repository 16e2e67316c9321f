"""Calls, streams and waits against a recording: each way not to fit is one finding, compared as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentloom.errors import Diverged, PayloadMissing
from agentloom.replay.fields import compare
from agentloom.replay.report import Finding
from agentloom.replay.source import ReplaySource
from agentloom.replay.summaries import recorded_ref, ref_now
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.session import Session
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench

SECOND = 1_000_000_000


def chunks(bench: Bench, call: Call, count: int) -> None:
    for number in range(count):
        bench.engine.deliver(Arrival("chunk", call, value=f"word {number}", offset=10 * number))


def outcome(bench: Bench, call: Call, value: object = None, **more: Any) -> None:
    bench.engine.deliver(Arrival("outcome", call, value=value, **more))


def found(source: ReplaySource, act: Callable[[], object]) -> Finding:
    """What ``act`` finds; it is said in the exception too, and said again whatever is asked after it."""
    with pytest.raises(Diverged) as caught:
        act()
    finding = source.finding
    assert finding is not None
    where = f" at {finding.call.kind} {finding.call.name}" if finding.call else ""
    words = f"the replay diverged ({finding.cls}){where}: {finding.message}"
    assert str(caught.value) == str(Diverged(words))
    with pytest.raises(Diverged) as caught:
        source.poll(None)
    assert str(caught.value) == str(Diverged(words))
    assert str(source.refuse(Finding("extra", None, "later"))) == str(Diverged(words))
    assert source.finding is finding
    return finding


def of(source: ReplaySource, call: Call, number: int) -> Any:
    """The reference to ``call``, which is recorded call ``number`` (from 0)."""
    recorded = source.recording.calls[number]
    return ref_now(call, recorded, recorded.index)


# -- blocking calls -------------------------------------------------------------------------------------------------


def _both_asked(bench: Bench) -> None:
    first, second = bench.begin(q="a"), bench.begin(q="b")
    outcome(bench, second)
    outcome(bench, first)


def _a_timer_first(bench: Bench) -> None:
    call = bench.begin(q="a")
    bench.begin(q="b")
    bench.engine.deliver(Arrival("timer", vt=5))
    outcome(bench, call)


def _a_cancellation_first(bench: Bench) -> None:
    call = bench.begin(q="a")
    bench.begin(q="b")
    bench.engine.deliver(Arrival("cancel", vt=5))
    outcome(bench, call)


def _a_turn_first(bench: Bench) -> None:
    call = bench.begin(q="a")
    bench.begin(q="b")
    bench.engine.deliver(Arrival("turn", vt=5))
    outcome(bench, call)


def _a_state_first(bench: Bench) -> None:
    call = bench.begin(q="a")
    bench.begin(q="b")
    bench.engine.state(bench.session.root, "route", 1, (), "flow.py:3 route")
    outcome(bench, call)


def _a_request_first(bench: Bench) -> None:
    call = bench.begin(q="a")
    bench.begin(q="b")
    bench.begin(q="c")
    outcome(bench, call)


def _a_chunk_first(bench: Bench) -> None:
    call, second = bench.begin(q="a"), bench.begin(q="b")
    chunks(bench, second, 1)
    outcome(bench, call)


def _an_end_first(bench: Bench) -> None:
    call, second = bench.begin(q="a"), bench.begin(q="b")
    bench.engine.end_by_agent(second, "cancelled")
    outcome(bench, call)


def _nothing_more(bench: Bench) -> None:
    bench.begin(q="a")
    bench.begin(q="b")


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (_both_asked, "the outcome of call 2 (tool find)"),
        (_a_timer_first, "a timer"),
        (_a_cancellation_first, "a cancellation"),
        (_a_turn_first, "a turn of the loop"),
        (_a_state_first, "a state"),
        (_a_request_first, "call 3 (tool find)"),
        (_a_chunk_first, "a chunk of call 2 (tool find)"),
        (_an_end_first, "the end of call 2 (tool find)"),
        (_nothing_more, "the run had ended"),
    ],
)
def test_a_call_that_is_waited_for_at_once(act: Callable[[Bench], None], what: str) -> None:
    source, session = replaying(record(act))
    call = find(session, "a")
    find(session, "b")
    message = (
        f"It is waited for at once now; when recorded {what} came first."
        " Was it awaited, or made in another thread?"
    )
    expected = Finding("changed", of(source, call, 0), message, reason="blocking")
    assert found(source, lambda: source.inline(call, lambda: None)) == expected


def test_a_call_that_is_waited_for_where_the_process_died() -> None:
    source, session = replaying(record(_nothing_more, end=None))
    call = find(session, "a")
    find(session, "b")
    dead = "call 1 (tool find) has no outcome, it is in doubt"
    message = f"The recording ends here: its process died after call 2; {dead}."
    expected = Finding("ended early", of(source, call, 0), message, reason="recording ends")
    assert found(source, lambda: source.inline(call, lambda: None)) == expected


@pytest.mark.parametrize("status", ["closed", "cancelled"])
def test_a_stream_that_is_read_after_the_agent_had_ended_it(status: Any) -> None:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        chunks(bench, call, 1)
        bench.engine.end_by_agent(call, status)

    source, session = replaying(record(act))
    call = find(session, "a")
    session.engine.deliver(source.next_inline(call))
    message = "Chunk 2 of the stream is asked for; when recorded the agent left it after 1, so it is not in the trace."
    expected = Finding("extra", of(source, call, 0), message, reason="reads further")
    assert found(source, lambda: source.next_inline(call)) == expected


def test_a_call_that_was_cancelled_from_outside_is_not_one_that_the_agent_left() -> None:
    def act(bench: Bench) -> None:
        call, second = bench.begin(q="a"), bench.begin(q="b")
        outcome(bench, second)
        bench.engine.deliver(Arrival("outcome", call, "cancelled"))

    source, session = replaying(record(act))
    call = find(session, "a")
    find(session, "b")
    assert found(source, lambda: source.inline(call, lambda: None)).reason == "blocking"


def test_what_the_agent_gets_is_what_was_recorded() -> None:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        chunks(bench, call, 2)
        outcome(bench, call, {"a": 1}, vt=9, dur=7)

    source, session = replaying(record(act))
    call = find(session, "a")
    first, second, last = (source.next_inline(call) for _ in range(3))
    assert [(one.kind, one.tree, one.offset, one.recorded) for one in (first, second)] == [
        ("chunk", "word 0", 0, True),
        ("chunk", "word 1", 10, True),
    ]
    assert (last.kind, last.status, last.tree, last.vt, last.dur) == ("outcome", "ok", {"a": 1}, 9, 7)
    assert last.plain  # nothing in it is tagged: the agent may have it as it is
    assert (last.call, source.now()) == (call, 9)


def test_an_answer_in_another_order_is_the_recorded_one() -> None:
    """Calls made one after the other, in another order: answered, and one finding where all of them came."""

    def act(bench: Bench) -> None:
        for q in ("a", "b"):
            call = bench.begin(q=q)
            outcome(bench, call, {"for": q}, vt=4, dur=6)

    source, session = replaying(record(act))
    second = find(session, "b")
    arrival = source.inline(second, lambda: None)
    assert (arrival.kind, arrival.call, arrival.status) == ("outcome", second, "ok")
    assert (arrival.tree, arrival.dur, arrival.recorded) == ({"for": "b"}, 6, True)
    first = find(session, "a")
    finding = found(source, lambda: source.inline(first, lambda: None))
    assert (finding.cls, finding.reason) == ("reordered", "order")


def test_an_answer_in_another_order_that_failed_fails() -> None:
    def act(bench: Bench) -> None:
        outcome(bench, bench.begin(q="a"))
        bench.engine.deliver(Arrival("outcome", bench.begin(q="b"), "error", error=ValueError("no")))

    source, session = replaying(record(act))
    second = find(session, "b")
    arrival = source.inline(second, lambda: None)
    assert arrival.status == "error"
    assert arrival.tree == source.recording.outcome(source.recording.calls[1])


def _three(bench: Bench) -> None:
    for q in ("a", "b", "c"):
        bench.begin(q=q)


@pytest.mark.parametrize("how", ["inline", "open_inline", "next_inline"])
def test_calls_that_do_not_fit_are_judged_where_one_is_waited_for(how: str) -> None:
    """More may come after it: only the calls before the one that was found are missing."""
    source, session = replaying(record(_three))
    find(session, "b")
    call = find(session, "x")
    ways: dict[str, Callable[[], object]] = {
        "inline": lambda: source.inline(call, lambda: None),
        "open_inline": lambda: source.open_inline(call, lambda: iter(())),
        "next_inline": lambda: source.next_inline(call),
    }
    finding = found(source, ways[how])
    assert (finding.cls, finding.reason) == ("missing", "skipped")
    assert finding.message.startswith(
        'find("a") was made here when recorded; now it is not. Now: find("b") at '
    )


@pytest.mark.parametrize("how", ["poll", "finish"])
@pytest.mark.parametrize(
    ("qs", "cls", "reason"), [("bc", "missing", "skipped"), ("cab", "reordered", "order")]
)
def test_calls_that_do_not_fit_are_judged_whole_where_the_agent_waits_or_ends(
    how: str, qs: str, cls: str, reason: str
) -> None:
    source, session = replaying(record(_three))
    for q in qs:
        source.want(find(session, q))
    finding = found(
        source, lambda: source.poll(None) if how == "poll" else source.finished("completed", None)
    )
    assert (finding.cls, finding.reason) == (cls, reason)
    if cls == "missing":
        assert finding.message.startswith('find("a") was made here when recorded; now it is not.')


def test_a_call_where_the_recording_was_cut_off() -> None:
    source, session = replaying(record(lambda bench: None, end=None))
    call = find(session, "x")
    message = "The recording ends here: its process died after call 0."
    expected = Finding("ended early", ref_now(call, None, None), message, reason="recording ends")
    assert found(source, lambda: source.inline(call, lambda: None)) == expected


# -- awaited calls --------------------------------------------------------------------------------------------------


def test_an_outcome_for_which_nobody_waits() -> None:
    source, session = replaying(record(lambda bench: answered(bench, "a")))
    find(session, "a")
    ref = recorded_ref(source.recording, source.recording.calls[0])
    message = "Now nobody waits for its outcome, which was delivered here when recorded."
    expected = Finding("missing", ref, message, reason="not awaited")
    assert found(source, lambda: source.poll(None)) == expected


def test_a_chunk_for_which_nobody_waits() -> None:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        chunks(bench, call, 3)
        outcome(bench, call)

    source, session = replaying(record(act))
    call = find(session, "a")
    for number in range(2):
        source.want(call)
        arrival = source.poll(None)
        assert arrival is not None
        assert arrival.tree == f"word {number}"
    ref = recorded_ref(source.recording, source.recording.calls[0])
    message = "Now nobody waits for chunk 3, which was delivered here when recorded."
    expected = Finding("missing", ref, message, reason="not awaited")
    assert found(source, lambda: source.poll(None)) == expected


def _after(vt: int) -> Callable[[Bench], object]:
    return lambda bench: bench.engine.deliver(Arrival("timer", vt=vt))


def test_a_timer_that_is_not_waited_for() -> None:
    source, _ = replaying(record(_after(3 * SECOND // 2)))
    message = "A timer fired here after 1.500 s when recorded; now nothing waits for one."
    assert found(source, lambda: source.poll(None)) == Finding("missing", None, message, reason="timer")


def test_a_timer_that_is_due_later() -> None:
    source, _ = replaying(record(_after(3 * SECOND // 2)))
    message = "A timer fired here after 1.500 s when recorded; now the first one is due at 2.250 s."
    expected = Finding("changed", None, message, reason="timer")
    assert found(source, lambda: source.poll(9 * SECOND // 4)) == expected


@pytest.mark.parametrize("due", [0, SECOND, 3 * SECOND // 2])
def test_a_timer_that_was_due(due: int) -> None:
    source, _ = replaying(record(_after(3 * SECOND // 2)))
    arrival = source.poll(due)
    assert arrival is not None
    assert (arrival.kind, arrival.vt, source.now()) == ("timer", 3 * SECOND // 2, 3 * SECOND // 2)


@pytest.mark.parametrize("kind", ["cancel", "turn"])
def test_what_happens_outside_happens_again(kind: Any) -> None:
    source, _ = replaying(record(lambda bench: bench.engine.deliver(Arrival(kind, vt=4))))
    assert source.now() == 0
    arrival = source.poll(None)
    assert arrival is not None
    assert (arrival.kind, arrival.vt, arrival.recorded, source.now()) == (kind, 4, True, 4)


def test_a_replay_is_not_interrupted_but_given_up() -> None:
    source, _ = replaying(record(lambda bench: None))
    assert source.interrupt() is False
    assert source.turn_due(5) is False


def test_a_replay_begins_at_no_time_and_is_not_complete() -> None:
    source, _ = replaying(record(lambda bench: None))
    assert (source.now(), source.complete, source.on_arrival, source.on_finding) == (0, False, None, None)
    bare = ReplaySource(source.recording)
    assert (bare.redactor, bare.redact()) == (None, None)


# -- what the agent ends itself -------------------------------------------------------------------------------------


def _of_three_chunks(bench: Bench) -> None:
    call = bench.begin(q="a")
    chunks(bench, call, 3)
    outcome(bench, call)


@pytest.mark.parametrize(
    ("status", "word"), [("closed", "left early"), ("cancelled", "cancelled")]
)  # fmt: skip
@pytest.mark.parametrize(
    ("act", "read", "after", "fate"),
    [
        (_of_three_chunks, 2, " after 2 of 3 chunks", "ended normally later"),
        (lambda bench: answered(bench, "a"), 0, "", "ended normally later"),
        (
            lambda bench: bench.engine.deliver(
                Arrival("outcome", bench.begin(q="a"), "error", error=ValueError("no"))
            ),
            0,
            "",
            "ended with an error",
        ),
        (lambda bench: bench.begin(q="a"), 0, "", "had no outcome"),
    ],
)
def test_a_call_that_the_agent_ends_itself_now(
    act: Callable[[Bench], object], read: int, after: str, fate: str, status: Any, word: str
) -> None:
    source, session = replaying(record(act))
    call = find(session, "a")
    for _ in range(read):
        session.engine.deliver(source.next_inline(call))
    expected = Finding(
        "changed",
        of(source, call, 0),
        f"Now {word}{after}; when recorded it {fate}.",
        reason="ended by the agent",
    )
    assert found(source, lambda: source.cancel(call, status)) == expected


def test_a_call_that_the_agent_ended_in_another_way() -> None:
    def act(bench: Bench) -> None:
        bench.engine.end_by_agent(bench.begin(q="a"), "closed")
        bench.engine.end_by_agent(bench.begin(q="b"), "cancelled")

    source, session = replaying(record(act))
    call = find(session, "a")
    message = "Now cancelled; when recorded it was left early later."
    assert found(source, lambda: source.cancel(call, "cancelled")) == Finding(
        "changed", of(source, call, 0), message, reason="ended by the agent"
    )
    source, session = replaying(record(act))
    source.cancel(find(session, "a"), "closed")
    second = find(session, "b")
    message = "Now left early; when recorded it was cancelled later."
    assert found(source, lambda: source.cancel(second, "closed")) == Finding(
        "changed", of(source, second, 1), message, reason="ended by the agent"
    )


def test_a_call_that_is_cancelled_where_the_process_died_is_not_compared() -> None:
    source, session = replaying(record(lambda bench: bench.begin(q="a"), end=None))
    source.cancel(find(session, "a"), "cancelled")
    assert source.finding is None


def test_nothing_is_compared_once_something_was_found() -> None:
    def act(bench: Bench) -> None:
        answered(bench, "a")
        answered(bench, "b")

    source, session = replaying(record(act))
    call = find(session, "a")
    odd = find(session, "x")  # waits to be judged
    source.cancel(call, "cancelled")
    source.ended(call, "ok", 1)
    assert source.position == 1
    first = found(source, lambda: source.inline(odd, lambda: None))
    source.cancel(call, "cancelled")
    source.ended(call, "ok", 1)
    assert source.finding is first
    asks: list[Callable[[], object]] = [lambda: source.begin(call), lambda: source.inline(call, lambda: None)]
    for ask in asks:
        with pytest.raises(Diverged, match="the replay diverged"):
            ask()


def test_nothing_is_compared_once_the_trace_could_not_be_read() -> None:
    recording = record(lambda bench: answered(bench, "a"))
    blob = next(str(entry["val"]) for entry in recording.journal.entries if entry["kind"] == "outcome")
    del recording.journal._blobs[blob]
    source, session = replaying(recording)
    call = find(session, "a")
    with pytest.raises(Diverged) as caught:
        source.inline(call, lambda: None)
    assert isinstance(source.unusable, PayloadMissing)
    assert str(source.unusable) in str(caught.value)
    source.cancel(call, "cancelled")
    source.ended(call, "ok", 1)
    asks: list[Callable[[], object]] = [lambda: source.begin(call), lambda: source.inline(call, lambda: None)]
    asks.append(lambda: source.poll(None))
    for ask in asks:
        with pytest.raises(Diverged) as caught:
            ask()
        assert str(caught.value) == str(Diverged(str(source.unusable)))
    assert source.finding is None


# -- child agents ---------------------------------------------------------------------------------------------------


def _child(status: Any = "ok", value: object = None) -> Callable[[Bench], object]:
    return lambda bench: bench.engine.end_by_agent(bench.begin(q="a"), status, value)


def test_a_child_agent_that_ends_as_it_did() -> None:
    source, session = replaying(record(_child(value={"a": 1, "b": 2})))
    source.ended(find(session, "a"), "ok", {"a": 1, "b": 2})
    source.finished("completed", None)
    assert (source.finding, source.complete) == (None, True)


@pytest.mark.parametrize(
    ("status", "tree", "message"),
    [
        ("ok", {"a": 1, "b": 3}, ""),
        ("ok", {"b": 2, "a": 1}, ""),
        ("error", {"a": 1, "b": 2}, "Status ok when recorded, error now."),
        ("error", {"a": 1}, "Status ok when recorded, error now."),
    ],
    ids=["another value", "another order", "another status", "both"],
)
def test_a_child_agent_with_another_result(status: Any, tree: Any, message: str) -> None:
    then: Any = {"a": 1, "b": 2}
    source, session = replaying(record(_child(value=then)))
    call = find(session, "a")
    expected = Finding(
        "output",
        of(source, call, 0),
        message,
        compare(then, tree, ordered=True, root="result"),
        reason="child",
    )
    assert found(source, lambda: source.ended(call, status, tree)) == expected


@pytest.mark.parametrize("end", ["completed", None])
def test_a_child_agent_that_ends_where_something_was_delivered(end: str | None) -> None:
    """Its end is looked for before the next delivery, and not after it, even if the run was cut short."""

    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        answered(bench, "b")
        bench.engine.end_by_agent(call, "ok", 1)

    source, session = replaying(record(act, end=end))
    call = find(session, "a")
    find(session, "b")
    message = "It ended here with status ok; when recorded it ended normally later."
    expected = Finding("changed", of(source, call, 0), message, reason="child")
    assert found(source, lambda: source.ended(call, "ok", 1)) == expected


def test_a_child_agent_that_ends_although_it_never_did() -> None:
    source, session = replaying(record(lambda bench: bench.begin(q="a")))
    call = find(session, "a")
    message = "It ended here with status error; when recorded it had no outcome."
    expected = Finding("changed", of(source, call, 0), message, reason="child")
    assert found(source, lambda: source.ended(call, "error", 1)) == expected


def test_a_child_agent_that_ends_where_the_process_died() -> None:
    source, session = replaying(record(lambda bench: bench.begin(q="a"), end=None))
    call = find(session, "a")
    dead = "call 1 (tool find) has no outcome, it is in doubt"
    message = f"The recording ends here: its process died after call 1; {dead}."
    expected = Finding("ended early", of(source, call, 0), message, reason="recording ends")
    assert found(source, lambda: source.ended(call, "ok", 1)) == expected


def test_a_child_agent_that_ends_before_what_came_and_never_did() -> None:
    def act(bench: Bench) -> None:
        bench.begin(q="a")
        answered(bench, "b")

    source, session = replaying(record(act, end=None))
    call = find(session, "a")
    find(session, "b")
    message = "It ended here with status ok; when recorded it had no outcome."
    expected = Finding("changed", of(source, call, 0), message, reason="child")
    assert found(source, lambda: source.ended(call, "ok", 1)) == expected


def test_the_place_of_a_call_is_looked_for_while_it_can_be_found() -> None:
    source, session = replaying(record(_three))

    def made_here() -> Call:
        return session.engine.begin(
            CallSpec("tool", "find", {"q": "x"}, effect="read"), session.root, waits=True
        )

    call = made_here()
    finding = found(source, lambda: source.inline(call, lambda: None))
    assert finding.call is not None
    assert finding.call.src is not None
    assert finding.call.src.endswith("made_here")


# -- calls that came before their turn ------------------------------------------------------------------------------


def made(session: Session, q: str, place: str = "agent.py:1 run") -> Call:
    spec = CallSpec("tool", "find", {"q": q}, effect="read", src=place)
    return session.engine.begin(spec, session.root)


def _one_by_one(bench: Bench) -> None:
    for q in "abc":
        call = made(bench.session, q)
        arrival = Arrival("outcome", call, value={"for": q}, dur=6)
        arrival.usage = {"input": 3}
        bench.engine.deliver(arrival)


@pytest.mark.parametrize("awaited", [False, True])
def test_calls_in_another_order_are_answered_until_all_of_them_came(awaited: bool) -> None:
    source, session = replaying(record(_one_by_one))

    def answer(q: str) -> Arrival | None:
        call = made(session, q)
        if not awaited:
            return source.inline(call, lambda: None)
        source.want(call)
        return source.poll(None)

    for q in "cb":
        arrival = answer(q)
        assert arrival is not None
        assert (arrival.kind, arrival.status, arrival.tree) == ("outcome", "ok", {"for": q})
        assert (arrival.usage, arrival.dur) == ({"input": 3}, 6)
    finding = found(source, lambda: answer("a"))
    assert (finding.cls, finding.reason, finding.last) == ("reordered", "order", 3)


def test_the_first_of_two_calls_before_their_turn_says_what_is_missing() -> None:
    source, session = replaying(record(_one_by_one))
    made(session, "b")
    call = made(session, "c")
    finding = found(source, lambda: source.inline(call, lambda: None))
    assert finding.message.startswith(
        'find("a") was made here when recorded; now it is not. Now: find("b") at '
    )


def test_an_awaited_call_alone_is_judged_with_all_that_was_made_beside_it() -> None:
    """It is recorded twice and made in another place: what is missing is the other call of its window."""

    def act(bench: Bench) -> None:
        calls = [made(bench.session, q) for q in "ab"]
        for call in calls:
            outcome(bench, call)
        outcome(bench, made(bench.session, "b"))

    source, session = replaying(record(act))
    source.want(made(session, "b", "agent.py:9 run"))
    finding = found(source, lambda: source.poll(None))
    assert (finding.cls, finding.reason) == ("missing", "skipped")
    assert finding.message.startswith('find("a") was made here when recorded; now it is not.')


def test_what_was_used_comes_with_the_answer() -> None:
    source, session = replaying(record(_one_by_one))
    call = made(session, "a")
    arrival = source.inline(call, lambda: None)
    assert (arrival.usage, arrival.dur) == ({"input": 3}, 6)


# -- the same point -------------------------------------------------------------------------------------------------


def _ended_after_a_timer(status: Any) -> Callable[[Bench], object]:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        bench.engine.deliver(Arrival("timer", vt=5))
        bench.engine.end_by_agent(call, status)

    return act


def test_a_stream_may_be_closed_earlier_at_the_same_chunk() -> None:
    source, session = replaying(record(_ended_after_a_timer("closed")))
    source.cancel(find(session, "a"), "closed")
    assert source.poll(5) is not None
    source.finished("completed", None)
    assert source.complete


def test_a_call_is_cancelled_at_the_same_point() -> None:
    source, session = replaying(record(_ended_after_a_timer("cancelled")))
    call = find(session, "a")
    message = "Now cancelled; when recorded it was cancelled later."
    expected = Finding("changed", of(source, call, 0), message, reason="ended by the agent")
    assert found(source, lambda: source.cancel(call, "cancelled")) == expected


def test_a_call_that_was_cancelled_is_not_waited_for() -> None:
    act: Callable[[Bench], object] = lambda bench: bench.engine.end_by_agent(bench.begin(q="a"), "cancelled")  # noqa: E731
    source, session = replaying(record(act))
    call = find(session, "a")
    source.want(call)
    source.cancel(call, "cancelled")
    message = "The agent still waits; when recorded the run had ended here."
    assert found(source, lambda: source.poll(None)) == Finding("extra", None, message, reason="past the end")


@pytest.mark.parametrize("how", ["start", "start_blocking", "prepare_blocking", "want"])
def test_a_call_that_is_waited_for_gets_its_outcome(how: str) -> None:
    source, session = replaying(record(lambda bench: answered(bench, "a")))
    call = find(session, "a")
    never: Any = None
    if how == "want":
        source.want(call)
    else:
        getattr(source, how)(call, never)  # what would perform it is never asked
    arrival = source.poll(None)
    assert arrival is not None
    assert (arrival.kind, arrival.call) == ("outcome", call)
