"""Local time in a run: that of the zone in which it was recorded, wherever it is replayed."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["Zone", "elsewhere", "zone_facts"]

_LINK = "/etc/localtime"


def zone_facts(at: float) -> dict[str, str | int | None]:
    """This process's time zone for the trace, at ``at`` (seconds since 1970): ``key`` its IANA name, where it is known
    and says the same as the clock; ``offset`` (seconds east of UTC) and ``name`` of local time then."""
    local = time.localtime(at)
    key = _key(os.environ.get("TZ"))
    if key is not None:
        said = datetime.fromtimestamp(at, ZoneInfo(key))
        if said.utcoffset() != timedelta(seconds=local.tm_gmtoff) or said.tzname() != local.tm_zone:
            key = None  # the clock of this process goes by something else
    return {"key": key, "offset": local.tm_gmtoff, "name": local.tm_zone}


@functools.lru_cache(maxsize=8)
def _key(variable: str | None) -> str | None:
    if variable is None:
        _, found, name = os.path.realpath(_LINK).partition("zoneinfo" + os.sep)
        if not found:
            return None
    else:
        name = variable.removeprefix(":")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return name


def elsewhere(recorded: object, at: float) -> Zone | None:
    """The recorded zone where it is another one than this process's; None where local time is the same anyway, or none
    was recorded."""
    facts: Mapping[str, Any] = cast("dict[str, Any]", recorded) if isinstance(recorded, dict) else {}
    if not isinstance(facts.get("offset"), int) or facts == zone_facts(at):
        return None
    key, offset, name = facts.get("key"), facts["offset"], facts.get("name")
    zone: tzinfo = timezone(timedelta(seconds=offset), name if isinstance(name, str) else "")
    if isinstance(key, str):
        # Without a table of it here: what was in force when the run began is known.
        with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
            zone = ZoneInfo(key)
    return Zone(zone)


class Zone:
    """A zone in the forms in which ``time`` and ``datetime`` speak of local time."""

    __slots__ = ("zone",)

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone

    def local(self, seconds: float) -> datetime:
        """The aware local time of a time stamp."""
        return datetime.fromtimestamp(seconds, UTC).astimezone(self.zone)

    def struct(self, seconds: float) -> time.struct_time:
        """As ``time.localtime(seconds)``."""
        local = self.local(seconds // 1)
        plain = local.timetuple()
        offset = local.utcoffset() or timedelta()
        return time.struct_time((*plain[:8], plain.tm_isdst, local.tzname(), int(offset.total_seconds())))

    def seconds(self, fields: Any) -> float:
        """As ``time.mktime(fields)``."""
        year, month, day, hour, minute, second, _, _, summer = tuple(fields)[:9]
        naive = datetime(year, 1, 1) + timedelta(  # noqa: DTZ001 - local time
            days=_days(year, month) + day - 1, hours=hour, minutes=minute, seconds=second
        )
        early, late = (naive.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        chosen = late if summer == 0 and early.utcoffset() != late.utcoffset() else early
        return chosen.timestamp()


def _days(year: int, month: int) -> int:
    """Days from the first of January to the first of ``month``, which may lie outside 1 to 12."""
    over, rest = divmod(month - 1, 12)
    return (datetime(year + over, rest + 1, 1) - datetime(year, 1, 1)).days  # noqa: DTZ001
