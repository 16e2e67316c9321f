"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# Contract suites that ship with agentloom explain a failed assert as tests do. Before any test module imports them.
pytest.register_assert_rewrite("agentloom.testing.store_contract")

# A shell starts what it puts in the background with Ctrl-C ignored, and every child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, and no clock: a loaded machine fails no test. A failure prints how to repeat it.
settings.register_profile("agentloom", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("agentloom")


MOST_PROCESSES = 8
"""For ``-n auto``: each holds all tests, which is some 400 MB."""


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """A process for each core, within reason."""
    return min((yield), MOST_PROCESSES)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes in the name of a case by their number: gzip and zip put the time into theirs, and all processes must
    name a case alike."""
    return f"{argname} of {len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, only deliveries and readings move the clocks of runs that are recorded here."""
    monkeypatch.setattr("agentloom.runtime.live.TICK", 2**62)


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader's own store, durability and colours decide nothing here."""
    for name in (
        "AGENTLOOM",
        "AGENTLOOM_TRACE",
        "AGENTLOOM_STORE",
        "AGENTLOOM_DURABILITY",
        "AGENTLOOM_MODEL_BACKEND",
        "NO_COLOR",
        "FORCE_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
