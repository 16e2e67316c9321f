"""What is seen of an SDK's objects, and how the contract finds differences."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
from typing import Any

import httpx2
import pydantic
import pytest

from agentloom.testing import sdk_contract
from agentloom.testing.sdk_contract import Case, compare_runs, prove
from agentloom.testing.sdk_seen import headers_seen, seen


class Color(enum.Enum):
    RED = 1


class Model(pydantic.BaseModel, extra="allow"):
    a: int
    b: str | None = None


@dataclasses.dataclass
class Data:
    x: int


def test_differences_that_equality_hides_are_seen() -> None:
    pairs: list[tuple[Any, Any]] = [
        (Model(a=1), Model(a=1, b=None)),
        (Model(a=1), Model.model_validate({"a": 1, "c": 2})),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((1, 2), [1, 2]),
        (Color.RED, 1),
        (b"x", "x"),
        (Data(1), {"x": 1}),
        (ValueError("x"), TypeError("x")),
    ]
    for one, other in pairs:
        assert seen(one) != seen(other), (one, other)
    assert seen(Model(a=1)) == seen(Model(a=1))


def test_causes_and_attributes_of_errors_are_seen() -> None:
    error = ValueError("at 0x7f0000000000")
    error.__cause__ = KeyError("k")
    error.status = 3  # type: ignore[attr-defined]
    error.held = object()  # type: ignore[attr-defined]
    found = seen(error)
    assert found["text"] == "at 0x"
    assert found["cause"]["type"] == "builtins.KeyError"
    assert found["attributes"] == {"status": 3, "held": {"type": "builtins.object"}}


def test_what_tells_the_time_is_left_out_and_cookies_lose_their_value() -> None:
    made = headers_seen([("Date", "today"), ("X", "1"), ("set-cookie", "sid=abc; Path=/")])
    assert made == [["Date", ""], ["X", "1"], ["set-cookie", "sid=; Path=/"]]
    assert seen(dt.timedelta(seconds=1)) == seen(dt.timedelta(seconds=2))


def test_something_unknown_is_refused() -> None:
    with pytest.raises(TypeError, match="take it apart in the program"):
        seen(object())


def asks(url: str) -> Any:
    return httpx2.get(url + "/x").json()


def test_a_program_that_raises_and_calls_that_were_not_promised_are_problems() -> None:
    def fails(_: str) -> Any:
        raise OSError("no")

    assert prove(Case("sync", fails, [])).problem == "raised OSError: no"
    assert (
        prove(Case("sync", asks, ["hello"], ["model"])).problem
        == "recorded calls are ['http'], not ['model']"
    )
    assert prove(Case("sync", asks, ["hello"], ["http"])).problem == ""


def test_a_replay_that_waits_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("cancel", asks, ["hello"], waits=True)
    assert prove(case).problem == ""
    monkeypatch.setattr(sdk_contract, "_QUICK", 0.0)  # however quick it is
    assert "waits are virtual there" in prove(case).problem


def test_titles_tell_cases_apart() -> None:
    async def awaited(_: str) -> Any:
        await asyncio.sleep(0)

    assert Case("raw", awaited, [], name="x").title == "raw x (async)"
    assert Case("raw", asks, []).title == "raw (sync)"


def test_one_request_more_is_a_problem() -> None:
    from agentloom.testing import FakeProvider

    numbers = iter(range(9))

    def serve() -> FakeProvider:
        return FakeProvider(["a", "b"], others=True)

    def uneven(url: str) -> Any:
        for _ in range(1 + next(numbers)):
            httpx2.get(url + "/x")
        return None

    assert compare_runs(uneven, serve) == "recording: 2 requests were sent, bare 1"
