"""An agent that tries everything to tell a recording from a replay. What it can tell is listed in docs/cannot-tell.md.

Each observation is one named function; those of ``OPEN`` are known to differ or may differ, the others must not.
"""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import gc
import inspect
import os
import random
import re
import secrets
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import Trace, agent, sync, tool
from agentloom.runtime.ambient import looks_secret

SEEN: list[dict[str, Any]] = []
"""What each execution of the agent observed, in order: first the recording, then the replay."""

_variable: contextvars.ContextVar[str] = contextvars.ContextVar("test.variable", default="unset")
_given: dict[str, Any] = {}

OPEN = {
    "stack below": "the frames under the agent belong to the driver, and those of a replay are fewer",
    "threads": "live calls of sync agents under parallel run in threads of their own",
    "addresses": "id() and default reprs are addresses of the process",
    "allocations": "the interpreter's own counters (gc.get_count, sys.getallocatedblocks)",
    "imported modules": "a live model call imports its provider's SDK",
}


class Odd(Exception):
    """Raised by a tool, with attributes and a cause."""

    code: int


@tool(effect="read")
def lookup(key: str) -> dict[str, Any]:
    if key == "raise":
        error = Odd("outer", 3)
        error.code = 17
        raise error from KeyError("inner")
    return {"z": 1, "a": [1.0, 2**70, float("inf")], "key": key}


@tool(effect="read")
async def slow(key: str) -> list[str]:
    await asyncio.sleep(0.002)
    return [key, key]


def _stack() -> list[str]:
    return [frame.name for frame in traceback.extract_stack()]


def _above_agent() -> list[str]:
    """The frames from the agent's own function upwards: what its own code put there."""
    names = _stack()
    start = max(index for index, name in enumerate(names) if name in ("curious", "curious_sync"))
    return names[start:]


async def _exception() -> Any:
    try:
        lookup("raise")
    except Odd as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        own = [name for name in frames if name in ("_exception", "lookup")]
        return (
            type(error) is Odd,
            error.args,
            getattr(error, "code", None),
            repr(error.__cause__),
            type(error.__cause__) is KeyError,
            error.__suppress_context__,
            getattr(error, "__notes__", None),
            own,
        )
    return None


async def _aliases() -> Any:
    first, second = lookup("x"), lookup("x")
    first["mutated"] = True
    return (
        first is second,
        "mutated" in second,
        "mutated" in lookup("x"),
        list(second),
        type(second["a"][1]),
    )


async def _timing() -> Any:
    """Event timing in the loop's own time: differences between deliveries are recorded, not measured again."""
    loop = asyncio.get_running_loop()
    before = loop.time()
    await slow("t")
    middle = loop.time()
    await asyncio.sleep(0.003)
    return (middle - before, loop.time() - middle, loop.time() == loop.time())


async def _order() -> Any:
    done: list[str] = []

    async def one(name: str) -> None:
        await slow(name)
        done.append(name)

    await asyncio.gather(*(one(name) for name in "abcdef"))
    return done


async def _tasks() -> Any:
    task = asyncio.current_task()
    child = asyncio.create_task(slow("child"))
    names = (
        task.get_name() if task else None,
        child.get_name(),
        type(task).__qualname__,
        len(asyncio.all_tasks()),
    )
    await child
    return names


async def _value(value: Any) -> Any:
    return value


