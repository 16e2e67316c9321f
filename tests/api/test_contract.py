"""The contract's snippet, on a local server that speaks OpenAI's and Anthropic's protocols, without a key."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("llmock", reason="llmock (extra dev) is not installed")
pytest.importorskip("openai", reason="the openai SDK (extra models) is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "contract" / "route.py"
CREDENTIALS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _llmock() -> Iterator[str]:
    """A running llmock; its base URL. Its answers differ from call to call."""
    port = _free_port()
    command = "import sys; from llmock.cli import app; sys.exit(app())"
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--response-style",
        "varied",
        "--log-level",
        "error",
    ]
    server = subprocess.Popen(
        [sys.executable, "-c", command, "serve", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=10)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"llmock ended with exit code {server.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            continue
        return
    pytest.fail("llmock did not answer within a minute")


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in CREDENTIALS}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def _agentloom(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentloom", *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example and a store that holds its recorded run; the server is gone."""
    folder = tmp_path_factory.mktemp("contract")
    shutil.copy(EXAMPLE, folder / "route.py")
    with _llmock() as url:
        env = _environment(
            OPENAI_BASE_URL=f"{url}/v1",
            ANTHROPIC_BASE_URL=f"{url}/anthropic",
            AGENTLOOM_STORE=str(folder / "store"),
        )
        done = subprocess.run(
            [sys.executable, "route.py", "I was charged twice"],
            cwd=folder, env=env, capture_output=True, check=False, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "route_intent ran 2 times: once live, once on replay" in done.stdout
    return folder


def test_the_snippet_records_a_model_step_of_each_provider(recorded: Path) -> None:
    done = _agentloom(
        "show", "last", "--json", "--store", str(recorded / "store"), cwd=recorded, env=_environment()
    )
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)["calls"]
    assert [call["name"] for call in calls if call["kind"] == "model"] == ["gpt-4o", "claude-haiku-4-5"]


@pytest.mark.parametrize(
    ("seed", "zone", "locale"),
    [("0", "UTC", "C"), ("1", "Asia/Tokyo", "C.UTF-8"), ("4242", "America/St_Johns", "POSIX")],
)
def test_it_replays_elsewhere_with_the_server_stopped(
    recorded: Path, tmp_path: Path, seed: str, zone: str, locale: str
) -> None:
    env = _environment(PYTHONHASHSEED=seed, TZ=zone, LC_ALL=locale)
    done = _agentloom(
        "replay", "last", "--store", str(recorded / "store"), "--target", str(recorded / "route.py"), "--json",
        cwd=tmp_path, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"] == "identical"


def test_a_constant_edited_in_route_intent_is_named_as_the_cause(recorded: Path, tmp_path: Path) -> None:
    edited = tmp_path / "route.py"
    source = (recorded / "route.py").read_text(encoding="utf-8")
    # Whatever the mock server said, the edited rule decides otherwise.
    changed = re.sub(r'return "human" if any\(.*\) else "bot"', 'return "nobody"', source)
    assert changed != source
    edited.write_text(changed, encoding="utf-8")
    done = _agentloom(
        "replay",
        "last",
        "--store",
        str(recorded / "store"),
        "--target",
        str(edited),
        cwd=tmp_path,
        env=_environment(),
    )
    assert done.returncode == 3, done.stdout + done.stderr
    text = done.stdout + done.stderr
    assert "DIVERGED" in text
    assert "route_intent" in text
    assert "nobody" in text
