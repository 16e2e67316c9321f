"""The exception tree: drawn as it is, every error with its place, its facts and its remedy."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from agentloom import Workflow, errors


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    drawn: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    text = (errors.__doc__ or "").partition("::")[2]
    for line in text.splitlines():
        match = re.match(r"\s{4}([\s│├└─]*)([A-Z]\w+)", line)
        if match is None:
            continue
        depth = len(match[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if stack:
            drawn[match[2]] = stack[-1][1]
        stack.append((depth, match[2]))
    actual = {name: getattr(errors, name).__base__.__name__ for name in errors.__all__}
    assert drawn == actual


def test_all_lists_every_class() -> None:
    classes = {
        name
        for name, item in vars(errors).items()
        if inspect.isclass(item) and item.__module__ == errors.__name__
    }
    assert classes == set(errors.__all__)


@pytest.mark.parametrize("kind", [errors.FormatError, errors.IntegrityError, errors.UnsupportedVersion])
def test_errors_of_bytes_name_code_line_and_offset(kind: type[errors.FormatError]) -> None:
    error = kind("chain.prev", "prev is wrong", line=7, offset=1234, hint="get the file again")
    assert (error.code, error.line, error.offset) == ("chain.prev", 7, 1234)
    assert str(error) == "prev is wrong (line 7, byte 1234) [chain.prev]\n  next: get the file again"
    assert str(kind("x", "odd")) == "odd [x]"


def test_facts_are_fields() -> None:
    error = errors.RunNotFound("no run 'x'", hint="agentloom ls", ref="x")
    assert (error.message, error.hint, error.fields) == ("no run 'x'", "agentloom ls", {"ref": "x"})
    assert str(error) == "no run 'x'\n  next: agentloom ls"


def test_a_refused_value_names_path_type_and_remedy() -> None:
    error = errors.ValueRefused("a[2].db", "sqlite3.Connection", "it is a live connection")
    assert (error.path, error.type_name) == ("a[2].db", "sqlite3.Connection")
    assert "a[2].db: sqlite3.Connection" in str(error)
    assert "agentloom.register" in str(error)


def test_control_flow_passes_an_except_exception() -> None:
    for kind in (errors.Diverged, errors.Suspend):
        assert not issubclass(kind, Exception)
        assert issubclass(kind, errors.ControlFlow)


def test_what_the_reference_puts_in_brackets_is_an_attribute() -> None:
    """Of the errors made by hand here; the others set theirs themselves."""
    page = (Path(__file__).parent.parent / "docs/reference.md").read_text("utf-8")
    facts: dict[str, dict[str, Any]] = {
        "AmbiguousRun": {"matches": ["a1", "a2"]},
        "LeaseHeld": {"owner": "somebody"},
        "MailTaken": {"existing": "mail"},
        "Suspended": {"run": "r", "asks": [], "due": 3},
        "Expired": {"ask": "7", "due": 3},
        "Interrupted": {"call": "root/a#1"},
        "UnrecordedEffect": {"what": "open", "file": "a.py", "line": 3, "function": "f"},
        "TrafficError": {"file": "a.har", "exchange": 2},
        "WorkflowError": {"step": "a", "steps": ["a", "b"]},
    }
    for name, given in facts.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        said = row[row.rindex("(") :]
        kind: type[errors.LoomError] = getattr(errors, name)
        for fact, value in given.items():
            assert f"`{fact}`" in said
            assert getattr(kind("text", **given), fact) == value
            assert not getattr(kind("text"), fact)
            assert fact not in vars(
                kind("text", **given)
            )  # what is kept of an error in a trace stays as it was


def test_a_workflow_error_names_its_step_and_all_of_them() -> None:
    graph = Workflow("w").step("a", fn=lambda state: 1, after="x").step("b", fn=lambda state: 1, after="y")
    with pytest.raises(errors.WorkflowError) as caught:
        graph.build()
    assert (caught.value.step, caught.value.steps) == ("a", ["a", "b"])
    with pytest.raises(errors.WorkflowError) as caught:
        Workflow("w").step("one", fn=3)  # type: ignore[call-overload]
    assert (caught.value.step, caught.value.steps) == ("one", ["one"])
    with pytest.raises(errors.WorkflowError) as caught:
        Workflow("w").build()
    assert (caught.value.step, caught.value.steps) == (None, [])
