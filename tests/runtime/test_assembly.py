from __future__ import annotations

import copy
from typing import Any

from agentloom.runtime.assembly import Assembly, assemble, empty_answer


def _piece(index: int, arguments: str, **start: Any) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments}
    if "name" in start:
        function["name"] = start.pop("name")
    return {"tool_calls": [{"index": index, **start, "function": function}]}


def test_nothing_is_an_empty_answer() -> None:
    assert assemble([]) == empty_answer()


def test_texts_are_appended_and_facts_set() -> None:
    made = assemble(
        [{"content": "a", "reasoning": "x"}, {"content": "b", "id": "1"}, {"reasoning": "y", "id": "2"}]
    )
    assert (made["content"], made["reasoning"], made["refusal"], made["id"]) == ("ab", "xy", None, "2")


def test_an_empty_text_is_not_no_text() -> None:
    assert assemble([{"content": ""}])["content"] == ""
    assert assemble([{"content": None}])["content"] is None


def test_interleaved_tool_calls_are_joined_by_index() -> None:
    made = assemble(
        [
            _piece(0, "", id="a", type="function", name="f"),
            _piece(1, "", id="b", type="function", name="g"),
            _piece(1, '{"y":'),
            _piece(0, '{"x":'),
            _piece(0, "1}"),
            _piece(1, "2}"),
        ]
    )
    assert made["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"arguments": '{"x":1}', "name": "f"}},
        {"id": "b", "type": "function", "function": {"arguments": '{"y":2}', "name": "g"}},
    ]


def test_logprobs_are_joined() -> None:
    made = assemble(
        [{"logprobs": {"content": [1], "refusal": None}}, {"logprobs": {"content": [2], "refusal": None}}]
    )
    assert made["logprobs"] == {"content": [1, 2], "refusal": None}


def test_unknown_fields_add_up() -> None:
    made = assemble(
        [
            {
                "extra": {
                    "note": "a",
                    "details": [{"index": 0, "type": "t", "text": "x"}],
                    "audio": {"id": "1", "data": "A"},
                }
            },
            {
                "extra": {
                    "note": "b",
                    "details": [{"index": 0, "type": "t", "text": "y"}, {"index": 1, "text": "z"}],
                }
            },
            {"extra": {"audio": {"data": "B"}, "plain": [1]}},
            {"extra": {"plain": [2], "note": None}},
        ]
    )
    assert made["extra"] == {
        "note": "ab",
        "details": [{"index": 0, "type": "t", "text": "xy"}, {"index": 1, "text": "z"}],
        "audio": {"id": "1", "data": "AB"},
        "plain": [1, 2],
    }


def test_deltas_are_neither_kept_nor_changed() -> None:
    deltas: list[dict[str, Any]] = [
        {"extra": {"list": [{"index": 0, "text": "a"}]}, "usage": {"input": 1}},
        {"extra": {"list": [{"index": 0, "text": "b"}]}, "logprobs": {"content": [{"t": 1}]}},
        _piece(0, "{}", id="a"),
    ]
    before = copy.deepcopy(deltas)
    made = assemble(deltas)
    made["usage"]["input"] = 9
    made["extra"]["list"][0]["text"] = "changed"
    made["tool_calls"][0]["id"] = "changed"
    made["logprobs"]["content"][0]["t"] = 9
    assert deltas == before


def test_the_answer_so_far_is_a_fresh_copy() -> None:
    assembly = Assembly()
    assembly.add({"content": "a", "extra": {"x": [1]}})
    first = assembly.answer()
    assembly.add({"content": "b", "extra": {"x": [2]}})
    assert first["content"] == "a"
    assert first["extra"] == {"x": [1]}
    assert assembly.answer()["content"] == "ab"


def test_choices() -> None:
    made = assemble(
        [
            {"content": "a"},
            {"choice": 2, "content": "c"},
            {"choice": 1, "content": "b", "finish_reason": "stop"},
        ]
    )
    assert [choice["content"] for choice in made["choices"]] == ["a", "b", "c"]
    assert [choice["finish_reason"] for choice in made["choices"]] == [None, "stop", None]
    assert made["content"] == "a"


def test_an_empty_name_in_a_later_piece_changes_nothing() -> None:
    """As watsonx sends them; a call that never had a name keeps the empty one."""
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a"'}}
    later = {"index": 0, "id": "", "type": None, "function": {"name": "", "arguments": ": 1}"}}
    made = assemble([{"tool_calls": [first]}, {"tool_calls": [later]}])
    assert made["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    ]
    assert assemble([{"tool_calls": [later]}])["tool_calls"][0]["function"]["name"] == ""
