"""Local time: the recorded zone's, wherever a run is replayed."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import pytest

from agentloom import agent
from agentloom.runtime.guard_zone import Zone, elsewhere, zone_facts
from agentloom.store import MemoryStore

SUMMER, WINTER = 1_782_907_200.0, 1_767_225_600.0
BERLIN = {"key": "Europe/Berlin", "offset": 3600, "name": "CET"}


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def put_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put_zone
    monkeypatch.undo()
    time.tzset()


def test_the_facts_of_a_zone(put: Callable[[str], None]) -> None:
    put("Europe/Berlin")
    assert zone_facts(WINTER) == BERLIN
    assert zone_facts(SUMMER) == {"key": "Europe/Berlin", "offset": 7200, "name": "CEST"}
    put("XYZ-5:30")
    assert zone_facts(WINTER) == {"key": None, "offset": 19800, "name": "XYZ"}
    assert elsewhere(zone_facts(WINTER), WINTER) is None
    assert elsewhere(None, WINTER) is None
    assert elsewhere(BERLIN, WINTER) is not None


@pytest.mark.parametrize(
    "key", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
)
def test_local_time_is_what_the_c_library_says(put: Callable[[str], None], key: str) -> None:
    put(key)
    made = Zone(ZoneInfo(key))
    for at in range(1_767_000_000, 1_798_000_000, 987_654):
        real = time.localtime(at)
        found = made.struct(at)
        assert tuple(found) == tuple(real)
        assert (found.tm_zone, found.tm_gmtoff) == (real.tm_zone, real.tm_gmtoff)
        assert made.seconds(real) == time.mktime(real) == at


@agent(guard="virtual")
def local() -> list[object]:
    naive = dt.datetime(2026, 7, 1, 12)  # noqa: DTZ001
    shown: list[object] = [time.ctime(), list(time.localtime()), time.localtime().tm_zone, time.ctime(SUMMER)]
    shown += [str(dt.datetime.now()), str(dt.date.today()), str(dt.datetime.today().replace(microsecond=0))]  # noqa: DTZ002, DTZ005, DTZ011
    shown += [str(dt.datetime.fromtimestamp(SUMMER)), str(dt.date.fromtimestamp(SUMMER))]  # noqa: DTZ006, DTZ012
    shown += [
        naive.timestamp(),
        str(naive.astimezone()),
        str(naive.astimezone(dt.UTC)),
        time.strftime("%X %Z"),
    ]
    shown += [time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, -1)), str(dt.datetime.now(dt.UTC).astimezone())]
    return shown


@pytest.mark.parametrize("there", ["Asia/Tokyo", "UTC", "XYZ-5:30"])
def test_a_replay_elsewhere_shows_the_same_local_time(put: Callable[[str], None], there: str) -> None:
    put("Europe/Berlin")
    trace = local.run(store=MemoryStore())
    put(there)
    assert trace.replay().verdict == "identical"
    moment = dt.datetime.fromtimestamp(SUMMER, dt.UTC)
    assert (
        moment.astimezone().utcoffset() == dt.datetime.fromtimestamp(SUMMER, dt.UTC).astimezone().utcoffset()
    )
    assert dt.datetime(2026, 7, 1, 12).timestamp() == time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, -1))  # noqa: DTZ001
