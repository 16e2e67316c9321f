"""How what was found in a text is put in order: parts, overlaps, blocks that were coded anew."""

from __future__ import annotations

from agentloom.runtime.redaction_found import NAMED, Change, Found, Known, merged

KEY = Known("key")
OTHER = Known("other")


def _spans(found: list[Found], made: list[Change]) -> list[tuple[str, int, int]]:
    return [
        ("change" if isinstance(one, Change) else one.known.kind, one.start, one.end)
        for one in merged(found, made)
    ]


def test_what_lies_in_another_is_part_of_it() -> None:
    assert _spans([Found(5, 9, OTHER), Found(0, 20, KEY)], []) == [("key", 0, 20)]


def test_what_overlaps_is_one_secret() -> None:
    assert _spans([Found(0, 10, KEY), Found(8, 15, OTHER), Found(15, 17, OTHER)], []) == [
        ("key", 0, 15),
        ("other", 15, 17),
    ]


def test_a_name_wins_where_both_are_the_same() -> None:
    named = Known("environment", "ACME_KEY")
    assert merged([Found(0, 9, KEY), Found(0, 9, named)], []) == [Found(0, 9, named)]


def test_a_block_gives_way_to_what_is_secret_as_a_whole() -> None:
    block = Change(5, 30, b"coded", (OTHER,))
    assert _spans([Found(0, 40, KEY)], [block]) == [("key", 0, 40)]
    assert _spans([Found(10, 35, KEY)], [block]) == [("key", 10, 35)]
    assert _spans([Found(30, 35, KEY)], [block]) == [("change", 5, 30), ("key", 30, 35)]


def test_a_value_that_is_secret_for_its_name_gives_way_to_what_is_in_it() -> None:
    loose = Found(0, 40, Known(NAMED))
    assert _spans([loose, Found(10, 20, KEY)], []) == [("key", 10, 20)]
    assert _spans([loose], [Change(10, 20, b"coded", (OTHER,))]) == [("change", 10, 20)]
    assert _spans([loose], []) == [(NAMED, 0, 40)]


def test_a_run_that_known_values_fill_gives_way_to_them() -> None:
    """On replay their placeholders stand there, and the run would not be found."""
    values = [Found(0, 20, OTHER, True), Found(21, 40, OTHER, True)]
    assert _spans([Found(0, 42, KEY), *values], []) == [("other", 0, 20), ("other", 21, 40)]
    assert _spans([Found(0, 50, KEY), *values], []) == [("key", 0, 50)]
