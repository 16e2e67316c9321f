"""Real packages in agents: recorded by one process, replayed by another one that has loaded nothing yet.

python -m tests.guard.packages record FOLDER [NAME ...]
python -m tests.guard.packages replay FOLDER [NAME ...]      prints {name: verdict}
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from agentloom import Trace, agent, tool
from agentloom.adapters import sdks
from agentloom.store import open_store
from agentloom.testing import FakeProvider, Says

QUESTION: list[Any] = [{"role": "user", "content": "hello"}]


@tool(effect="read")
def asked_openai(url: str) -> str:
    """A client that is made and used in a tool."""
    import openai

    with openai.OpenAI(base_url=url, api_key="none") as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=QUESTION)
    return str(answer.choices[0].message.content)


@agent(guard="virtual")
def openai_in_a_tool(url: str) -> str:
    return asked_openai(url)


@agent(guard="virtual")
def openai_in_the_run(url: str) -> list[str]:
    import openai

    with openai.OpenAI(base_url=url, api_key="none") as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=QUESTION)
    return [str(answer.choices[0].message.content), str(answer.created)]


@agent(guard="virtual")
async def openai_awaited(url: str) -> str:
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        answer = await client.chat.completions.create(model="gpt-4o", messages=QUESTION)
    return str(answer.choices[0].message.content)


@agent(guard="virtual")
def anthropic_in_the_run(url: str) -> str:
    import anthropic

    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        answer = client.messages.create(model="claude-sonnet-4-5", max_tokens=20, messages=QUESTION)
    return str(answer.content)


@tool(effect="read")
def fetched(url: str) -> int:
    import httpx2

    with httpx2.Client() as client:
        return int(client.get(url).status_code > 0)


@agent(guard="virtual")
def httpx2_made_in_the_run(url: str) -> list[Any]:
    import httpx2

    with httpx2.Client(timeout=3) as client:
        request = client.build_request("POST", url, files={"a": b"b"})  # a multipart boundary is random
    return [request.headers["content-type"], fetched(url)]


@agent(guard="virtual")
def pydantic_factories(url: str) -> list[str]:
    import datetime as dt
    import time
    import uuid

    import pydantic

    class Stamped(pydantic.BaseModel):
        id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)
        at: dt.datetime = pydantic.Field(default_factory=lambda: dt.datetime.now(dt.UTC))
        seconds: float = pydantic.Field(default_factory=time.time)
        day: pydantic.PastDate = dt.date(2001, 1, 1)

    made = Stamped()
    assert type(made.at) is dt.datetime
    return [made.model_dump_json(), Stamped.model_validate_json(made.model_dump_json()).at.isoformat()]


@agent(guard="virtual")
def langchain_core_messages(url: str) -> list[Any]:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import AIMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda
    from langchain_core.utils.uuid import uuid7

    ids: list[str] = []

    class Watcher(BaseCallbackHandler):
        run_inline = True

        def on_chain_start(self, *_: Any, run_id: Any, **__: Any) -> None:
            ids.append(str(run_id))

    def answers(prompt: Any) -> AIMessage:
        return AIMessage(prompt.to_string(), id=f"run-{uuid7()}")

    chain = ChatPromptTemplate.from_messages([("user", "{q}")]) | RunnableLambda(answers)
    message = chain.invoke({"q": "x"}, config={"callbacks": [Watcher()]})
    return [str(message.content), message.id, ids]


@agent(guard="virtual")
def langgraph_checkpoints(url: str) -> list[Any]:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda state: {"messages": [("ai", f"{len(state['messages'])} so far")]})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    config: Any = {"configurable": {"thread_id": "1"}}
    made: Any = graph.compile(checkpointer=InMemorySaver())
    ended = made.invoke({"messages": [("user", "hi")]}, config)
    history = made.get_state_history(config)
    kept = [(state.config["configurable"]["checkpoint_id"], state.created_at) for state in history]
    return [[(message.type, str(message.content), message.id) for message in ended["messages"]], kept]


@agent(guard="virtual")
def numpy_draws(url: str) -> list[float]:
    import numpy as np

    return [
        float(np.random.default_rng().random()),
        *(int(n) for n in np.random.default_rng().integers(10**6, size=3)),
    ]


AGENTS: dict[str, Any] = {
    "openai, in a tool": openai_in_a_tool,
    "openai, in the run": openai_in_the_run,
    "openai, awaited": openai_awaited,
    "anthropic": anthropic_in_the_run,
    "httpx2": httpx2_made_in_the_run,
    "pydantic": pydantic_factories,
    "langchain-core": langchain_core_messages,
    "langgraph": langgraph_checkpoints,
    "numpy": numpy_draws,
}


def record(folder: Path, names: list[str]) -> None:
    """Runs of the agents against a server on loopback, twice each: cold, and with everything loaded."""
    runs: dict[str, list[str]] = {}
    for name in names:
        with FakeProvider([Says("there")] * 4) as provider:
            url = provider.anthropic_url if name == "anthropic" else provider.openai_url
            runs[name] = [AGENTS[name].run(url, store=open_store(folder)).run_id for _ in range(2)]
    (folder / "runs.json").write_text(json.dumps(runs), encoding="utf-8")


def replay(folder: Path, names: list[str]) -> dict[str, list[str]]:
    """The verdicts: of the cold run replayed cold, then of the other one, then of the cold one again."""
    runs = json.loads((folder / "runs.json").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for name in names:
        cold, warm = runs[name]
        found[name] = [_verdict(run, folder, AGENTS[name]) for run in (cold, warm, cold)]
    return found


def _verdict(run: str, folder: Path, chosen: Any) -> str:
    report = Trace.open(run, open_store(folder)).replay(check=False, agent=chosen)
    return report.verdict if report.finding is None else str(report)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sdks.watch()
    at, chosen = Path(sys.argv[2]), sys.argv[3:] or list(AGENTS)
    if sys.argv[1] == "record":
        record(at, chosen)
    else:
        print(json.dumps(replay(at, chosen)))
