"""Errors as messages, JSON and exit codes."""

from __future__ import annotations

from agentloom import errors
from agentloom.cli.exits import Exit, describe, exit_code


def test_the_codes_are_those_of_the_table() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0, "ERROR": 1, "USAGE": 2, "DIVERGENCE": 3, "INTEGRITY": 5, "SUSPENDED": 75, "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
    }  # fmt: skip


def test_every_error_class_has_a_code_on_purpose() -> None:
    integrity = {errors.IntegrityError, errors.FormatError}
    for name in errors.__all__:
        kind = getattr(errors, name)
        error = kind.__new__(kind)
        expected = (
            Exit.INTEGRITY if kind in integrity
            else Exit.DIVERGENCE if kind in {errors.Diverged, errors.DivergenceError}
            else Exit.SUSPENDED if kind in {errors.Suspend, errors.Suspended}
            else Exit.ERROR
        )  # fmt: skip
        assert exit_code(error) == expected, name


def test_fields_that_json_lacks_become_text() -> None:
    error = errors.StoreError("no", where=("a", {1}), who={b"k": object})
    facts = describe(error)
    assert facts["fields"] == {"where": ["a", [1]], "who": {"b'k'": "<class 'object'>"}}
