"""``time.tzname`` and its like are those of the recorded zone, in a process that replays a run of another zone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from zoneinfo import ZoneInfo

import pytest

from agentloom.runtime.guard_values import _of_zone
from agentloom.runtime.guard_zone import Zone

ZONES = ("Europe/Berlin", "America/St_Johns", "Australia/Sydney", "Asia/Tokyo", "UTC", "America/Sao_Paulo")
NAMES = ("timezone", "altzone", "daylight", "tzname")


@pytest.mark.parametrize("zone", ZONES)
def test_they_are_as_python_makes_them_in_that_zone(zone: str) -> None:
    code = f"import json, time; print(json.dumps([getattr(time, name) for name in {NAMES!r}]))"
    done = subprocess.run([sys.executable, "-c", code], env={"TZ": zone}, capture_output=True, check=True)
    made = _of_zone(Zone(ZoneInfo(zone)), int(time.time()))
    assert json.loads(done.stdout) == json.loads(json.dumps([made[name] for name in NAMES]))


PROCESS = """
import json, sys, time, types
from agentloom.runtime.guard_values import install_zone_values
before = [time.timezone, list(time.tzname)]
kind = type(time)
install_zone_values()
install_zone_values()
other = types.ModuleType("other")
try:
    other.tzname
except AttributeError as error:
    said = str(error)
other.tzname = "mine"
found = other.tzname
del other.tzname
assert not hasattr(other, "tzname")
assert type(time) is kind is types.ModuleType
assert [time.timezone, list(time.tzname)] == before
from time import altzone
import os
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(json.dumps([said, found, time.timezone, list(time.tzname)]))
"""


def test_outside_runs_and_for_other_modules_nothing_changes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env={"TZ": "Europe/Berlin"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(done.stdout) == [
        "module 'other' has no attribute 'tzname'",
        "mine",
        -32400,
        ["JST", "JST"],
    ]
