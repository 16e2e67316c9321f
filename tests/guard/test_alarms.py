"""Real packages in a run of the command line, imported in it or before: no false alarm, and the same on replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom import Trace
from agentloom.testing import FakeProvider
from tests.cli.scripts import Scripts

IMPORTS = """
import anthropic, httpx2, numpy, openai, pydantic
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
"""

AGENT = """
import os
from agentloom import agent, tool
{before}
@tool
def act(x): return x

@agent(guard="{guard}")
def main():
    {inside}
    class Order(pydantic.BaseModel):
        number: int = 1
        notes: dict = {}
    said = [Order(number=3).model_dump_json(), float(numpy.arange(5).mean()), repr(numpy.zeros(2))]
    chain = ChatPromptTemplate.from_messages([("user", "{x}")]) | RunnableLambda(lambda p: str(p.messages[0].content))
    said.append(chain.invoke({"x": "chained"}))
    client = openai.OpenAI(api_key="k", base_url=os.environ["OPENAI_BASE_URL"])
    asked = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
    said.append(asked.choices[0].message.content)
    claude = anthropic.Anthropic(api_key="k", base_url=os.environ["ANTHROPIC_BASE_URL"])
    said.append(claude.messages.create(
        model="claude-haiku-4-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]).content[0].text)
    return act(said)
"""


@pytest.mark.parametrize(("guard", "lazily"), [("strict", True), ("virtual", False)])
def test_real_packages_raise_no_alarm(tmp_path: Path, guard: str, *, lazily: bool) -> None:
    pytest.importorskip("langchain_core")
    scripts = Scripts(tmp_path)
    inside = IMPORTS.strip().replace("\n", "\n    ")
    text = AGENT.replace("{before}", "" if lazily else IMPORTS).replace(
        "{inside}", inside if lazily else "pass"
    )
    path = scripts.write(text.replace("{guard}", guard))
    with FakeProvider(lambda _: "fine") as provider:
        done = scripts.call("run", f"{path}:main", env=provider.env())
    assert done.code == 0, done.all
    assert "not recorded" not in done.err
    trace = Trace.open("last", scripts.store)
    assert trace.unrecorded == []
    assert trace.output[-2:] == ["fine", "fine"]
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL  3/3 calls" in again.out
