"""Ids that are minted afresh: paired by first appearance."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.runtime.minted import align_ids

OLD = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
NEW = "1c9f2f4e-0b1d-4f6a-8a53-0f7b2b8f2b11"


def _messages(*ids: str) -> dict[str, Any]:
    return {"messages": [{"id": one, "content": f"about {one}"} for one in ids], "other": ids[0]}


def test_ids_take_the_place_of_those_that_stood_there() -> None:
    now, then = _messages(NEW, "call_abcdef1"), _messages(OLD, "call_ghijkl2")
    aligned = align_ids(["messages"], now, then)
    assert [one["id"] for one in aligned["messages"]] == [OLD, "call_ghijkl2"]
    assert aligned["messages"][0]["content"] == f"about {NEW}", "only fields of ids are renamed, not texts"
    assert aligned["other"] == NEW, "and only where the profile says so"
    assert now["messages"][0]["id"] == NEW


def test_an_id_that_pairs_with_another_result_now_still_does() -> None:
    then = {"messages": [{"id": "call_aaaaaa"}, {"id": "call_bbbbbb"}, {"tool_call_id": "call_aaaaaa"}]}
    crossed = {"messages": [{"id": "call_cccccc"}, {"id": "call_dddddd"}, {"tool_call_id": "call_dddddd"}]}
    assert align_ids(["messages"], crossed, then) != then


def test_one_id_for_two_is_not_two() -> None:
    then = {"messages": [{"id": "call_aaaaaa"}, {"id": "call_bbbbbb"}]}
    one = {"messages": [{"id": "call_cccccc"}, {"id": "call_cccccc"}]}
    assert align_ids(["messages"], one, then) != then


def _ids(fields: dict[str, Any]) -> list[str]:
    return [str(one["id"]) for one in fields["messages"]]


def test_ids_that_are_the_same_now_stay_and_only_fresh_ones_are_paired_in_order() -> None:
    then, now = (
        _messages("call_kept00", "call_old111", "call_old222"),
        _messages("call_new222", "call_kept00", "call_new111"),
    )
    assert _ids(align_ids(["messages"], now, then)) == ["call_old111", "call_kept00", "call_old222"]
    same = align_ids(["messages"], then, then)
    assert same == then
    assert same["messages"] is then["messages"]


def test_an_id_more_or_less_has_no_partner() -> None:
    then, now = _messages("call_old111"), _messages("call_new111", "call_new222")
    assert _ids(align_ids(["messages"], now, then)) == ["call_old111", "call_new222"]
    assert _ids(align_ids(["messages"], then, now)) == ["call_new111"]


def test_a_field_that_only_one_request_has_is_left_as_it_is() -> None:
    now: dict[str, Any] = {**_messages(NEW), "extra": [{"id": NEW}]}
    then: dict[str, Any] = {**_messages(OLD), "more": [{"id": OLD}]}
    aligned = align_ids(["extra", "more", "messages"], now, then)
    assert list(aligned) == ["messages", "other", "extra"]
    assert (aligned["extra"], _ids(aligned)) == ([{"id": NEW}], [OLD])


NAMES = [f"call_zzzzz{number}" for number in range(1, 6)]


def renamed(tree: Any) -> Any:
    """``tree`` with its minted ids by the names of their first appearance."""
    return align_ids(["tree"], {"tree": tree}, {"tree": [{"id": name} for name in NAMES]})["tree"]


@pytest.mark.parametrize("name", ["id", "tool_call_id", "tool_use_id", "call_id"])
@pytest.mark.parametrize(
    "value",
    [
        *(f"{kind}_abc123" for kind in "call toolu tool msg run chatcmpl fc rs resp srvtoolu lc_run pyd_ai".split()),
        "call-abc-12", "call__ab12cd", OLD, f"lc_run--{OLD}", f"run-{OLD}",
    ],
)  # fmt: skip
def test_what_looks_minted_in_a_field_of_ids_is_renamed(name: str, value: str) -> None:
    assert renamed({name: value, "text": value}) == {name: NAMES[0], "text": value}


@pytest.mark.parametrize(
    "value", ["call_abc12", "call_", "order_abc123", "Call_abc123", OLD[:-1], f"{OLD}0", f"A-{OLD}", 5]
)
def test_what_does_not_look_minted_is_kept(value: Any) -> None:
    tree = {"id": value}
    assert renamed(tree) is tree


def test_ids_are_numbered_by_first_appearance_at_any_depth() -> None:
    one, two = {"id": "call_aaaaaa"}, {"call_id": "call_bbbbbb", "kept": [1]}
    tree = [[one], {"deep": {"x": [two, one]}}, "call_aaaaaa"]
    found = renamed(tree)
    assert found == [
        [{"id": NAMES[0]}],
        {"deep": {"x": [{"call_id": NAMES[1], "kept": [1]}, {"id": NAMES[0]}]}},
        "call_aaaaaa",
    ]
    assert found[1]["deep"]["x"][0]["kept"] is two["kept"]
    assert (one, two["call_id"]) == ({"id": "call_aaaaaa"}, "call_bbbbbb")
    nested = {"id": {"id": "call_cccccc"}, "items": [1, 2]}
    assert renamed(nested) == {"id": {"id": NAMES[0]}, "items": [1, 2]}
    assert renamed(nested)["items"] is nested["items"]


def _turn(call: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "tool_calls": [{"id": call, "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": call, "content": f"{call} is text here"},
        {"role": "user", "content": "unchanged"},
    ]


def test_minted_ids_are_renamed_by_first_appearance_and_pairs_kept() -> None:
    one = renamed([*_turn("call_abc123XYZ"), *_turn("call_def456UVW")])
    two = renamed([*_turn("call_ghi789RST"), *_turn("call_jkl012OPQ")])
    assert [m.get("tool_call_id") for m in one] == [None, NAMES[0], None, None, NAMES[1], None]
    assert one[0]["tool_calls"][0]["id"] == NAMES[0]
    assert [m.get("tool_call_id") for m in two] == [m.get("tool_call_id") for m in one]
    assert one[1]["content"] == "call_abc123XYZ is text here"


def test_crossed_pairs_stay_different() -> None:
    straight = renamed([{"id": "call_aaaaaa"}, {"id": "call_bbbbbb"}, {"tool_call_id": "call_aaaaaa"}])
    crossed = renamed([{"id": "call_aaaaaa"}, {"id": "call_bbbbbb"}, {"tool_call_id": "call_bbbbbb"}])
    assert straight != crossed


def test_a_user_id_is_not_renamed_and_the_tree_is_shared() -> None:
    tree = {"id": "812", "items": [{"id": "order-7"}]}
    assert renamed(tree) is tree
    mixed = {"keep": tree, "id": "7d444840-9dc0-11d1-b245-5ffdce74fad2"}
    found = renamed(mixed)
    assert found == {"keep": tree, "id": NAMES[0]}
    assert found["keep"] is tree
    assert mixed["id"].startswith("7d444840")
