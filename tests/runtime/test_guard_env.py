"""The environment of a run: a snapshot, recorded when first read, served by name; writes stay in the run."""

from __future__ import annotations

import os
from collections.abc import ItemsView
from typing import Any, cast

import pytest

from agentloom import Trace, agent, tool
from agentloom.errors import DivergenceError
from agentloom.runtime.guard_env import LISTED, Recorded
from agentloom.store import MemoryStore

NAMES: list[str] = []


def record(function: Any, *args: object, **options: Any) -> Trace:
    trace = function.run(*args, store=MemoryStore(), **options)
    assert isinstance(trace, Trace)
    return trace


def read(trace: Trace) -> dict[str, Any]:
    """The variables in a trace."""
    found: dict[str, Any] = {}
    for entry in trace.journal.entries:
        if "vars" in entry:
            found |= cast("dict[str, Any]", trace.journal.tree(entry["vars"]))
    return found


@agent(guard="strict")
def reads() -> list[Any]:
    found = [
        os.environ["GUARD_A"],
        os.environ.get("GUARD_B"),
        os.getenv("GUARD_C", "none"),
        "GUARD_D" in os.environ,
    ]
    return [*found, os.environb[b"GUARD_A"].decode(), os.environ.get("GUARD_A")]


def test_what_is_read_is_recorded_once_and_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_A", "one")
    monkeypatch.setenv("GUARD_B", "zwei \udcff")
    monkeypatch.setenv("GUARD_OTHER", "not read")
    trace = record(reads)
    assert trace.output == ["one", "zwei \udcff", "none", False, "one", "one"]
    assert set(read(trace)) == {"GUARD_A", "GUARD_B", "GUARD_C", "GUARD_D"}
    assert read(trace)["GUARD_C"] is None
    monkeypatch.setenv("GUARD_A", "two")
    monkeypatch.setenv("GUARD_D", "set now")
    monkeypatch.delenv("GUARD_B")
    assert trace.replay().verdict == "identical"
    assert os.environ["GUARD_A"] == "two"


@agent(guard="strict")
def lists() -> list[Any]:
    os.environ["GUARD_NEW"] = "new"
    del os.environ["GUARD_A"]
    found = [sorted(name for name in os.environ if name.startswith("GUARD_")), os.environ["GUARD_NEW"]]
    with pytest.raises(KeyError):
        del os.environ["GUARD_A"]
    return [*found, os.environ.pop("GUARD_B"), "GUARD_B" in os.environ, seen("GUARD_NEW"), seen("GUARD_A")]


@agent(guard="strict")
def goes_through() -> list[Any]:
    os.environ["GUARD_NEW"] = "new"
    found: list[Any] = [sorted(one for one in os.environ.items() if one[0].startswith("GUARD_"))]
    found.append(sorted(one for one in os.environb.items() if one[0].startswith(b"GUARD_")))
    items = os.environ.items()
    found += [
        len(items) == len(os.environ),
        ("GUARD_A", "one") in items,
        list(os.environ.keys()) == [k for k, _ in items],
    ]
    found += [isinstance(cast(Any, items), ItemsView), type(items).__name__, os.environ.items.__name__]
    going = iter(items)
    next(going)
    for name in list(os.environ)[1:]:
        del os.environ[name]
    with pytest.raises(KeyError):
        next(going)
    return found


def test_all_items_are_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_A", "one")
    monkeypatch.setenv("GUARD_B", "zwei")
    trace = record(goes_through)
    named = [("GUARD_A", "one"), ("GUARD_B", "zwei"), ("GUARD_NEW", "new")]
    bytes_of = [(name.encode(), value.encode()) for name, value in named]
    assert trace.output == [named, bytes_of, True, True, True, True, "ItemsView", "items"]
    monkeypatch.setenv("GUARD_A", "two")
    monkeypatch.setenv("GUARD_C", "three")
    assert trace.replay().verdict == "identical"
    assert dict(os.environ.items())["GUARD_A"] == "two"


@tool(effect="read")
def seen(name: str) -> str | None:
    return os.environ.get(name)


def test_writes_stay_in_the_run_and_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_A", "one")
    monkeypatch.setenv("GUARD_B", "two")
    trace = record(lists)
    assert trace.output == [["GUARD_B", "GUARD_NEW"], "new", "two", False, "new", None]
    assert os.environ["GUARD_A"] == "one"
    assert "GUARD_NEW" not in os.environ
    assert "GUARD_A" in read(trace)[LISTED]
    monkeypatch.setenv("GUARD_ANOTHER", "three")
    assert trace.replay().verdict == "identical"
    assert "GUARD_NEW" not in os.environ


@agent(guard="virtual")
def sets() -> str:
    os.environ["GUARD_NEW"] = "new"
    return os.environ["GUARD_NEW"]


def test_under_virtual_the_process_is_written_too_when_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUARD_NEW", raising=False)
    trace = record(sets)
    assert os.environ.pop("GUARD_NEW") == "new"
    assert trace.replay().verdict == "identical"
    assert "GUARD_NEW" not in os.environ


@agent(guard="strict")
def named() -> int:
    return len([os.environ.get(name) for name in NAMES])


def test_another_variable_than_when_recorded_is_a_divergence_with_its_line() -> None:
    NAMES[:] = ["GUARD_A"]
    trace = record(named)
    NAMES[:] = ["GUARD_A", "GUARD_Z"]
    with pytest.raises(DivergenceError) as caught:
        trace.replay()
    finding = caught.value.report.finding
    assert finding is not None
    assert finding.cls == "extra"
    assert "the environment variable GUARD_Z" in finding.message
    assert finding.call is not None
    assert str(finding.call.src).startswith("test_guard_env.py:") or "test_guard_env.py:" in str(
        finding.call.src
    )


def test_for_a_library_what_was_not_read_is_not_set() -> None:
    raised: list[str] = []

    def unknown(what: str, where: str) -> BaseException:
        raised.append(f"{what} at {where}")
        return LookupError(what)

    served = Recorded({"A": "1", "B": None, LISTED: ["A", "C"]}, unknown)
    assert [served.get(name, lambda: None) for name in "ABCD"] == ["1", None, None, None]
    assert served.get("D", lambda: "own.py:1 f") is None, "all names were listed, and it was none of them"
    with pytest.raises(LookupError):
        served.get("C", lambda: "own.py:1 f")
    assert served.names(lambda: "own.py:1 f") == ["A", "C"]
    with pytest.raises(LookupError):
        Recorded({}, unknown).names(lambda: "own.py:2 f")
    assert Recorded({}, unknown).names(lambda: None) == []
    assert raised == ["the environment variable C at own.py:1 f", "all environment variables at own.py:2 f"]


@agent(guard="strict")
def credentials() -> list[str]:
    return [os.environ["GUARD_API_KEY"], os.environ["GUARD_DSN_URL"].partition(":")[0]]


def test_a_credential_is_seen_by_the_run_and_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_API_KEY", "q7")
    monkeypatch.setenv("GUARD_DSN_URL", "postgres://user:pass-8fjw@host/x")
    trace = record(credentials)
    assert b"pass-8fjw" not in trace._data
    assert read(trace)["GUARD_API_KEY"] != "q7"


def test_outside_a_run_the_environment_is_the_process_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_A", "one")
    assert os.environ["GUARD_A"] == os.environb[b"GUARD_A"].decode() == "one"
    assert len(os.environ) == len(list(os.environ)) == len(dict(os.environ))
    with pytest.raises(TypeError):
        os.environ[5]  # type: ignore[index]
