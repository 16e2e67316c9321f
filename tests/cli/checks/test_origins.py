"""From differences to findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentloom.cli.checks.double import EVERY, Difference
from agentloom.cli.checks.findings import Finding
from agentloom.cli.checks.origins import facets_of, finding_of, home_of, origins_of, variables_read
from tests.cli.checks.flow.agents import source


def finding(check: str, line: int, function: str = "run", file: str = "agent.py") -> Finding:
    return Finding(check, "warning", file, line, 1, "x", f"said {line}", "reason", "fix it", function)


def report(**more: Any) -> dict[str, Any]:
    call = {"kind": "tool", "name": "search", "index": 2, "src": "agent.py:8 run"}
    return {
        "class": "leak",
        "call": call,
        "differences": {"items": [{"path": "args.query"}]},
        "cause": None,
    } | more


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("")


def test_findings_of_the_facet_the_nearest_first() -> None:
    found = [
        finding("set-order", 90),
        finding("set-order", 7),
        finding("hash", 9, "other"),
        finding("folder", 8),
    ]
    difference = Difference(("hash seed",), 1, report())
    assert [one.line for one in origins_of(difference, found, "agent.py")] == [7, 90, 9]
    assert origins_of(Difference(("umask",), 1, report()), found, "agent.py") == []
    assert facets_of(found) == ["hash seed", "working folder", "environment"]


def test_the_finding_says_what_differs_where_and_with_what() -> None:
    origin = finding("set-order", 7)
    made = finding_of(Difference(("hash seed",), 1, report()), [origin], "agent.py")
    assert (made.check, made.file, made.line, made.function) == ("double-run", "agent.py", 8, "run")
    assert made.said == "call 2, tool search, args.query differs with another hash seed"
    assert made.fix == "fix it"
    assert finding_of(Difference((EVERY,), 0, report()), [], "agent.py").said.endswith(
        "differs in every replay"
    )


def test_what_the_value_looks_like() -> None:
    leak = {"kind": "uuid", "looks_like": "a UUID", "likely": "uuid_utils", "fix": "use uuid()"}
    made = finding_of(Difference((EVERY,), 0, report(cause={"leak": leak})), [], "agent.py")
    assert (made.reason, made.fix) == ("looks like a UUID: uuid_utils", "use uuid()")


def test_an_output_and_an_error_have_the_place_of_their_origin() -> None:
    output = report(call=None, **{"class": "output", "differences": {"items": [{"path": ""}]}})
    made = finding_of(Difference(("umask",), 1, output), [finding("folder", 3)], "agent.py")
    assert (made.line, made.said) == (3, "the output differs with another umask")
    home = home_of([source("x = 1\ndef run(): pass\n")], "run")
    assert (home, home_of([], "run")) == ((2, "run"), (0, ""))
    assert finding_of(Difference(("umask",), 1, output), [], "agent.py", home).line == 2
    failed = Difference(
        ("working folder",), 1, None, error={"message": "agent.py cannot be imported: no file."}
    )
    made = finding_of(failed, [], "agent.py")
    assert (made.line, made.column) == (0, 0)
    assert made.said == "agent.py cannot be imported: no file with another working folder"


def test_variables_that_are_read() -> None:
    text = "import os\nos.environ['A']\nos.getenv('B', 'x')\nos.environ.get('C')\n"
    text += "getenv('D')\nos.environ[name]\nd['E']\n"
    assert sorted(variables_read([source(text)])) == ["A", "B", "C", "D"]
