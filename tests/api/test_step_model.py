"""Model steps: templates, fallbacks, typed results that the next steps get, streams, and what is wrong with a step."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agentloom import Retry, State, Template, Trace, Workflow, memory, sync
from agentloom.adapters import local
from agentloom.adapters.models import backend
from agentloom.errors import ModelError, OutputError, TemplateError, WorkflowError
from agentloom.events import Retried, Text
from agentloom.store import MemoryStore
from agentloom.testing import Fails, FakeProvider, Says, Wants

have_model = pytest.mark.skipif(bool(local.missing()), reason="the local model is not installed (ADR 0005)")


class Ticket(BaseModel):
    team: Literal["billing", "technical"]
    urgent: bool


GOOD = '{"team": "billing", "urgent": true}'


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def started(script: Any) -> Generator[FakeProvider]:
        with FakeProvider(script) as provider:
            for name, value in provider.env().items():
                monkeypatch.setenv(name, value)
            yield provider

    return started


def states(trace: Trace) -> dict[str, Any]:
    return {
        str(entry["name"]): trace.journal.tree(str(entry["val"]))
        for entry in trace.journal.entries
        if entry["kind"] == "state"
    }


# -- typed results -----------------------------------------------------------------------------------------------------


def test_a_typed_result_is_what_the_next_steps_get(fake: Any) -> None:
    graph = (
        Workflow("w")
        .step("sort", model="gpt-4o", output=Ticket)
        .step("team", fn=lambda state: state.sort.team.upper())
        .step("reply", model="gpt-4o", prompt="Answer for {sort}.")
    )
    with fake(["nonsense", GOOD, "done"]) as provider:
        trace = graph.run("help", store=MemoryStore())
        assert (
            provider.seen[2].body["messages"][0]["content"]
            == 'Answer for {"team": "billing", "urgent": true}.'
        )
    assert (trace.output, states(trace)["team"]) == ("done", "BILLING")
    assert trace.calls[1].id == "root/w/sort[0]#2"
    assert trace.replay().verdict == "identical"


def test_a_typed_result_can_be_the_output(fake: Any) -> None:
    with fake([GOOD]):
        trace = Workflow("w").step("sort", model="gpt-4o", output=Ticket).run("help", store=MemoryStore())
    assert trace.output == Ticket(team="billing", urgent=True)


def test_when_no_answer_is_right_the_step_is_named(fake: Any) -> None:
    with (
        fake(["a", "b", "c"]),
        pytest.raises(OutputError, match="gpt-4o gave no Ticket in 3 answers") as caught,
    ):
        Workflow("w").step("sort", model="gpt-4o", output=Ticket, repair=2).run("help", store=MemoryStore())
    assert "in step 'sort' of workflow 'w'" in caught.value.__notes__


def test_a_step_with_a_type_has_nobody_to_answer_tools(fake: Any) -> None:
    tools = [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    ]
    graph = Workflow("w").step("sort", model="gpt-4o", output=Ticket, tools=tools)
    with (
        fake([Says(tools=[Wants("look", {})])]),
        pytest.raises(OutputError, match=r"called tools \(look\)") as caught,
    ):
        graph.run("help", store=MemoryStore())
    assert caught.value.reason == "tool calls"


# -- fallbacks, retries, streams ---------------------------------------------------------------------------------------


def test_which_of_several_models_answered_is_in_the_state(fake: Any) -> None:
    graph = Workflow("w").step("ask", model=["gpt-4o", "claude-haiku-4-5"], retry=Retry(2, delay=0, jitter=0))
    with fake([Fails(500), Fails(500), "from the other"]):
        trace = graph.run("hi", store=MemoryStore())
    assert trace.output == "from the other"
    assert states(trace)["model:ask"] == "claude-haiku-4-5"
    assert trace.replay().verdict == "identical"


def test_one_model_writes_no_state(fake: Any) -> None:
    with fake(["x"]):
        assert states(Workflow("w").step("ask", model="gpt-4o").run("hi", store=MemoryStore())) == {}


def test_a_stream_that_breaks_is_tried_again_and_told_as_it_comes(fake: Any) -> None:
    graph = Workflow("w").step("ask", model="gpt-4o", stream=True, retry=Retry(2, delay=0, jitter=0))
    with fake([Says("one two three", break_after=2), Says("one two three")]):
        told = list(graph.stream_sync("hi", store=MemoryStore()))
    trace = told[-1].trace  # type: ignore[union-attr]
    retried = [event for event in told if isinstance(event, Retried)]
    assert [(event.attempt, event.delay, type(event.error)) for event in retried] == [(1, 0.0, ModelError)]
    whole = "".join(event.text for event in told[told.index(retried[0]) :] if isinstance(event, Text))
    assert whole == trace.output == "one two three"
    assert [call.status for call in trace.calls if call.kind == "model"] == ["error", "ok"]
    assert trace.replay().verdict == "identical"


def test_a_stream_may_have_a_type(fake: Any) -> None:
    graph = Workflow("w").step("sort", model="gpt-4o", output=Ticket, stream=True)
    with fake(["no", GOOD]):
        trace = graph.run("hi", store=MemoryStore())
    assert trace.output.urgent
    assert trace.replay().verdict == "identical"


# -- templates ---------------------------------------------------------------------------------------------------------


def test_the_variables_of_a_template_are_the_fields_that_it_names(fake: Any) -> None:
    graph = (
        Workflow("w")
        .step("name", fn=lambda state: "Ann")
        .step("order", fn=lambda state: 812)
        .step("unused", fn=lambda state: "x")
        .step("reply", model="gpt-4o", template="prompts/letter.md", system="Be kind.")
    )
    with fake(["ok"]) as provider:
        trace = graph.run("in", store=MemoryStore())
        sent = provider.seen[0].body["messages"]
    assert sent == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Dear Ann,\nyour order 812 is {late}.\n"},
    ]
    assert states(trace)["template:letter"]["variables"] == {"name": "Ann", "order": 812}
    entry = next(one for one in trace.journal.entries if one.get("name") == "template:letter")
    assert entry["reads"] == ["name", "order"]
    assert trace.replay().verdict == "identical"


def test_a_template_names_only_fields_that_there_are() -> None:
    graph = (
        Workflow("w")
        .step("name", fn=lambda state: "Ann")
        .step("reply", model="gpt-4o", template=Template("{nam}"))
    )
    with pytest.raises(
        WorkflowError, match=r"step 'reply': its template has \{nam\}; before it there are input, name"
    ):
        graph.build()


def test_a_template_can_ask_for_a_step_that_was_skipped(fake: Any) -> None:
    template = Template(
        "{% if more is defined %}{{ more }}{% else %}nothing{% endif %}", name="t", engine="jinja2"
    )
    graph = (
        Workflow("w")
        .step("more", fn=lambda state: "more", when=lambda state: False)
        .step("reply", model="gpt-4o", template=template)
    )
    with fake(["ok"]) as provider:
        graph.run("in", store=MemoryStore())
        assert provider.seen[0].body["messages"][0]["content"] == "nothing"


def test_in_braces_a_step_that_was_skipped_is_an_error_that_names_it() -> None:
    graph = (
        Workflow("w")
        .step("more", fn=lambda state: "more", when=lambda state: False)
        .step("reply", model="gpt-4o", template=Template("{input} {more}", name="t"))
    )
    with pytest.raises(TemplateError, match=r"template 't', line 1: \{more\} was not given") as caught:
        graph.run("in", store=MemoryStore())
    assert any(
        "the variables of its template are the fields of the state" in note for note in caught.value.__notes__
    )


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_in_steps_is_recorded_and_not_written_on_replay(fake: Any) -> None:
    async def recall(state: State) -> Any:
        return await memory.get(f"team of {state['input']}")

    def keep(state: State) -> int:
        sync.memory.put(f"team of {state['input']}", "billing")
        return len(sync.memory.search("team", 3))

    graph = Workflow("w").step("recall", fn=recall).step("keep", fn=keep)
    first = graph.run("Ann of test_step_model", store=MemoryStore())
    second = graph.run("Ann of test_step_model", store=MemoryStore())
    assert (states(first)["recall"], states(second)["recall"]) == (None, "billing")
    assert [call.name for call in first.calls] == ["get", "put", "search"]
    assert first.replay().verdict == second.replay().verdict == "identical"
    assert states(first)["recall"] is None


# -- what is wrong with a step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"output": 3}, "is no type that a model could answer with"),
        ({"output": Ticket, "repair": -1}, "repair=-1"),
        ({"output": Ticket, "response_format": {"type": "json_object"}}, "leave response_format= out"),
        ({"timeout": -2}, r"timeout=-2: seconds of each attempt"),
        ({"template": 3}, "template= takes a Template or the path of a file, not an int"),
    ],
)
def test_what_is_wrong_is_said_when_the_step_is_added(given: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkflowError, match=message) as caught:
        Workflow().step("ask", model="gpt-4o", **given)
    assert caught.value.fields["step"] == "ask"


def test_a_template_that_is_not_there() -> None:
    with pytest.raises(TemplateError, match=r"cannot be read from prompts/none\.md"):
        Workflow().step("ask", model="gpt-4o", template="prompts/none.md")


@have_model
@pytest.mark.model
def test_the_local_model_in_a_typed_step() -> None:
    graph = Workflow("w").step(
        "sort",
        model="local:smollm2",
        prompt="I was charged twice for order 812! Which team? {input}",
        output=Ticket,
        max_tokens=60,
        temperature=0,
        retry=2,
    )
    trace = graph.run("billing or technical", store=MemoryStore())
    assert isinstance(trace.output, Ticket)
    assert json.loads(trace.calls[0].result["content"])["team"] == trace.output.team
    backend.close()
    assert trace.replay().verdict == "identical"
