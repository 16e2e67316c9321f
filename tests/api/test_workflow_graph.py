"""Edges, joins, choices and ways back: which steps run, how often, and what they see."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import agentloom
from agentloom import State, Trace, Workflow, goto
from agentloom.errors import WorkflowError
from agentloom.store import MemoryStore


def name_of(name: str) -> Any:
    """A step that gives its own name."""
    return lambda state: name


def ran(trace: Trace) -> list[str]:
    """The deterministic steps in the order in which they ran, decisions of ``when=`` left out."""
    return [
        str(entry["name"])
        for entry in trace.journal.entries
        if entry["kind"] == "state" and ":" not in str(entry["name"])
    ]


def run(graph: Workflow, given: object = "in") -> Trace:
    """Record a run and replay it."""
    trace = graph.run(given, store=MemoryStore())
    assert trace.replay().verdict == "identical"
    return trace


@agentloom.tool(effect="read")
async def turns(count: int) -> int:
    """Takes so many turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)
    return count


# -- branches and joins --------------------------------------------------------------------------------------------


def test_steps_after_the_same_step_are_branches_and_several_names_join_them() -> None:
    graph = Workflow().step("start", fn=name_of("start"))
    graph.step("slow", tool=turns, args={"count": 5}, after="start")
    graph.step("quick", fn=name_of("quick"), after="start")
    graph.step("join", fn=lambda state: [state.slow, state.quick], after=["slow", "quick"])
    trace = run(graph)
    assert trace.output == [5, "quick"]
    assert ran(trace) == ["start", "quick", "join"]


def test_branches_of_different_length_join_once() -> None:
    graph = Workflow().step("a", fn=name_of("a")).step("b", fn=name_of("b")).step("c", fn=name_of("c"))
    graph.step("d", fn=name_of("d"), after="a").step("e", fn=name_of("e"), after=["c", "d"])
    assert ran(run(graph)) == ["a", "b", "d", "c", "e"]


def test_a_branch_does_not_wait_for_another_one() -> None:
    graph = Workflow().step("long", tool=turns, args={"count": 50}, after=())
    graph.step("one", tool=turns, args={"count": 1}, after=()).step("two", fn=name_of("two"), after="one")
    trace = run(graph)
    order = [(entry["kind"], entry["call"]) for entry in trace.journal.entries if "call" in entry]
    assert order.index(("state", "root/workflow/two[0]#1")) < order.index(
        ("outcome", "root/workflow/long[0]#1")
    )
    assert trace.output == {"long": 50, "two": "two"}


def test_after_may_name_steps_that_are_defined_later() -> None:
    graph = Workflow().step("last", fn=lambda state: state.first + "!", after="first")
    assert run(graph.step("first", fn=name_of("first"), after=())).output == "first!"


def test_the_output_is_that_of_the_last_steps_that_ran() -> None:
    fork = Workflow().step("a", fn=name_of("a")).step("b", fn=name_of("b"))
    fork.step("c", fn=name_of("c"), after="a")
    assert run(fork).output == {"b": "b", "c": "c"}
    polished = Workflow().step("draft", fn=name_of("draft"))
    polished.step("polish", fn=name_of("polish"), when=lambda state: False)
    assert run(polished).output == "draft"
    nothing = Workflow().step("never", fn=name_of("x"), when=lambda state: False)
    assert run(nothing).output is None


# -- choices -------------------------------------------------------------------------------------------------------


def routed(choice: Any) -> Workflow:
    """Two ways, each of two steps, and a join."""
    graph = Workflow("routed").step("route", fn=lambda state: choice)
    graph.step("refund", fn=name_of("refund"), after="route").step("pay", fn=name_of("pay"))
    graph.step("person", fn=name_of("person"), after="route").step("mail", fn=name_of("mail"))
    return graph.step(
        "close", fn=lambda state: [name for name in state if name != "input"], after=["pay", "mail"]
    )


