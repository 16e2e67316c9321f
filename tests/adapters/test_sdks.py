"""Watching SDKs imports none of them."""

from __future__ import annotations

import subprocess
import sys


def test_watching_imports_no_sdk_and_patches_it_when_it_comes() -> None:
    code = """
import sys
from agentloom.adapters import sdks
sdks.watch()
sdks.watch()
assert not {"openai", "httpx", "httpx2"} & set(sys.modules), sorted(sys.modules)
import httpx2
assert httpx2.__agentloom__
import openai
assert sys.modules["openai._base_client"].__agentloom__
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
