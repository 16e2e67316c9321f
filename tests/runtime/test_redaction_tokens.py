"""What stands beside a token tells the same, and changes with it."""

from __future__ import annotations

from typing import Any

from agentloom.runtime.redaction_tokens import beside, is_piece, put


def _token(text: str, **more: Any) -> dict[str, Any]:
    return {"token": text, "logprob": -0.5, "bytes": list(text.encode()), **more}


def test_bytes_numbers_and_alternatives() -> None:
    entry = _token("key", id=17, top_logprobs=[_token("key", id=17), _token("kay", id=18), "odd"])
    made = put(
        {"content": [entry, _token("b")]}, {("content", 0, "token"): lambda data: b"<" + data[:1] + b">"}
    )
    assert made["content"][0] == _token(
        "<k>", id=0, top_logprobs=[_token("<k>", id=0), _token("", id=0), "odd"]
    )
    assert made["content"][1] == _token("b")
    assert entry == _token("key", id=17, top_logprobs=[_token("key", id=17), _token("kay", id=18), "odd"])


def test_what_is_not_on_the_way_is_shared() -> None:
    tree = {"a": {"b": ["x", "y"]}, "c": [1]}
    made = put(tree, {("a", "b", 1): lambda data: data.upper()})
    assert made == {"a": {"b": ["x", "Y"]}, "c": [1]}
    assert made["c"] is tree["c"]
    assert tree["a"] == {"b": ["x", "y"]}


def test_tokens_in_columns() -> None:
    tree = {
        "tokens": ["a", "b", "c"],
        "token_ids": [1, 2, 3],
        "top_logprobs": [{"a": -1.0}, {"b": -1.0, "x": -2.0}],
    }
    made = put(tree, {("tokens", 1): lambda _: b"*", ("tokens", 2): lambda _: b""})
    assert made == {
        "tokens": ["a", "*", ""],
        "token_ids": [1, 0, 0],
        "top_logprobs": [{"a": -1.0}, {"*": -1.0}],
    }


def test_tokens_of_gemini() -> None:
    tree = {
        "chosenCandidates": [
            {"token": "a", "tokenId": 1, "logProbability": -1},
            {"token": "b", "tokenId": 2},
        ],
        "topCandidates": [{"candidates": [{"token": "a"}]}, {"candidates": [{"token": "b"}]}],
    }
    made = put(tree, {("chosenCandidates", 0, "token"): lambda _: b"*"})
    assert made["chosenCandidates"][0] == {"token": "*", "tokenId": 0, "logProbability": -1}
    assert made["topCandidates"] == [{"candidates": []}, {"candidates": [{"token": "b"}]}]


def test_a_text_that_is_no_token_changes_alone() -> None:
    tree = {"text": "a", "id": 5}
    assert put(tree, {("text",): lambda _: b"*"}) == {"text": "*", "id": 5}


def test_coded_texts_are_changed_decoded() -> None:
    assert put({"body": {"$bytes": "aGVsbG8="}}, {("body", "$bytes"): lambda data: data.upper()}) == {
        "body": {"$bytes": "SEVMTE8="}
    }


def test_beside_what_was_changed_already() -> None:
    old = _token("key", top_logprobs=[_token("key")])
    new = {**old, "token": "*"}
    beside(new, old)
    assert new == _token("*", top_logprobs=[_token("*")])


def test_which_texts_are_pieces() -> None:
    assert is_piece("delta", {})
    assert is_piece("text", {"logprob": 0})
    assert not is_piece("text", {"type": "text"})
    assert not is_piece("name", {"logprob": 0})
