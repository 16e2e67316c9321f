# mypy: ignore-errors
"""LangGraph with memory: a retriever, a tool that a person has to agree to, and the answer in a second call."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt


@tool
def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}, says {interrupt(f'sell {item}?')}"


def build(url: str) -> Any:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(id=name, page_content=f"about {name}") for name in ("fig", "apple")])
    shelf = store.as_retriever(search_kwargs={"k": 1})
    model = ChatOpenAI(model="m", base_url=url, api_key="unused", max_retries=0).bind_tools([price])

    async def ask(state: MessagesState) -> dict[str, Any]:
        found = await shelf.ainvoke(state["messages"][0].content)
        answer = await model.ainvoke([SystemMessage(found[0].page_content), *state["messages"]])
        return {"messages": [answer]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([price]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition, ["tools", END])
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=InMemorySaver())


async def agent(url: str, question: str) -> list[Any]:
    graph, thread = build(url), {"configurable": {"thread_id": question}}
    result = await graph.ainvoke({"messages": [HumanMessage(question)]}, thread)
    while asked := result.get("__interrupt__"):
        result = await graph.ainvoke(Command(resume={one.id: f"yes to {one.value}" for one in asked}), thread)
    return [(message.type, message.content) for message in result["messages"]]
