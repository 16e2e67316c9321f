from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Any

import pytest

from agentloom.errors import NotSupported, ValueRefused
from agentloom.runtime import profiles
from agentloom.runtime.changes import profile
from agentloom.runtime.profiles import (
    Profile,
    all_key,
    get,
    parts_of,
    plain_url,
    register,
    split,
    with_secrets,
)

CHAT: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "hello"}],
    "temperature": 0,
    "user": "u-1",
    "metadata": {"ticket": 9},
    "seed": 7,
}


@pytest.mark.parametrize("name", ["agentloom.model/1", "openai.chat/1"])
def test_a_chat_request_is_sorted_in_field_order(name: str) -> None:
    parts = split(get(name), CHAT)
    assert list(parts.key) == ["model", "messages", "temperature", "seed"]
    assert list(parts.noted) == ["user", "metadata"]
    assert parts.secret_paths == []
    assert parts.unknown == []


def test_values_are_not_copied() -> None:
    parts = split(get("agentloom.model/1"), CHAT)
    assert parts.key["messages"] is CHAT["messages"]
    assert parts.noted["metadata"] is CHAT["metadata"]


def test_the_plain_profile_keeps_everything_in_the_key() -> None:
    parts = split(get("plain/1"), {"b": 1, "api_key": "x", "user": "u"})
    assert parts.key == {"b": 1, "api_key": "x", "user": "u"}
    assert parts.unknown == []


def test_secrets_are_left_out_and_named() -> None:
    request = {
        **CHAT,
        "api_key": "sk-very-secret",
        "extra_headers": {"Authorization": "Bearer zzz", "x-trace": "1", "X-Api-Key": "yyy"},
        "base_url": "https://me:pass@host.example/v1",
    }
    parts = split(get("agentloom.model/1"), request)
    assert parts.secret_paths == [
        "api_key",
        "extra_headers.Authorization",
        "extra_headers.X-Api-Key",
        "base_url",
    ]
    assert parts.noted["extra_headers"] == {"x-trace": "1"}
    assert parts.noted["base_url"] == "https://host.example/v1"
    text = repr(parts)
    assert not any(secret in text for secret in ("sk-very-secret", "zzz", "yyy", "pass@"))
    assert request["extra_headers"] == {"Authorization": "Bearer zzz", "x-trace": "1", "X-Api-Key": "yyy"}


def test_secrets_come_back_for_performing() -> None:
    request = {**CHAT, "api_key": "sk-1", "extra_headers": {"Authorization": "Bearer zzz", "a": "b"}}
    parts = split(get("agentloom.model/1"), request)
    recorded = {**parts.key, **parts.noted}
    assert with_secrets(get("agentloom.model/1"), request, recorded) == request
    assert "api_key" not in recorded


def test_an_unknown_field_is_load_bearing_and_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "_named", set[tuple[str, str]]())
    with caplog.at_level(logging.WARNING, logger="agentloom.profiles"):
        first = split(get("agentloom.model/1"), {**CHAT, "brand_new": 1})
        second = split(get("agentloom.model/1"), {**CHAT, "brand_new": 2})
    assert first.unknown == second.unknown == ["brand_new"]
    assert second.key["brand_new"] == 2
    assert [record.getMessage() for record in caplog.records] == [
        "profile agentloom.model/1 does not know the field 'brand_new': it counts as load-bearing"
    ]


def test_http_keys_are_method_address_and_body() -> None:
    request = {
        "method": "GET",
        "url": "https://u:p@api.example/items?page_token=a&api_key=k1",
        "params": {"sort_key": "name", "token": "t"},
        "headers": {"Idempotency-Key": "i", "cookie": "c"},
        "timeout": 3,
        "json": {"a": 1},
        "auth": ("u", "p"),
    }
    parts = split(get("http/1"), request)
    assert parts.key == {
        "method": "GET",
        "url": "https://api.example/items?page_token=a&api_key=%2A%2A%2A",
        "params": {"sort_key": "name"},
        "json": {"a": 1},
    }
    assert parts.noted == {"headers": {"Idempotency-Key": "i"}, "timeout": 3}
    assert parts.secret_paths == ["url", "params.token", "headers.cookie", "auth"]
    assert with_secrets(get("http/1"), request, {**parts.key, **parts.noted}) == request


