"""Ids that are minted afresh: paired by first appearance."""

from __future__ import annotations

from typing import Any

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
