"""Questions in words: what is asked, until when, and command lines that a shell takes as they stand."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from agentloom.cli.asking import ask_lines, commands, moment, span, suspended_lines, wait_words
from agentloom.cli.render import Span
from agentloom.runtime.asks import OpenAsk
from agentloom.store.mail import Mail

SECOND = 10**9
NOW = 1_796_000_000 * SECOND
RUN = "01m8jawt59znyq8wnyj25rw8ye"
ASK = OpenAsk(
    "4", RUN, "support", "answer", question="Refund order 812?", choices=("yes", "no"), asked_at=NOW
)


def text(lines: list[list[Span]]) -> str:
    return "\n".join("".join(one if isinstance(one, str) else one[1] for one in line) for line in lines)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "5.0 s"), (3600, "60 min 0 s"), (7200, "2 h 0 min"), (47 * 3600 + 120, "47 h 2 min"),
        (52 * 3600, "2 d 4 h"),
    ],
)  # fmt: skip
def test_spans_from_seconds_to_days(seconds: int, words: str) -> None:
    assert span(seconds * SECOND) == words


def test_a_moment_says_how_far_it_is() -> None:
    assert moment(NOW + 3 * 3600 * SECOND, NOW).endswith(" (in 3 h 0 min)")
    assert moment(NOW - 60 * SECOND, NOW).endswith(" (60.0 s ago)")


def test_a_question_with_its_choices() -> None:
    shown = text(suspended_lines([ASK], 100, now=NOW))
    assert "question  4  Refund order 812?" in shown
    assert "choices   yes, no" in shown
    assert "agentloom answer w8ye yes\n" in shown
    assert "agentloom answer w8ye no\n" in shown
    assert "--ask" not in shown
    assert "then      agentloom resume w8ye" in shown


def test_of_several_questions_each_command_says_which() -> None:
    other = replace(ASK, ask="9", choices=None)
    shown = text(suspended_lines([ASK, other], 100, now=NOW))
    assert "agentloom answer w8ye yes --ask 4" in shown
    assert "agentloom answer w8ye VALUE --ask 9" in shown
    message = replace(ASK, ask="10", kind="signal", name="paid", choices=None)
    assert "--ask" not in text(suspended_lines([ASK, message], 100, now=NOW))


def test_what_is_shown_of_each_kind() -> None:
    cases = {
        "signal    4  paid": replace(ASK, kind="signal", name="paid", question="", choices=None),
        "agentloom signal w8ye paid [VALUE]": replace(ASK, kind="signal", name="paid", choices=None),
        "time      4  goes on by itself": replace(
            ASK, kind="time", question="", choices=None, due=NOW + SECOND
        ),
        "call      refund(order=812, total=40)": replace(
            ASK, approval={"tool": "refund", "args": {"order": 812, "total": 40}}, choices=None
        ),
        "approve   4  Refund order 812?": replace(ASK, approval={"tool": "refund"}, choices=None),
        "agentloom answer w8ye yes --result JSON": replace(ASK, in_doubt=True, request={"order": 1}),
        'call      {"order": 1}': replace(ASK, in_doubt=True, request={"order": 1}),
        "only ann or manager": replace(ASK, approver=("ann", "manager")),
        "agentloom answer w8ye yes --by NAME": replace(ASK, approver=("ann",)),
        'evidence  {"total": 40}': replace(ASK, evidence={"total": 40}),
        'as        {"type": "integer"}': replace(ASK, choices=None, schema={"type": "integer"}),
        ', then "no"': replace(ASK, due=NOW + SECOND, has_default=True, default="no"),
        "then it fails with Expired": replace(ASK, due=NOW + SECOND),
        "then it is denied": replace(
            ASK, due=NOW + SECOND, approval={"tool": "refund", "args": {}, "schema": {}}
        ),
    }
    for words, ask in cases.items():
        assert words in text(ask_lines(ask, 100, several=False, now=NOW)), words


def test_an_answered_one_says_by_whom() -> None:
    answered = replace(ASK, answered=Mail("answer", "4", who="ann", at=NOW - SECOND))
    shown = text(ask_lines(answered, 100, several=False, now=NOW))
    assert re.search(r"answered  .*ago\) by ann, not resumed yet", shown)
    assert "agentloom answer" not in shown


def test_command_lines_are_quoted_for_the_shell() -> None:
    odd = replace(ASK, ask="4", choices=("it's; rm -rf *", "-1", 3, {"a": 1}))
    for choice, line in zip(
        ["it's; rm -rf *", "-1", "3", '{"a": 1}'], commands(odd, several=True), strict=True
    ):
        words = shlex.split(line)
        assert choice in words, line
        assert words[:3] == ["agentloom", "answer", "w8ye"]
    many = replace(ASK, choices=tuple("abcdef"))
    assert commands(many, several=False) == ["agentloom answer w8ye VALUE"]
    assert commands(replace(ASK, erased=True), several=False) == []


def test_a_long_question_and_many_of_them_stay_short() -> None:
    long = replace(ASK, question="why " * 1000, evidence=["x" * 10_000], choices=tuple(map(str, range(500))))
    assert len(text(ask_lines(long, 100, several=False, now=NOW))) < 1200
    shown = text(suspended_lines([replace(ASK, ask=str(number)) for number in range(40)], 100, now=NOW))
    assert "and 35 more: agentloom inbox" in shown


def test_words_of_a_wait_without_a_question() -> None:
    assert wait_words(replace(ASK, kind="time", question="")) == ("time", "4  goes on by itself")
    assert wait_words(replace(ASK, in_doubt=True))[0] == "in doubt"