def test_a_choice_takes_one_way_and_the_join_waits_for_that_alone() -> None:
    trace = run(routed(goto("person")))
    assert ran(trace) == ["route", "person", "mail", "close"]
    assert trace.output == ["route", "person", "mail"]


def test_a_choice_is_recorded_with_what_was_not_taken() -> None:
    entry = next(entry for entry in run(routed(goto("person"))).journal.entries if entry["kind"] == "state")
    assert (entry["goto"], entry["others"]) == ("person", ["refund"])
    plain = next(entry for entry in run(routed("person")).journal.entries if entry["kind"] == "state")
    assert "goto" not in plain
    assert "others" not in plain


def test_a_text_is_a_value_and_takes_every_way() -> None:
    assert ran(run(routed("person"))) == ["route", "refund", "person", "pay", "mail", "close"]


def test_a_choice_may_pass_over_steps() -> None:
    trace = run(routed(goto("mail")))
    assert ran(trace) == ["route", "mail", "close"]
    decision = next(entry for entry in trace.journal.entries if entry["kind"] == "state")
    assert (decision["goto"], decision["others"]) == ("mail", ["refund", "person"])


def _given(value: object, state: State) -> object:
    return value


def test_the_result_of_a_choice_is_its_value_or_its_name() -> None:
    for given, result in ((goto("b"), "b"), (goto("b", {"why": 1}), {"why": 1}), (goto("b", None), None)):
        graph = Workflow().step("a", fn=partial(_given, given)).step("b", fn=lambda state: [state.a])
        assert run(graph).output == [result]


@pytest.mark.parametrize(
    ("choice", "message", "hint"),
    [
        ("nowhere", "step 'b' chose 'nowhere'; it may choose c, d", None),
        ("a", "step 'b' chose 'a'; it may choose c, d", 'loop={"a": 3}'),
        ("b", "step 'b' chose 'b'; it may choose c, d", 'loop={"b": 3}'),
    ],
)
def test_a_choice_of_another_step_lists_the_possible_ones(
    choice: str, message: str, hint: str | None
) -> None:
    graph = Workflow().step("a", fn=name_of("a")).step("b", fn=lambda state: goto(choice))
    graph.step("c", fn=name_of("c")).step("d", fn=name_of("d"))
    store = MemoryStore()
    with pytest.raises(WorkflowError) as caught:
        graph.run("in", store=store)
    assert caught.value.message == message
    assert (hint or "") in (caught.value.hint or "")
    assert Trace.open("last", store).replay(agent=graph).verdict == "identical"


def test_the_last_step_has_nothing_to_choose() -> None:
    with pytest.raises(WorkflowError, match="it may choose nothing: no step comes after it"):
        Workflow().step("a", fn=lambda state: goto("b")).run("in", store=MemoryStore())


def test_another_choice_on_replay_is_reported_with_both() -> None:
    choices = iter(["person", "refund"])
    graph = routed(None)
    other = Workflow("routed").step("route", fn=lambda state: goto(next(choices), "same"))
    other.step("refund", fn=name_of("refund"), after="route").step(
        "person", fn=name_of("person"), after="route"
    )
    report = other.run("in", store=MemoryStore()).replay(check=False)
    assert (report.verdict, report.finding and report.finding.reason) == ("diverged", "goto")
    assert "Step 'route' goes to 'refund' now; when recorded it went to 'person'." in str(report)
    assert "route.goto" in str(report)
    del graph


def test_no_choice_on_replay_where_there_was_one_is_reported() -> None:
    values = iter([goto("person", "x"), "x"])
    graph = Workflow("routed").step("route", fn=lambda state: next(values))
    graph.step("person", fn=name_of("person"))
    report = graph.run("in", store=MemoryStore()).replay(check=False)
    assert "Step 'route' goes on without a choice now; when recorded it went to 'person'." in str(report)


