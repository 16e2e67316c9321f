"""Changed spans of texts: what a report shows must have stood there."""

from __future__ import annotations

from agentloom.replay.text import plain
from agentloom.replay.textdiff import hunk_lines, text_hunks


def test_a_short_text_with_two_changes_is_one_hunk_that_shows_both() -> None:
    hunks, total = text_hunks("deleted 12 accounts in staging", "deleted 4,031 accounts in production")
    assert total == 1
    assert plain(hunk_lines(hunks[0], 80, 4)) == (
        "- deleted 12 accounts in staging\n+ deleted 4,031 accounts in production"
    )


def test_the_context_of_a_hunk_never_holds_another_change() -> None:
    same = " and then nothing happened for a very long while indeed, until at last"
    old = f"first{same} second{same} third"
    new = f"FIRST{same} SECOND{same} THIRD"
    hunks, total = text_hunks(old, new)
    assert total == 3
    for hunk in hunks:
        assert hunk.before + hunk.old + hunk.after in old
        assert hunk.before + hunk.new + hunk.after in new
    assert hunks[0].clipped_after
    assert hunks[1].clipped_before
