"""``datetime`` and ``date``: the types stay what they are, what they show is the run's."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
import sys
import time
import warnings
from typing import Any

import pytest

from agentloom import agent
from agentloom.runtime.guard_install import install
from agentloom.store import MemoryStore

EARLY = dt.datetime.now
DAY = dt.date.today


@pytest.fixture(autouse=True)
def in_place() -> None:
    install()


class Own(dt.datetime):
    """A class of a program's own."""


def test_outside_a_run_dates_are_the_real_ones() -> None:
    for now in (dt.datetime.now, EARLY, Own.now):
        shown: dt.datetime = now(dt.UTC)
        assert abs(shown.timestamp() - time.time()) < 60
    assert type(Own.now()) is Own
    assert type(Own.utcnow()) is Own if sys.version_info < (3, 12) else True
    assert dt.datetime.now().date() in (DAY(), dt.date.today())  # noqa: DTZ005, DTZ011
    assert type(pickle.loads(pickle.dumps(dt.datetime.now(dt.UTC)))) is dt.datetime
    assert repr(dt.datetime.now).startswith("<bound method")
    with pytest.raises(TypeError):
        dt.datetime.now("UTC")  # type: ignore[arg-type]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="not deprecated yet")
def test_the_warning_of_utcnow_is_about_the_line_that_calls_it() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dt.datetime.utcnow().tzinfo is None  # noqa: DTZ003
    assert [warning.filename for warning in caught] == [__file__]


@agent(guard="virtual")
def dates() -> list[Any]:
    wall = time.time_ns()
    now = dt.datetime.now(dt.UTC)
    naive = [EARLY(), dt.datetime.now(), dt.datetime.today(), Own.now()]  # noqa: DTZ002, DTZ005
    microseconds = (now - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return [
        microseconds - wall // 1000,
        [(later - first) // dt.timedelta(microseconds=1) for first, later in itertools.pairwise(naive)],
        [type(moment) is dt.datetime for moment in naive],
        str(DAY()) == str(naive[0].date()),
        [str(moment) for moment in naive],
    ]


@pytest.mark.usefixtures("no_ticks")
def test_in_a_run_dates_agree_with_its_clock_to_the_microsecond() -> None:
    trace = dates.run(store=MemoryStore())
    output: Any = trace.output
    assert output[0] == 1
    assert sum(output[1]) == 3  # today() rounds what the others cut off
    assert min(output[1]) >= 0
    assert output[2:4] == [[True, True, True, False], True]
    assert trace.replay().verdict == "identical"