def test_only_a_deterministic_step_chooses() -> None:
    @agentloom.agent
    async def chooses() -> Any:
        return goto("b")

    graph = Workflow().step("a", agent=chooses).step("b", fn=name_of("b"))
    with pytest.raises(agentloom.LoomError, match="Goto"):
        graph.run("in", store=MemoryStore())


# -- when ----------------------------------------------------------------------------------------------------------


def conditional(wanted: bool) -> Workflow:
    graph = Workflow("conditional").step("draft", fn=name_of("draft"))
    graph.step("fix", fn=name_of("fix"), when=lambda state: wanted and state.draft == "draft")
    return graph.step("send", fn=lambda state: [state.get("fix"), "fix" in state, list(state)])


def test_when_skips_that_step_alone() -> None:
    assert run(conditional(True)).output == ["fix", True, ["input", "draft", "fix"]]
    assert run(conditional(False)).output == [None, False, ["input", "draft"]]


def test_when_is_recorded_and_compared() -> None:
    trace = run(conditional(False))
    entry = next(entry for entry in trace.journal.entries if entry.get("name") == "when:fix")
    assert trace.journal.tree(str(entry["val"])) is False
    assert entry["call"] == "root/conditional/fix[0]#1"
    report = trace.replay(agent=conditional(True), check=False)
    assert report.verdict == "diverged"
    assert "when:fix" in str(report)


def test_reading_a_step_that_did_not_run_says_why() -> None:
    graph = Workflow().step("fix", fn=name_of("fix"), when=lambda state: False)
    with pytest.raises(KeyError, match="'fix' has no result here: its when= was false"):
        graph.step("send", fn=lambda state: state["fix"]).run("in", store=MemoryStore())
    choice = routed(goto("person"))
    choice.step("last", fn=lambda state: state.pay)
    with pytest.raises(AttributeError, match="'pay' has no result here: step 'route' chose 'person'"):
        choice.run("in", store=MemoryStore())


@pytest.mark.parametrize(
    "given", [{"model": "m", "prompt": "About {fix}"}, {"tool": turns, "args": {"count": "{fix}"}}]
)
def test_a_text_that_names_a_step_that_was_skipped_is_an_error_with_a_remedy(given: dict[str, Any]) -> None:
    graph = Workflow("w").step("fix", fn=name_of("fix"), when=lambda state: False).step("ask", **given)
    with pytest.raises(
        WorkflowError, match=r"a text has \{fix\}, but 'fix' has no result here: its when="
    ) as caught:
        graph.run("in", store=MemoryStore())
    assert "in step 'ask' of workflow 'w'" in caught.value.__notes__
    assert caught.value.hint is not None
    assert "a function of the state" in caught.value.hint


def test_a_step_beside_is_not_seen() -> None:
    graph = Workflow().step("a", fn=name_of("a"), after=()).step("b", fn=lambda state: state["a"], after=())
    with pytest.raises(KeyError, match="step 'a' does not lead to step 'b'; name it in after= there"):
        graph.run("in", store=MemoryStore())


def test_when_is_a_plain_function() -> None:
    async def later(state: State) -> bool:
        return True

    with pytest.raises(WorkflowError, match="step 'a': when= is an async function"):
        Workflow().step("a", fn=name_of("a"), when=later).run("in", store=MemoryStore())


# -- loops ---------------------------------------------------------------------------------------------------------


def revised(rounds: int, bound: int = 3) -> Workflow:
    """Draft and review until the review is content."""
    graph = Workflow("revised")
    graph.step("draft", fn=lambda state: [state.visit, state.get("review"), state.get("draft")])
    graph.step("edit", fn=lambda state: state.draft[0])

    @graph.step("review", loop={"draft": bound})
    def review(state: State) -> Any:
        return goto("draft", f"no {state.edit}") if state.visit <= rounds else f"yes {state.edit}"

    assert review.__name__ == "review"
    return graph.step("send", fn=lambda state: [state.draft, state.review])


