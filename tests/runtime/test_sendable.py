"""Which part of a value JSON cannot carry."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentloom.sync
from agentloom import agent
from agentloom.errors import ValueRefused
from agentloom.runtime.sendable import first_unsendable
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider

HALF = "a\ud800b"


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        (HALF, "", r"character 2 is half of a surrogate pair (\ud800)"),
        ({"a": [{"b": "é" + HALF}]}, "a[0].b", "character 3 is half"),
        ({"a": {HALF: 1}}, r"a, key 'a\ud800b'", "character 2 is half"),
        ({"a": (1, math.nan)}, "a[1]", "nan is no number of JSON"),
        ({"a": {"b": -math.inf}}, "a.b", "-inf is no number"),
        ([b"x"], "[0]", "a bytes is no value of JSON"),
        ({"when": dt.date(2026, 1, 1)}, "when", "a date is no value of JSON"),
    ],
)
def test_the_part_is_named(value: object, where: str, why: str) -> None:
    found = first_unsendable(value)
    assert found is not None
    assert (found.path, why in found.why) == (where, True)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_nothing_is_found_just_where_json_can_be_written(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        assert first_unsendable(value) is not None
    else:
        assert first_unsendable(value) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"json": {"a": [HALF]}}, r"json\.a\[0\]: character 2"),
        ({"json": {"a": math.nan}}, r"json\.a: nan is no number"),
        ({"content": HALF}, "content: character 2"),
        ({"params": {"q": HALF}}, r"params\.q: character 2"),
        ({"headers": {"x-a": HALF}}, r"headers\.x-a: character 2"),
        ({"headers": {"x-a": "naïve"}}, "headers: a header holds ASCII only"),
    ],
)
def test_http_says_what_it_cannot_send(options: dict[str, Any], said: str) -> None:
    async def waits(url: str) -> object:
        return await agentloom.http("POST", url, **options)

    def blocks(url: str) -> object:
        return agentloom.sync.http("POST", url, **options)

    for function in (waits, blocks):
        store = MemoryStore()
        chosen = agent(function)
        with (
            FakeProvider() as fake,
            pytest.raises(ValueError, match=rf"http\(\) cannot send {said}") as caught,
        ):
            chosen.run(fake.openai_url, store=store)
        assert not isinstance(caught.value, UnicodeError)
        assert caught.value.__cause__ is None
        assert agentloom.Trace.open("last", store).replay(agent=chosen).verdict == "identical"


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda: agentloom.sync.model("gpt-4o" + HALF, "x"), "model"),
        (lambda: agentloom.sync.http("GET", "http://127.0.0.1/" + HALF), "url"),
        (lambda: agentloom.sync.env(HALF), r"env\(name\)"),
    ],
)
def test_what_a_call_is_listed_under_is_plain_text(call: Callable[[], object], path: str) -> None:
    with pytest.raises(ValueRefused, match=f"at {path}: str: character .* is half of a surrogate pair"):
        agent(name="asks")(call).run(store=MemoryStore())


def test_tools_get_and_give_any_text() -> None:
    @agentloom.tool
    def echo(text: str) -> str:
        return text + "\udfff"

    @agent
    def asks() -> list[str]:
        return [echo(HALF)]

    trace = asks.run(store=MemoryStore())
    assert trace.output == [HALF + "\udfff"]
    assert trace.replay().verdict == "identical"
