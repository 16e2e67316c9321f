# mypy: ignore-errors
"""The graph of langgraph_agent.py in sync code: its nodes, tools and branches run in LangGraph's thread pool."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Send


@tool
def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}"


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    checked: Annotated[list[str], operator.add]


def build(url: str) -> Any:
    plain = ChatOpenAI(model="m", base_url=url, api_key="unused", max_retries=0)
    model = plain.bind_tools([price])

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def route(state: State) -> Any:
        if state["messages"][-1].tool_calls:
            return "tools"
        found = [message.content for message in state["messages"] if message.type == "tool"]
        return [Send("check", {"claim": claim}) for claim in found]

    def check(state: dict[str, Any]) -> dict[str, Any]:
        return {"checked": [plain.invoke([HumanMessage(f"check: {state['claim']}")]).content]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([price]))
    graph.add_node("check", check)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", route, ["tools", "check"])
    graph.add_edge("tools", "ask")
    graph.add_edge("check", END)
    return graph.compile()


def agent(url: str, question: str) -> dict[str, Any]:
    result = build(url).invoke({"messages": [HumanMessage(question)], "checked": []})
    return {"said": [(message.type, message.id, message.content) for message in result["messages"]], **result}
