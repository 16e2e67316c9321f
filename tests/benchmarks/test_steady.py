"""Bounds beside busy programs: how runs of the benchmark are judged."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from benchmarks import steady


def found(past: list[str], ratio: float = 2.0) -> dict[str, Any]:
    names = ("sync record", "sync replay", "async record", "async replay")
    return {"times": {"100": {name: {"times_floor": ratio} for name in names}}, "failed": past}


def test_runs_within_their_bounds_and_a_slow_one_past_them_are_right() -> None:
    asked: list[float] = []

    def run(slower: float) -> dict[str, Any]:
        asked.append(slower)
        return found(["async record at N=100"] if slower else [], 2.0 + slower)

    lines, right = steady.judged(3, 0.5, run)
    assert right
    assert asked == [0.0, 0.0, 0.0, 0.5]
    assert [line.split()[0] for line in lines] == ["run", "run", "run", "slower"]
    assert lines[0].endswith("all bounds hold")
    assert lines[-1].endswith("past: async record at N=100")
    assert " 2.50 " in lines[-1]


@pytest.mark.parametrize("wrong", [1, 3])
def test_one_run_past_its_bounds_and_a_slowdown_that_is_not_found_are_wrong(wrong: int) -> None:
    calls = iter(range(4))

    def run(slower: float) -> dict[str, Any]:
        past = bool(slower) != (next(calls) == wrong)
        return found(["sync record at N=100"] if past else [])

    assert not steady.judged(3, 0.5, run)[1]


def test_processes_beside_end_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    popen = subprocess.Popen

    def start(*args: Any, **kwargs: Any) -> Any:
        made.append(popen(*args, **kwargs))
        return made[-1]

    def block() -> None:
        with steady.beside(2):
            assert [one.poll() for one in made] == [None, None]
            raise KeyError

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(KeyError):
        block()
    assert len(made) == 2
    assert all(one.returncode is not None for one in made)


def test_a_benchmark_that_does_not_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.CompletedProcess([], 2, "", "no such option")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(RuntimeError, match="no such option"):
        steady.once(1, 0.0)
