"""Records a program of this folder against a scripted server, or replays what was recorded. Run as a process:

python -m tests.frameworks.tape record|replay PROGRAM FOLDER COUNT
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import random
import sys
import threading
import time
from collections import Counter
from typing import Any

import agentloom
from agentloom import Trace
from agentloom.store import open_store
from agentloom.testing import FakeProvider, Says, Wants

ITEMS = ("apple", "pear", "fig")

TOOLS: dict[str, dict[str, Any]] = {"pydantic_ai_agent": {"price": "agent"}}
"""What is said of the tools of a program, in the line that records it."""


class Server:
    """Answers as the programs expect it, after a while that nobody can foresee."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, seen: Any) -> Says:
        with self._lock:
            pause = self._random.random() * 0.02
            ids = [f"call_{self._random.getrandbits(64):x}" for _ in range(6)]
        time.sleep(pause)
        tools, answered, last = _google(seen.body) if "contents" in seen.body else _openai(seen.body)
        hand_off = [name for name in tools if name.startswith("transfer")]
        if tools and not answered:
            wanted = [(name, item) for item in ITEMS for name in ("price", "stock") if name in tools]
            return Says(
                tools=[Wants(name, {"item": item}, id=ids[n]) for n, (name, item) in enumerate(wanted)]
            )
        if hand_off:
            return Says(tools=[Wants(hand_off[0], {}, id=ids[0])])
        return Says(" / ".join(answered) or f"yes to {last}")


Asked = tuple[list[str], list[str], str]
"""Names of the tools on offer, what those that ran gave, and the last message."""


def _openai(body: Any) -> Asked:
    messages = body["messages"]
    answered = [str(message["content"]) for message in messages if message["role"] == "tool"]
    return [tool["function"]["name"] for tool in body.get("tools") or []], answered, messages[-1]["content"]


def _google(body: Any) -> Asked:
    offered = [one["name"] for tool in body.get("tools") or [] for one in tool["functionDeclarations"]]
    parts = [part for content in body["contents"] for part in content["parts"]]
    given = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return offered, [str(one.get("result", one)) for one in given], str(parts[-1].get("text"))


async def _in_turn(agent: Any, url: str, count: int, store: Any, tools: Any) -> None:
    for number in range(count):
        await agentloom.record(agent(url, f"question {number}"), store=store, tools=tools)


def record(program: str, agent: Any, count: int, folder: str) -> dict[str, Any]:
    store, tools = open_store(folder), TOOLS.get(program)
    with FakeProvider(Server(count)) as provider:
        if inspect.iscoroutinefunction(agent):
            asyncio.run(_in_turn(agent, provider.openai_url, count, store, tools))
        else:
            recorded = agentloom.instrument(agent, store=store, tools=tools)
            for number in range(count):
                recorded(provider.openai_url, f"question {number}")
        asked = provider.count
    calls = [call for row in store.runs() for call in Trace(store.read(row.run)).calls]
    return {
        "runs": count,
        "asked": asked,
        "kinds": dict(sorted(Counter(call.kind for call in calls).items())),
    }


def replay(folder: str) -> dict[str, Any]:
    store = open_store(folder)
    verdicts: dict[str, int] = {}
    first = ""
    for row in reversed(store.runs()):
        report = Trace(store.read(row.run)).replay(check=False)
        verdicts[report.verdict] = verdicts.get(report.verdict, 0) + 1
        if not report.ok and not first:
            first = str(report)
        verdicts["compared output"] = verdicts.get("compared output", 0) + ("output" in report.compared)
    return {"verdicts": verdicts, "first": first}


def main() -> None:
    what, program, folder, count = sys.argv[1:5]
    agent = importlib.import_module(f"tests.frameworks.programs.{program}").agent
    done = record(program, agent, int(count), folder) if what == "record" else replay(folder)
    print(json.dumps(done))


if __name__ == "__main__":
    main()
