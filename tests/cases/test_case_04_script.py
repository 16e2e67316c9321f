"""Case 4 through the commands: a script with the unmodified SDK asks for every chat completion of the corpus, streams
also async. Plain Python, ``agentloom run`` and ``agentloom replay`` print the same, with the server stopped and another
hash seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.testing import FakeProvider
from tests.cases.conftest import Scenario
from tests.cases.traffic import exchanges
from tests.cli.scripts import clean
from tests.corpus.files import CORPUS, WHY

SCRIPT = """
import asyncio, hashlib, json, sys
import openai
def text(value): return json.dumps(value.to_dict() if hasattr(value, "to_dict") else value, ensure_ascii=False)
def tell(number, parts):
    print(number, len(parts), parts[-1][:60], hashlib.sha256(repr(parts).encode()).hexdigest())
def blocking(client, request, streamed):
    parts = []
    try:
        made = client.chat.completions.create(**request, stream=streamed)
        for part in made if streamed else [made]:
            parts.append(type(part).__name__ + text(part))
    except Exception as error:
        parts.append(f"{type(error).__name__} {error} {getattr(error, 'body', None)}")
    return parts
async def awaited(client, request):
    parts = []
    try:
        async for part in await client.chat.completions.create(**request, stream=True):
            parts.append(type(part).__name__ + text(part))
    except Exception as error:
        parts.append(f"{type(error).__name__} {error} {getattr(error, 'body', None)}")
    return parts
with open(sys.argv[1], encoding="utf-8") as file:
    asked = json.load(file)
with openai.OpenAI(max_retries=0) as client:
    for number, (request, streamed) in enumerate(asked):
        tell(number, blocking(client, request, streamed))
async def main():
    async with openai.AsyncOpenAI(max_retries=0) as client:
        for number, (request, streamed) in enumerate(asked):
            if streamed:
                tell(number, await awaited(client, request))
asyncio.run(main())
"""


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_every_chat_completion_of_the_corpus(scenario: Scenario) -> None:
    every = exchanges()
    path = scenario.write(SCRIPT)
    asked = scenario.folder / "asked.json"
    asked.write_text(json.dumps([[one.request(), one.streamed] for one in every]), encoding="utf-8")
    replies = [one.raw() for one in every] + [one.raw() for one in every if one.streamed]
    count = len(replies)
    with FakeProvider(replies) as provider:
        bare = subprocess.run(
            [sys.executable, str(path), str(asked)],
            capture_output=True, text=True, check=True, timeout=60, env=clean() | provider.env(),
        )  # fmt: skip
    assert bare.stdout.count("\n") == count
    with FakeProvider(replies) as provider:
        done = scenario.call("run", str(path), "--", str(asked), env=provider.env())
        assert provider.count == count
    assert done.out == bare.stdout
    assert f"{count} calls: {count} model" in done.err
    again = scenario.replay(env={"PYTHONHASHSEED": "5", "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert again.code == 0, again.all[-2000:]
    assert again.out.startswith(done.out)
    assert f"IDENTICAL  {count}/{count} calls" in again.out
    file = Path(scenario.folder / "run.loom")
    assert scenario.call("export", "last", "-o", str(file)).code == 0
    assert scenario.call("verify", str(file)).code == 0
