"""Programs that the replay tests record and edit, and the check of a report that they share."""

from __future__ import annotations

import json
import math
from typing import Any

from agentloom.replay.report import Report

AGENT = '''"""An agent."""
import os

SYSTEM = "Refund when paid."
LIMIT = 3


def build_prompt(question):
    """Make the prompt."""
    text = "Answer in one sentence."
    # ask first
    text += " Ask before deleting."
    return text + question


class Router:
    retries = 1

    def go(self, x):
        return x > LIMIT


async def turn(question):
    prompt = build_prompt(question)
    return await model("gpt-4o", SYSTEM, prompt)


def unrelated():
    return "nothing"
'''

ASYNC = """
import asyncio
from agentloom import agent, model, now, sleep, tool, uuid

NAMES = ["a", "bbb", "cc"]
DELAY = 0.001


@tool(effect="read")
async def search(q):
    await asyncio.sleep(DELAY * len(q))
    if q == "boom":
        raise ValueError("no " + q)
    return {"found": q}


async def late(q):
    await asyncio.sleep(0.5)
    return await search(q)


@agent
async def run(question):
    started = await now()
    found = await asyncio.gather(*(search(name) for name in NAMES))
    order = []
    for next_done in asyncio.as_completed([search(name) for name in NAMES]):
        order.append((await next_done)["found"])
    try:
        await search("boom")
    except ValueError as error:
        order.append(str(error))
    try:
        async with asyncio.timeout(0.002):
            await late("never")
    except TimeoutError:
        order.append("timeout")
    answer = await search(question)
    return {"found": found, "order": order, "at": started, "answer": answer}
"""

SYNC = '''
from agentloom import agent, tool
from agentloom.sync import now, uuid

SYSTEM = "Refund when paid."
ORDER = ["a", "b", "c"]


@tool(effect="read")
def search(q):
    """Look it up."""
    return "found " + q


@tool
def refund(amount):
    return "ok"


@agent
def run(question):
    found = [search(q) for q in ORDER]
    refund(40)
    return {"question": question, "found": found}
'''

MODEL = """
from agentloom import agent, model

SYSTEM = "Answer in one sentence. Ask before deleting."


@agent
async def run(question):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    for _ in range(3):
        answer = await model("fake", messages=messages, temperature=0, user="ann")
        messages.append({"role": "assistant", "content": answer.text})
    return messages[-1]["content"]
"""

STREAM = """
from agentloom import agent, model, now
from agentloom.sync import model as ask

LIMIT = 3


@agent
async def run(question):
    words = []
    async with await model("fake", messages=question, stream=True) as stream:
        async for word in stream:
            words.append(word)
            if len(words) >= LIMIT:
                break
    return words
"""
SYNC_STREAM = (
    STREAM.replace("async with await model", "with ask")
    .replace("async for", "for")
    .replace("async def", "def")
)

CHILD = """
import asyncio
from agentloom import agent, tool

FACTOR = 2


@tool(effect="read")
async def count(word):
    return len(word)


@agent
async def helper(word):
    return FACTOR * await count(word)


@agent
async def run(words):
    return sum(await asyncio.gather(*(helper(word) for word in words)))
"""

CANCEL = """
import asyncio
from agentloom import agent, tool


@tool(effect="read")
async def slow(name):
    await asyncio.sleep({"quick": 0.001}.get(name, 5))
    return name


@agent
async def run():
    tasks = [asyncio.ensure_future(slow(name)) for name in ("first", "quick", "third")]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await slow("quick")
    return sorted(task.result() for task in done)
"""

STRANDS = """
import time
from agentloom import agent, tool
from agentloom.sync import parallel

NAMES = ["aaa", "b", "cc"]
LOG = []


@tool(effect="read")
def search(q):
    time.sleep(0.002 * len(q))
    return q


def branch(q):
    found = search(q)
    LOG.append(q)
    return search(found + "!")


@agent
def run():
    LOG.clear()
    found = parallel(*[lambda name=name: branch(name) for name in NAMES])
    return {"found": found, "log": list(LOG)}
"""

SPIN = """
import asyncio
from agentloom import agent, now, tool


@tool(effect="read")
async def slow(name):
    await asyncio.sleep(0.01)
    return name


@agent
async def run():
    task, turns = asyncio.ensure_future(slow("x")), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
        if turns % 4000 == 0:
            await now()
    return turns
"""

WORKFLOW = """
from agentloom import Workflow

LIMIT = 3


def route(state):
    return "long" if len(state["input"]) > LIMIT else "short"


graph = Workflow()
graph.step("route", fn=route)
graph.step("respond", model="fake")
run = graph
"""


def check(report: Report, verdict: str, cls: str | None = None, reason: str | None = None) -> None:
    finding = report.finding
    print(report)
    assert report.verdict == verdict
    assert (finding.cls if finding else None) == cls
    if reason is not None:
        assert finding is not None
        assert finding.reason == reason
    assert len(str(report)) < 1200
    assert json.loads(json.dumps(report.to_json()))["class"] == cls
    assert report.exit_code() == (0 if report.ok else 3)


def answer_with(target: str, **more: Any) -> dict[str, Any]:
    """A model's answer that chose ``target``, with its log probabilities."""
    tokens: list[Any] = []
    for text in ['{"', "target", '":"', target, '","', "filter", '":"', "inactive", '"}']:
        options = {text: 0.99}
        if text == target:
            options = {"staging": 0.85, "production": 0.1, "dev": 0.05}
        top = [{"token": name, "logprob": math.log(value)} for name, value in options.items()]
        tokens.append({"token": text, "logprob": math.log(options[text]), "top_logprobs": top})
    content = "".join(token["token"] for token in tokens)
    usage = {"input": 600, "output": 20}
    return {
        "content": content,
        "tool_calls": [],
        "id": f"chatcmpl-{target}",
        "logprobs": {"content": tokens},
        "usage": usage,
        **more,
    }
