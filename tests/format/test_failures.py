"""Exceptions come back as they were, without their constructors, imports or tracebacks."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import orjson
import pytest

from agentloom.errors import Diverged, RecordedError, StoreFailed, Suspend
from agentloom.format.canonical import load
from agentloom.format.values import Types, decode, encode

NONE = Types()


class Refused(Exception):
    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(f"refused with {code}")
        self.code = code
        self.detail = detail


class Http(OSError):
    def __init__(self, message: str, response: object) -> None:
        super().__init__(message)
        self.response = response


def round_trip(error: BaseException) -> Any:
    return decode(load(orjson.dumps(encode(error, NONE))), NONE)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x", 1, None),
        KeyError(("a", 2)),
        OSError(2, "No such file", "orders.db"),
        FileNotFoundError(2, "No such file", "a", None, "b"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        StopIteration({"value": 1}),
        SystemExit(3),
        SyntaxError("bad", ("f.py", 1, 2, "x =", 1, 4)),
        ExceptionGroup("two", [ValueError(1), TypeError("x")]),
        TimeoutError(),
        KeyboardInterrupt(),
        socket.gaierror(-2, "Name or service not known"),
        subprocess.CalledProcessError(1, ["x"], b"out"),
        StoreFailed("no space", hint="free some", path="x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_comes_back(error: BaseException) -> None:
    found = round_trip(error)
    assert type(found) is type(error)
    assert repr(found) == repr(error)
    assert str(found) == str(error)
    assert vars(found).keys() == vars(error).keys()


def test_attributes_and_cause() -> None:
    error = Refused(7, detail="no funds")
    error.__cause__ = OSError(5, "I/O error")
    error.add_note("seen twice")
    found = round_trip(error)
    assert (type(found), found.code, found.detail, found.args) == (Refused, 7, "no funds", error.args)
    assert type(found.__cause__) is OSError
    assert found.__notes__ == ["seen twice"]


def test_what_an_exception_cannot_keep_is_named() -> None:
    tree: Any = encode(Http("503", object()), NONE)
    assert tree["$error"]["lost"] == ["response"]
    found = decode(tree, NONE)
    assert type(found) is Http
    assert str(found) == "503"
    assert not hasattr(found, "response")


def test_an_argument_that_cannot_be_kept_is_named() -> None:
    tree: Any = encode(ValueError(object(), 2), NONE)
    assert tree["$error"]["lost"] == ["args[0]"]
    assert decode(tree, NONE).args == (None, 2)


def test_an_unknown_class_is_a_recorded_error() -> None:
    tree: Any = encode(Refused(7, detail="x"), NONE)
    tree["$error"]["type"] = "shop.errors:Refused"
    found = decode(tree, NONE)
    assert type(found) is RecordedError
    assert found.type_name == "shop.errors:Refused"
    assert "refused with 7" in str(found)


@pytest.mark.parametrize("control", [Diverged, Suspend])
def test_a_file_cannot_make_control_flow(control: type[BaseException]) -> None:
    tree: Any = encode(control("x"), NONE)
    assert type(decode(tree, NONE)) is RecordedError


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:print", "nowhere:X", "sys:modules", "builtins:int", ":", "x", "a.b:c.d"]
)
def test_a_hostile_name_imports_and_calls_nothing(name: str) -> None:
    before = set(sys.modules)
    body: Any = {"type": name, "args": [], "attrs": {}, "message": "m"}
    assert type(decode({"$error": body}, NONE)) is RecordedError
    assert set(sys.modules) == before


def test_a_modules_attribute_hook_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("lazy_module")

    def hook(name: str) -> object:
        raise AssertionError(name)

    module.__getattr__ = hook  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    body: Any = {"type": "lazy_module:Late", "args": [], "attrs": {}, "message": "m"}
    assert type(decode({"$error": body}, NONE)) is RecordedError


def test_no_code_of_a_class_runs() -> None:
    class Loud(Exception):
        def __init__(self, *args: object) -> None:
            raise AssertionError("ran")

        def __setattr__(self, name: str, value: object) -> None:
            raise AssertionError("ran")

    types = Types()
    types.register(Loud)
    loud = Exception.__new__(Loud, "quiet")
    found = decode(encode(loud, types), types)
    assert type(found) is Loud
    assert found.args == ("quiet",)


def test_an_error_without_text_is_kept() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    tree: Any = encode(Mute(1), NONE)
    assert "RuntimeError" in tree["$error"]["message"]


class Markup(str):
    """What a template engine gives as text."""

    __slots__ = ()


class Shouted(Exception):
    def __str__(self) -> str:
        return Markup("loud")


def test_the_text_of_an_error_is_plain_text_whatever_type_of_text_it_gives() -> None:
    tree: Any = encode(Shouted(1), Types())
    assert tree["$error"]["message"] == "loud"
    assert type(tree["$error"]["message"]) is str
