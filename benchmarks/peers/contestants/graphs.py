"""LangGraph with checkpoints in SQLite: the state graph, and the functional interface."""

from __future__ import annotations

import importlib
import json
import operator
import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

from benchmarks.agent import workload
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant

__all__ = ["Functional", "Graph"]

_graph: Any = importlib.import_module("langgraph.graph")
_func: Any = importlib.import_module("langgraph.func")
_types: Any = importlib.import_module("langgraph.types")
_sqlite: Any = importlib.import_module("langgraph.checkpoint.sqlite")


class _State(TypedDict):
    messages: Annotated[list[Message], operator.add]


def _model(state: _State) -> dict[str, list[Message]]:
    return {"messages": [workload.model(state["messages"])]}


def _tool(state: _State) -> dict[str, list[Message]]:
    call = state["messages"][-1]["tool_calls"][0]
    arguments = json.loads(call["function"]["arguments"])
    content = json.dumps(workload.tool(arguments["q"], arguments["n"]))
    return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": content}]}


def _compiled(turns: int, saver: Any = None) -> Any:
    builder = _graph.StateGraph(_State)
    builder.add_node("model", _model)
    builder.add_node("tool", _tool)
    builder.add_edge(_graph.START, "model")
    builder.add_edge("model", "tool")
    ends = lambda state: _graph.END if len(state["messages"]) >= 2 + 2 * turns else "model"  # noqa: E731
    builder.add_conditional_edges("tool", ends, ["model", _graph.END])
    return builder.compile(checkpointer=saver)


_CONFIG = {"configurable": {"thread_id": "run"}, "recursion_limit": 10**6}


class _Saved(Contestant):
    connection: sqlite3.Connection | None = None

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        self.close()
        self.connection = sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False)
        self.saver: Any = _sqlite.SqliteSaver(self.connection)

    def size(self) -> int:
        assert self.connection is not None
        self.connection.execute("pragma wal_checkpoint(TRUNCATE)")
        return super().size()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


class Graph(_Saved):
    """A checkpoint after each node. Going on from one performs what comes after it again: nothing is replayed."""

    replays = False

    def bare(self, turns: int) -> list[Message]:
        messages: list[Message] = _compiled(turns).invoke({"messages": workload.start()}, _CONFIG)["messages"]
        return messages

    def record(self, turns: int) -> list[Message]:
        graph = _compiled(turns, self.saver)
        found = graph.invoke({"messages": workload.start()}, _CONFIG, durability="async")
        messages: list[Message] = found["messages"]
        return messages


class Functional(_Saved):
    """An entrypoint that stops before its end. To resume runs its body again, tasks answered from the checkpoint."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        model, tool = _func.task(workload.model), _func.task(workload.tool)
        self.turns = 0
        self.edited_at: int | None = None

        def body(_: Any) -> int:
            messages = workload.loop(
                lambda messages: model(list(messages)).result(),
                lambda q, n: tool(q, n).result(),
                self.turns,
                self.edited_at,
            )
            _types.interrupt("end")
            return len(messages)

        self.workflow: Any = _func.entrypoint(checkpointer=self.saver)(body)

    def record(self, turns: int) -> None:
        self.turns = turns
        self.workflow.invoke({"go": True}, _CONFIG)

    def replay(self, turns: int, edited_at: int | None = None) -> int:
        self.turns, self.edited_at = turns, edited_at
        length: int = self.workflow.invoke(_types.Command(resume=1), _CONFIG)
        return length
