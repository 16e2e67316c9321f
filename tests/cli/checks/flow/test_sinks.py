"""Where values leave the agent's own code."""

from __future__ import annotations

import pytest

from agentloom.cli.checks.flow.sinks import is_messages
from tests.cli.checks.flow.agents import HEAD, findings, names

SINKS = [
    "model('gpt-4o-2024-08-06', str(tags))", "agentloom.note(str(tags))",
    "client.chat.completions.create(messages=[str(tags)])",
    "client.messages.create(system=str(tags))", "my_agent.run(str(tags))", "Runner.run(agent_, str(tags))",
    "my_graph.invoke({'x': str(tags)})", "crew.kickoff(inputs=str(tags))", "Agent(instructions=str(tags))",
    "return str(tags)",
    "messages = []\nmessages.append(str(tags))", "messages = []\nfor t in tags: messages.append(t)",
    "self.prompt += str(tags)",
    "yield str(tags)", "for t in tags: pool.submit(search, t)",
    "import asyncio\n[asyncio.to_thread(search, t) for t in tags]",
]  # fmt: skip
NONE = [
    "print(str(tags))", "log.info(str(tags))", "subprocess_.run(str(tags))", "given.append(str(tags))",
    "results = []\nresults.append(str(tags))", "text = str(tags)",
]  # fmt: skip


@pytest.mark.parametrize("body", SINKS)
def test_a_sink(body: str) -> None:
    assert names(body) == ["set-order"]


@pytest.mark.parametrize("body", NONE)
def test_no_sink(body: str) -> None:
    assert names(body) == []


def test_what_a_prompt_function_of_a_framework_returns() -> None:
    text = "from pydantic_ai import Agent\nagent = Agent('x')\n@agent.system_prompt\ndef rules():\n"
    text += "    return ', '.join({'a', 'b'})\n"
    assert [(one.line, one.check) for one in findings(text)] == [(5, "set-order")]


def test_a_key_of_a_client_is_no_text() -> None:
    text = HEAD + "import os\nURL = os.environ.get('URL')\n@agent\ndef run(x, client):\n"
    call = "    client.chat.completions.create({}=URL, messages=[])\n"
    assert findings(text + call.format("base_url")) == []
    assert [one.check for one in findings(text + call.format("prompt"))] == ["environment"]


def test_names_of_lists_of_messages() -> None:
    assert [is_messages(name) for name in ("messages", "self.messages", "chat_history", "history", "results")] == [
        True, True, True, False, False,
    ]  # fmt: skip
