"""Typed outputs: what is asked for, how an answer is read, and what happens to a wrong one."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

import agentloom
from agentloom import Answer, Trace, TypedAnswer, agent, sync
from agentloom.adapters import local
from agentloom.adapters.models import backend
from agentloom.api.outputs import NotOfShape, shape_of
from agentloom.api.outputs_schema import is_strict
from agentloom.errors import AnswerError, OutputError, WorkflowError
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Wants

MODELS = ["gpt-4o", "claude-haiku-4-5"]
have_model = pytest.mark.skipif(bool(local.missing()), reason="the local model is not installed (ADR 0005)")


class Team(enum.Enum):
    BILLING = "billing"
    TECHNICAL = "technical"


class Item(BaseModel):
    """One thing that was bought."""

    name: str
    price: float = Field(gt=0, description="in dollars")


class Ticket(BaseModel):
    team: Team
    urgent: bool = False
    items: list[Item] = []

    @field_validator("items")
    @classmethod
    def few(cls, items: list[Item]) -> list[Item]:
        if len(items) > 2:
            raise ValueError("more than two items")
        return items


class Weight(BaseModel):
    grams: float | list[float]


@dataclasses.dataclass
class WeightData:
    grams: float


class Node(BaseModel):
    name: str
    below: list[Node] = []


@dataclasses.dataclass
class Point:
    x: int
    at: dt.date | None = None


class Pair(TypedDict):
    left: str
    right: int


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
GOOD = '{"team": "billing", "urgent": true, "items": [{"name": "ink", "price": 3.5}]}'
WRONG = '{"team": "sales", "urgent": true, "items": [{"name": "ink", "price": -1}]}'


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def started(script: Any) -> Generator[FakeProvider]:
        with FakeProvider(script) as provider:
            for name, value in provider.env().items():
                monkeypatch.setenv(name, value)
            yield provider

    return started


@agent(name="sorts")
async def sorts(model: str) -> Ticket:
    return (await agentloom.model(model, "sort this", output=Ticket)).value


@agent(name="sorts")
def sorts_sync(model: str) -> Ticket:
    return sync.model(model, "sort this", output=Ticket).value


# -- asked, answered, repaired -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("which", [sorts, sorts_sync])
def test_an_answer_of_the_type(fake: Any, model: str, which: Any) -> None:
    with fake([GOOD]) as provider:
        trace = which.run(model, store=MemoryStore())
        body = provider.seen[0].body
    assert trace.output == Ticket(team=Team.BILLING, urgent=True, items=[Item(name="ink", price=3.5)])
    sent = (
        body["response_format"]["json_schema"]["schema"]
        if model == "gpt-4o"
        else body["output_config"]["format"]["schema"]
    )
    assert sent["required"] == ["team", "urgent", "items"]
    item = sent["properties"]["items"]["items"]
    item = sent["$defs"]["Item"] if "$ref" in item else item
    assert item["properties"]["price"] == {
        "type": "number",
        "description": "in dollars (exclusiveMinimum: 0)",
    }
    assert trace.calls[0].request["response_format"]["json_schema"]["strict"] is True
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("which", [sorts, sorts_sync])
def test_a_wrong_answer_goes_back_with_what_is_wrong(fake: Any, model: str, which: Any) -> None:
    with fake([WRONG, GOOD]) as provider:
        trace = which.run(model, store=MemoryStore())
        messages = provider.seen[1].body["messages"]
    assert trace.output.team is Team.BILLING
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    told = messages[-1]["content"]
    told = told if isinstance(told, str) else told[0]["text"]
    assert "- team: Input should be 'billing' or 'technical'; it is \"sales\"" in told
    assert "- items[0].price: Input should be greater than 0; it is -1" in told
    assert [call.id for call in trace.calls] == ["root/sorts#1", "root/sorts#2"]
    assert all(
        call.usage and call.usage["input"] for call in trace.calls
    )  # the repair is a call like any other
    assert trace.replay().verdict == "identical"


def test_when_no_answer_is_right_the_error_says_what_was_wrong(fake: Any) -> None:
    store = MemoryStore()
    with fake(["no JSON at all", WRONG]), pytest.raises(OutputError) as caught:
        sorts.run("gpt-4o", store=store)
    error = caught.value
    assert str(error).startswith(
        "gpt-4o gave no Ticket in 2 answers: team: Input should be 'billing' or 'technical'"
    )
    assert (error.answers, error.reason, error.text, error.model) == (2, "invalid", WRONG, "gpt-4o")
    assert error.problems[1] == {
        "where": "items[0].price",
        "what": "Input should be greater than 0",
        "got": "-1",
    }
    trace = Trace.open(store=store)
    assert isinstance(trace.error, OutputError)
    assert trace.error.problems == error.problems
    assert trace.replay(agent=sorts).verdict == "identical"


def test_only_the_last_wrong_answer_goes_along(fake: Any) -> None:
    @agent
    async def patient() -> Any:
        return (await agentloom.model("gpt-4o", "sort", output=Ticket, repair=3)).value

    with fake(["one", "two", "three", GOOD]) as provider:
        assert patient.run(store=MemoryStore()).output.urgent
        assert [len(seen.body["messages"]) for seen in provider.seen] == [1, 3, 3, 3]
        assert provider.seen[3].body["messages"][1]["content"] == "three"


@pytest.mark.parametrize(
    ("reply", "reason", "message"),
    [
        (
            Says('{"team": "bil', finish="length"),
            "cut off",
            "cut off at the limit of tokens, after 13 characters",
        ),
        (
            Says("I cannot help with that.", finish="content_filter"),
            "refused",
            "the model refused: I cannot help",
        ),
    ],
)
def test_an_answer_that_asking_again_would_not_better_is_not_repaired(
    fake: Any, reply: Says, reason: str, message: str
) -> None:
    with fake([reply, GOOD]) as provider, pytest.raises(OutputError, match=message) as caught:
        sorts.run("gpt-4o", store=MemoryStore())
    assert (provider.count, caught.value.reason, caught.value.answers) == (1, reason, 1)


def test_an_empty_answer_is_told_so(fake: Any) -> None:
    with fake([Says(""), GOOD]) as provider:
        sorts.run("gpt-4o", store=MemoryStore())
        messages = provider.seen[1].body["messages"]
    assert [message["role"] for message in messages] == ["user", "user"]  # nobody takes an empty message
    assert "the answer is empty" in messages[1]["content"]


def test_without_repairs_one_answer_decides(fake: Any) -> None:
    @agent
    async def once() -> Any:
        return await agentloom.model("gpt-4o", "sort", output=Ticket, repair=0)

    with fake([WRONG, GOOD]) as provider, pytest.raises(OutputError, match="gpt-4o gave no Ticket: team"):
        once.run(store=MemoryStore())
    assert provider.count == 1


def test_an_answer_in_a_fence_is_read(fake: Any) -> None:
    with fake([f"```json\n{GOOD}\n```"]):
        assert sorts.run("gpt-4o", store=MemoryStore()).output.urgent


def test_an_answer_that_calls_tools_has_no_value_yet(fake: Any) -> None:
    tools = [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    ]

    @agent
    def loops() -> Ticket:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "sort"}]
        while True:
            answer = sync.model("gpt-4o", messages, output=Ticket, tools=tools)
            if not answer.tool_calls:
                return answer.value
            with pytest.raises(AnswerError, match=r"called tools \(look\), so there is no value yet"):
                _ = answer.value
            messages += [answer.message, answer.tool_calls[0].result("ink, 3.50")]

    with fake([Says(tools=[Wants("look", {})]), GOOD]):
        trace = loops.run(store=MemoryStore())
    assert trace.output.team is Team.BILLING
    assert trace.replay().verdict == "identical"


# -- kinds of types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (Team, '{"value": "billing"}', Team.BILLING),
        (Literal["yes", "no"], '{"value": "no"}', "no"),
        (bool, '{"value": true}', True),
        (int, '{"value": 7}', 7),
        (Annotated[int, Field(ge=1)], '{"value": 7}', 7),
        (list[Item], '{"value": [{"name": "ink", "price": 2}]}', [Item(name="ink", price=2)]),
        (Item | Point, '{"value": {"x": 1, "at": "2026-02-03"}}', Point(1, dt.date(2026, 2, 3))),
        (tuple[int, str], '{"value": [1, "a"]}', (1, "a")),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x": 1, "at": null}', Point(1)),
        (Pair, '{"left": "a", "right": 2}', {"left": "a", "right": 2}),
        (
            Node,
            '{"name": "a", "below": [{"name": "b", "below": []}]}',
            Node(name="a", below=[Node(name="b")]),
        ),
        (Decimal, '{"value": "1.10"}', Decimal("1.10")),
        (SCHEMA, '{"city": "Oslo", "people": 3}', {"city": "Oslo", "people": 3}),
        ({"enum": ["a", "b"]}, '{"value": "a"}', "a"),
        (
            {"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}},
            '{"value": [1]}',
            [1],
        ),
    ],
)
def test_what_can_be_asked_for(output: Any, text: str, value: Any) -> None:
    shape = shape_of(output)
    form = shape.response_format["json_schema"]
    assert shape.parse(text) == value
    assert type(shape.parse(text)) is type(value)
    assert form["schema"]["type"] == "object"  # providers want one at the root
    jsonschema.Draft202012Validator.check_schema(form["schema"])
    jsonschema.validate(json.loads(text), form["schema"])
    assert form.get("strict", False) == is_strict(form["schema"])


@pytest.mark.parametrize("output", [Ticket, Node, Point, Pair, Team, list[Item], bool, Item | Point])
def test_types_are_asked_for_strictly(output: Any) -> None:
    from openai.lib._pydantic import to_strict_json_schema  # the SDK's own rule

    schema = shape_of(output).response_format["json_schema"]["schema"]
    assert is_strict(schema)
    if isinstance(output, type) and issubclass(output, BaseModel):
        wanted = to_strict_json_schema(output)
        assert schema["required"] == wanted.get("required", schema["required"])
    text = json.dumps(schema)
    assert not [word for word in ("oneOf", "const", "title", "default", "allOf") if f'"{word}":' in text]


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (3, TypeError, "is no type that a model could answer with"),
        ({"type": "objekt"}, ValueError, "output= is no JSON Schema: type: 'objekt'"),
    ],
)
def test_what_cannot_be_asked_for(output: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        shape_of(output)


def test_a_schema_may_not_reach_into_the_network() -> None:
    shape = shape_of({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}})
    with pytest.raises(Exception, match=r"127\.0\.0\.1:9/a\.json"):
        shape.parse('{"a": 1}')


@pytest.mark.parametrize("text", ['{"city": "Oslo", "people": NaN}', '{"city": "Oslo"', "[" * 100_000])
def test_what_is_no_json_is_told_so(text: str) -> None:
    with pytest.raises(NotOfShape) as caught:
        shape_of(SCHEMA).parse(text)
    assert "it is not JSON" in caught.value.problems[0]["what"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries(
    {}, optional={"team": JSON, "urgent": JSON, "items": JSON, "city": JSON, "value": JSON}
)


@settings(max_examples=150)
@given(st.one_of(JSON, NEARLY), st.sampled_from([Ticket, Node, Team, Point, SCHEMA, {"enum": [1, 2]}]))
def test_any_answer_is_a_value_or_a_list_of_problems(answer: Any, output: Any) -> None:
    problems: list[dict[str, str]] = [{"where": "", "what": "nothing"}]
    try:
        shape_of(output).parse(json.dumps(answer))
    except NotOfShape as wrong:
        problems = wrong.problems
    assert problems
    for problem in problems:
        assert problem["what"]
        assert all(type(word) is str for word in problem.values())


def test_the_answer_is_an_answer_and_its_value_is_typed() -> None:
    answer: TypedAnswer[Ticket] = TypedAnswer({"content": GOOD}, Ticket.model_validate_json(GOOD))
    assert isinstance(answer, Answer)
    assert answer.text == GOOD
    assert answer.value.team is Team.BILLING
    assert answer == TypedAnswer({"content": GOOD}, Ticket.model_validate_json(GOOD))


# -- the local model, and a program without the packages ---------------------------------------------------------------


@have_model
@pytest.mark.model
def test_the_local_model_answers_by_the_schema() -> None:
    @agent
    def sorts_locally(text: str) -> Team:
        prompt = f"Is this for billing or technical? {text}"
        return sync.model("local:smollm2", prompt, output=Team, max_tokens=40, temperature=0).value

    trace = sorts_locally.run("I was charged twice.", store=MemoryStore())
    assert isinstance(trace.output, Team)
    backend.close()
    assert trace.replay().verdict == "identical"


def test_without_the_packages_it_says_what_to_install() -> None:
    program = """
