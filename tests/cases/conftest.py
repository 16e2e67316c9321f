"""What the cases share: a folder with scripts, run and replayed by the command line as a user does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentloom.testing import FakeProvider
from tests.cli.scripts import Done, Scripts

ASK = '''
import json, os
import httpx2
def ask(messages, **more):
    """One chat completion by plain HTTP: importing the SDK takes a second, and the seam is the same."""
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = {"model": "gpt-4o", "messages": messages} | more
    return httpx2.post(url, json=body).json()["choices"][0]["message"]["content"]
def user(text): return [{"role": "user", "content": text}]
'''


class Scenario(Scripts):
    """Records a script against a scripted provider that is gone afterwards; edits it; replays it."""

    def record(
        self, text: str, replies: Any = (), *args: str, options: Sequence[str] = (), **env: str
    ) -> Done:
        """Record ``agent.py`` with `ask` in front of it. ``replies`` is the provider's script."""
        path = self.write("")
        path.write_text(ASK + text, encoding="utf-8")
        with FakeProvider(replies) as provider:
            done = self.call("run", *options, str(path), "--", *args, env=provider.env() | env)
        assert "recorded" in done.err, done.all
        return done

    def edit(self, *edits: tuple[str, str]) -> None:
        """Change the script."""
        path = self.folder / "agent.py"
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def diverged(self, **env: str) -> tuple[str, dict[str, Any]]:
        """Replay twice, as text and as JSON: both must say that it diverged. The report's lines, and its facts."""
        with ThreadPoolExecutor(2) as pool:
            told, facts = pool.map(lambda args: self.replay(*args, env=env), [(), ("--json",)])
        assert told.code == 3, told.all
        assert facts.code == 3, facts.all
        data = json.loads(facts.out)
        assert data["verdict"] == "diverged"
        text = told.out[told.out.index("DIVERGED") :]
        assert len(text) < 1200 + 100
        assert f"DIVERGED  {data['class']}" in text
        return text, data

    def identical(self, *args: str, **env: str) -> Done:
        """Replay; it must be identical."""
        done = self.replay(*args, env=env)
        assert done.code == 0, done.all
        assert ('"verdict": "identical' if "--json" in args else "IDENTICAL") in done.out
        return done


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """An empty folder."""
    return Scenario(tmp_path)
