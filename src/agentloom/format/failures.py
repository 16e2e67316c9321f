"""Exceptions as values: ``{"$error": {...}}``.

An exception comes back without its ``__init__`` being run and without any import: its class is a builtin, is
declared, or is already loaded under its module and name. Anything else is a ``RecordedError``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from agentloom.errors import ControlFlow, RecordedError, ValueRefused
from agentloom.format.canonical import Tree
from agentloom.format.declared import Types, type_name
from agentloom.format.guards import is_list, slots_of
from agentloom.format.scalars import pack_str

__all__ = ["RECORDED_AS", "Decode", "Encode", "decode_error", "encode_error"]

RECORDED_AS = "recorded as run "
"""How the note begins that tells where the run of an error is kept. It is added after the run, and is no part of it."""

Encode = Callable[[Any, Any, int], Tree]
Decode = Callable[[Any], Any]

# What builtin exceptions keep outside of their arguments and their __dict__.
_SLOTS: tuple[tuple[type[BaseException], tuple[str, ...]], ...] = (
    (OSError, ("errno", "strerror", "filename", "filename2")),
    (ImportError, ("name", "path", "name_from")),
    (NameError, ("name",)),
    (AttributeError, ("name",)),
    (SyntaxError, ("msg", "filename", "lineno", "offset", "text", "end_lineno", "end_offset")),
    (UnicodeError, ("encoding", "object", "start", "end", "reason")),
    (StopIteration, ("value",)),
    (SystemExit, ("code",)),
)


def encode_error(encode: Encode, error: BaseException, _path: Any, depth: int) -> Tree:
    """The tree of an exception: type, arguments, attributes, text, cause. The traceback is not kept.

    Arguments and attributes that have no exact form (an open response) are left out and named in ``lost``; the
    agent gets the exception without them when recording too, so that a replay does not differ.
    """
    lost: list[Tree] = []
    below = depth + 4
    args: list[Tree] = []
    for index, item in enumerate(error.args):
        kept = _keep(encode, item, below)
        if kept is None and item is not None:
            lost.append(f"args[{index}]")
        args.append(kept)
    attrs: dict[str, Tree] = {}
    for name, item in _attributes(error).items():
        kept = _keep(encode, item, below)
        if kept is None and item is not None:
            lost.append(name)
        else:
            attrs[name] = kept
    body: dict[str, Tree] = {"type": type_name(type(error)), "args": args, "attrs": attrs}
    body["message"] = pack_str(_message(error))
    cause = None
    if error.__cause__ is not None:
        cause = _keep(encode, error.__cause__, depth + 2)
        if cause is None:  # it is part of itself, or too deep
            lost.append("__cause__")
        else:
            body["cause"] = cause
    if lost:
        body["lost"] = lost
    if error.__suppress_context__ and cause is None:
        body["from_none"] = True
    return {"$error": body}


def _keep(encode: Encode, item: object, depth: int) -> Tree:
    """The tree of what an error holds, or None."""
    try:
        return encode(item, None, depth)
    except ValueRefused:
        return None


def _attributes(error: BaseException) -> dict[str, Any]:
    found = {str(name): item for name, item in vars(error).items()}
    notes: object = found.get("__notes__")
    if is_list(notes) and any(_is_ours(note) for note in notes):  # the same object was raised by a run before
        del found["__notes__"]
        if rest := [note for note in notes if not _is_ours(note)]:
            found["__notes__"] = rest
    for base, names in _SLOTS:
        if isinstance(error, base):
            slots = {name: getattr(error, name, None) for name in names}
            found.update({name: item for name, item in slots.items() if item is not None})
    found.update({name: getattr(error, name) for name in slots_of(type(error)) if hasattr(error, name)})
    return found


def _is_ours(note: object) -> bool:
    return isinstance(note, str) and note.startswith(RECORDED_AS)


def _message(error: BaseException) -> str:
    try:
        return str.__str__(str(error))  # of a subclass of str, which a __str__ may give, the text
    except Exception as broken:  # noqa: BLE001  a user's __str__: its failure must not hide the error being recorded
        return f"(no text: {type(broken).__name__} in __str__)"


def decode_error(decode: Decode, body: dict[str, Any], types: Types) -> BaseException:
    """The exception again, fresh. Raises plain errors on malformed input; ``decoding`` turns them into FormatError."""
    args = tuple(decode(item) for item in body["args"])
    attrs = {name: decode(item) for name, item in body["attrs"].items()}
    cls = _find(body["type"], types)
    error = None if cls is None else _build(cls, args, attrs)
    if error is None:
        error = RecordedError(body["type"], decode(body["message"]))
        error.args = args
    if "cause" in body:
        BaseException.__setattr__(error, "__cause__", decode(body["cause"]))
    elif body.get("from_none"):
        BaseException.__setattr__(error, "__suppress_context__", True)
    return error


def _find(name: str, types: Types) -> type[BaseException] | None:
    """The class of that name if the program has it already. Dictionaries only: no attribute hook of a module runs."""
    module, _, qualname = name.partition(":")
    found: object = types.find(name, "error")
    if found is None and module in sys.modules:
        found = sys.modules[module]
        for part in qualname.split("."):
            names = cast("Mapping[str, object]", object.__getattribute__(found, "__dict__"))
            found = names.get(part)
            if not isinstance(found, type):
                return None
    if not isinstance(found, type) or not issubclass(found, BaseException) or issubclass(found, ControlFlow):
        return None
    return found if type_name(found) == name else None


def _build(cls: type[BaseException], args: tuple[Any, ...], attrs: dict[str, Any]) -> BaseException | None:
    """An instance made by the nearest builtin class, so that no code of the user's class runs. None: it cannot be."""
    builtin: Any = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    try:
        error: BaseException = builtin.__new__(cls, *args)
    except TypeError:  # a class written in C, or arguments that the builtin never had
        return None
    with contextlib.suppress(TypeError):  # a subclass with arguments of its own: its attributes are set below
        builtin.__init__(error, *args)
    BaseException.__setattr__(error, "args", args)
    slots = {name for base, names in _SLOTS if isinstance(error, base) for name in names}
    slots.update(slots_of(cls))
    for name, item in attrs.items():
        if name in slots:
            builtin.__setattr__(error, name, item)
        else:
            vars(error)[name] = item
    return error