import sys
sys.modules["pydantic"] = sys.modules["jsonschema"] = sys.modules["jinja2"] = None
import agentloom
from agentloom.api.outputs import shape_of
for output in (int, {"type": "object"}):
    try:
        shape_of(output)
    except agentloom.LoomError as error:
        print(type(error).__name__, error.message, error.hint)
try:
    agentloom.Template("{{ a }}", engine="jinja2").fields
except agentloom.LoomError as error:
    print(type(error).__name__, error.message, error.hint)
agentloom.Template("{a}").fill({"a": 1})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "NotSupported output=int needs the package pydantic pip install 'agentloom-runtime[outputs]'",
        "NotSupported a JSON Schema needs the package jsonschema pip install 'agentloom-runtime[outputs]'",
        "NotSupported a .j2 template needs the package jinja2 pip install 'agentloom-runtime[templates]'",
    ]


@pytest.mark.parametrize("output", [float, list[float], float | None, dict[str, float], Weight, WeightData])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_in_json_is_a_wrong_answer(output: Any, number: str) -> None:
    for text in (f'{{"value": {number}}}', f'{{"value": [{number}]}}', f'{{"grams": {number}}}'):
        with pytest.raises(NotOfShape):
            shape_of(output).parse(text)


@pytest.mark.parametrize("text", ['{"value": "NaN"}', '{"value": "-inf"}'])
@pytest.mark.parametrize("output", [float, float | None, dict[str, float]])
def test_nor_is_the_name_of_one(output: Any, text: str) -> None:
    with pytest.raises(NotOfShape) as caught:
        shape_of(output).parse(text)
    assert "finite" in caught.value.problems[0]["what"]


