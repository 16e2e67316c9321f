"""The guard in place: once, and imports inside a run see the real world."""

from __future__ import annotations

import asyncio.base_events
import importlib
import logging
import subprocess
import sys
import textwrap
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from agentloom import agent
from agentloom.runtime.guard_clock import REAL_TIME
from agentloom.runtime.guard_install import install
from agentloom.store import MemoryStore


@pytest.fixture(autouse=True)
def in_place() -> None:
    install()


def test_it_is_put_in_place_once() -> None:
    before = (time.time, importlib._bootstrap._find_and_load)  # type: ignore[attr-defined]
    install()
    assert before == (time.time, importlib._bootstrap._find_and_load)  # type: ignore[attr-defined]


def test_importing_agentloom_puts_nothing_in_place() -> None:
    code = """
        import time, datetime, os, random
        before = [time.time, os.urandom, random.random, type(os.environ).__getitem__, datetime.datetime.__dict__["now"]]
        import agentloom
        from agentloom import agent, Workflow
        from agentloom.runtime import recorder, session
        @agent(guard="off")
        def plain(): return 1
        plain.run(store=":memory:")
        now = [time.time, os.urandom, random.random, type(os.environ).__getitem__, datetime.datetime.__dict__["now"]]
        assert all(one is two for one, two in zip(before, now)), now
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_what_waits_for_threads_and_sockets_keeps_the_real_clock() -> None:
    for module in (asyncio.base_events, subprocess):
        assert module.time is REAL_TIME
    assert REAL_TIME.monotonic is not time.monotonic


@agent(guard="virtual")
def imports(name: str) -> list[Any]:
    import random

    before = time.time()
    module = importlib.import_module(name)
    after = time.time()
    return [round((after - before) * 1e6), random.random(), module.from_time is time.time]


@pytest.mark.usefixtures("no_ticks")
def test_an_import_in_a_run_moves_nothing_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import random, time, uuid, os\nfrom time import time as from_time\n"
    text += "seen = [time.time(), random.random(), uuid.uuid4(), os.environ['PATH'], time.time()]\n"
    (tmp_path / "guard_lazy.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    trace = imports.run("guard_lazy", store=MemoryStore())
    seen = sys.modules.pop("guard_lazy").seen
    assert abs(seen[0] - time.time()) < 60
    assert seen[4] - seen[0] != pytest.approx(1e-6, abs=1e-9), "a real clock"
    assert trace.output[0] == 1
    assert trace.output[2] is True
    assert trace.replay().verdict == "identical"
    assert trace.replay().verdict == "identical", "now that it is loaded"
    assert not any("vars" in entry for entry in trace.journal.entries)


def test_the_traceback_of_a_failed_import_shows_no_frame_of_ours() -> None:
    try:
        import no_such_module_at_all  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        frames = traceback.extract_tb(error.__traceback__)
        assert [frame.filename for frame in frames] == [__file__]
    else:
        raise AssertionError


@agent(guard="virtual")
def logs(times: int) -> float:
    for _ in range(times):
        logging.getLogger("guard.test").warning("said")
    return time.time()


@pytest.mark.usefixtures("no_ticks")
def test_log_records_show_the_runs_time_and_take_none_of_it(caplog: pytest.LogCaptureFixture) -> None:
    trace = logs.run(3, store=MemoryStore())
    said = [record.created for record in caplog.records if record.name == "guard.test"]
    assert len(said) == 3
    assert said[0] == said[2] <= trace.output
    assert trace.output - said[0] == pytest.approx(1e-6, abs=1e-6)
