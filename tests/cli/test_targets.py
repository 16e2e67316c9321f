"""What ``run`` and ``replay`` are pointed at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentloom.cli.targets import Target, agent_object, load_module, parse_target
from agentloom.errors import TargetError

TEXT = """
import agentloom
ran = []
@agentloom.agent
def support(n: int) -> int:
    return n
def plain(n): return n
if __name__ == "__main__":
    ran.append(1)
"""


def test_forms(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text(TEXT)
    assert parse_target(str(path)) == Target(str(path), None, None)
    assert parse_target(f"{path}:support") == Target(str(path), None, "support")
    assert parse_target("agent.py:support").path == os.path.abspath("agent.py")
    assert parse_target("package.module:support") == Target(None, "package.module", "support")


@pytest.mark.parametrize("text", ["missing.py", "missing.py:x", ".", "module", "module:"])
def test_what_is_not_there(text: str) -> None:
    with pytest.raises(TargetError):
        parse_target(text)


def test_a_script_loaded_as_main_does_not_run_its_main_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.py"
    path.write_text(TEXT)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    module = load_module(str(path), None, main=True)
    assert module.__name__ == "__main__"
    assert module.ran == []
    assert agent_object(module, "support").function.module == "__main__"


def test_an_object_that_is_no_agent_is_named_with_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some_agent_file.py"
    path.write_text(TEXT)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    module = load_module(str(path), None)
    for name in ("plain", "nothing"):
        with pytest.raises(TargetError, match=name) as caught:
            agent_object(module, name)
        assert "support" in str(caught.value.hint)
    del sys.modules["some_agent_file"]
