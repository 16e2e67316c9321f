"""Profiles that users change: what counts, what is written, and that a replay goes by what was recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import agentloom
from agentloom import Workflow, agent, model, profile, sync, tool, use_profiles
from agentloom.errors import FormatError, NotSupported
from agentloom.format.journal import check
from agentloom.runtime.changes import change_of, changed, describe, in_effect, read_rule
from agentloom.runtime.profiles import Profile, get, parts_of, split
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider

MODEL = "agentloom.model/1"


class Echo:
    """Answers every request with its own number and keeps what it was asked."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.got.append(dict(request))
        return {"content": f"answer {len(self.got)}"}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.complete_sync(request)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    before = agentloom.set_backend(made)
    yield made
    agentloom.set_backend(before)


# -- the rule ---------------------------------------------------------------------------------------------------------


def test_fields_move_between_the_roles() -> None:
    rule = profile(MODEL, key=["user"], noted=["temperature", "x"], secret=["metadata"])
    request = {"model": "m", "user": "u", "temperature": 1, "x": 2, "metadata": {"a": 1}, "messages": []}
    parts = split(rule, request)
    assert (parts.key, parts.noted) == (
        {"model": "m", "user": "u", "messages": []},
        {"temperature": 1, "x": 2},
    )
    assert (parts.secret_paths, parts.unknown) == (["metadata"], [])


def test_a_strict_profile_is_an_allow_list_and_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rule = profile(MODEL, strict=True)
    assert list(split(rule, {"model": "m", "brand_new_here": 1}).noted) == ["brand_new_here"]
    assert not caplog.records
    arguments = profile("tool/1", strict=True, key=["args.order"])
    tree = {"args": {"order": 1, "trace": 2}}
    assert parts_of(arguments, tree, "key") == {"args": {"order": 1}}
    assert parts_of(arguments, tree, "noted") == {"args": {"trace": 2}}
    with pytest.raises(ValueError, match="needs key="):
        profile("tool/1", strict=True)