def test_a_way_back_runs_the_steps_between_again() -> None:
    trace = run(revised(2))
    assert ran(trace) == [*["draft", "edit", "review"] * 3, "send"]
    assert trace.output == [[3, "no 2", [2, "no 1", [1, None, None]]], "yes 3"]


def test_visits_have_segments_of_their_own() -> None:
    calls = [entry["call"] for entry in run(revised(1)).journal.entries if entry["kind"] == "state"]
    assert calls[:4] == [
        f"root/revised/{name}#1" for name in ("draft[0]", "edit[0]", "review[0]", "draft[1]")
    ]


def test_not_to_go_back_is_a_decision_too() -> None:
    decisions = [
        (entry.get("goto"), entry["others"])
        for entry in run(revised(1)).journal.entries
        if entry.get("name") == "review"
    ]
    assert decisions == [("draft", ["send"]), (None, ["draft"])]


def test_past_the_bound_is_an_error_that_names_step_target_and_bound() -> None:
    store = MemoryStore()
    with pytest.raises(WorkflowError) as caught:
        revised(9, 2).run("in", store=store)
    assert caught.value.message == (
        "step 'review' chose to go back to 'draft' for the 3rd time; loop= allows 2 times"
    )
    assert caught.value.hint is not None
    assert "state.visit is 3" in caught.value.hint
    assert (caught.value.fields["step"], caught.value.fields["target"]) == ("review", "draft")
    assert Trace.open("last", store).replay(agent=revised(9, 2)).verdict == "identical"
    assert run(revised(2, 2)).output[1] == "yes 3"


def test_a_step_may_repeat_itself() -> None:
    graph = Workflow().step(
        "poll", fn=lambda state: goto("poll", state.visit) if state.visit < 4 else "done", loop={"poll": 5}
    )
    trace = run(graph.step("end", fn=lambda state: state.poll))
    assert (ran(trace).count("poll"), trace.output) == (4, "done")


def test_what_was_chosen_in_the_visit_before_no_longer_holds() -> None:
    graph = Workflow().step("pick", fn=lambda state: goto("a" if state.visit == 1 else "b"))
    graph.step("a", fn=name_of("a"), after="pick").step("b", fn=name_of("b"), after="pick")
    graph.step(
        "check",
        fn=lambda state: goto("pick") if state.visit == 1 else list(state),
        after=["a", "b"],
        loop={"pick": 1},
    )
    trace = run(graph)
    assert ran(trace) == ["pick", "a", "check", "pick", "b", "check"]
    assert "a" not in trace.output
    assert "b" in trace.output


def test_a_step_that_chose_in_the_visit_before_need_not_choose_again() -> None:
    graph = Workflow().step("pick", fn=lambda state: goto("a") if state.visit == 1 else "both")
    graph.step("a", fn=name_of("a"), after="pick").step("b", fn=name_of("b"), after="pick")

    @graph.step("check", after=["a", "b"], loop={"pick": 1})
    def check(state: State) -> Any:
        return goto("pick") if state.visit == 1 else list(state)

    assert check.__name__ == "check"
    assert ran(run(graph)) == ["pick", "a", "check", "pick", "a", "b", "check"]


def test_a_way_back_may_lead_to_a_step_that_was_passed_over() -> None:
    graph = Workflow().step("start", fn=lambda state: goto("check"))
    graph.step("work", fn=name_of("work"))
    graph.step("check", fn=lambda state: goto("work") if state.visit == 1 else state.work, loop={"work": 1})
    assert ran(run(graph)) == ["start", "check", "work", "check"]


