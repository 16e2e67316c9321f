"""The machinery of the suites, and the quick part of each: where its source distribution is in the cache already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types import Batch
from openai.types.chat import ChatCompletion

from agentloom.testing import FakeProvider
from tests.suites import run, scripted, sources
from tests.suites.known import KNOWN
from tests.suites.packages import SUITES
from tests.suites.public import EXAMPLES
from tests.suites.sdk_server import routes, sample


@pytest.mark.slow
@pytest.mark.parametrize("package", SUITES)
def test_the_quick_part_has_the_same_verdicts_recorded(package: str) -> None:
    suite = SUITES[package]
    try:
        (one,) = run.compare(suite, ["block"], suite.quick, download=False)
    except sources.NotHere as reason:
        pytest.skip(f"{reason}; python -m tests.suites.run {package} downloads it")
    assert one.unexplained == []
    assert one.functions > 5


def test_a_server_made_from_the_sdk_answers_what_the_sdk_expects() -> None:
    found = {(route.verb, route.path.pattern): route.answer for route in routes("openai")}
    assert found["POST", "/chat/completions"] is ChatCompletion
    assert found["GET", "/batches/[^/]+"] is Batch
    assert len(found) > 200
    assert ChatCompletion.model_validate(sample(ChatCompletion)).object == "chat.completion"


def test_a_schema_is_answered_with_its_smallest_value() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["city", "kind", "place", "counts", "sure"],
        "properties": {
            "city": {"type": "string"},
            "kind": {"enum": ["b", "a"]},
            "place": {"$ref": "#/$defs/Place"},
            "counts": {"type": "array", "items": {"type": "integer", "minimum": 4}, "minItems": 2},
            "sure": {"type": ["boolean", "null"]},
            "left out": {"type": "string"},
        },
        "$defs": {"Place": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
    }
    given = {"city": "Lisbon", "kind": "b", "place": 1.0, "counts": [4, 4], "sure": False}
    assert scripted.value_of(schema) == given


def test_the_scripted_model_calls_each_tool_once_and_then_answers() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    with (
        FakeProvider(scripted.reply) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="unused") as client,
    ):
        asked: Any = {"model": "m", "tools": [{"type": "function", "function": function}]}
        history: list[Any] = [{"role": "user", "content": "hi"}]
        first = client.chat.completions.create(messages=history, **asked).choices[0].message
        call = (first.tool_calls or [])[0]
        assert call.type == "function"
        assert json.loads(call.function.arguments) == {"n": 1}
        history += [first, {"role": "tool", "tool_call_id": call.id, "content": "1"}]
        second = client.chat.completions.create(messages=history, **asked).choices[0].message
        assert not second.tool_calls
        assert second.content


def test_a_verdict_that_differs_is_told_unless_a_reason_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {"a": {"verdict": "passed", "why": ""}, "b[1]": {"verdict": "passed", "why": ""}}
    recorded = {"a": {"verdict": "failed", "why": "E because"}, "b[1]": {"verdict": "passed", "why": ""}}
    one = run.Compared("some", "1", "block", bare, recorded)
    assert one.unexplained == [("a", "passed", "failed", "E because")]
    assert one.functions == 2
    monkeypatch.setitem(KNOWN, "some", (("^a$", "block", "by design"),))
    assert one.unexplained == []
    assert len(one.differing) == 1
    assert run.Compared("some", "1", "coroutine", bare, recorded).unexplained
    assert run.Compared("some", "1", "block", bare, {}).differing[-1][:3] == ("b[1]", "passed", "not run")


def test_what_is_not_in_the_cache_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM_SUITES", str(tmp_path))
    with pytest.raises(sources.NotHere, match=r"openai-1\.0\.tar\.gz is not in"):
        sources.source("openai", "1.0", download=False)
    with pytest.raises(sources.NotHere, match="respx"):
        sources.overlay("openai", ("respx",), download=False)


def test_every_example_has_a_name_of_its_own() -> None:
    assert len({one.name for one in EXAMPLES}) == len(EXAMPLES) >= 20
    assert len({one.framework for one in EXAMPLES}) == 8
