"""Each program of examples/workflows, recorded against a scripted server and replayed with the server gone."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentloom import Trace, Workflow
from agentloom.errors import ModelError
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Seen
from tests.api.test_contract import _llmock as llmock
from tests.docs.blocks import ROOT

pytest.importorskip("openai", reason="the openai SDK (extra models) is not installed")

EXAMPLES = ROOT / "examples" / "workflows"
Answers = Callable[[str], str]


def module_of(name: str) -> ModuleType:
    """The example as a fresh module."""
    spec = importlib.util.spec_from_file_location(f"workflow_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[ModuleType, Trace, list[str]]]:
    """Records a run of an example; gives the module, the trace and the prompts that the server saw, sorted."""

    def recorded(name: str, given: str, answers: Answers) -> tuple[ModuleType, Trace, list[str]]:
        module = module_of(name)
        with FakeProvider(lambda seen: Says(answers(_prompt(seen)))) as fake:
            monkeypatch.setenv("OPENAI_BASE_URL", fake.openai_url)
            trace = module.graph.run(given, store=MemoryStore())
        assert trace.replay(agent=module_of(name).graph).verdict == "identical"
        return module, trace, sorted(map(_prompt, fake.seen))

    return recorded


def _prompt(seen: Seen) -> str:
    return str(seen.body["messages"][-1]["content"])


def states(trace: Trace) -> list[tuple[Any, Any, Any]]:
    """Name, choice and what was not chosen of each deterministic result."""
    return [
        (entry["name"], entry.get("goto"), entry.get("others", []))
        for entry in trace.journal.entries
        if entry["kind"] == "state"
    ]


def test_choose(record: Any) -> None:
    _, trace, prompts = record("choose", "I was charged twice", lambda prompt: "Billing")
    assert trace.output == "forwarded: I was charged twice"
    assert states(trace)[0] == ("route", "person", ["robot"])
    _, trace, prompts = record("choose", "hello", lambda prompt: "Hi" if "sentence" in prompt else "other")
    assert (trace.output, len(prompts)) == ("Hi", 2)
    assert states(trace)[0] == ("route", "robot", ["person"])


def test_branches(record: Any) -> None:
    _, trace, prompts = record("branches", " Why? ", lambda prompt: "because" if "for it" in prompt else "no")
    assert trace.output == "no"
    assert prompts == [
        "Decide. For: because Against: no",
        "One reason against it: Why?",
        "One reason for it: Why?",
    ]
    assert [call.path for call in trace.calls if "decide" not in call.path] == [
        "root/branches/pro[0]",
        "root/branches/contra[0]",
    ]


def test_revise(record: Any) -> None:
    answers = {"A slogan about tea.": "a b c d e f g", "Shorter, please: a b c d e f g (7 words)": "a b c"}
    _, trace, prompts = record("revise", "tea", answers.__getitem__)
    assert trace.output == "a b c (short enough)"
    assert prompts == sorted(answers)
    assert [state for state in states(trace) if state[0] == "check"] == [
        ("check", "draft", ["print"]),
        ("check", None, ["draft"]),
    ]
    _, trace, prompts = record("revise", "tea", lambda prompt: "it stays as long as this")
    assert (trace.output, len(prompts)) == ("it stays as long as this (the best that we have)", 4)


def test_part(record: Any) -> None:
    _, trace, prompts = record("part", "Bonjour", lambda prompt: prompt.partition(": ")[2].upper() + " ")
    assert trace.output == "BONJOUR"
    assert len(prompts) == 3
    assert [call.id for call in trace.calls if call.kind == "agent"] == [
        "root/answer_mail/read[0]#1",
        "root/answer_mail/send[0]#1",
    ]


def test_each(record: Any) -> None:
    _, trace, prompts = record("each", "sea, hills,train", lambda prompt: prompt.rpartition(" ")[2])
    assert trace.output == "sea.\nhills.\ntrain."
    assert len(prompts) == 3
    assert ("each:lines", None, []) in states(trace)


def test_review(record: Any) -> None:
    _, trace, prompts = record(
        "review", "money?", lambda prompt: "Yes." if "Rules" in prompt else "You get it"
    )
    assert trace.output == "a person looks at it"
    judged = next(call for call in trace.calls if call.name == "judge")
    assert judged.request["kwargs"] == {"rules": "Promise no money. Name no customer.", "draft": "You get it"}
    assert not any("money?" in prompt for prompt in prompts if "Rules" in prompt)


def test_act(record: Any) -> None:
    module, trace, _ = record("act", "812", lambda prompt: prompt.lower())
    assert trace.output == "write to ada: refunded 40 for order 812"
    assert module.PAID == [(812, 40)]
    assert [(call.kind, call.name) for call in trace.calls] == [
        ("tool", "look_up"),
        ("tool", "refund"),
        ("agent", "mail_writer"),
        ("model", "gpt-4o"),
    ]


def test_draw(record: Any) -> None:
    module, trace, _ = record("draw", "", lambda prompt: "6" if "2" in prompt else "1")
    graph: Workflow = module.graph
    lines = graph.draw(run=trace).splitlines()
    assert '    s0["guess<br/>model gpt-4o<br/>ran 2 times"]' in lines
    assert '    s1 == "1 of 2" ==> s0' in lines
    assert '    s2("celebrate<br/>fn<br/>not reached")' in lines
    assert graph.draw("dot", run=trace).startswith("digraph {")


def test_watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path))
    with FakeProvider(lambda seen: Says("sea")) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.openai_url)
        trace = asyncio.run(module_of("watch").main("tea"))
    assert capsys.readouterr().out.splitlines()[:2] == ["one ...", "two ..."]
    assert trace.output == "sea / sea"
    assert trace.replay(agent=module_of("watch").graph).verdict == "identical"


def test_an_example_fails_without_its_server_and_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    store = MemoryStore()
    with pytest.raises(ModelError):
        module_of("choose").graph.run("x", store=store)
    assert Trace.open("last", store).replay(agent=module_of("choose").graph).verdict == "identical"


def test_an_example_is_recorded_and_replayed_by_the_commands(tmp_path: Path) -> None:
    def agentloom(*arguments: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", *arguments],
            cwd=tmp_path,
            env={"PYTHONDONTWRITEBYTECODE": "1", "AGENTLOOM_STORE": str(tmp_path / "store"), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    target = f"{EXAMPLES / 'choose.py'}:graph"
    with FakeProvider(lambda seen: Says("billing")) as fake:
        agentloom("run", target, "--", "refund me", OPENAI_BASE_URL=fake.openai_url, OPENAI_API_KEY="unused")
    assert json.loads(agentloom("replay", "last", "--target", target, "--json"))["verdict"] == "identical"
    assert "goes to person, not to robot" in agentloom("show", "last")


@pytest.fixture(scope="module")
def llmock_url() -> Iterator[str]:
    """A server whose answers differ from call to call."""
    pytest.importorskip("llmock", reason="llmock (extra dev) is not installed")
    with llmock() as url:
        yield f"{url}/v1"


@pytest.mark.parametrize(
    "name", ["act", "branches", "choose", "draw", "each", "part", "review", "revise", "watch"]
)
def test_every_example_replays_whatever_the_model_says(
    name: str, llmock_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", llmock_url)
    module = module_of(name)
    trace = module.graph.run("812", store=MemoryStore())
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert trace.replay(agent=module_of(name).graph).verdict == "identical"
