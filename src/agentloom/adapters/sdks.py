"""All SDK adapters of this package, switched on together. Loading this module loads none of them: each is loaded when
the program imports the library that it is for."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable
from types import ModuleType
from typing import cast

from agentloom.adapters.imports import when_imported
from agentloom.errors import NotSupported

__all__ = ["watch"]

_PATCHES = {
    "aiohttp": "aiohttp_seam:install",
    "httpx": "httpx_seam:install",
    "httpx2": "httpx_seam:install",
    "urllib3": "urllib3_seam:install",
    "requests": "urllib3_seam:install_requests",
    "urllib.request": "urllib_seam:install",
    "openai._base_client": "stainless_sdk:install",
    "anthropic._base_client": "stainless_sdk:install",
    "google.genai._extra_utils": "google_tools:install",
    "langchain_core.tools.base": "langchain_tools:install",
    "langchain_core.retrievers": "langchain_retrievers:install",
    "langchain_core.vectorstores.base": "langchain_retrievers:install_stores",
    "langgraph.checkpoint.base": "langgraph_memory:install",
    "langgraph.store.base": "langgraph_store:install",
    "langgraph.pregel._runner": "langgraph_nodes:install",
    "langgraph.types": "langgraph_values:declare_types",
    "pydantic_ai.toolsets.function": "pydantic_ai_seam:install_tools",
    "pydantic_ai._utils": "pydantic_ai_seam:install_utils",
    "pydantic_ai.agent": "pydantic_ai_seam:install_agent",
    "agents.tool": "openai_agents_seam:install_tools",
    "agents.run": "openai_agents_seam:install_runs",
    "agents.memory.session": "openai_agents_memory:install",
    "agents.memory.sqlite_session": "openai_agents_memory:install_sqlite",
    "llama_index.core.tools.function_tool": "llama_index_seam:install_tools",
    "llama_index.core.base.base_retriever": "llama_index_seam:install_retrievers",
    "workflows.runtime.types.step_function": "llama_index_seam:install_steps",
    "workflows.plugins.basic": "llama_index_seam:install_runtime",
    "mcp.shared.jsonrpc_dispatcher": "mcp_seam:install_dispatcher",
    "mcp.shared.session": "mcp_v1:install_session",
    "mcp.shared.memory": "mcp_v1:install_memory",
    "mcp.client.stdio": "mcp_seam:install_transport",
    "mcp.client.websocket": "mcp_seam:install_transport",
    "mcp.client.sse": "mcp_seam:install_transport",
    "mcp.client.streamable_http": "mcp_seam:install_transport",
    "mcp.client._memory": "mcp_seam:install_memory",
    "mcp.client.client": "mcp_seam:install_client",
}
"""What is done to a module when it is imported, by a function of an adapter."""

_CHECKED = ("openai", "anthropic", "google.genai", "litellm")
"""Modules that need no patch of their own; their release is looked at."""

_APIS = ("api_anthropic", "api_google", "api_openai")
"""Who claims exchanges, in this order: the addresses of the last are the least telling."""


def watch() -> None:
    """Patch every SDK that this package knows, now or when the program imports it. Idempotent.

    Call it before a run begins: it also asks for the platform facts that SDKs send, because finding them starts a
    process (``uname -p``) and reads files the first time. The standard library keeps the answers.
    """
    _ = platform.uname().processor
    platform.platform()
    for name in (*_PATCHES, *_CHECKED):
        when_imported(name, _patch)


def _adapter(name: str) -> ModuleType:
    return importlib.import_module(f"agentloom.adapters.{name}")


def _patch(module: ModuleType) -> None:
    """Check the release and patch. What cannot be patched is named in a warning: the program goes on without it."""
    from agentloom.adapters.exchanges import claim
    from agentloom.adapters.releases import check, range_of, say

    name = module.__name__
    check(name)
    if name not in _PATCHES:
        return
    for api in _APIS:
        claim(_adapter(api).classify)
    adapter, _, function = _PATCHES[name].partition(":")
    install = cast("Callable[[ModuleType], None]", getattr(_adapter(adapter), function))
    try:
        install(module)
    except (NotSupported, AttributeError) as error:  # a release that is built in another way
        known = range_of(name)
        tested = f"; tested: {known}" if known else ""
        say(
            f"{name} patch",
            f"the adapter {name} does not fit, so its calls are not recorded: {error}{tested}",
        )
