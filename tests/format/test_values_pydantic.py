"""Dates and times as pydantic reads them: their offsets are kept."""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone

import pytest

from agentloom.format.values import decode, encode

pydantic = pytest.importorskip("pydantic", reason="pydantic (extra outputs) is not installed")


@pytest.mark.parametrize(("written", "hours"), [("Z", 0.0), ("+02:00", 2.0), ("-03:30", -3.5)])
def test_an_offset_comes_back_as_one_of_python(written: str, hours: float) -> None:
    zone = timezone(timedelta(hours=hours))
    moment = pydantic.TypeAdapter(datetime).validate_json(f'"2026-01-02T03:04:05{written}"')
    back = decode(encode(moment))
    assert back == moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)
    assert isinstance(back, datetime)
    assert repr(back.tzinfo) == repr(zone)
    hour = decode(encode(pydantic.TypeAdapter(time).validate_json(f'"03:04:05{written}"')))
    assert hour == time(3, 4, 5, tzinfo=zone)
