"""Real packages that use threads, in agents: recorded by one process, replayed by another one.

python -m tests.threads.packages record FOLDER        records each agent twice
python -m tests.threads.packages replay FOLDER        prints {name: verdicts}
"""

from __future__ import annotations

import asyncio
import json
import operator
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from agentloom import Trace, agent, tool
from agentloom.adapters import sdks
from agentloom.store import open_store
from agentloom.testing import FakeProvider

TIMES = 2


@tool(effect="read")
def work(number: int) -> int:
    time.sleep(random.random() / 100)
    return number * 2


@agent
def openai_in_a_pool(url: str) -> list[str]:
    """A sync client, asked from several threads at once; answers as they come."""
    import openai

    def ask(number: int) -> str:
        messages: Any = [{"role": "user", "content": f"question {number}"}]
        answer = client.chat.completions.create(model="gpt-4o", messages=messages)
        return f"{number}: {answer.choices[0].message.content}"

    with openai.OpenAI(base_url=url, api_key="none") as client, ThreadPoolExecutor(3) as pool:
        return [future.result() for future in as_completed([pool.submit(ask, number) for number in range(4)])]


@agent
async def openai_in_to_thread(url: str) -> list[str]:
    import openai

    heard: list[str] = []

    def ask(number: int) -> None:
        messages: Any = [{"role": "user", "content": f"question {number}"}]
        answer = client.chat.completions.create(model="gpt-4o", messages=messages)
        heard.append(f"{number}: {answer.choices[0].message.content}")

    with openai.OpenAI(base_url=url, api_key="none") as client:
        await asyncio.gather(*(asyncio.to_thread(ask, number) for number in range(3)))
    return heard


@agent
async def openai_awaited(url: str) -> str:
    """The client asks a thread what system it runs on."""
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        messages: Any = [{"role": "user", "content": "hello"}]
        answer = await client.chat.completions.create(model="gpt-4o", messages=messages)
    return str(answer.choices[0].message.content)


def _graph() -> Any:
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        done: Annotated[list[Any], operator.add]

    def node(number: int) -> Callable[[Any], Any]:
        return lambda state: {"done": [(number, work(number))]}

    graph = StateGraph(State)
    for number in range(4):
        graph.add_node(f"node{number}", cast(Any, node(number)))
        graph.add_edge(START, f"node{number}")
        graph.add_edge(f"node{number}", END)
    return graph.compile()


@agent(guard="virtual")
def langgraph_side_by_side(url: str) -> list[Any]:
    graph = _graph()
    parts = [list(part) for part in graph.stream({"done": []}, stream_mode="updates")]
    return [graph.invoke({"done": []})["done"], parts]


@agent(guard="virtual")
async def langgraph_awaited(url: str) -> list[Any]:
    """Sync nodes of an async graph run in the loop's executor."""
    return list((await _graph().ainvoke({"done": []}))["done"])


@agent(guard="virtual")
def langgraph_tool_node(url: str) -> list[str]:
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as described
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @described
    def double(number: int) -> str:
        """Twice the number."""
        return str(work(number))

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([double]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    calls: Any = [
        {"name": "double", "args": {"number": number}, "id": f"call-{number}"} for number in range(5)
    ]
    messages = graph.compile().invoke({"messages": [AIMessage("", tool_calls=calls)]})["messages"]
    return [str(message.content) for message in messages]


@agent(guard="virtual")
def langchain_batches(url: str) -> list[Any]:
    from langchain_core.runnables import RunnableLambda, RunnableParallel

    seen: list[int] = []

    def one(number: int) -> int:
        result = work(number)
        seen.append(number)
        return result

    several: Any = RunnableParallel(a=RunnableLambda(one), b=RunnableLambda(one))
    completed = list(RunnableLambda(one).batch_as_completed([7, 8, 9]))
    return [RunnableLambda(one).batch([1, 2, 3]), several.invoke(4), completed, list(seen)]


@agent
async def anyio_workers(url: str) -> list[Any]:
    import anyio
    import anyio.from_thread
    import anyio.to_thread

    seen: list[Any] = []

    def in_thread(number: int) -> None:
        seen.append((work(number), threading.current_thread().name))

    async def in_loop(number: int) -> int:
        await anyio.sleep(0.001)
        return number

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(anyio.to_thread.run_sync, in_thread, number)
    back = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(in_loop, work(3)))
    return [seen, back]


@agent
def tqdm_over_a_pool(url: str) -> list[int]:
    """Its monitor is a daemon of its own."""
    import io

    import tqdm  # type: ignore[import-untyped]

    with ThreadPoolExecutor(2) as pool:
        return list(tqdm.tqdm(pool.map(work, range(4)), total=4, file=io.StringIO()))


NEEDS: dict[str, str] = {
    "openai_in_a_pool": "openai", "openai_in_to_thread": "openai", "openai_awaited": "openai",
    "langgraph_side_by_side": "langgraph", "langgraph_awaited": "langgraph", "langgraph_tool_node": "langgraph",
    "langchain_batches": "langchain_core", "anyio_workers": "anyio", "tqdm_over_a_pool": "tqdm",
}  # fmt: skip
AGENTS: dict[str, Any] = {
    name: globals()[name] for name, needs in NEEDS.items() if find_spec(needs) is not None
}


def _record(folder: Path) -> None:
    store = open_store(folder / "store")
    with FakeProvider(lambda _: "an answer") as provider:
        url = provider.env()["OPENAI_BASE_URL"]
        for name, made in AGENTS.items():
            for number in range(TIMES):
                if name.endswith("awaited") or "to_thread" in name or name.startswith("anyio"):
                    trace = asyncio.run(made.arun(url, store=store))
                else:
                    trace = made.run(url, store=store)
                (folder / f"{name}.{number}").write_text(trace.run_id)


def _replay(folder: Path) -> None:
    store = open_store(folder / "store")
    verdicts: dict[str, list[str]] = {}
    for name, made in AGENTS.items():
        for number in range(TIMES):
            trace = Trace.open((folder / f"{name}.{number}").read_text(), store)
            report = trace.replay(agent=made, check=False)
            verdicts.setdefault(name, []).append(
                report.verdict if report.verdict == "identical" else str(report)
            )
    print(json.dumps(verdicts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if hasattr(sdks, "watch"):
        sdks.watch()
    {"record": _record, "replay": _replay}[sys.argv[1]](Path(sys.argv[2]))