def test_an_address_without_secrets_is_the_same_object() -> None:
    url = "https://api.example/items?x=%20a&y=b+c#f"
    assert plain_url(url) is url


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(NotSupported, match=r"no profile 'future/9'"):
        split(get("future/9"), {})


def test_a_profile_can_be_added_but_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_PROFILES", dict(profiles._PROFILES))
    mine = Profile("my.api/1", key=frozenset(["q"]), noted=frozenset(["trace"]))
    register(mine)
    register(Profile("my.api/1", key=frozenset(["q"]), noted=frozenset(["trace"])))
    assert get("my.api/1") is not None
    assert split(get("my.api/1"), {"q": 1, "trace": 2}).noted == {"trace": 2}
    with pytest.raises(NotSupported, match="my.api/1 exists"):
        register(Profile("my.api/1"))


def test_the_rules_of_version_1_do_not_change() -> None:
    """A changed rule needs a new name: traces that exist were keyed by this one. Naming more key fields changes no key,
    for a field that is not known is one too."""
    sizes = {name: (len(p.noted), len(p.secret)) for name, p in sorted(profiles._PROFILES.items())}
    assert sizes == {
        "agentloom.model/1": (13, 1),
        "anthropic.messages/1": (5, 1),
        "google.embed/1": (3, 1),
        "google.generate/1": (3, 1),
        "http/1": (4, 3),
        "mcp/1": (2, 0),
        "openai.chat/1": (8, 1),
        "openai.completions/1": (8, 1),
        "openai.embeddings/1": (8, 1),
        "openai.responses/1": (8, 1),
        "plain/1": (0, 0),
        "tool/1": (0, 0),
    }
    for name in ("plain/1", "tool/1"):
        assert get(name).key is None
    first = {"model", "messages", "tools", "tool_choice", "temperature", "top_p", "seed", "response_format"}
    for name in ("agentloom.model/1", "openai.chat/1"):
        profile = get(name)
        assert profile.key is not None
        assert first <= profile.key
        assert not profile.key & (profile.noted | profile.secret)


# -- corners ----------------------------------------------------------------------------------------------------------


def test_an_address_keeps_all_but_its_secrets() -> None:
    assert plain_url("https://u:p@host.example/a?x=%20a#f") == "https://host.example/a?x=%20a#f"
    assert plain_url("https://u:p@w@host.example/") == "https://host.example/"
    assert plain_url("https://host.example/?a=&token=t&b=1") == "https://host.example/?a=&token=%2A%2A%2A&b=1"
    assert plain_url("https://host.example/?token=") == "https://host.example/?token=%2A%2A%2A"
    assert plain_url(None) is None


def test_a_refusal_says_what_to_do_and_of_which_profile() -> None:
    with pytest.raises(NotSupported) as caught:
        get("future/9")
    assert "known: agentloom.model/1, anthropic.messages/1, google.embed/1, " in str(caught.value)
    assert (caught.value.fields, "newer agentloom" in str(caught.value.hint)) == (
        {"profile": "future/9"},
        True,
    )
    with pytest.raises(NotSupported) as caught:
        register(Profile("plain/1", strict=True))
    assert (caught.value.fields, "new version" in str(caught.value.hint)) == ({"profile": "plain/1"}, True)


