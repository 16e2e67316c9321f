"""Values in one line: tags shown as what they are, everything clipped."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.text import clip, one_line, plain, shorten, show


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"$bytes": "AAAA"}, "3 bytes"),
        ({"$set": ["a"]}, '{"a"}'),
        ({"a": [1, 2.5, None]}, '{"a": [1, 2.5, null]}'),
        ({"$error": {"type": "builtins:ValueError", "message": "no\nway"}}, "ValueError: no\\nway"),
    ],
)
def test_values_are_shown_in_one_line(tree: Any, text: str) -> None:
    assert show(tree) == text


def test_long_values_are_clipped() -> None:
    assert len(show(["x" * 100] * 100, 60)) <= 60
    assert len(show({"k" * 100: "v" * 1000}, 60)) <= 60


def test_control_characters_are_made_visible() -> None:
    assert one_line("a\nb\tc\x00") == "a\\nb\\tc\\x00"
    assert clip("abcdef", 5) == "ab..."
    assert plain([[("x", "a"), ("", "b  ")], []]) == "ab\n"


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"$datetime": {"at": "2026-11-28T05:01:45", "offset": [0, 0, 0]}}, "2026-11-28T05:01:45+00:00"),
        ({"$datetime": {"at": "2026-11-28T05:01:45", "offset": [-1, 66600, 0]}}, "2026-11-28T05:01:45-05:30"),
        (
            {"$datetime": {"at": "2026-10-25T02:30:00", "zone": "Europe/Berlin", "fold": 1}},
            "2026-10-25T02:30:00 Europe/Berlin (second time)",
        ),
        ({"$datetime": "2026-11-28T05:01:45"}, "2026-11-28T05:01:45"),
    ],
)
def test_moments_are_one_text(tree: Any, text: str) -> None:
    assert show(tree) == text


def test_sentences_are_cut_between_words() -> None:
    note = "the trace has a gap at entry 4 (unrecorded-effect): not replayable past it"
    for width in range(25, len(note) + 2):
        short = shorten(note, width)
        assert len(short) <= width
        if short != note:
            kept = short.removesuffix("...").rstrip()
            assert short.endswith("...")
            assert note.startswith(kept)
            assert note[len(kept)] in " :(,;", short
    assert shorten("x" * 30, 10) == "xxxxxxx..."
    assert shorten("", 3) == ""
