"""The child process that serves one GGUF file over the OpenAI protocol on loopback. Run by path, never imported.

    python -P local_server.py WEIGHTS ALIAS CONTEXT THREADS

It prints one JSON line ``{"url": "http://127.0.0.1:PORT"}`` when it listens, then serves until its standard input
ends or its parent is gone. It imports nothing of agentloom, so it starts as fast as the weights load.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
from typing import Any

__all__ = ["PARENT_CHECK_SECONDS", "main", "parameters"]

PARENT_CHECK_SECONDS = 0.5


def parameters(weights: str, alias: str, context: int, threads: int) -> Any:
    """Server parameters of xllamacpp: loopback, a port chosen by the system, no web page, no GPU, no warm-up."""
    params: Any = importlib.import_module("xllamacpp").CommonParams()
    params.model.path = weights
    params.model_alias = {alias}  # otherwise answers name the file, a path of this machine
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 4
    params.ui = False
    params.warmup = False
    params.verbosity = 0
    return params


def main(argv: list[str]) -> int:
    """Serve until told to stop; the exit code is 0 then, and 1 when the server cannot start (reason on stderr)."""
    # A Ctrl-C in the terminal reaches the whole process group; only the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    weights, alias, context, threads = argv[0], argv[1], int(argv[2]), int(argv[3])
    server: Any = importlib.import_module("xllamacpp").Server(parameters(weights, alias, context, threads))
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    told = threading.Event()

    def listen() -> None:
        sys.stdin.buffer.read()
        told.set()

    threading.Thread(target=listen, daemon=True).start()
    # A sibling forked from the parent may keep our standard input open, so the parent's death is checked as well.
    while not told.wait(PARENT_CHECK_SECONDS):
        if os.getppid() != parent:
            break
    # No teardown: the process holds nothing but memory and a listening socket.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
