"""A secret spelt in pieces, in the shapes in which providers and servers give tokens and chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["ITEMS", "SHAPES_IN_PIECES", "STREAMS"]

Made = tuple[Any, Callable[[Any], str]]
"""What holds the pieces, and what reads the text from it."""


def _token(piece: str) -> dict[str, Any]:
    entry = {"token": piece, "logprob": -0.1, "bytes": list(piece.encode())}
    others = [
        dict(entry),
        {"token": piece[:1] + "x", "logprob": -4.0, "bytes": list((piece[:1] + "x").encode())},
    ]
    return entry | {"top_logprobs": others}


def _of(entries: Any) -> str:
    """The text of OpenAI's tokens; it is in their bytes too, and the likeliest ones spell it as well."""
    text = "".join(one["token"] for one in entries)
    assert b"".join(bytes(one["bytes"]) for one in entries).decode() == text
    assert "".join(one["top_logprobs"][0]["token"] for one in entries) == text
    return text


def openai_chat(pieces: list[str]) -> Made:
    answer = {
        "choices": [{"index": 0, "message": {}, "logprobs": {"content": [_token(one) for one in pieces]}}]
    }
    return answer, lambda got: _of(got["choices"][0]["logprobs"]["content"])


def openai_responses(pieces: list[str]) -> Made:
    part = {"type": "output_text", "text": "", "logprobs": [_token(one) for one in pieces]}
    return {"output": [{"content": [part]}]}, lambda got: _of(got["output"][0]["content"][0]["logprobs"])


def completions(pieces: list[str]) -> Made:
    logprobs = {
        "tokens": pieces,
        "token_logprobs": [-0.1] * len(pieces),
        "top_logprobs": [{one: -0.1, "x" + one: -3.0} for one in pieces],
        "text_offset": list(range(len(pieces))),
        "token_ids": list(range(1, len(pieces) + 1)),
    }
    return {"logprobs": logprobs}, lambda got: "".join(got["logprobs"]["tokens"])


def gemini(pieces: list[str]) -> Made:
    chosen = [{"token": one, "tokenId": 7, "logProbability": -0.1} for one in pieces]
    result = {
        "chosenCandidates": chosen,
        "topCandidates": [{"candidates": [dict(one), dict(one)]} for one in chosen],
    }
    return result, lambda got: "".join(one["token"] for one in got["chosenCandidates"])


def inference_server(pieces: list[str]) -> Made:
    tokens = [{"id": 7, "text": one, "logprob": -0.1, "special": False} for one in pieces]
    return {"details": {"tokens": tokens}}, lambda got: "".join(
        one["text"] for one in got["details"]["tokens"]
    )


def llama_cpp(pieces: list[str]) -> Made:
    given = [
        {"content": one, "probs": [{"tok_str": one, "prob": 0.9}, {"tok_str": "x", "prob": 0.1}]}
        for one in pieces
    ]
    return {"completion_probabilities": given}, lambda got: "".join(
        one["content"] for one in got["completion_probabilities"]
    )


def blocks(pieces: list[str]) -> Made:
    given = [{"type": "text", "text": one} for one in pieces]
    return {"role": "assistant", "content": given}, lambda got: "".join(one["text"] for one in got["content"])


def parts(pieces: list[str]) -> Made:
    given = {"role": "model", "parts": [{"text": one} for one in pieces]}
    return given, lambda got: "".join(one["text"] for one in got["parts"])


def texts(pieces: list[str]) -> Made:
    return {"tokens": pieces}, lambda got: "".join(got["tokens"])


def events(pieces: list[str]) -> Made:
    """A body that was read as one text."""
    given = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in pieces]
    text = "".join(f"data: {json.dumps(one)}\n\n" for one in given) + "data: [DONE]\n\n"

    def read(got: str) -> str:
        lines = [line.removeprefix("data: ") for line in got.split("\n\n")][:-2]
        return "".join(json.loads(line)["choices"][0]["delta"]["content"] for line in lines)

    return text, read


def lines(pieces: list[str]) -> Made:
    text = "\n".join(json.dumps({"message": {"content": one}, "done": False}) for one in pieces)
    return {"body": text}, lambda got: "".join(
        json.loads(line)["message"]["content"] for line in got["body"].split("\n")
    )


def json_in_text(pieces: list[str]) -> Made:
    return json.dumps({"tokens": pieces}, indent=2), lambda got: "".join(json.loads(got)["tokens"])


