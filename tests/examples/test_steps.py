"""What happens inside a step, in programs of examples/workflows: recorded with faults, replayed without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, use_memory
from agentloom.runtime.memory import DictMemory
from agentloom.store import MemoryStore
from agentloom.testing import Fails, FakeProvider, Seen
from tests.examples.test_workflows import EXAMPLES, module_of

pytest.importorskip("openai", reason="the openai SDK (extra models) is not installed")
pytest.importorskip("anthropic", reason="the anthropic SDK (extra models) is not installed")

Recorded = tuple[Any, Trace, list[Seen]]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recorded]:
    """Records a run of an example against a script; the replay runs the example loaded afresh, without a server."""

    def recorded(name: str, given: str, script: Any) -> Recorded:
        module = module_of(name)
        with FakeProvider(script) as fake:
            for variable, value in fake.env().items():
                monkeypatch.setenv(variable, value)
            trace = module.graph.run(given, seed=1, store=MemoryStore())
        assert trace.replay(agent=module_of(name).graph).verdict == "identical"
        return module, trace, fake.seen

    return recorded


def states(trace: Trace) -> dict[str, Any]:
    return {
        str(entry["name"]): trace.journal.tree(str(entry["val"]))
        for entry in trace.journal.entries
        if entry["kind"] == "state"
    }


def test_again(record: Any) -> None:
    _, trace, seen = record("again", "the sea", [Fails(429, retry_after=0.3), Fails(503), "Rain on the sea."])
    assert (trace.output, len(seen)) == ("Rain on the sea.", 3)
    work = [
        (call.kind, call.status, call.id.rpartition("~")[2])
        for call in trace.calls
        if call.path.count("/") == 2
    ]
    assert [status for _, status, _ in work] == ["error", "ok", "error", "error", "ok"]
    assert [attempt for _, _, attempt in work][1::2] == ["2", "2"]
    waits = [call.request["seconds"] for call in trace.calls if call.kind == "sleep"]
    assert 0.18 <= waits[0] <= 0.22  # the tool's policy: 0.2, give or take a tenth
    assert 0.3 <= waits[1] <= 0.55  # the policy's own, or what the provider asked for
    assert 0.9 <= waits[2] <= 1.1


def test_fallback(record: Any) -> None:
    script = [Fails(500), Fails(500), "Because of scattering."]
    _, trace, seen = record("fallback", "Why?", script)
    assert trace.output == "Because of scattering."
    assert [one.protocol for one in seen] == ["openai", "openai", "anthropic"]
    assert states(trace) == {"model:answer": "claude-haiku-4-5"}
    _, trace, seen = record("fallback", "Why?", ["At once."])
    assert (trace.output, states(trace), len(seen)) == ("At once.", {"model:answer": "gpt-4o"}, 1)


def test_typed(record: Any) -> None:
    good = '{"team": "billing", "urgent": false, "summary": "charged twice"}'
    _, trace, seen = record(
        "typed", "charged!", ["Sure! Here it is:", good.replace("billing", "sales"), good]
    )
    assert trace.output == "queued for billing: charged twice"
    assert [len(one.body["messages"]) for one in seen] == [1, 3, 3]
    assert "team: Input should be 'billing', 'technical' or 'other'" in seen[2].body["messages"][2]["content"]


def test_template(record: Any) -> None:
    _, trace, seen = record("template", "Where is it?", ["On its way."])
    prompt = seen[0].body["messages"][0]["content"]
    assert prompt.startswith(
        'Answer the mail below. Be short and kind. Use these facts and no others: ["the parcel'
    )
    assert prompt.endswith("Write placeholders as {name}.\n\nWhere is it?\n")
    kept = states(trace)["template:reply"]
    assert kept["template"] == (EXAMPLES / "prompts" / "reply.md").read_text(encoding="utf-8")
    assert kept["source"] == "prompts/reply.md"
    assert list(kept["variables"]) == ["tone", "facts", "input"]


@pytest.fixture
def fresh_memory() -> Iterator[None]:
    before = use_memory(DictMemory())
    yield
    use_memory(before)


@pytest.mark.usefixtures("fresh_memory")
def test_remember(record: Any) -> None:
    _, first, _ = record("remember", "I am Ann.", ["Hello."])
    _, second, seen = record("remember", "Who am I?", ["Ann."])
    assert (states(first)["known"], states(second)["known"]) == ([], ["I am Ann."])
    assert 'You know this of me: ["I am Ann."]. Who am I?' in seen[0].body["messages"][0]["content"]
    assert second.output == "Ann."


def test_every_program_of_the_folder_is_run_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert not [path.stem for path in EXAMPLES.glob("*.py") if f'"{path.stem}"' not in tests]
