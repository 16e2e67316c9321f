"""What a leaked value looks like: each form is recognised, guesses are marked, plain edits are not called leaks."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.leaks import classify

UUID4 = ("3f0c9a52-6b1e-4d7a-9c55-0e2f7a1b8d44", "b81d7e03-92f4-4c1a-8a60-5d3c1f6e2b97")

CERTAIN: list[tuple[str, Any, Any]] = [
    ("a version 4 UUID", *UUID4),
    ("a version 4 UUID", {"$uuid": UUID4[0]}, {"$uuid": UUID4[1]}),
    (
        "a version 1 UUID (time and host)",
        "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "id 6ba7b811-9dad-11d1-80b4-00c04fd430c8",
    ),
    ("a date and time", "at 2026-01-02T10:11:12.123Z", "at 2026-01-02T10:11:13Z"),
    (
        "a date and time",
        {"$datetime": "2026-01-02T10:11:12+00:00"},
        {"$datetime": "2026-01-02T10:11:13+00:00"},
    ),
    ("a time of day", "it is 10:15", "it is 10:16"),
    ("a time in seconds since 1970", 1760000000, 1760000001),
    ("a time in seconds since 1970", 1760000000.5, 1760000001.25),
    ("a time in milliseconds since 1970", "t=1760000000123", "t=1760000001456"),
    ("a time in nanoseconds since 1970", 1760000000123456789, 1760000000123456999),
    ("a memory address", "<X object at 0x7f12ab34cd56>", "<X object at 0x7f12ab34cd99>"),
    ("the same members in another order", ["a", "b", "c"], ["c", "a", "b"]),
    ("the same members in another order", "{'a', 'b'}", "{'b', 'a'}"),
    ("the same fields in another order", '{"a":1,"b":2}', '{"b":2,"a":1}'),
    ("a float in its last bits (1 step apart)", 0.1 + 0.2, 0.3),
    ("a path of temporary files", "/tmp/tmpab12cd34/x", "/tmp/tmpzz12cd34/x"),
]
GUESSES: list[tuple[str, Any, Any]] = [
    ("a random number between 0 and 1", 0.123, 0.77),
    ("random hexadecimal digits", "deadbeef12", "cafe99beef"),
    ("a random token or generated id", "tok_8fj3kF93kd0sQz", "tok_9fj3kF93kd1sQa"),
    ("a path of this machine", "/home/a/p/x.py", "/home/b/q/x.py"),
    ("a duration", "took 1.2s", "took 1.4s"),
    ("a number that nothing recorded", "count 5", "count 7"),
]


@pytest.mark.parametrize(("what", "then", "now"), CERTAIN)
def test_a_form_that_settles_it(what: str, then: Any, now: Any) -> None:
    found = classify(then, now)
    assert found is not None
    assert (found.what, found.guess) == (what, False)
    assert found.fix
    assert found.likely


@pytest.mark.parametrize(("what", "then", "now"), GUESSES)
def test_a_guess_says_that_it_is_one(what: str, then: Any, now: Any) -> None:
    found = classify(then, now)
    assert found is not None
    assert (found.what, found.guess) == (what, True)


def test_several_leaks_in_one_text_are_all_named() -> None:
    found = classify(f"{UUID4[0]} at 2026-01-02T10:11:12Z", f"{UUID4[1]} at 2026-01-02T10:11:13Z")
    assert found is not None
    assert found.what == "a version 4 UUID, a date and time"


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("hello world", "goodbye world"),
        (True, False),
        (5, True),
        ("a", None),
        (["a"], ["b"]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_an_edit_is_not_a_leak(then: Any, now: Any) -> None:
    assert classify(then, now) is None
