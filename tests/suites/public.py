"""The public example agents that are recorded and replayed: as their packages ship them, by name, never copied here."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EXAMPLES", "OVERLAYS", "Example"]

OVERLAYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "pydantic-ai-examples": (("logfire",), True),
    "langgraph-agents": (
        ("langgraph-supervisor", "langgraph-swarm", "langchain", "langchain-anthropic"),
        False,
    ),
    "llama-index": (("llama-index-llms-openai", "llama-index-workflows"), True),
}
"""Packages that only the examples need, and whether with all that they depend on."""


@dataclass(frozen=True)
class Example:
    """A file of a source distribution, or blocks of the page that a package is published with."""

    framework: str
    package: str  # whose source distribution, or whose page
    file: str | None = None
    page: tuple[str, ...] = ()  # the blocks in which these words stand, one after the other
    version: str | None = None  # where the package itself is not installed
    overlay: str | None = None
    options: tuple[str, ...] = ()  # of ``agentloom run``
    arguments: tuple[str, ...] = ()
    given: str = ""  # on standard input
    serve: tuple[str, ...] = ()  # a program of the same distribution that serves on port 8000
    env: dict[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.package}: {self.file or 'page, ' + repr(self.page[-1])}"


def _agents(file: str, *options: str) -> Example:
    return Example("OpenAI Agents SDK", "openai-agents", f"examples/{file}", options=options)


def _pydantic(file: str) -> Example:
    return Example(
        "pydantic-ai", "pydantic-ai-examples", f"pydantic_ai_examples/{file}", version="2.62.0",
        overlay="pydantic-ai-examples",
    )  # fmt: skip


def _mcp(file: str, server: str = "docs_src/client/tutorial001.py") -> Example:
    return Example("MCP", "mcp", f"docs_src/{file}", serve=(server,))


def _google(words: str) -> Example:
    """The page makes a client once, in a block of its own."""
    page = ("from google import genai\n", "client = genai.Client()", words)
    return Example("google-genai", "google-genai", page=page)


EXAMPLES: tuple[Example, ...] = (
    _agents("basic/hello_world.py"),
    _agents("basic/tools.py"),
    _agents("basic/stream_text.py"),
    _agents("basic/stream_items.py"),
    _agents("basic/dynamic_system_prompt.py"),
    _agents("basic/lifecycle_example.py"),
    _agents("basic/agent_lifecycle_example.py"),
    _agents("basic/non_strict_output_type.py"),
    _agents("basic/usage_tracking.py"),
    _agents("agent_patterns/agents_as_tools.py"),
    _agents("agent_patterns/deterministic.py"),
    _agents("agent_patterns/parallelization.py"),
    _agents("agent_patterns/routing.py"),
    _agents("agent_patterns/llm_as_a_judge.py"),
    _agents("agent_patterns/output_guardrails.py"),
    _agents("handoffs/message_filter.py"),
    _agents("memory/sqlite_session_example.py"),
    _agents("customer_service/main.py"),
    _pydantic("pydantic_model.py"),
    _pydantic("bank_support.py"),
    _pydantic("medical_agent_delegation.py"),
    _pydantic("flight_booking.py"),
    _pydantic("weather_agent.py"),
    _pydantic("stream_whales.py"),
    Example("LangGraph", "langgraph-supervisor", page=("create_supervisor(",), overlay="langgraph-agents"),
    Example("LangGraph", "langgraph-swarm", page=("create_swarm(",), overlay="langgraph-agents"),
    Example("LangGraph", "langgraph", "bench/react_agent.py"),
    Example(
        "LangChain", "langgraph-prebuilt", page=("app = create_react_agent(model, tools)",), overlay="langgraph-agents"
    ),
    Example("LangChain", "langgraph-prebuilt", page=("tool_node.invoke",)),
    Example(
        "LlamaIndex", "llama-index-llms-openai", page=('complete("Paul', "resp = OpenAI().chat(messages)"),
        overlay="llama-index",
    ),
    Example("LlamaIndex", "llama-index-llms-openai", page=("llm.stream_chat(",), overlay="llama-index"),
    Example("LlamaIndex", "llama-index-workflows", page=("MyWorkflow(Workflow)",), overlay="llama-index"),
    Example("litellm", "litellm", page=("from litellm import completion",)),
    Example("litellm", "litellm", page=("from litellm import Router",)),
    _google("tools=[get_current_weather])"),
    _google("class CountryInfo"),
    _google("generate_content_stream("),
    _mcp("client/tutorial001_client.py"),
    _mcp("client/tutorial002.py"),
    _mcp("client/tutorial003.py"),
    _mcp("pagination/tutorial002.py"),
)  # fmt: skip
