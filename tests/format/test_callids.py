"""Call ids: one text for one place in the structure of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError
from agentloom.format import callids
from spec import verify
from tests.format.strategies import STEADY

names = st.text(st.characters(codec=None), min_size=1, max_size=8)


@STEADY
@given(
    st.lists(st.tuples(names, st.none() | st.integers(0, 10**6)), min_size=1, max_size=4),
    st.integers(0, 99),
    st.integers(1, 9),
)
def test_a_call_id_reads_back(path: list[tuple[str, int | None]], counter: int, attempt: int) -> None:
    text = ""
    for name, index in path:
        text = callids.join(text, name, index)
    call = callids.build(text, counter, attempt)
    found = callids.parse(call)
    assert [(part.name, part.index) for part in found.path] == path
    assert (found.counter, found.attempt, str(found)) == (counter, attempt, call)
    assert found.logical == callids.build(text, counter)
    assert verify.is_call(call)


def test_the_example() -> None:
    found = callids.parse("root/support/task[1]#3~2")
    assert (found.path[2].index, found.counter, found.attempt) == (1, 3, 2)
    assert found.logical == "root/support/task[1]#3"
    assert callids.segment("ask user", 0) == "ask%20user[0]"
    assert callids.escape("f\u00fcr/#~[]%") == "f%C3%BCr%2F%23%7E%5B%5D%25"


NO_CALL_IDS = [
    "",
    "root",
    "#0",
    "root#",
    "root#00",
    "root#-1",
    "root#0~1",
    "root#0~0",
    "root#0~02",
    "/root#0",
]
NO_CALL_IDS += [
    "root/#0",
    "root[]#0",
    "root[01]#0",
    "a b#0",
    "root%2f#0",
    "root%41#0",
    "root%FF#0",
    "root%2#0",
]
NO_CALL_IDS += ["root#0 ", "r\u00f6#0", "root#\u0661", "root\n#0"]


@pytest.mark.parametrize("text", NO_CALL_IDS)
def test_what_is_no_call_id(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        callids.parse(text)
    assert caught.value.code == "callid.syntax"
    try:
        assert not verify.is_call(text)
    except UnicodeDecodeError:
        assert "%FF" in text


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        callids.escape("")
    assert caught.value.code == "callid.syntax"


def test_a_name_with_half_a_surrogate_pair_reads_back() -> None:
    """Names come from outside: what Python reads from a file system may hold one."""
    assert callids.escape("a\udc80") == "a%ED%B2%80"
    assert callids.unescape("a%ED%B2%80") == "a\udc80"


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (callids.escape, "", "a path segment needs a name"),
        (callids.unescape, "%FF", "'%FF' is not percent-encoded UTF-8"),
        (callids.unescape, "%41gent", "'%41gent' is not the one spelling of the name 'Agent'"),
        (callids.unescape, "a b", "'a b' is not the one spelling of the name 'a b'"),
        (callids.unescape, "", "a path segment needs a name"),
        (callids.parse_path, "a/b[01]", r"'a/b\[01\]' is not a path: 'b\[01\]' is not name or name\[i\]"),
        (callids.parse_path, "a//b", "'a//b' is not a path: '' is not name"),
        (callids.parse, "a", "'a' is not a call id"),
        (callids.parse, "a" * 65_537, "a call id of 65537 characters; the limit is 65536"),
        (callids.check, "a" * 65_535 + "#0", "a call id of 65537 characters"),
        (callids.check, "a b#0", "'a b' is not a path"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else value.__name__,
)
def test_what_is_wrong_with_a_text_is_named(read: Any, text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        read(text)
    assert caught.value.code == "callid.syntax"


def test_the_longest_call_id() -> None:
    text = "a" * 65_534 + "#0"
    callids.check(text)
    assert str(callids.parse(text)) == text
    callids.check("a%20b/c[1]#3~2")


def test_calls_are_made_of_their_parts() -> None:
    assert callids.join("", "a b") == "a%20b"
    assert callids.join("", "a", 0) == "a[0]"
    assert callids.join("root/x", "a", 12) == "root/x/a[12]"
    assert callids.join("root", "a b") == "root/a%20b"
    assert callids.build("root/x", 3) == "root/x#3"
    assert callids.build("root/x", 3, 1) == "root/x#3"
    assert callids.build("root/x", 3, 2) == "root/x#3~2"
    first = callids.parse("root/x[1]#3")
    assert (first.attempt, first.counter, first.path[1].index, first.path[0].index) == (1, 3, 1, None)
    assert (str(first), first.logical) == ("root/x[1]#3", "root/x[1]#3")
    again = callids.parse("root/x[1]#3~2")
    assert (str(again), again.logical) == ("root/x[1]#3~2", "root/x[1]#3")
    assert callids.parse_path("a%2Fb/c[2]") == (callids.Segment("a/b"), callids.Segment("c", 2))
