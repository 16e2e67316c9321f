"""Mail as bytes, and back."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError, StoreError, ValueRefused
from agentloom.format.values import Types, encode
from agentloom.store.mail import Mail, checked_mail, read_mail, said, taken

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(
    kind=st.sampled_from(["answer", "signal", "cancel"]),
    key=st.from_regex(r"\A[A-Za-z0-9_.-]{1,63}\Z"),
    name=TEXT,
    value=VALUES,
    who=st.none() | TEXT,
    at=st.integers(0, 2**63 - 1),
)
def test_every_mail_comes_back(
    kind: Literal["answer", "signal", "cancel"], key: str, name: str, value: object, who: str | None, at: int
) -> None:
    mail = Mail(kind, key, name, encode(value, Types()), who, at, "api")
    assert read_mail(checked_mail(mail), "here") == mail


def test_members_that_are_not_known_are_left_alone() -> None:
    data = checked_mail(Mail("cancel", "cancel"))
    assert read_mail(data.replace(b'"via"', b'"more":[1],"via"'), "here") == Mail("cancel", "cancel")


def test_what_is_no_mail_is_named() -> None:
    with pytest.raises(FormatError, match="the place is damaged"):
        read_mail(b'{"mail":1,"kind":"letter"}', "the place")
    with pytest.raises(StoreError, match="1 to 63"):
        checked_mail(Mail("answer", ""))
    with pytest.raises(ValueRefused, match="at most"):
        checked_mail(Mail("answer", "7", value="x" * (17 << 20)))


def test_who_said_it_when() -> None:
    at = 1_764_399_791 * 10**9
    assert said(Mail("answer", "7", who="ann", at=at)) == " by ann on 2025-11-29 07:03:11 UTC"
    assert said(Mail("answer", "7")) == ""
    assert "signal 'paid'" in str(taken("r", Mail("signal", "k", "paid")))
    assert "asked to stop" in str(taken("r", Mail("cancel", "cancel")))