@pytest.mark.parametrize(
    ("rule", "names", "whole"),
    [
        (get("agentloom.model/1"), "model messages seed", True),
        (get("agentloom.model/1"), "model user", False),
        (get("agentloom.model/1"), "model api_key", False),
        (get("agentloom.model/1"), "model brand_new", False),
        (get("http/1"), "method url", False),
        (get("http/1"), "method json", True),
        (get("plain/1"), "anything user", True),
        (get("plain/1"), "", True),
        (Profile("x/1", scrub={"a": plain_url}), "a", False),
        (Profile("x/1", scrub={"a": plain_url}), "b", True),
        (profile("agentloom.model/1", normalise="whitespace"), "model", False),
        (profile("agentloom.model/1", noted=["metadata.a"]), "model", False),
        (profile("agentloom.model/1", strict=True), "model", True),
        (profile("agentloom.model/1", strict=True), "brand_new", False),
    ],
)
def test_a_request_of_load_bearing_fields_alone_is_known_as_one(
    rule: Profile, names: str, whole: bool
) -> None:
    request = dict.fromkeys(names.split(), 1)
    for _ in range(2):  # the second time it is remembered
        assert all_key(rule, request) is whole
    if whole:
        assert split(rule, request).key == request


def test_how_many_sets_of_names_are_remembered_is_bounded() -> None:
    rule = Profile("x/1")
    for number in range(100):
        assert all_key(rule, {f"field {number}": 1})
    assert rule.all_key == {(f"field {number}",) for number in range(64)}


def test_every_part_of_a_rule_takes_effect_by_itself() -> None:
    request = {"a": "https://u:p@host/", "b": {"c": 1, "d": 2}, "e": 3}
    assert split(Profile("x/1", noted=frozenset("e")), request).noted == {"e": 3}
    assert split(Profile("x/1", secret=frozenset("e")), request).key == {"a": request["a"], "b": request["b"]}
    assert split(Profile("x/1", scrub={"a": plain_url}), request).key["a"] == "https://host/"
    assert split(Profile("x/1", key=frozenset("ab")), request).unknown == ["e"]
    assert split(Profile("x/1", key=frozenset("ab"), strict=True), request).noted == {"e": 3}
    below = split(profile("plain/1", secret=["b.c"]), request)
    assert (below.key["b"], below.secret_paths) == ({"d": 2}, ["b"])
    plain = split(get("plain/1"), request)
    assert (plain.key, plain.noted, plain.secret_paths, plain.unknown) == (request, {}, [], [])


def test_spacing_counts_nowhere_in_the_key_where_the_rule_says_so() -> None:
    rule = profile("agentloom.model/1", normalise="whitespace")
    tree = {"model": " m ", "messages": [{"content": "a  b\n"}], "user": " u "}
    assert parts_of(rule, tree, "key") == {"model": "m", "messages": [{"content": "a b"}]}
    assert parts_of(rule, tree, "noted") == {"user": " u "}
    assert parts_of(get("agentloom.model/1"), tree, "key") == {"model": " m ", "messages": tree["messages"]}
    some = profile("agentloom.model/1", normalise={"messages": "whitespace"})
    assert parts_of(some, tree, "key") == {"model": " m ", "messages": [{"content": "a b"}]}


def test_what_is_taken_out_is_named_by_its_place() -> None:
    rule = Profile("x/1", scrub={"headers": lambda value: None})
    assert split(rule, {"headers": {"a": 1}}).secret_paths == ["headers"]
    with pytest.raises(ValueRefused, match=r"at args\.inner"):
        split(profile("tool/1", secret=["args.inner.real"]), {"args": {"inner": 3j}})


def test_secrets_go_back_only_where_some_were_taken_out() -> None:
    rule = get("http/1")
    made = {"url": "https://host/", "headers": MappingProxyType({"authorization": "b", "a": 1}), "auth": "x"}
    recorded = {"url": "as it was recorded", "headers": {"a": 1}}
    whole = with_secrets(rule, made, recorded)
    assert whole == {"url": "as it was recorded", "headers": {"authorization": "b", "a": 1}, "auth": "x"}
    assert type(whole["headers"]) is dict
    assert recorded == {"url": "as it was recorded", "headers": {"a": 1}}