def test_the_name_says_the_change_and_only_that() -> None:
    one, two = profile(MODEL, noted=["a", "b"]), profile(MODEL, noted=["b", "a"])
    assert one is two
    assert one.name.startswith(f"{MODEL}+")
    assert (
        len({one.name, profile(MODEL, noted=["a"]).name, profile("http/1", noted=["a", "b"]).name, MODEL})
        == 4
    )
    assert (one.family, get(MODEL).family) == (MODEL, MODEL)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"noted": ["a"], "key": ["a"]}, ValueError, "cannot be key and noted"),
        ({"noted": ["a..b"]}, ValueError, "no path"),
        ({"noted": "user"}, TypeError, r"noted=\['user'\]"),
        ({"key": ["api_key"]}, ValueError, "stays so"),
        ({"noted": ["api_key.part"]}, ValueError, "stays so"),
        ({"normalise": "case"}, ValueError, "whitespace"),
        ({"normalise": {"a[": "whitespace"}}, ValueError, "no path"),
    ],
)
def test_rules_that_cannot_be_are_refused(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        profile(MODEL, **options)


def test_an_unknown_profile_cannot_be_changed() -> None:
    with pytest.raises(NotSupported, match="no profile 'models/1'"):
        profile("models/1")


def test_changes_of_changes_add_up_and_the_later_one_holds_but_for_secrets() -> None:
    first = profile(MODEL, noted=["a"], secret=["s"])
    both = changed(first, change_of(key=["a", "s"], noted=["b"], normalise="whitespace"))
    assert (both.role("a"), both.role("b"), both.role("s"), both.collapse) == ("key", "noted", "secret", True)
    assert both is changed(
        get(MODEL), change_of(key=["a"], noted=["b"], secret=["s"], normalise="whitespace")
    )


def test_a_rule_is_read_back_as_it_was() -> None:
    made = profile(
        MODEL, noted=["metadata.x"], secret=["s"], strict=True, normalise={"messages": "whitespace"}
    )
    again = read_rule(made.name, made.rule)
    assert replace(again, places=None) == replace(made, places=None)
    tree = {"metadata": {"x": 1, "y": 2}, "messages": ["a  b"], "other": 1}
    for role in ("key", "noted"):
        assert parts_of(again, tree, role) == parts_of(made, tree, role)
    assert read_rule("tool/1+00000000", {"base": "tool/1"}).name == "tool/1+00000000"


@pytest.mark.parametrize(
    "rule", [None, [], {}, {"base": 1}, {"base": "tool/1", "noted": "x"}, {"base": "tool/1", "noted": [1]}]
)
def test_a_malformed_rule_is_an_error_that_names_the_profile(rule: Any) -> None:
    with pytest.raises(FormatError, match=r"tool/1\+x"):
        read_rule("tool/1+x", rule)


def test_a_rule_of_the_future_is_refused() -> None:
    with pytest.raises(NotSupported, match="sorted_by, which this version does not know"):
        read_rule("tool/1+x", {"base": "tool/1", "sorted_by": 1})


def test_a_profile_in_words() -> None:
    assert describe(get("tool/1")) == "tool/1 unchanged"
    made = profile(
        "tool/1", noted=["args.a", "args.b"], strict=True, key=["args"], normalise={"args.c": "whitespace"}
    )
    assert describe(made) == "tool/1 with key args; noted args.a, args.b; strict; spacing of args.c"


# -- where it holds ---------------------------------------------------------------------------------------------------


def test_blocks_nest_and_end() -> None:
    outer, inner = profile(MODEL, noted=["a"]), profile(MODEL, noted=["b"])
    with use_profiles(outer):
        with use_profiles(inner, profile("http/1", noted=["x"])):
            held = in_effect(MODEL, None)
            assert (held.role("a"), held.role("b"), in_effect("http/1", None).role("x")) == (
                "noted",
                "noted",
                "noted",
            )
        assert in_effect(MODEL, None) is outer
    assert in_effect(MODEL, None) is get(MODEL)


NOW: dict[str, Any] = {}


@agent(profiles=[profile(MODEL, noted=["request_tag"])])
async def inside() -> str:
    answers = await asyncio.gather(*(_asks(n) for n in range(3)))
    return " ".join(answers)


async def _asks(n: int) -> str:
    return str(await model("m", f"question {n}", request_tag=NOW["tag"]))


@agent(profiles=[profile(MODEL, noted=["request_tag"])])
def threads() -> str:
    answers = sync.parallel(
        *(lambda n=n: str(sync.model("m", f"question {n}", request_tag=NOW["tag"])) for n in range(3))
    )
    return " ".join(answers)


@agent
async def around() -> str:
    first = await inside()
    with use_profiles(profile(MODEL, noted=["request_tag"])):
        second = await _asks(9)
    return f"{first} {second}"


@pytest.mark.parametrize("program", [inside, threads, around], ids=["tasks", "threads", "child and block"])
def test_a_noted_field_may_differ_and_is_reported(program: Any, echo: Echo) -> None:
    NOW["tag"] = "first"
    trace = program.run(store=MemoryStore())
    assert check(trace.journal and trace._data).ok
    assert trace.replay().verdict == "identical"
    NOW["tag"] = "second"
    report = trace.replay()
    models = sum(call.kind == "model" for call in trace.calls)
    assert (report.verdict, len(report.noted)) == ("identical except noted", models)
    assert report.noted[0].comparison.items[0].path == "request_tag"
    assert [one["request_tag"] for one in echo.got] == ["first"] * models


def test_a_workflow_has_profiles_and_its_parts_have_them_too(echo: Echo) -> None:
    @agent
    async def asks() -> str:
        return await _asks(1)

    part = Workflow("part").step("asks", agent=asks, args={})
    whole = Workflow("whole", profiles=[profile(MODEL, noted=["request_tag"])])
    whole.step("part", workflow=part).step("last", agent=asks, args={})
    NOW["tag"] = "first"
    trace = whole.run("x", store=MemoryStore())
    NOW["tag"] = "second"
    report = trace.replay()
    assert (report.verdict, len(report.noted)) == ("identical except noted", 2)


def test_a_block_around_a_run_holds_in_it_and_in_its_replay(echo: Echo) -> None:
    @agent
    async def asks() -> str:
        return await _asks(1)

    NOW["tag"] = "first"
    with use_profiles(profile(MODEL, noted=["request_tag"])):
        trace = asks.run(store=MemoryStore())
    NOW["tag"] = "second"
    report = trace.replay()  # by the recorded rule, though nothing says so here
    assert report.verdict == "identical except noted"
    was = f"the profile of model m was {MODEL} with noted request_tag; the program says {MODEL} unchanged"
    assert f"{was}. Compared by the recorded one; record again to use the other" in report.notes


def test_a_rule_that_the_recording_did_not_have_does_not_hold(echo: Echo) -> None:
    @agent
    async def asks() -> str:
        return await _asks(1)

    NOW["tag"] = "first"
    trace = asks.run(store=MemoryStore())
    NOW["tag"] = "second"
    with use_profiles(profile(MODEL, noted=["request_tag"])):
        report = trace.replay(check=False)
    assert report.verdict == "diverged"
    assert "Compared by the recorded one" in report.notes[0]


def test_spacing_does_not_count_where_a_rule_says_so_and_is_shown(echo: Echo) -> None:
    texts = iter(["Answer\n  in one  sentence.", "Answer in one sentence. ", "Answer in two sentences."])

    @agent(profiles=[profile(MODEL, normalise={"messages": "whitespace"})])
    async def asks() -> str:
        return str(await model("m", [{"role": "user", "content": next(texts)}]))

    trace = asks.run(store=MemoryStore())
    assert echo.got[0]["messages"][0]["content"] == "Answer\n  in one  sentence.", (
        "it is sent and kept as it was written"
    )
    report = trace.replay()
    assert report.verdict == "identical except noted"
    assert report.noted[0].comparison.items[0].path == "messages[0].content"
    assert trace.replay(check=False).verdict == "diverged"


def test_spacing_counts_unless_a_rule_says_otherwise(echo: Echo) -> None:
    texts = iter(["a b", "a  b"])

    @agent
    async def asks() -> str:
        return str(await model("m", next(texts)))

    assert asks.run(store=MemoryStore()).replay(check=False).verdict == "diverged"


def test_a_history_that_grows_keeps_its_rule(echo: Echo) -> None:
    """The quick way for growing lists, beside one whose items have noted parts."""

    @agent(profiles=[profile(MODEL, noted=["messages[].stamp"])])
    async def talks() -> None:
        messages: list[dict[str, Any]] = []
        for n in range(6):
            messages.append({"role": "user", "content": f"q{n}", "stamp": f"{NOW['tag']}{n}"})
            messages.append({"role": "assistant", "content": str(await model("m", messages))})

    NOW["tag"] = "a"
    trace = talks.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    NOW["tag"] = "b"
    report = trace.replay()
    assert (report.verdict, report.counts.noted) == ("identical except noted", 6)
    assert {item.path for item in report.noted[1].comparison.items} == {
        "messages[0].stamp",
        "messages[2].stamp",
    }


# -- tools ------------------------------------------------------------------------------------------------------------

SEEN: list[Any] = []
SECRET = "".join(reversed("elbaecarten-x7q"))  # in no source, for sources are part of a trace


@tool(noted=["request_id"], secret=["password", "options.token"], normalise={"text": "whitespace"})
def send(text: str, request_id: str, password: str, options: dict[str, Any]) -> str:
    SEEN.append((text, request_id, password, options))
    return "sent"


@tool(effect="read", noted=["trace"])
async def look(order: int, **more: Any) -> int:
    SEEN.append((order, more))
    return order


def test_arguments_of_a_tool_are_noted_secret_or_without_spacing() -> None:
    @agent
    async def sends() -> str:
        given = {"token": NOW["token"], "retries": 2}
        sent = send(NOW["text"], NOW["id"], password=NOW["password"], options=given)
        return f"{sent} {await look(1, trace=NOW['id'])}"

    SEEN.clear()
    NOW.update(text="to  be", id="r-1", password=SECRET + "2", token=SECRET + "3")
    trace = sends.run(store=MemoryStore())
    assert SEEN == [
        ("to  be", "r-1", SECRET + "2", {"token": SECRET + "3", "retries": 2}),
        (1, {"trace": "r-1"}),
    ]
    assert SECRET.encode() not in trace._data
    assert trace.calls[0].request["args"] == {
        "text": "to  be",
        "request_id": "r-1",
        "options": {"retries": 2},
    }
    NOW.update(text="to be", id="r-2", password="another")
    report = trace.replay()
    assert report.verdict == "identical except noted"
    assert [[item.path for item in one.comparison.items] for one in report.noted] == [
        ["args.text", "args.request_id"],
        ["args.more.trace"],
    ]
    assert len(SEEN) == 2
    NOW["text"] = "or not to be"
    found = trace.replay(check=False).finding
    assert found is not None
    assert found.comparison is not None
    assert [item.path for item in found.comparison.items] == ["args.text"], "noted differences are no cause"


def test_rules_for_all_tools_and_those_of_a_tool_add_up() -> None:
    @agent(profiles=[profile("tool/1", noted=["args.text"])])
    def sends() -> str:
        return send(NOW["text"], NOW["id"], "p", {})

    NOW.update(text="a", id="1")
    trace = sends.run(store=MemoryStore())
    NOW.update(text="b", id="2")
    assert len(trace.replay().noted[0].comparison.items) == 2


def test_an_argument_that_a_tool_does_not_have_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ValueError, match=r"tool send has no argument 'requestid' \(noted\); it has text"):
        tool(noted=["requestid"])(_plain("send"))
    with pytest.raises(TypeError, match=r"secret=\['text'\]"):
        tool(secret="text")(_plain("send"))