SHAPES_IN_PIECES = (
    openai_chat, openai_responses, completions, gemini, inference_server, llama_cpp, texts, events, lines, json_in_text,
)  # fmt: skip
ITEMS = (blocks, parts)
"""Lists whose items may be pieces of one text, or a text each."""


# -- streams: chunks, and what reads the text from them ---------------------------------------------------------------


def chat_chunks(pieces: list[str]) -> Made:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": one}, "logprobs": {"content": [_token(one)]}}]}
        for one in pieces
    ]

    def read(got: Any) -> str:
        text = "".join(one["choices"][0]["delta"]["content"] for one in got)
        assert _of([entry for one in got for entry in one["choices"][0]["logprobs"]["content"]]) == text
        return text

    return chunks, read


def tool_arguments(pieces: list[str]) -> Made:
    """Two calls, whose arguments come by turns; the second holds the secret."""
    chunks: list[Any] = []
    for number, one in enumerate(pieces):
        calls = [{"index": 1, "function": {"arguments": one}}]
        if number == 0:
            calls[0] |= {"id": "call_2", "type": "function"}
        chunks += [
            {
                "choices": [
                    {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "[1,"}}]}}
                ]
            },
            {"choices": [{"index": 0, "delta": {"tool_calls": calls}}]},
        ]
    return chunks, lambda got: "".join(
        one["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] for one in got[1::2]
    )


def anthropic(pieces: list[str]) -> Made:
    start = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": pieces[0]}}
    rest = [
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": one}}
        for one in pieces[1:]
    ]
    return [
        start,
        *rest,
    ], lambda got: got[0]["content_block"]["text"] + "".join(one["delta"]["text"] for one in got[1:])


def anthropic_tools(pieces: list[str]) -> Made:
    chunks: list[Any] = []
    for one in pieces:
        for index, text in ((1, '{"a'), (2, one)):
            delta = {"type": "input_json_delta", "partial_json": text}
            chunks.append({"type": "content_block_delta", "index": index, "delta": delta})
    return chunks, lambda got: "".join(one["delta"]["partial_json"] for one in got[1::2])


def responses(pieces: list[str]) -> Made:
    """Text and what is said by turns with audio, under the same numbers."""
    chunks: list[Any] = []
    for one in pieces:
        where = {"item_id": "i", "output_index": 0, "content_index": 0}
        chunks += [
            where | {"type": "response.audio.delta", "delta": "UklGRg=="},
            where | {"type": "response.audio_transcript.delta", "delta": one},
        ]
    chunks.append({"type": "response.audio_transcript.done", "transcript": "".join(pieces)})

    def read(got: Any) -> str:
        text = "".join(one["delta"] for one in got[1:-1:2])
        assert got[-1]["transcript"] == text
        return text

    return chunks, read


def gemini_chunks(pieces: list[str]) -> Made:
    """The text goes on in the first part of the next chunk, wherever it was in this one."""
    chunks: list[Any] = []
    for number, one in enumerate(pieces):
        given = [{"text": "hm ", "thought": True}, {"text": one}] if number == 0 else [{"text": one}]
        chunks.append({"candidates": [{"index": 0, "content": {"parts": given}}]})
    return chunks, lambda got: "".join(one["candidates"][0]["content"]["parts"][-1]["text"] for one in got)


def bedrock(pieces: list[str]) -> Made:
    chunks = [
        {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}
        for one in pieces
        for index, text in ((0, "other "), (1, one))
    ]
    return chunks, lambda got: "".join(one["contentBlockDelta"]["delta"]["text"] for one in got[1::2])


def raw(pieces: list[str]) -> Made:
    return [{"body": {"bytes": one.encode()}} for one in pieces], lambda got: b"".join(
        one["body"]["bytes"] for one in got
    ).decode()


def side_by_side(pieces: list[str]) -> Made:
    return [["x", one] for one in pieces], lambda got: "".join(one[1] for one in got)


def plain(pieces: list[str]) -> Made:
    return list(pieces), "".join


STREAMS = (
    chat_chunks, tool_arguments, anthropic, anthropic_tools, responses, gemini_chunks, bedrock, raw,
    side_by_side, plain,
)  # fmt: skip


def splits(text: str, step: int = 1) -> Iterator[list[str]]:
    """``text`` in two pieces at every place; in pieces of each length from 1 to 4; in tokens of uneven length."""
    for at in range(1, len(text), step):
        yield [text[:at], text[at:]]
    for size in range(1, 5):
        yield [text[at : at + size] for at in range(0, len(text), size)]
