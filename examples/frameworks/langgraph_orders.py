"""LangGraph: a model with two tools that ToolNode runs in parallel, and a checkpointer."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def look_up(order: int) -> str:
    """What an order is."""
    print("looking up", order)
    return f"order {order}: $40.00"


@tool
def refund(order: int) -> str:
    """Pays an order back."""
    return f"refunded {order}"


def ask(state: MessagesState) -> dict:
    model = ChatOpenAI(model="gpt-4o", max_retries=0).bind_tools([look_up, refund])
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("ask", ask)
graph.add_node("tools", ToolNode([look_up, refund]))
graph.add_edge(START, "ask")
graph.add_conditional_edges("ask", tools_condition)
graph.add_edge("tools", "ask")
support = graph.compile(checkpointer=InMemorySaver())
result = support.invoke(
    {"messages": [HumanMessage("Refund order 812.")]}, {"configurable": {"thread_id": "T-17"}}
)
print(result["messages"][-1].content)
