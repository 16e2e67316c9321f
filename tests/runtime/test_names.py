"""Names of a wrong type are refused where they are given, not where a trace can no longer be read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import agentloom
import agentloom.sync
from agentloom import Template, Workflow, agent, profile, tool, use_profiles
from agentloom.errors import ValueRefused
from agentloom.runtime.names import function_name, name_of
from agentloom.store import MemoryStore


def plain(x: int = 1) -> int:
    """A function."""
    return x


async def plain_async(x: int = 1) -> int:
    """A coroutine function."""
    return x


NUMBER: Any = 3
NOTHING: Any = None
MAKERS: list[Callable[[Any], object]] = [
    lambda name: agent(name=name)(plain),
    lambda name: agent(name=name)(plain_async),
    lambda name: tool(name=name)(plain),
    lambda name: tool(name=name)(plain_async),
    lambda name: Template("text", name=name),
    lambda name: Template.file("prompts/none.txt", name=name),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [3, 0, True, b"x", ["a"], 1.5])
def test_a_name_is_a_text(make: Callable[[Any], object], name: Any) -> None:
    with pytest.raises(TypeError, match=r"name=.*: the name of an? \w+ is a text, not an? "):
        make(name)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["", " ", "\t", "a\ud800"])
def test_a_name_can_be_listed(make: Callable[[Any], object], name: str) -> None:
    with pytest.raises(ValueError, match=r"the name of an? \w+ is a text that it can be listed under"):
        make(name)


@pytest.mark.parametrize("what", [3, "f", [1], {"a": 1}])
@pytest.mark.parametrize("make", [agent, tool, agent(name="a"), tool(name="a")])
def test_what_cannot_be_called_is_made_nothing_of(make: Callable[[Any], object], what: Any) -> None:
    with pytest.raises(TypeError, match=r"(an agent|a tool) is made of a function, not of an? "):
        make(what)


def test_what_has_no_name_of_its_own_is_given_one() -> None:
    bound = functools.partial(plain, x=3)
    with pytest.raises(TypeError, match="a partial has no name of its own: give a tool one with name="):
        tool(bound)
    assert function_name("a tool", bound, "three") == "three"
    assert function_name("a tool", plain) == "plain"
    assert name_of("a tool", "look up") == "look up"

    @agent
    def uses() -> int:
        return tool(name="three")(bound)()

    trace = uses.run(store=MemoryStore())
    assert [(call.kind, call.name) for call in trace.calls] == [("tool", "three")]
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize("profiles", [3, profile("http/1"), [3], ["http/1"], "http/1"])
def test_profiles_are_a_list_of_profiles(profiles: Any) -> None:
    for make in (lambda: agent(profiles=profiles)(plain), lambda: Workflow("w", profiles=profiles)):
        with pytest.raises(TypeError, match="profiles are a list of what profile"):
            make()


def test_use_profiles_takes_profiles() -> None:
    with pytest.raises(TypeError, match="an int is none"), use_profiles(NUMBER):
        pass


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"noted": 3}, "noted=3: give a list"),
        ({"noted": [3]}, "3 is no path: a path is a text"),
        ({"secret": [None]}, "None is no path"),
        ({"normalise": 3}, "normalise=3: 'whitespace', or a mapping"),
        ({"normalise": {3: "whitespace"}}, "3 is no path"),
    ],
)
def test_words_of_a_tool_and_a_profile(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        tool(**given)(plain)
    with pytest.raises(TypeError, match=said):
        profile("plain/1", **given)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: agentloom.sync.env(NUMBER), r"env\(\) takes the name of a variable, not an int"),
        (
            lambda: agentloom.sync.http(NUMBER, "http://127.0.0.1"),
            r"http\(\) takes the method as a text, not an int",
        ),
        (lambda: agentloom.sync.http("GET", NOTHING), r"http\(\) takes the url as a text, not None"),
        (lambda: agentloom.sync.model(NUMBER, "x"), "model takes the name of a model"),
        (lambda: agentloom.sync.model([], "x"), "model takes the name of a model"),
        (lambda: Template(NUMBER), "a template is made of a text, not of an int"),
    ],
)
def test_first_words_of_host_functions(call: Callable[[], object], said: str) -> None:
    @agent
    def asks() -> object:
        return call()

    store = MemoryStore()
    with pytest.raises(TypeError, match=said):
        asks.run(store=store)
    assert agentloom.Trace.open("last", store).calls == []


@pytest.mark.parametrize("tags", [3, "ab", ["a"], {3: "x"}, {"a": 3}])
def test_tags_are_texts_by_name(tags: Any) -> None:
    store = MemoryStore()
    for started in (agent(plain), Workflow("w").step("a", fn=lambda state: 1).agent()):
        with pytest.raises(ValueRefused, match="tags"):
            started.run(1, store=store, tags=tags)
    assert store.runs() == []
