"""A process without a network."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are a Linux thing")
def test_leaving_the_network_cuts_loopback_and_keeps_ids_and_files() -> None:
    code = """
import os, socket, sys
from agentloom.cli.netns import leave_network
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
before = os.getuid(), os.getgid()
if not leave_network():
    sys.exit(77)
assert (os.getuid(), os.getgid()) == before
open(__import__("agentloom").__file__).close()
try:
    socket.create_connection(("127.0.0.1", port), timeout=5)
except OSError:
    sys.exit(0)
sys.exit("the connection was made")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode == 77:
        pytest.skip("this machine lets no ordinary user make a network namespace")
    assert done.returncode == 0, done.stderr
