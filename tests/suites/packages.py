"""Which suites of other packages are run, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SUITES", "Suite"]


@dataclass(frozen=True)
class Suite:
    """One package's own tests, by the paths of its source distribution."""

    package: str
    part: tuple[str, ...]  # what is run without --all
    quick: tuple[str, ...]  # a few seconds of it
    needs: tuple[str, ...] = ()  # test packages that this environment does not have
    server: str | None = None  # the SDK whose API is served
    options: tuple[str, ...] = ()


_PLUGINS = ("pytest-asyncio", "inline-snapshot", "executing", "asttokens", "dirty-equals", "pytest-timeout")
_LIMIT = ("--timeout=60", "--timeout-method=signal")

SUITES: dict[str, Suite] = {
    "openai": Suite(
        "openai",
        part=(
            "tests/api_resources/chat", "tests/api_resources/test_responses.py", "tests/api_resources/test_batches.py",
            "tests/api_resources/test_embeddings.py", "tests/api_resources/test_files.py",
            "tests/api_resources/test_models.py", "tests/lib/test_azure.py", "tests/lib/chat",
            "tests/test_client.py", "tests/test_streaming.py", "tests/test_response.py",
        ),
        quick=("tests/api_resources/chat/test_completions.py", "tests/api_resources/test_embeddings.py"),
        needs=(*_PLUGINS, "respx"),
        server="openai",
        options=_LIMIT,
    ),
    "anthropic": Suite(
        "anthropic",
        part=(
            "tests/api_resources/test_messages.py", "tests/api_resources/test_models.py",
            "tests/api_resources/messages", "tests/api_resources/beta/test_files.py", "tests/lib/streaming",
            "tests/lib/test_credentials.py", "tests/test_client.py", "tests/test_streaming.py",
            "tests/test_response.py",
        ),
        quick=("tests/api_resources/test_messages.py",),
        needs=(*_PLUGINS, "respx", "http-snapshot", "time-machine"),
        server="anthropic",
        options=_LIMIT,
    ),
    "openai-agents": Suite(
        "openai-agents",
        part=(
            "tests/test_agent_runner.py", "tests/test_agent_runner_streamed.py", "tests/test_agent_runner_sync.py",
            "tests/test_agent_as_tool.py", "tests/test_agent_hooks.py", "tests/test_agent_tracing.py",
            "tests/test_function_tool.py", "tests/test_guardrails.py", "tests/test_handoff_tool.py",
            "tests/test_global_hooks.py", "tests/test_run_hooks.py", "tests/models",
        ),
        quick=("tests/test_agent_runner_sync.py", "tests/test_guardrails.py"),
        needs=_PLUGINS,
        options=_LIMIT,
    ),
}  # fmt: skip
