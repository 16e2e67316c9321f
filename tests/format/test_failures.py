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
from agentloom.format.failures import RECORDED_AS
from agentloom.format.limits import DEPTH
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


class Shop:
    class Closed(Exception):
        pass


Alias = Shop.Closed
NotAnError = Shop


def body_of(error: BaseException, types: Types = NONE) -> Any:
    tree: Any = encode(error, types)
    return tree["$error"]


def deeper(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_cause_that_was_suppressed_stays_suppressed() -> None:
    error = ValueError("x")
    error.__suppress_context__ = True
    assert body_of(error)["from_none"] is True
    found = round_trip(error)
    assert found.__suppress_context__ is True
    assert found.__cause__ is None
    assert "from_none" not in body_of(ValueError("x"))
    assert round_trip(ValueError("x")).__suppress_context__ is False
    error.__cause__ = KeyError("k")
    assert "from_none" not in body_of(error)
    lost = ValueError("x")
    lost.__cause__ = lost  # which suppresses the context, and cannot be kept
    assert body_of(lost) == {**body_of(ValueError("x")), "lost": ["__cause__"], "from_none": True}


def test_what_an_error_holds_may_be_as_deep_as_the_limit_leaves_room_for() -> None:
    for make, lost in (
        (ValueError, "args[0]"),
        (lambda deep: Http("x", deep), "response"),
    ):
        for outer in (0, 10):
            room = DEPTH - 4 - outer
            for levels, kept in ((room, True), (room + 1, False)):
                tree: Any = make(deeper(levels))
                for _ in range(outer):
                    tree = [tree]
                found = encode(tree, NONE)
                for _ in range(outer):
                    found = found[0]  # type: ignore[index]
                assert ("lost" in found["$error"]) is not kept  # type: ignore[index, call-overload, operator]
                assert kept or found["$error"]["lost"] == [lost]  # type: ignore[index, call-overload]


def test_a_chain_of_causes_is_kept_as_far_as_there_is_room() -> None:
    first = error = ValueError(0)
    for number in range(1, 150):
        error.__cause__ = ValueError(number)
        error = error.__cause__
    body, count = body_of(first), 1
    while "cause" in body:
        body, count = body["cause"]["$error"], count + 1
    assert body["lost"] == ["__cause__"]
    assert count == DEPTH // 2 - 1
    found = round_trip(first)
    for number in range(count):
        assert found.args == (number,)
        found = found.__cause__
    assert found is None


def test_what_is_none_is_not_lost() -> None:
    assert body_of(ValueError(None)) == {
        "type": "builtins:ValueError",
        "args": [None],
        "attrs": {},
        "message": "None",
    }
    error = Http("x", None)
    assert body_of(error)["attrs"]["response"] is None
    assert "lost" not in body_of(error)


def test_builtin_slots_are_attributes() -> None:
    assert body_of(ImportError("m", name="n", path="p"))["attrs"] == {"name": "n", "path": "p"}
    assert body_of(AttributeError("m", name="n"))["attrs"] == {"name": "n"}
    assert body_of(NameError("m", name="n"))["attrs"] == {"name": "n"}
    assert body_of(OSError(2, "no", "f", None, "g"))["attrs"] == {
        "errno": 2,
        "strerror": "no",
        "filename": "f",
        "filename2": "g",
    }
    assert body_of(StopIteration(7))["attrs"] == {"value": 7}
    assert body_of(SystemExit(3))["attrs"] == {"code": 3}
    for error in (ImportError("m", name="n", path="p"), AttributeError("m", name="n")):
        assert round_trip(error).name == "n"


def test_arguments_alone_set_what_a_builtin_derives_from_them() -> None:
    def made(name: str, *args: Any) -> Any:
        return decode(
            {"$error": {"type": f"builtins:{name}", "args": list(args), "attrs": {}, "message": ""}}, NONE
        )

    assert made("SystemExit", 3).code == 3
    assert made("StopIteration", 4).value == 4
    assert made("SyntaxError", "bad", {"$tuple": ["f.py", 1, 2, "x"]}).lineno == 1
    assert made("UnicodeDecodeError", 1).args == (1,)  # not what its constructor takes


def test_the_class_of_an_error_is_found_by_its_own_name_only() -> None:
    body: Any = {"args": [1], "attrs": {}, "message": "m"}

    def found(name: str) -> BaseException:
        error = decode({"$error": {"type": name, **body}}, NONE)
        assert isinstance(error, BaseException)
        return error

    assert type(found(f"{__name__}:Shop.Closed")) is Shop.Closed
    for name in ("Alias", "Shop", "NotAnError.Closed", "Shop Closed", "Shop.Closed.x", "Shop.", "TABLE"):
        error = found(f"{__name__}:{name}")
        assert type(error) is RecordedError, name
        assert error.args == (1,)
        assert error.type_name == f"{__name__}:{name}"


def test_notes_that_say_where_a_run_is_kept_are_no_part_of_an_error() -> None:
    error = ValueError("x")
    error.add_note(f"{RECORDED_AS}01hf")
    assert body_of(error)["attrs"] == {}
    error.add_note("mine")
    assert body_of(error)["attrs"] == {"__notes__": ["mine"]}
    assert error.__notes__ == [f"{RECORDED_AS}01hf", "mine"]
    odd = ValueError("x")
    odd.__notes__ = [1, "mine"]  # type: ignore[list-item]
    assert body_of(odd)["attrs"] == {"__notes__": [1, "mine"]}


def test_an_error_whose_text_fails_says_so() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert body_of(Mute(1))["message"] == "(no text: RuntimeError in __str__)"
    assert body_of(ValueError("\ud800"))["message"] == {"$str": "7aCA"}
