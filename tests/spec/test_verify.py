"""The stand-alone checker: its size, its imports, its command line, and what it notices."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.format.journal import Verdict, check
from spec import verify
from spec.vector_maker import Maker, finished, head_of, join, lines, small

PROGRAM = Path(verify.__file__)
TRACE = finished()
TINY = (
    Maker("tiny").start().request("root/agent#0", "tool", "x", {"a": 1}).outcome("root/agent#0", 2).end().data
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_small_and_uses_the_standard_library_alone() -> None:
    source = PROGRAM.read_text()
    assert len(source.splitlines()) <= 300
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names


def test_the_command_says_yes(tmp_path: Path) -> None:
    path = tmp_path / "run.loom"
    path.write_bytes(TRACE)
    done = run(str(path), "--head", head_of(TRACE))
    assert done.returncode == 0
    assert done.stdout.splitlines()[:3] == ["consistent: yes", "unaltered:  yes", "complete:   yes"]


def test_the_command_names_the_line_of_the_first_fault(tmp_path: Path) -> None:
    path = tmp_path / "run.loom"
    path.write_bytes(TRACE.replace(b'"order":812', b'"order":813', 1))
    done = run(str(path))
    assert done.returncode == 5
    number = next(n for n, line in enumerate(lines(TRACE), 1) if b'"order":812' in line)
    assert f"line {number}, byte " in done.stdout
    assert done.stdout.splitlines()[0] == "consistent: no"


def test_an_open_run_is_incomplete_and_not_accepted(tmp_path: Path) -> None:
    path = tmp_path / "run.loom"
    path.write_bytes(small().data)
    done = run(str(path))
    assert done.returncode == 5
    assert "complete:   no" in done.stdout
    assert "unaltered:  unknown" in done.stdout


def test_a_file_that_is_not_there_is_a_wrong_call(tmp_path: Path) -> None:
    done = run(str(tmp_path / "no.loom"))
    assert done.returncode == 2
    assert "no.loom" in done.stderr
    assert "Traceback" not in done.stderr


def product(data: bytes, head: str) -> Verdict:
    return check(data, head=head)


def notice(data: bytes, what: str, trace: bytes = TRACE) -> int:
    """Both checkers see that ``data`` is not ``trace``; the line that they name."""
    head = head_of(trace)
    verdict = product(data, head)
    assert not verdict.ok, f"the product does not notice: {what}"
    result = verify.check(data, head)
    verdicts = (result["consistent"], result["unaltered"], result["complete"])
    assert False in verdicts, f"the checker does not notice: {what}"
    assert verdicts == (verdict.consistent, verdict.unaltered, verdict.complete), what
    assert (verdict.line, verdict.offset) == result["place"], (
        f"{what}: {verdict.message} / {result['message']}"
    )
    assert verdict.line is not None
    return verdict.line


def test_each_byte_flipped_is_noticed_at_its_line() -> None:
    number, last = 1, len(lines(TINY))
    for index, byte in enumerate(TINY):
        data = TINY[:index] + bytes([byte ^ 1 << index % 8]) + TINY[index + 1 :]
        named = notice(data, f"byte {index} in line {number}", TINY)
        assert named >= number or number == last
        number += byte == 0x0A


@pytest.mark.parametrize("number", range(1, len(lines(TRACE)) + 1))
def test_each_line_dropped_doubled_or_swapped_is_noticed(number: int) -> None:
    parts = lines(TRACE)
    notice(join(parts[: number - 1] + parts[number:]), f"line {number} dropped")
    notice(join(parts[:number] + parts[number - 1 :]), f"line {number} doubled")
    if number < len(parts):
        swapped = [*parts[: number - 1], parts[number], parts[number - 1], *parts[number + 1 :]]
        notice(join(swapped), f"lines {number} and {number + 1} swapped")


def test_each_swap_is_noticed_without_a_head() -> None:
    parts = lines(TRACE)
    for first in range(len(parts)):
        for second in range(first + 1, len(parts)):
            swapped = list(parts)
            swapped[first], swapped[second] = parts[second], parts[first]
            verdict, result = check(join(swapped)), verify.check(join(swapped))
            assert not verdict.consistent, f"lines {first + 1} and {second + 1}"
            assert not result["consistent"], f"lines {first + 1} and {second + 1}"


def test_each_cut_is_noticed() -> None:
    for size in range(len(TINY)):
        notice(TINY[:size], f"cut to {size} bytes", TINY)


def test_each_byte_lost_is_noticed() -> None:
    for index in range(0, len(TINY), 3):
        notice(TINY[:index] + TINY[index + 1 :], f"byte {index} lost", TINY)
