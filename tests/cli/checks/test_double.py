"""The double run, with children that are data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentloom.cli.checks import double
from agentloom.cli.checks.double import EVERY, Difference, double_run, part
from agentloom.cli.checks.worlds import FACETS
from agentloom.cli.script_parent import Child, Surroundings


class Programs:
    """Stands for child processes: ``differs`` says of a process's settings whether its replay differs."""

    def __init__(self, *facets: str, always: dict[str, Any] | None = None, together: bool = False) -> None:
        self.facets, self.always, self.together = set(facets), always, together
        self.started = 0

    def start(
        self, job: Mapping[str, Any], environ: Mapping[str, str], trace: bytes, around: Surroundings
    ) -> Child:
        self.started += 1
        assert (job["json"], trace, around.quiet) == (True, b"trace", True)
        set_now = {
            "hash seed": environ["PYTHONHASHSEED"] != "0",
            "time zone": "TZ" in environ,
            "locale": "LC_ALL" in environ,
            "working folder": around.folder is not None,
            "environment": "LOGNAME" in environ,
            "arguments": bool(around.arguments),
            "umask": around.umask >= 0,
        }
        hit = [facet for facet in self.facets if set_now[facet]]
        differs = len(hit) == len(self.facets) if self.together else bool(hit)
        if self.always is not None:
            return Child(3, done={"exit": 3, "report": self.always, "lines": []})
        if hit == ["working folder"] and not self.together:
            return Child(1, error={"message": "cannot be imported", "exit": 1})
        report = {"class": "leak", "hit": sorted(hit)}
        return Child(
            0, done={"exit": 3 if differs else 0, "report": report, "lines": [[["bad", "DIVERGED"]]]}
        )


def run(programs: Programs, monkeypatch: pytest.MonkeyPatch, **more: Any) -> double.Doubled:
    monkeypatch.setattr(double, "start", programs.start)
    return double_run({}, {"PYTHONHASHSEED": "0"}, b"trace", count=more.pop("count", 2), **more)


def facets(done: double.Doubled) -> list[tuple[str, ...]]:
    return [one.facets for one in done.differences]


def test_identical_is_one_replay_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(Programs(), monkeypatch, count=5)
    assert (done.replays, facets(done), len(done.worlds)) == (5, [], 5)


@pytest.mark.parametrize("facet", FACETS)
def test_one_facet_is_named(facet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(Programs(facet), monkeypatch)
    assert facets(done) == [(facet,)]
    assert done.replays <= 8
    assert run(Programs(facet), monkeypatch, first=[facet]).replays == 5


def test_each_facet_that_matters_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(Programs("hash seed", "working folder", "umask"), monkeypatch)
    assert sorted(facets(done)) == [("hash seed",), ("umask",), ("working folder",)]
    failed = next(one for one in done.differences if one.facets == ("working folder",))
    assert (failed.report, failed.error) == (None, {"message": "cannot be imported", "exit": 1})


def test_facets_that_matter_only_together(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(Programs("hash seed", "umask", together=True), monkeypatch)
    (difference,) = done.differences
    assert {"hash seed", "umask"} <= set(difference.facets)


def test_what_differs_in_the_recorded_world_is_why_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(Programs(always={"class": "leak"}), monkeypatch)
    assert (facets(done), done.replays, done.differences[0].world) == ([(EVERY,)], 2, 0)
    assert not done.differences[0].by_code
    assert run(Programs(always={"cause": {"kind": "code"}}), monkeypatch).differences[0].by_code


def test_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    run(Programs("umask"), monkeypatch, told=told.append)
    assert told[0].startswith("world 1 of 2: another hash seed, time zone")
    assert "the recorded world" in told


def test_parts_of_reports() -> None:
    assert part({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert part(None, "a") == part({"a": 1}, "a", "b") == part({"a": None}, "a") == {}
    assert not Difference(("umask",), 1, {"cause": {"kind": "code"}}).by_code
