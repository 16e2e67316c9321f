"""Retries: attempts, waits and jitter are in the trace, and a replay makes the same ones without waiting."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentloom
from agentloom import Retry, Trace, Workflow, agent, retrying, sync, tool
from agentloom.adapters.models import backend
from agentloom.errors import ModelError, NoActiveRun, NotSupported, WorkflowError
from agentloom.store import MemoryStore
from agentloom.testing import Drops, Fails, FakeProvider, Says

testing: Any = pytest.importorskip("llmock.testing", reason="llmock (extra dev) is not installed")
simulation: Any = pytest.importorskip("llmock.simulation")
scenarios: Any = pytest.importorskip("llmock.scenarios")

QUICK = Retry(attempts=3, delay=0.001, jitter=0)
MODELS = ["gpt-4o", "claude-haiku-4-5"]


@pytest.fixture(scope="module")
def llmock() -> Iterator[Any]:
    with testing.LLMockServer(responses=simulation.MockResponseSettings()) as running:
        yield running
    backend.close()


@pytest.fixture
def served(llmock: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", llmock.base_url("openai"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", llmock.base_url("anthropic"))
    return llmock


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], AbstractContextManager[FakeProvider]]:
    @contextmanager
    def started(script: Any) -> Generator[FakeProvider]:
        with FakeProvider(script) as provider:
            for name, value in provider.env().items():
                monkeypatch.setenv(name, value)
            yield provider

    return started


def ids(trace: Trace) -> list[str]:
    return [call.id.removeprefix("root/") for call in trace.calls]


def sleeps(trace: Trace) -> list[float]:
    return [call.request["seconds"] for call in trace.calls if call.kind == "sleep"]


# -- the real SDKs against servers that fail ---------------------------------------------------------------------------


@agent(name="asks")
async def asks(model: str, policy: Retry) -> str:
    return (await agentloom.model(model, "hello", retry=policy)).text


@agent(name="asks")
def asks_sync(model: str, policy: Retry) -> str:
    return sync.model(model, "hello", retry=policy).text


agentloom.register(Retry)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("which", [asks, asks_sync])
def test_faults_that_pass_are_tried_again(served: Any, model: str, which: Any) -> None:
    served.state.scenarios.add(scenarios.Fail(429, retry_after=0.03))
    served.state.scenarios.add(scenarios.Fail(500))
    trace = which.run(model, QUICK, store=MemoryStore())
    assert trace.output
    assert ids(trace) == ["asks#1", "asks/retry[0]#1", "asks#1~2", "asks/retry[0]#2", "asks#1~3"]
    assert [call.status for call in trace.calls] == ["error", "ok", "error", "ok", "ok"]
    assert 0.03 <= sleeps(trace)[0] < 60  # what the provider asked for, not what the policy would wait
    assert sleeps(trace)[1] == 0.002
    requests = [entry for entry in trace.journal.entries if entry["kind"] == "request"]
    assert [entry.get("attempt", 1) for entry in requests] == [1, 1, 2, 1, 3]
    backend.close()
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize("which", [asks, asks_sync])
def test_the_last_error_is_raised_and_says_how_often(fake: Any, which: Any) -> None:
    with fake([Fails(500), Drops(), Fails(503)]) as provider:
        store = MemoryStore()
        with pytest.raises(ModelError) as caught:
            which.run("gpt-4o", QUICK, store=store)
        assert provider.count == 3
    assert caught.value.kind == "overload"
    assert "after 3 attempts" in caught.value.__notes__
    trace = Trace.open(store=store)
    assert (trace.status, len(trace.calls)) == ("failed", 5)
    assert trace.replay(agent=which).verdict == "identical"


@pytest.mark.parametrize("status", [400, 401, 404])
def test_an_error_that_does_not_pass_is_not_tried_again(fake: Any, status: int) -> None:
    with fake([Fails(status)]) as provider, pytest.raises(ModelError):
        asks.run("gpt-4o", QUICK, store=MemoryStore())
    assert provider.count == 1


def test_a_provider_that_asks_for_longer_than_the_policy_waits_is_not_asked_again(fake: Any) -> None:
    with fake([Fails(429, retry_after=120)]) as provider, pytest.raises(ModelError) as caught:
        asks.run("gpt-4o", QUICK, store=MemoryStore())
    assert provider.count == 1
    assert "asks to wait 120 s, longer than Retry(longest=60)" in caught.value.__notes__[0]


def test_a_replay_does_not_wait(fake: Any) -> None:
    with fake([Fails(429, retry_after=0.4), Fails(429, retry_after=0.4), Says("yes")]):
        trace = asks.run("gpt-4o", QUICK, store=MemoryStore())
    began = time.monotonic()
    assert trace.replay().verdict == "identical"
    took = time.monotonic() - began
    assert sum(sleeps(trace)) >= 0.8
    assert took < 0.8


def test_a_changed_policy_diverges_at_the_wait(fake: Any) -> None:
    @agent(name="asks")
    async def patient(model: str, policy: Retry) -> str:
        return (await agentloom.model(model, "hello", retry=Retry(delay=0.5, jitter=0))).text

    with fake([Fails(500), Says("yes")]):
        trace = asks.run("gpt-4o", QUICK, store=MemoryStore())
    report = trace.replay(agent=patient, check=False)
    assert report.verdict == "diverged"
    assert "seconds" in str(report)


# -- any work ----------------------------------------------------------------------------------------------------------

_failures: list[BaseException] = []


@tool(effect="read")
async def look(order: int) -> int:
    if _failures:
        raise _failures.pop(0)
    return order + 1


@tool(effect="read")
def look_sync(order: int) -> int:
    if _failures:
        raise _failures.pop(0)
    return order + 1


async def work(order: int) -> list[int]:
    first = await look(order)
    return [first, *await asyncio.gather(look(first), below(first))]


@agent
async def below(order: int) -> int:
    return await look(order)


BROKEN = Retry(4, delay=0.001, on=(ConnectionError, "rate_limit"))


@agent
async def tries(order: int) -> Any:
    found = await retrying(BROKEN, work, order)
    return [*found, await look(0)]


@agent
def tries_sync(order: int) -> Any:
    def both() -> list[int]:
        return [look_sync(order), *sync.parallel(lambda: look_sync(1), lambda: look_sync(2))]

    return [*sync.retrying(BROKEN, both), look_sync(0)]


def test_what_is_done_again_keeps_its_ids_and_what_comes_after_too() -> None:
    _failures[:] = []
    plain = tries.run(5, store=MemoryStore())
    _failures[:] = [ConnectionError("a"), ModelError("rate_limit", "b", provider="p", model="m")]
    trace = tries.run(5, store=MemoryStore())
    assert trace.output == plain.output == [6, 7, 7, 1]
    logical = [call.id.partition("~")[0] for call in trace.calls if "/retry" not in call.id]
    assert set(logical) == set(ids_of(plain))
    assert trace.calls[-1].id == plain.calls[-1].id
    assert len({call.id for call in trace.calls}) == len(trace.calls)
    assert trace.replay().verdict == "identical"


def ids_of(trace: Trace) -> list[str]:
    return [call.id for call in trace.calls]


def test_an_attempt_that_failed_in_a_branch_is_made_again_below_the_same_paths() -> None:
    policy = Retry(3, delay=0.001, jitter=0, on=KeyError)
    seen = {"count": 0}

    @tool(effect="read")
    async def second_fails(order: int) -> int:
        seen["count"] += 1
        if seen["count"] == 2:
            raise KeyError("second")
        return order

    async def branches() -> list[int]:
        return await agentloom.parallel(second_fails(1), second_fails(2))

    @agent
    async def runs() -> list[int]:
        return await retrying(policy, branches)

    trace = runs.run(store=MemoryStore())
    assert trace.output == [1, 2]
    assert sorted(one for one in ids(trace) if "retry" not in one) == [
        "runs/parallel[0]#1",
        "runs/parallel[0]#1~2",
        "runs/parallel[1]#1",
        "runs/parallel[1]#1~2",
    ]
    assert trace.replay().verdict == "identical"


def test_attempts_inside_attempts_never_share_an_id() -> None:
    _failures[:] = [ConnectionError(str(number)) for number in range(5)]
    inner = Retry(2, delay=0, jitter=0, on=ConnectionError)

    @agent
    async def nested() -> int:
        async def outer() -> int:
            return await retrying(inner, look, 1)

        return await retrying(Retry(3, delay=0, jitter=0, on=ConnectionError), outer)

    trace = nested.run(store=MemoryStore())
    assert trace.output == 2
    assert [one for one in ids(trace) if "retry" not in one] == [
        "nested#1",
        *(f"nested#1~{n}" for n in range(2, 7)),
    ]
    assert trace.replay().verdict == "identical"


def test_sync_agents_and_their_branches() -> None:
    _failures[:] = [ConnectionError("a"), ConnectionError("b")]
    trace = tries_sync.run(5, seed=7, store=MemoryStore())
    assert trace.output == [6, 2, 3, 1]
    assert trace.replay().verdict == "identical"


def test_an_attempt_may_take_so_long_and_no_longer() -> None:
    slow = iter([5.0, 0.0])

    @agent
    async def hurried() -> str:
        async def once() -> str:
            await agentloom.sleep(next(slow))
            return "done"

        return await retrying(Retry(2, delay=0, jitter=0), once, timeout=0.02)

    store = MemoryStore()
    trace = hurried.run(store=store)
    assert trace.output == "done"
    assert [(call.kind, call.status) for call in trace.calls] == [
        ("sleep", "cancelled"), ("sleep", "ok"), ("sleep", "ok"),
    ]  # fmt: skip
    slow = iter([5.0, 0.0])
    assert trace.replay().verdict == "identical"


def test_a_timeout_says_how_long_it_was_and_is_not_somebody_elses() -> None:
    @agent
    async def late() -> None:
        await retrying(1, agentloom.sleep, 5.0, timeout=0.01)

    with pytest.raises(TimeoutError, match=r"longer than timeout=0.01 s"):
        late.run(store=MemoryStore())

    @agent
    async def own() -> None:
        async def raises() -> None:
            raise TimeoutError("mine")

        await retrying(3, raises, timeout=5)

    with pytest.raises(TimeoutError, match="mine"):
        own.run(store=MemoryStore())


# -- interrupted waits -------------------------------------------------------------------------------------------------


def test_a_cancellation_in_the_middle_of_a_wait_replays() -> None:
    store = MemoryStore()

    async def main() -> None:
        task = asyncio.ensure_future(waits.arun(store=store))
        async with asyncio.timeout(10):
            while not store.runs() or len(Trace.open(store=store).calls) < 2:  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0)
        task.cancel()
        await task

    _failures[:] = [ConnectionError("a")]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    trace = Trace.open(store=store)
    assert (trace.status, [call.status for call in trace.calls]) == ("cancelled", ["error", "cancelled"])
    _failures[:] = [ConnectionError("a")]
    assert trace.replay(agent=waits).verdict == "identical"


@agent
async def waits() -> int:
    return await retrying(Retry(3, delay=30, jitter=0, on=ConnectionError), look, 1)


def test_ctrl_c_in_the_middle_of_a_wait_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    @agent
    def waits_sync() -> int:
        return sync.retrying(Retry(3, delay=30, jitter=0, on=(ConnectionError, BaseException)), look_sync, 1)

    _failures[:] = [ConnectionError("a")]
    store = MemoryStore()
    with monkeypatch.context() as patch:
        patch.setattr("agentloom.runtime.host.time.sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            waits_sync.run(store=store)
    trace = Trace.open(store=store)
    assert (trace.status, [call.kind for call in trace.calls]) == ("cancelled", ["tool", "sleep"])
    assert trace.replay(agent=waits_sync).verdict == "identical"


# -- delays ------------------------------------------------------------------------------------------------------------

POLICIES = st.builds(
    Retry,
    attempts=st.integers(1, 10),
    delay=st.floats(0, 100),
    factor=st.floats(1, 1e6),
    longest=st.floats(0, 1000),
    jitter=st.floats(0, 1),
)
DRAWS = st.floats(0, 1, exclude_max=True)


@given(POLICIES, st.integers(1, 400), st.one_of(st.none(), st.floats(0, 1000)), DRAWS)
def test_a_wait_is_within_its_bounds(policy: Retry, attempt: int, asked: float | None, draw: float) -> None:
    wait = policy.wait(attempt, asked, draw)
    assert wait >= (asked or 0)
    assert wait <= max(policy.longest, asked or 0) * (1 + policy.jitter) + 0.001
    assert math.isclose(wait * 1000, round(wait * 1000), abs_tol=1e-6)  # whole milliseconds
    if asked is None:
        middle = (
            min(policy.delay * policy.factor ** min(attempt - 1, 40), policy.longest) if policy.delay else 0
        )
        assert wait >= middle * (1 - policy.jitter) - 1e-9


@given(POLICIES, st.integers(1, 30))
def test_without_jitter_waits_never_shrink(policy: Retry, attempt: int) -> None:
    fixed = Retry(3, policy.delay, policy.factor, policy.longest, 0)
    assert fixed.wait(attempt, None, 0.9) <= fixed.wait(attempt + 1, None, 0.1)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 6), st.floats(0.1, 1))
def test_jitter_comes_from_the_runs_generator_and_is_recorded(
    seed: int, attempts: int, jitter: float
) -> None:
    policy = Retry(attempts, delay=0.0001, jitter=jitter)

    def recorded() -> Trace:
        _failures[:] = [ModelError("server", "x", provider="p", model="m") for _ in range(attempts - 1)]
        return one_tool.run(policy, seed=seed, store=MemoryStore())

    first, second = recorded(), recorded()
    draws = [call.result for call in first.calls if call.kind == "random"]
    assert draws == [call.result for call in second.calls if call.kind == "random"]
    assert sleeps(first) == [policy.wait(n, None, draw) for n, draw in enumerate(draws, start=1)]
    assert first.replay().verdict == "identical"


@agent
def one_tool(policy: Retry) -> int:
    return sync.retrying(policy, look_sync, 1)


# -- policies that make no sense, and places where there is none -------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attempts": 0}, r"attempts=0\): a number from 1"),
        ({"attempts": 2.5}, r"attempts=2.5\): a whole number"),
        ({"attempts": True}, "attempts=True"),
        ({"delay": -1}, r"delay=-1\): a number from 0"),
        ({"factor": 0.5}, r"factor=0.5\): a number from 1"),
        ({"jitter": 1.5}, r"jitter=1.5\): a number from 0 to 1"),
        ({"delay": math.nan}, "delay=nan"),
        ({"on": "slow"}, r"on='slow'\): no kind of ModelError; they are rate_limit"),
        ({"on": ()}, "nothing would ever be tried again"),
    ],
)
def test_a_policy_without_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Retry(**given)


def test_on_takes_classes_kinds_and_functions() -> None:
    limited = ModelError("rate_limit", "x", provider="p", model="m")
    assert Retry().may_pass(limited)
    assert not Retry().may_pass(ValueError())
    assert Retry(on=("quota", ValueError)).may_pass(ValueError())
    assert not Retry(on=("quota", ValueError)).may_pass(limited)
    assert Retry(on=lambda error: "x" in str(error)).may_pass(limited)
    assert not Retry(on=BaseException).may_pass(KeyboardInterrupt())
    assert not Retry(on=BaseException).may_pass(asyncio.CancelledError())
    with pytest.raises(TypeError, match="neither an exception class nor a kind"):
        Retry(on=(3,))  # type: ignore[arg-type]


def test_outside_a_run_and_in_the_wrong_kind_of_agent() -> None:
    with pytest.raises(NoActiveRun):
        asyncio.run(cast("Any", retrying(3, look, 1)))

    @agent
    def mistaken() -> Any:
        return sync.retrying(3, cast("Callable[..., Any]", look), 1)

    with pytest.raises(NotSupported, match=r"await agentloom.retrying"):
        mistaken.run(store=MemoryStore())

    @agent
    def hurried() -> Any:
        return sync.retrying(3, look_sync, 1, timeout=3)

    with pytest.raises(NotSupported, match="cannot be stopped while it runs"):
        hurried.run(store=MemoryStore())


# -- in workflows ------------------------------------------------------------------------------------------------------


def test_a_tool_step_says_after_which_errors() -> None:
    with pytest.raises(WorkflowError, match="does not say after which errors a tool may be called again"):
        Workflow().step("look", tool=look, args={"order": 1}, retry=3)
    _failures[:] = [ConnectionError("a")]
    graph = Workflow("w").step(
        "look", tool=look, args={"order": "{input}"}, retry=Retry(2, delay=0, on=ConnectionError)
    )
    trace = graph.run(1, seed=1, store=MemoryStore())
    assert trace.output == 2
    assert ids(trace) == ["w/look[0]#1", "w/look[0]/retry[0]#1", "w/look[0]/retry[0]#2", "w/look[0]#1~2"]
    assert trace.replay().verdict == "identical"


def test_a_model_step_and_its_timeout(fake: Any) -> None:
    with fake([Says("late", latency=5), Fails(500), Says("yes")]) as provider:
        graph = Workflow("w").step("ask", model="gpt-4o", retry=QUICK, timeout=0.2)
        trace = graph.run("hi", store=MemoryStore())
        assert provider.count == 3
    assert trace.output == "yes"
    assert [call.status for call in trace.calls if call.kind == "model"] == ["cancelled", "error", "ok"]
    assert trace.replay().verdict == "identical"


def test_the_time_of_a_step_is_more_than_nothing() -> None:
    with pytest.raises(WorkflowError, match=r"timeout=0: seconds of each attempt"):
        Workflow().step("ask", model="gpt-4o", timeout=0)