def test_a_loop_waits_for_what_runs_beside_it_and_starts_nothing_there() -> None:
    graph = Workflow().step("top", fn=name_of("top"))
    graph.step(
        "again", fn=lambda state: goto("top") if state.visit == 1 else "ok", after="top", loop={"top": 1}
    )
    graph.step("one", tool=turns, args={"count": 1}, after="top").step("two", fn=name_of("two"))
    graph.step("long", tool=turns, args={"count": 40}, after="top")
    trace = run(graph.step("join", fn=name_of("join"), after=["again", "two", "long"]))
    assert ran(trace) == ["top", "again", "top", "again", "two", "join"]
    assert [call.path for call in trace.calls].count("root/workflow/one[1]") == 1


def test_loops_within_loops() -> None:
    graph = Workflow().step("outer", fn=lambda state: state.visit)
    graph.step("inner", fn=lambda state: [state.outer, state.visit])
    graph.step("small", fn=lambda state: goto("inner") if state.visit in (1, 3) else "ok", loop={"inner": 2})
    graph.step(
        "large", fn=lambda state: goto("outer") if state.visit == 1 else state.inner, loop={"outer": 1}
    )
    trace = run(graph)
    assert ran(trace).count("inner") == 4
    assert trace.output == [2, 4]


def test_two_ways_back_at_once_make_one() -> None:
    def twice(state: State) -> Any:
        return goto("top") if state.visit == 1 else "ok"

    graph = Workflow().step("top", fn=name_of("top"))
    graph.step("left", fn=twice, after="top", loop={"top": 1}).step(
        "right", fn=twice, after="top", loop={"top": 1}
    )
    trace = run(graph.step("join", fn=name_of("join"), after=["left", "right"]))
    assert ran(trace) == ["top", "left", "right", "top", "left", "right", "join"]


def test_a_step_that_is_skipped_in_one_visit_may_run_in_another() -> None:
    graph = Workflow().step("a", fn=lambda state: state.visit)
    graph.step("b", fn=name_of("b"), when=lambda state: state.a == 2)
    graph.step(
        "c", fn=lambda state: goto("a", state.get("b")) if state.visit < 3 else state.get("b"), loop={"a": 2}
    )
    trace = run(graph)
    assert [entry["call"] for entry in trace.journal.entries if entry.get("name") == "b"] == [
        "root/workflow/b[1]#2"
    ]
    assert trace.output is None


# -- errors --------------------------------------------------------------------------------------------------------


def test_a_branch_that_fails_cancels_the_others_and_their_clean_up_is_recorded() -> None:
    cleaned: list[str] = []

    async def waits(state: State) -> str:
        try:
            await agentloom.sleep(30)
        finally:
            await turns(1)
            cleaned.append("yes")
        return "never"

    async def fails(state: State) -> str:
        await turns(3)
        raise ZeroDivisionError("boom")

    graph = Workflow("w").step("a", fn=name_of("a")).step("wait", fn=waits, after="a")
    graph.step("fail", fn=fails, after="a").step("join", fn=name_of("join"), after=["wait", "fail"])
    store = MemoryStore()
    with pytest.raises(ZeroDivisionError) as caught:
        graph.run("in", store=store)
    assert "in step 'fail' of workflow 'w'" in caught.value.__notes__
    trace = Trace.open("last", store)
    assert [(call.kind, call.status) for call in trace.calls] == [
        ("sleep", "cancelled"),
        ("tool", "ok"),
        ("tool", "ok"),
    ]
    assert trace.replay(agent=graph).verdict == "identical"
    assert cleaned == ["yes", "yes"]


def test_a_cancelled_run_cancels_every_branch() -> None:
    async def waits(state: State) -> None:
        await agentloom.sleep(30)

    graph = Workflow().step("a", fn=waits, after=()).step("b", fn=waits, after=())
    store = MemoryStore()

    async def main() -> None:
        run = asyncio.ensure_future(graph.arun("in", store=store))
        for _ in range(50):
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    trace = Trace.open("last", store)
    assert trace.status == "cancelled"
    assert [call.status for call in trace.calls] == ["cancelled", "cancelled"]
    assert trace.replay(agent=graph).verdict == "identical"
