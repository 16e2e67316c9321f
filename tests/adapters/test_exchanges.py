"""What seams share: errors that can be written down, and calls that nobody claims."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from agentloom.adapters.exchanges import bare_error, chain_of, classified, exchange_of
from agentloom.format.values import Types, encode


class Holding(Exception):
    """Holds a socket."""

    def __init__(self, message: str) -> None:
        super().__init__(message, object())
        self.socket = object()


def test_a_chain_of_errors_keeps_types_texts_and_flags() -> None:
    top = ConnectionError("top")
    top.__cause__ = middle = TimeoutError("middle")
    middle.__cause__ = ConnectionRefusedError(111, "refused")
    made = chain_of(top, bare_error)
    found: list[Any] = []
    at: BaseException | None = made
    while at is not None:
        found.append([type(at).__name__, str(at), at.__suppress_context__])
        at = at.__cause__
    assert found == [
        ["ConnectionError", "top", True],
        ["TimeoutError", "middle", True],
        ["ConnectionRefusedError", "[Errno 111] refused", False],
    ]
    encode(made, Types())  # it has an exact form


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (socket.gaierror(-2, "Name or service not known"), True),
        (ssl.SSLError(1, "bad certificate"), True),
        (ValueError("text"), True),
        (Holding("x"), False),
        (KeyError("k"), False),  # its text is not its argument
    ],
)
def test_which_errors_have_a_bare_copy(error: BaseException, kept: bool) -> None:
    made = bare_error(error)
    assert (made is not None) is kept
    if made is not None:
        assert (type(made), str(made)) == (type(error), str(error))


def test_what_nobody_claims_is_http_with_its_address_without_secrets() -> None:
    url = "https://me:secret@h/x?key=hidden&page=2"
    found = classified(exchange_of("get", url, "/x", None, None, b""))
    assert (found.spec.type, found.spec.name, found.spec.stream) == ("http", "GET https://h/x", False)
    pieces = classified(exchange_of("get", url, "/x", None, None, b"", piecewise=True))
    assert pieces.spec.stream