def _plain(name: str) -> Callable[[str], str]:
    def function(text: str) -> str:
        return text

    function.__name__ = name
    return function


def test_another_effect_is_reported_with_words() -> None:
    made: dict[str, Any] = {"look": tool(effect="read")(_plain("look"))}

    @agent
    def looks() -> str:
        return str(made["look"]("a"))

    trace = looks.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    made["look"] = tool(effect="write")(_plain("look"))
    report = trace.replay()
    assert report.verdict == "identical except noted"
    item = report.noted[0].comparison.items[0]
    assert (item.path, item.recorded, item.now) == ("effect", "read", "write")
    assert "tool look was recorded with effect read and is declared write now" in str(report)
    assert report.exit_code() == 0
    assert report.exit_code(strict_noted=True) == 3


# -- http -------------------------------------------------------------------------------------------------------------


def test_parts_of_an_http_request() -> None:
    rule = profile("http/1", key=["headers.X-Tenant"], noted=["json.request_id"], secret=["json.pin"])

    @agent(profiles=[rule])
    async def posts() -> int:
        body = {"q": 1, "request_id": NOW["id"], "pin": SECRET}
        headers = {"x-tenant": NOW["tenant"], "x-trace": NOW["id"]}
        answer = await agentloom.http("POST", NOW["url"], json=body, headers=headers)
        return int(answer["status"])

    with FakeProvider([]) as server:
        NOW.update(url=f"{server.url}/nowhere", id="a", tenant="t")
        trace = posts.run(store=MemoryStore())
    assert SECRET.encode() not in trace._data
    NOW["id"] = "b"
    report = trace.replay()
    assert report.verdict == "identical except noted"
    assert {item.path for item in report.noted[0].comparison.items} == {"json.request_id", "headers.x-trace"}
    NOW["tenant"] = "other"
    assert trace.replay(check=False).verdict == "diverged"


def test_what_can_be_said_of_a_profile_is_public() -> None:
    assert isinstance(profile(MODEL), Profile)
    assert {"profile", "use_profiles"} <= set(agentloom.__all__)
