"""What Google's and AWS's SDKs hand on: the measurements behind docs/adr/0012-native-wires.md.

Run it in an environment that has both (the extra ``dev``), from the repository's root::

    PYTHONPATH=src:. python benchmarks/native_wires.py

Every check gives a scripted answer to one client and looks at what came back, or sends a field and looks at what
arrived. A value counts as handed on when it appears anywhere in what the client gives.
"""

from __future__ import annotations

import base64
import importlib
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

from agentloom.adapters.models import backend
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange, Player
from agentloom.testing.traffic_bare import event_message, sse

GOOGLE_PATH, BEDROCK_PATH = "/v1beta/models/m:", "/model/m/"
PARTS = [
    {"text": "hm", "thought": True, "newInPart": "kept-part"},
    {"functionCall": {"name": "look", "args": {"a": 1}}, "thoughtSignature": "c2lnbmF0dXJl"},
]
GOOGLE = {
    "candidates": [
        {
            "content": {"role": "model", "parts": PARTS},
            "finishReason": "NEW_REASON",
            "newInCandidate": "kept-candidate",
        }
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "newCount": 98765},
    "modelVersion": "m-001",
    "responseId": "r",
    "newAtTop": "kept-top",
}
NUMBERS = {"candidates": [{"content": {"parts": [{"text": "kept-text"}]}, "finishReason": 1}]}
REDACTED = base64.b64encode(b"redacted").decode()
BEDROCK = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"redactedContent": REDACTED}},
                {"text": "kept-text"},
                {"newBlock": {"a": "kept-block"}},
            ],
        }
    },
    "stopReason": "new_reason",
    "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "newCount": 98765},
    "newAtTop": "kept-top",
}
EVENTS = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "kept-text"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"newDelta": "kept-delta"}}),
    ("newEvent", {"a": "kept-event"}),
    ("messageStop", {"stopReason": "end_turn"}),
]
Client = Callable[[Player, bool, dict[str, Any]], Any]


def exchange(path: str, body: bytes, kind: str) -> Exchange:
    return Exchange(
        "made", "POST", f"http://h{path}", (), None, 200, (("content-type", kind),), body, "json" not in kind
    )


def google_player(answer: object) -> Player:
    return Player(
        exchange(f"{GOOGLE_PATH}generateContent", json.dumps(answer).encode(), "application/json"),
        exchange(f"{GOOGLE_PATH}streamGenerateContent?alt=sse", sse([answer]), "text/event-stream"),  # type: ignore[list-item]
        compare="path",
        repeat=True,
    )


def bedrock_player() -> Player:
    events = b"".join(event_message(kind, said) for kind, said in EVENTS)
    return Player(
        exchange(f"{BEDROCK_PATH}converse", json.dumps(BEDROCK).encode(), "application/json"),
        exchange(f"{BEDROCK_PATH}converse-stream", events, "application/vnd.amazon.eventstream"),
        compare="path",
        repeat=True,
    )


def own(name: str) -> Client:
    def ask(player: Player, stream: bool, more: dict[str, Any]) -> Any:
        request = {"model": name, "messages": [{"role": "user", "content": "x"}], "base_url": player.url}
        request |= {"api_key": "k", **more}
        return assemble(backend.stream_sync(request)) if stream else backend.complete_sync(request)

    return ask


def google_genai(player: Player, stream: bool, more: dict[str, Any]) -> Any:
    genai = importlib.import_module("google.genai")
    client = genai.Client(api_key="k", http_options={"base_url": player.url, "api_version": "v1beta"})
    verb = client.models.generate_content_stream if stream else client.models.generate_content
    found = verb(model="m", contents="x", config=more or None)
    found = [one.model_dump(mode="json") for one in found] if stream else found.model_dump(mode="json")
    client.close()
    return found


def boto3(player: Player, stream: bool, more: dict[str, Any]) -> Any:
    made = importlib.import_module("boto3").client(
        "bedrock-runtime",
        "us-east-1",
        endpoint_url=player.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    asked = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "x"}]}], **more}
    if stream:
        return list(made.converse_stream(**asked)["stream"])
    return made.converse(**asked)


def holds(found: Any, *values: str) -> str:
    text = json.dumps(
        found, default=lambda one: base64.b64encode(one).decode() if isinstance(one, bytes) else str(one)
    )
    lost = [value for value in values if value not in text]
    return f"loses {', '.join(lost)}" if lost else "yes"


def tried(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - what it is, is what is measured
        return f"fails: {type(error).__name__}: {str(error).splitlines()[0][:90]}"


def arrives(client: Client, player: Player, more: dict[str, Any], value: str) -> str:
    client(player, False, more)
    return "arrives" if value in player.seen[-1].body.decode() else "dropped in silence"


def checks(which: str, google: Client | None, bedrock: Client | None) -> None:
    if google is not None:
        with google_player(GOOGLE) as player, google_player(NUMBERS) as other:
            kept = ["kept-top", "kept-candidate", "kept-part", "98765", "NEW_REASON", "c2lnbmF0dXJl"]
            for label, check in {
                "unknown fields of an answer": lambda: holds(google(player, False, {}), *kept),
                "the same, streamed": lambda: holds(google(player, True, {}), *kept),
                "words as numbers": lambda: holds(google(other, False, {}), "kept-text"),
                "a new parameter": lambda: arrives(google, player, {"brandNew": "sent-1"}, "sent-1"),
            }.items():
                print(f"{which:14} google   {label:30} {tried(check)}")
    if bedrock is not None:
        with bedrock_player() as player:
            new = {"brandNew": "sent-1"}
            for label, check in {
                "unknown fields of an answer": lambda: holds(
                    bedrock(player, False, {}), "kept-top", "kept-block", "98765", "new_reason", REDACTED
                ),
                "the same, streamed": lambda: holds(bedrock(player, True, {}), "kept-delta", "kept-event"),
                "a new parameter": lambda: arrives(
                    bedrock, player, {"extra_body": new} if which == "own" else new, "sent-1"
                ),
            }.items():
                print(f"{which:14} bedrock  {label:30} {tried(check)}")


_COST = """
import resource
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""
_IMPORTS = {
    "nothing": "",
    "own, google": "import httpx2, agentloom.adapters.models_native; httpx2.Client(); httpx2.AsyncClient()",
    "google-genai": "from google import genai; genai.Client(api_key='k')",
    "own, bedrock": (
        "import httpx2, agentloom.adapters.models_native, agentloom.adapters.models_bedrock_wire as wire;"
        "httpx2.Client(); httpx2.AsyncClient(); wire.endpoint('us-east-1')"
    ),
    "boto3": (
        "import boto3;"
        "boto3.client('bedrock-runtime', 'us-east-1', aws_access_key_id='a', aws_secret_access_key='b')"
    ),
}


def costs() -> None:
    for name, code in _IMPORTS.items():
        runs = []
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, "-c", _COST.format(code=code)], capture_output=True, check=True, text=True
            )
            runs.append(float(done.stdout))
        print(f"{name:14} until the first call: {statistics.median(runs):.2f} s CPU")


def main() -> None:
    warnings.simplefilter("ignore")
    checks("own", own("gemini:m"), own("bedrock:m"))
    checks("google-genai", google_genai, None)
    checks("boto3", None, boto3)
    backend.close()
    costs()


if __name__ == "__main__":
    main()
