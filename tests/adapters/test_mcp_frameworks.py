"""Frameworks that use MCP servers: a tool is in the trace once, and a replay asks nobody."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio

import agentloom
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Wants

SHOP = Path(__file__).with_name("mcp_shop.py")


async def sold(url: str) -> str:
    here = MCPServerStdio(params={"command": sys.executable, "args": [str(SHOP)]})
    async with here as server, openai.AsyncOpenAI(base_url=url, api_key="unused") as client:
        model = OpenAIChatCompletionsModel("gpt", client)
        agent = Agent("shop", instructions="Sell.", mcp_servers=[server], model=model)
        return str((await Runner.run(agent, "What does order 812 cost?")).final_output)


@pytest.mark.slow
def test_a_tool_of_the_agents_sdk_is_recorded_once() -> None:
    set_tracing_disabled(disabled=True)
    script: list[Any] = [Says(tools=[Wants("total", {"order": 812})]), "It costs 40."]

    async def main() -> tuple[str, agentloom.Trace, str]:
        with FakeProvider(script) as provider:
            url = provider.openai_url
            run = agentloom.record(sold(url), store=MemoryStore())
            said = await run
        return said, run.trace, run.trace.replay(call=lambda: sold(url)).verdict

    said, trace, verdict = asyncio.run(main())
    assert (said, verdict) == ("It costs 40.", "identical")
    tools = [call for call in trace.calls if call.kind == "tool" and not call.name.startswith("mcp.")]
    assert [(call.name, call.effect, call.request["server"]) for call in tools] == [("total", "read", "shop")]


SCRIPT = """
import anyio, asyncio, sys
from mcp import ClientSession, StdioServerParameters, stdio_client

async def ask(count):
    shop = StdioServerParameters(command=sys.executable, args=["shop.py"])
    async with stdio_client(shop) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        found = await asyncio.gather(*(session.call_tool("total", {"order": 20 * n}) for n in range(count)))
        return {one.content[0].text for one in found}

print(sorted(anyio.run(ask, 2)))
print(asyncio.run(ask(4)) - {"1", "2", "3"})
"""


@pytest.mark.slow
def test_a_sync_script_replays_elsewhere_without_the_server(tmp_path: Path) -> None:
    there, elsewhere, store = tmp_path / "there", tmp_path / "elsewhere", tmp_path / "store"
    there.mkdir()
    elsewhere.mkdir()
    (there / "shop.py").write_text(SHOP.read_text("utf-8"), "utf-8")
    (there / "script.py").write_text(SCRIPT, "utf-8")
    recorded = _agentloom("run", "script.py", at=there, store=store, seed="1")
    (there / "shop.py").unlink()
    replayed = _agentloom("replay", "last", "--json", at=elsewhere, store=store, seed="7")
    assert "['0', '1']\n{'0'}" in recorded
    assert json.loads(replayed[replayed.index("{") :])["verdict"] == "identical"


def _agentloom(*words: str, at: Path, store: Path, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", *words, "--store", str(store)],
        cwd=at,
        env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
