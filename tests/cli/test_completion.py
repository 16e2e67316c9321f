"""Shell completion: the scripts, and what they ask for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import samples


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_the_script(cli: Callable[..., Any], shell: str) -> None:
    assert "_AGENTLOOM_COMPLETE" in cli("completion", shell).out
    assert cli("completion", shell, "--json").data["shell"] == shell


def test_an_unknown_shell_is_a_usage_error(cli: Callable[..., Any]) -> None:
    result = cli("completion", "tcsh")
    assert result.code == 2
    assert "'bash', 'fish', 'zsh'" in result.err


@pytest.mark.parametrize(
    ("words", "expected"), [("agentloom sh", "plain,show"), ("agentloom ls --fa", "plain,--failed")]
)
def test_completes_commands_and_options(words: str, expected: str) -> None:
    env = os.environ | {
        "_AGENTLOOM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "agentloom"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, [expected])


def test_completes_runs_and_files(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.loom").write_bytes(samples.refund().data)
    cli("import", "a.loom")
    env = os.environ | {
        "_AGENTLOOM_COMPLETE": "bash_complete",
        "COMP_WORDS": "agentloom show ",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "agentloom"], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["plain,last", "plain,0001", "file,"]


@pytest.mark.parametrize(("command", "offers"), [("answer", 1), ("signal", 1), ("resume", 3)])
def test_what_takes_an_answer_offers_runs_that_wait(
    cli: Callable[..., Any], tmp_path: Path, command: str, offers: int
) -> None:
    cli("import", str(_written(tmp_path / "a.loom", samples.refund().data)))
    waits = samples.Maker(2)
    waits.call(0, "ask", "ask", {"question": "Shall we?"}, None, status="none")
    waits.entry("suspend", ask="1", call="root/support#0", val=waits.blobs.put({"question": "Shall we?"}))
    cli("import", str(_written(tmp_path / "b.loom", waits.data)))
    env = os.environ | {
        "_AGENTLOOM_COMPLETE": "bash_complete", "COMP_WORDS": f"agentloom {command} ", "COMP_CWORD": "2",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "agentloom"], env=env, capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.split() if line.startswith("plain,")]
    assert len(found) == offers, found
    assert f"plain,{waits.run[-4:]}" in found


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
