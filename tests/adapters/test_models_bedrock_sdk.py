"""Recorded and made answers of Bedrock, read here and by AWS's own SDK: the same text, calls and counts."""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentloom.adapters.models import backend
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange
from tests.adapters.native import EVENT_STREAM, ask, aws, exchange, server
from tests.adapters.test_models_bedrock_answers import EVENTS, WHOLE
from tests.corpus.files import CORPUS, WHY, api_of, exchanges

boto3: Any = importlib.import_module("boto3")
config: Any = importlib.import_module("botocore.config")


def _load() -> Iterator[Any]:
    yield pytest.param(exchange("/model/m/converse", json.dumps(WHOLE).encode()), id="made")
    yield pytest.param(
        exchange("/model/m/converse-stream", aws(EVENTS), kind=EVENT_STREAM), id="made, streamed"
    )
    for _, one in exchanges() if CORPUS.is_dir() else ():
        if api_of(one) == "converse" and one.status == 200:
            verb = "converse-stream" if one.streamed else "converse"
            yield pytest.param(dataclasses.replace(one, url=f"http://host/model/m/{verb}"), id=one.name[-70:])


RECORDED = list(_load())


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    backend.close()


def _client(url: str) -> Any:
    once = config.Config(retries={"total_max_attempts": 1}, region_name="us-east-1")
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    return boto3.client("bedrock-runtime", endpoint_url=url, config=once, **keys)


def _blocks(events: Iterator[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Any, Any]:
    """The blocks that a stream adds up to, as AWS's examples add them up."""
    blocks: dict[int, dict[str, Any]] = {}
    reason = counts = None
    for event in events:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {k: dict(v) for k, v in start["start"].items()}
        elif "contentBlockDelta" in event:
            block = blocks.setdefault(event["contentBlockDelta"]["contentBlockIndex"], {})
            for kind, piece in event["contentBlockDelta"]["delta"].items():
                if kind == "text":
                    block["text"] = block.get("text", "") + piece
                elif kind == "toolUse":
                    block["toolUse"]["input"] = block["toolUse"].get("input", "") + piece["input"]
                elif kind == "reasoningContent":
                    for name, value in piece.items():
                        held = block.setdefault("reasoningContent", {})
                        held[name] = held[name] + value if name in held else value
        elif "messageStop" in event:
            reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            counts = event["metadata"]["usage"]
    made = [blocks[index] for index in sorted(blocks)]
    for block in made:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"].get("input") or "{}")
    return made, reason, counts


def _by_sdk(one: Exchange, url: str) -> tuple[list[dict[str, Any]], Any, Any]:
    client = _client(url)
    asked = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "x"}]}]}
    if one.streamed:
        return _blocks(client.converse_stream(**asked)["stream"])
    found = client.converse(**asked)
    return found["output"]["message"]["content"], found["stopReason"], found["usage"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_there_is_enough_to_say_something() -> None:
    assert len(RECORDED) >= 8


@pytest.mark.parametrize("one", RECORDED)
def test_the_answer_is_read_as_the_sdk_reads_it(one: Exchange) -> None:
    with server(one) as player:
        request = ask(player, "bedrock:m")
        answer = assemble(backend.stream_sync(request)) if one.streamed else backend.complete_sync(request)
        blocks, reason, counts = _by_sdk(one, player.url)
    typed = Answer(json.loads(json.dumps(answer)))
    texts = [block["text"] for block in blocks if "text" in block]
    texts += [
        part["text"] for block in blocks for part in block.get("citationsContent", {}).get("content", [])
    ]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    assert typed.text == "".join(texts)
    assert [(call.id, call.name, call.arguments) for call in typed.tool_calls] == [
        (use["toolUseId"], use["name"], use["input"]) for use in uses if use.get("type") != "server_tool_use"
    ]
    assert answer["native_finish_reason"] == reason
    theirs = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
    content = (answer["blocks"] or {"bedrock": {"content": []}})["bedrock"]["content"]
    ours = [block["reasoningContent"] for block in content if "reasoningContent" in block]
    kept = [base64.b64decode(said["redactedContent"]) for said in ours if "redactedContent" in said]
    assert kept == [said["redactedContent"] for said in theirs if "redactedContent" in said]
    if counts is None:
        assert typed.usage is None
    else:
        assert typed.usage is not None
        assert typed.usage.output == counts["outputTokens"]
        assert typed.usage.input == counts["totalTokens"] - counts["outputTokens"]
