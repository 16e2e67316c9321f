"""Odd secrets in odd places: keys of mappings, UTF-16, escapes, overlaps, text that looks like a placeholder,
huge text."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom import agent, secrets, tool, use_secrets
from agentloom.errors import ValueRefused
from agentloom.format.placeholders import PLACEHOLDER, numbers_in, placeholder
from agentloom.format.values import decode, encode
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_rules import in_effect
from agentloom.store import MemoryStore
from tests.secrets.agent_places import places
from tests.secrets.shapes import SHAPES, core, make, unfolded

SEED = 20261128
GIVEN: dict[str, Any] = {}


@tool(effect="read")
def give(name: str) -> Any:
    return GIVEN[name]


@tool
def use(value: Any) -> Any:
    return value


@agent(guard="off")
def passes_on() -> Any:
    return use(give("value"))


def _recorded(value: Any) -> tuple[Any, bytes]:
    """The output of an agent that passes ``value`` on, as its replay has it, and the trace."""
    GIVEN["value"] = value
    trace = passes_on.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    return _numbered(trace.output), trace._data


def _numbered(value: Any) -> Any:
    """A value with its placeholders numbered from 1: the sources of this file hold secrets too."""
    text = json.dumps(value)
    numbers = {number: place for place, number in enumerate(dict.fromkeys(numbers_in(text)), start=1)}
    return json.loads(PLACEHOLDER.sub(lambda match: placeholder(numbers[int(match[1])]), text))


@pytest.fixture
def key() -> str:
    return make("openai", random.Random(SEED))


def _clean(data: bytes, secret: str) -> bool:
    return not any(secret.encode() in part for part in unfolded(data))


def test_random_secrets_in_random_places_are_redacted_alike_in_every_coding() -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    for _ in range(60):
        shape = rng.choice(SHAPES)
        secret = make(shape, rng)
        redactor = Redactor()
        redactor.tree(encode(f"first: {secret}"))
        mark = redactor.text(secret)
        kept = places(secret)
        for name in rng.sample(sorted(kept), 6):
            got = decode(redactor.tree(encode(kept[name])), None)
            assert got == places(mark)[name], (shape, name)
        assert _clean(json.dumps(redactor.tree(encode(kept))).encode(), core(shape, secret))


def test_a_payload_without_a_secret_is_the_very_same() -> None:
    tree = encode(
        {"messages": [{"role": "user", "content": "hello"}], "usage": {"max_tokens": 5}, "b": b"x" * 99}
    )
    assert Redactor().tree(tree) is tree


def test_what_is_redacted_is_not_redacted_again(key: str) -> None:
    redactor = Redactor()
    once = redactor.tree(encode(places(key)))
    assert redactor.tree(once) is once


def test_a_secret_that_contains_another() -> None:
    with use_secrets(secrets(values=["inner-77-value", "outer-inner-77-value-more"])):
        output, data = _recorded("a inner-77-value b outer-inner-77-value-more c")
    assert output == "a __redacted_1__ b __redacted_2__ c"
    assert b"77-" + b"value" not in data


def test_secrets_that_overlap_are_one() -> None:
    with use_secrets(secrets(values=["abcd-1234-efgh", "efgh-5678-ijkl"])):
        output, data = _recorded("x abcd-1234-efgh-5678-ijkl y")
    assert output == "x __redacted_1__ y"
    assert b"-1234" + b"-" not in data
    assert b"5678" + b"-ijkl" not in data


def test_text_that_looks_like_a_placeholder_keeps_its_number(key: str) -> None:
    redactor = Redactor()
    assert redactor.tree(encode({"mine": "__redacted_1__", "key": key})) == {
        "mine": "__redacted_1__",
        "key": "__redacted_2__",
    }


def test_numbers_and_other_types_give_way_as_a_whole() -> None:
    with use_secrets(secrets(values=["550e8400-e29b-41d4-a716-446655440000", "8237429001"])):
        import uuid

        output, data = _recorded([uuid.UUID("550e8400-e29b-41d4-a716-446655440000"), 8237429001, 5])
    assert output == ["__redacted_1__", "__redacted_2__", 5]
    assert b"8237429001" not in data


def test_telling_names() -> None:
    value = {"password": "hunter-22", "headers": {"Authorization": "Bearer abcdef-123456"}, "max_tokens": 10}
    value |= {"cookie": "none", "api_key": "$API_KEY", "page_token": "p-123456789"}
    value |= {"pairs": [["authorization", "tok-99887766"]]}
    output, data = _recorded(value)
    assert output["headers"] == {"Authorization": "Bearer __redacted_2__"}
    assert output["password"] == "__redacted_1__"
    assert (output["cookie"], output["api_key"], output["page_token"]) == ("none", "$API_KEY", "p-123456789")
    assert output["pairs"] == [["authorization", "__redacted_3__"]]
    assert b"hunter-22" not in data


def test_prose_and_code_are_left_alone() -> None:
    text = """The password is asked for. token = tokenizer.decode(ids)[0]; secret = hashlib.sha256(data).hexdigest()
    https://example.com:8080/a?page=2 user@example.com sk-learn key: value "authorization": null
    desk-lamp-abcdefghijklmnop 4f9c1f3a-7f1e-4b8e-9d57-0c2f6f1f9a11
    sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"""
    assert Redactor().text(text) is text


def test_values_that_are_too_common_are_refused() -> None:
    for value in ("abc", "password", "1234567", b"short"):
        with pytest.raises(ValueRefused, match="too short or too common"):
            secrets(values=[value])
    with pytest.raises(ValueRefused, match="no regular expression"):
        secrets(patterns=["("])
    with pytest.raises(ValueRefused, match="fits the empty text"):
        secrets(patterns=["x*"])
    with pytest.raises(ValueRefused, match="no path"):
        secrets(paths=["a..b"])


def test_paths_patterns_and_functions_of_users() -> None:
    def shouts(text: str) -> Iterator[tuple[int, int, str]]:
        for word in text.split():
            if word.isupper() and len(word) > 3:
                yield text.index(word), text.index(word) + len(word), "shout"

    rules = secrets(paths=["card.number", "people[].name"], patterns={"order": r"ORD-[0-9]{4}"}, find=shouts)
    value = {
        "card": {"number": "4111", "other": "4111"},
        "people": [{"name": "Ada"}],
        "text": "ORD-1234 é HELLO you",
    }
    with use_secrets(rules):
        output, data = _recorded(value)
    assert output["card"]["other"] == "4111"
    assert output["card"]["number"].startswith("__redacted_")
    assert output["people"][0]["name"].startswith("__redacted_")
    assert "ORD-1234" not in output["text"]
    assert "HELLO" not in output["text"]
    assert b'"paths":["card.number","people[].name"]' in data


def test_rules_of_the_trace_hold_on_replay() -> None:
    @agent(guard="off")
    def says() -> Any:
        return use("order ORD-1234")

    with use_secrets(secrets(patterns=[r"ORD-[0-9]{4}"])):
        trace = says.run(store=MemoryStore())
    assert b"ORD-1234" not in trace._data.replace(b'"order ORD-1234"', b"")
    assert trace.replay().verdict == "identical"


def test_a_history_with_a_secret_still_grows_by_what_is_added(key: str) -> None:
    class Model:
        def complete_sync(self, request: Any) -> Any:
            assert key in json.dumps(request["messages"])  # what is performed has the real one
            return {"content": f"answer {len(request['messages'])} " + "x" * 300, "tool_calls": []}

    from agentloom import set_backend, sync

    GIVEN["value"] = key

    @agent(guard="off")
    def talks(turns: int) -> int:
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": f"my key: {give('value')} " + "y" * 500}
        ]
        for turn in range(turns):
            answer = sync.model("m", messages)
            messages += [
                {"role": "assistant", "content": answer.text},
                {"role": "user", "content": f"next {turn} {give('value')}"},
            ]
        return len(messages)

    before = set_backend(Model())  # type: ignore[arg-type]
    try:
        sizes = []
        for turns in (10, 20):
            trace = talks.run(turns, store=MemoryStore())
            sizes.append(len(trace._data))
            assert key.encode() not in trace._data
            assert trace.replay().verdict == "identical"
    finally:
        set_backend(before)
    assert sizes[1] - sizes[0] < 0.75 * sizes[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["sk-", "eyJ-", "-----BEGIN PRIVATE KEY-----", "password=", "://", "AKIA", '"password": "', "a:b@",
    "%3A%2F%2F", "\\u002d", "QUtJQ"],
)  # fmt: skip
def test_huge_text_takes_bounded_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    Redactor().tree(text)
    assert time.process_time() - began < 6


def test_a_key_inside_a_megabyte_of_text_is_found(key: str) -> None:
    text = "word " * 300_000 + key + " word" * 300_000
    output, data = _recorded(text)
    assert len(output) == len(text) - len(key) + len("__redacted_1__")
    assert key.encode() not in data
    assert key.encode() not in b"".join(
        base64.b64decode(line.split(b'"data":"')[1][:-2])
        for line in data.split(b"\n")
        if b'"form":"bytes"' in line
    )


def test_a_real_key_on_the_replaying_machine_is_the_same_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("ACME_API_KEY", "recorded-8237429")
    monkeypatch.setenv("OTHER_API_KEY", "other-8237429")

    @agent(guard="off")
    def reads() -> Any:
        first = use(os.environ["OTHER_API_KEY"]) if GIVEN["first"] else ""
        return [first, use({"key": os.environ["ACME_API_KEY"], "again": [os.environ["ACME_API_KEY"]]})]

    GIVEN["first"] = True
    trace = reads.run(store=MemoryStore())
    assert list(numbers_in(json.dumps(_numbered(trace.output)))) == [1, 2, 2]
    monkeypatch.setenv("ACME_API_KEY", "another-99887766")
    monkeypatch.setenv("OTHER_API_KEY", "another-11223344")
    assert trace.replay().verdict == "identical"


def test_rules_in_effect_are_those_of_the_context() -> None:
    assert in_effect().values == {}
    with use_secrets(secrets(values=["inner-77-value"])), use_secrets(secrets(paths=["ssn"])):
        assert list(in_effect().values) == [b"inner-77-value"]
        assert in_effect().fields == (("ssn",),)
    assert in_effect().values == {}
