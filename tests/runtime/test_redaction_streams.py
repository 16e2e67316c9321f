"""Which pieces of a stream go on with each other, and what is remembered between what is written."""

from __future__ import annotations

import random
from typing import Any

from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_streams import Joined, flowing
from tests.secrets.shapes import make

KEY = make("openai", random.Random(5))
HALF = len(KEY) // 2


def _redacted(*chunks: Any) -> list[Any]:
    return Joined(Redactor()).redacted(list(chunks), final=True)


def test_by_number_not_by_place() -> None:
    made = _redacted(
        {"calls": [{"index": 0, "text": "a"}, {"index": 1, "text": KEY[:HALF]}]},
        {"calls": [{"index": 1, "text": KEY[HALF:]}]},
    )
    assert made == [
        {"calls": [{"index": 0, "text": "a"}, {"index": 1, "text": "__redacted_1__"}]},
        {"calls": [{"index": 1, "text": ""}]},
    ]


def test_texts_of_other_numbers_or_names_are_no_pieces_of_each_other() -> None:
    for first, then in (
        ({"index": 0, "text": KEY[:20]}, {"index": 1, "text": KEY[20:]}),
        ({"text": KEY[:20]}, {"more": KEY[20:]}),
        ({"type": "a.delta", "delta": KEY[:20]}, {"type": "b.delta", "delta": KEY[20:]}),
        ({"item_id": "x", "delta": KEY[:20]}, {"item_id": "y", "delta": KEY[20:]}),
    ):
        chunks = [first, then]
        assert Joined(Redactor()).redacted(chunks, final=True) is chunks  # type: ignore[arg-type]


def test_what_may_begin_is_hidden_until_it_is_known() -> None:
    joined = Joined(Redactor())
    assert joined.redacted([{"t": f"it is {KEY[:12]}"}], final=False) == [{"t": "it is __redacted_1__"}]
    assert joined.redacted([{"t": KEY[12:30]}], final=False) == [{"t": ""}]
    assert joined.redacted([{"t": f"{KEY[30:]} done"}], final=True) == [{"t": " done"}]


def test_what_was_none_after_all_stays_hidden_in_the_run() -> None:
    redactor = Redactor()
    joined = Joined(redactor)
    assert joined.redacted([{"t": "it is sk-le"}], final=False) == [{"t": "it is __redacted_1__"}]
    assert joined.redacted([{"t": "arn, a library"}], final=True) == [{"t": "arn, a library"}]
    assert redactor.text("it is sk-learn") == "it is __redacted_1__arn"


def test_the_first_letters_that_were_written_stand_before_it_everywhere() -> None:
    redactor = Redactor()
    joined = Joined(redactor)
    assert joined.redacted([{"t": f"it is {KEY[:1]}"}], final=False) == [{"t": f"it is {KEY[:1]}"}]
    assert joined.redacted([{"t": KEY[1:]}], final=True) == [{"t": "__redacted_1__"}]
    assert redactor.text(f"it is {KEY}") == f"it is {KEY[:1]}__redacted_1__"


def test_lists_of_a_payload() -> None:
    redactor = Redactor()
    assert flowing(redactor, {"tokens": [KEY[:9], KEY[9:]]}) == {"tokens": ["__redacted_1__", ""]}
    alone: Any = {"tokens": [KEY]}
    assert flowing(redactor, alone) is alone  # for who looks at each text
    messages: Any = [{"role": "user", "content": KEY[:20]}, {"role": "user", "content": KEY[20:]}]
    assert flowing(redactor, messages) is messages


def test_many_pieces_take_linear_work() -> None:
    """Ten thousand pieces of secrets: each chunk is copied once, not once for each piece."""
    pieces = [KEY[at : at + 7] for at in range(0, len(KEY), 7)] + [" "]
    chunks: list[Any] = [{"tokens": pieces * 10} for _ in range(100)]
    made = _redacted(*chunks)
    assert all(KEY[7:14] not in chunk["tokens"] for chunk in made)
    assert made[0]["tokens"][0] == made[99]["tokens"][0] == "__redacted_1__"