def test_a_key_twice_is_a_wrong_answer_that_goes_back(fake: Any) -> None:
    twice = '{"team": "sales", "team": "billing", "urgent": true}'
    with fake([twice, GOOD]) as provider:
        trace = sorts.run("gpt-4o", store=MemoryStore())
    assert trace.output.team is Team.BILLING
    said = provider.seen[1].body["messages"][-1]["content"]
    assert 'the key "team" is there twice in one object' in said
    assert trace.replay().verdict == "identical"
    with pytest.raises(NotOfShape):
        shape_of(SCHEMA).parse('{"city": "Oslo", "city": "Bergen", "people": 3}')


@pytest.mark.parametrize(
    "text", ["Here it is:\n```json\n{good}\n```", "```json\n{good}\n```\nAnything else?"]
)
def test_prose_around_a_fence_is_a_wrong_answer(fake: Any, text: str) -> None:
    with fake([text.replace("{good}", GOOD), GOOD]) as provider:
        assert sorts.run("gpt-4o", store=MemoryStore()).output.urgent
    assert provider.count == 2


class _Has:
    def method(self, team: str) -> str:
        return team


@pytest.mark.parametrize(
    "output",
    [
        lambda text: text,
        print,
        len,
        _Has().method,
        _Has.method,
        functools.partial(int, base=2),
        sorts,
        "Ticket",
        "int",
    ],
)
def test_a_function_or_a_name_is_no_type(output: Any) -> None:
    with pytest.raises(TypeError, match="output="):
        shape_of(output)
    with pytest.raises(WorkflowError, match="step 'a'.*output="):
        agentloom.Workflow().step("a", model="gpt-4o", output=output)
