"""What fits a query, and what a word means."""

from __future__ import annotations

import pytest

from agentloom.errors import AmbiguousRun, RunNotFound
from agentloom.store.base import Query, RunRow
from agentloom.store.find import fits, missing, resolve, tag_fits, tags_of


def test_tags_of_every_shape() -> None:
    assert tags_of({"user": "ann", "n": 7, "$x": 1}) == ("user=ann", "n=7")
    assert tags_of(["a", {"b": "c"}]) == ("a", "b=c")
    assert tags_of("plain") == ("plain",)
    assert tags_of(None) == ()


def test_a_tag_fits_whole_or_by_value() -> None:
    assert tag_fits(["user=ann"], "user=ann")
    assert tag_fits(["user=ann"], "ann")
    assert tag_fits(["plain"], "plain")
    assert not tag_fits(["user=ann"], "user")
    assert not tag_fits(["plain"], "")
    assert tag_fits(["a=b=c"], "b=c")


def test_a_damaged_row_fits_only_an_open_question() -> None:
    row = RunRow("r", "damaged")
    assert fits(row, Query())
    assert fits(row, Query(since=10))
    for query in (
        Query(failed=True),
        Query(agent="a"),
        Query(tag="t"),
        Query(tool="t"),
        Query(conversation="c"),
    ):
        assert not fits(row, query), query


def resolved(ref: str, names: list[str], tagged: list[RunRow] | None = None) -> str:
    return resolve(
        ref,
        names,
        lambda runs: [RunRow(run, "completed", agent="a", started=1_700_000_000_000_000_000) for run in runs],
        lambda tag: tagged or [],
        lambda: ["user=ann"],
        "here",
    )


def test_a_start_goes_before_an_end_and_both_before_a_tag() -> None:
    names = ["abcd1", "zabcd", "other"]
    assert resolved("abcd", names) == "abcd1"
    assert resolved("ther", names) == "other"
    assert resolved("last", names) == "abcd1"
    assert resolved("tag", names, [RunRow("other", "completed")]) == "other"


def test_many_fits_are_counted_and_the_first_listed() -> None:
    with pytest.raises(AmbiguousRun) as caught:
        resolved("aaaa", [f"aaaa{number}" for number in range(20)])
    assert "20 runs" in str(caught.value)
    assert "and 12 more" in str(caught.value)
    assert len(caught.value.fields["matches"]) == 8


def test_what_is_missing_is_named_with_what_is_close() -> None:
    assert missing("x", "here", []).hint
    with pytest.raises(RunNotFound, match=r"did you mean .*abcd1"):
        resolved("abcx1", ["abcd1", "zzzzz"])
    with pytest.raises(RunNotFound, match="user=ann"):
        resolved("user=an", ["abcd1"])
    with pytest.raises(RunNotFound, match="agentloom ls"):
        resolved("nothing-like-it", ["abcd1"])