OBSERVATIONS: dict[str, Callable[[], Awaitable[Any]]] = {
    "wall clock": lambda: _value(time.time_ns()),
    "monotonic clock": lambda: _value(time.monotonic_ns()),
    "local time": lambda: _value(
        (time.ctime(), list(time.localtime()), str(dt.datetime.now()), str(dt.date.today()))  # noqa: DTZ005, DTZ011
    ),
    "processor time": lambda: _value((time.process_time(), time.thread_time_ns())),
    "draws": lambda: _value((random.random(), random.Random().random(), random.SystemRandom().random())),
    "ids": lambda: _value((uuid.uuid4(), uuid.uuid1(), secrets.token_hex(), os.urandom(8), uuid.getnode())),
    "recorded clock": lambda: agentloom.now(),  # noqa: PLW0108 - called anew each time
    "recorded draws": lambda: agentloom.random(),  # noqa: PLW0108
    "recorded ids": lambda: agentloom.uuid(),  # noqa: PLW0108
    "environment": lambda: _value(
        {name: text for name, text in os.environ.items() if not looks_secret(name, text)}
    ),
    "arguments of the process": lambda: _value(
        (sys.argv, sys.executable, sys.flags, os.getpid(), os.getcwd())
    ),
    "agentloom's variables": lambda: _value(
        sorted(name for name in os.environ if name.startswith("AGENTLOOM"))
    ),
    "stack above": lambda: _value(_above_agent()),
    "stack below": lambda: _value(len(_stack())),
    "caller's code": lambda: _value(inspect.stack()[0].function),
    "recursion limit": lambda: _value(sys.getrecursionlimit()),
    "loop": lambda: _value(
        (type(asyncio.get_running_loop()).__qualname__, asyncio.get_running_loop().get_debug())
    ),
    "tasks": _tasks,
    "context": lambda: _value(_variable.get()),
    "thread": lambda: _value(threading.current_thread() is threading.main_thread()),
    "threads": lambda: _value(threading.active_count()),
    "exception": _exception,
    "aliases": _aliases,
    "types": lambda: _value([type(value).__qualname__ for value in lookup("t").values()]),
    "virtual timing": _timing,
    "completion order": _order,
    "real elapsed time": lambda: _value(time.perf_counter_ns()),
    "tool as seen": lambda: _value((lookup.__name__, lookup.__doc__, str(inspect.signature(lookup)))),
    "tracing hooks": lambda: _value((sys.gettrace(), sys.getprofile() is None)),
    "hooks": lambda: _value((sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__)),
    "collector": lambda: _value((gc.isenabled(), gc.get_threshold())),
    "allocations": lambda: _value((gc.get_count(), sys.getallocatedblocks())),
    "addresses": lambda: _value((id(object()), repr(object()))),
    "imported modules": lambda: _value(sorted(name for name in sys.modules if name.startswith("agentloom."))),
    "replay in names": lambda: _value([name for name in _stack() if re.search("replay|record", name)]),
}
OPEN["replay in names"] = OPEN["stack below"]


@agent(guard="virtual")  # under a strict guard it may not even ask for its process and for addresses
async def curious(question: str, box: dict[str, Any]) -> str:
    """Observe everything; keep it outside the run, where the test compares."""
    seen: dict[str, Any] = {"input": (question, list(box), box is _given, type(box["n"]))}
    for name, observe in OBSERVATIONS.items():
        seen[name] = await observe()
    SEEN.append(seen)
    return "nothing to see"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path))
    SEEN.clear()


def _compare(trace: Trace) -> set[str]:
    assert trace.replay().verdict == "identical"
    recorded, replayed = SEEN
    assert list(recorded) == list(replayed)
    return {name for name in recorded if recorded[name] != replayed[name]}


def test_what_an_async_agent_can_tell_is_what_the_docs_list() -> None:
    _variable.set("set by the caller")
    _given.update(z=1, n=2**70, a=None)
    told = _compare(curious.run("what am I?", _given))
    assert told <= set(OPEN), f"an agent can tell by: {sorted(told - set(OPEN))}"


def test_the_docs_list_what_an_agent_can_tell() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cannot-tell.md").read_text(encoding="utf-8")
    for name in OPEN:
        assert f"**{name}**" in page, f"docs/cannot-tell.md does not list {name!r}"


@agent
def curious_sync(question: str) -> str:
    """The same for a sync agent."""
    started = threading.active_count()
    SEEN.append(
        {
            "question": question,
            "now": sync.now(),
            "draw": sync.random(),
            "id": sync.uuid(),
            "stack above": _above_agent(),
            "found": lookup("s"),
            "order": sync.parallel(lambda: lookup("p"), lambda: sync.step(sum, [1, 2])),
            "thread": threading.current_thread() is threading.main_thread(),
            "threads": started,
        }
    )
    return "nothing to see"


def test_what_a_sync_agent_can_tell_is_what_the_docs_list() -> None:
    told = _compare(curious_sync.run("what am I?", seed=4))
    assert told <= set(OPEN), f"an agent can tell by: {sorted(told - set(OPEN))}"
