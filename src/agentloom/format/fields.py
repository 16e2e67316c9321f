"""What each kind of entry must hold, and which of its fields name blobs (docs/trace-format.md, Entries)."""

from __future__ import annotations

import re
from typing import Any

from agentloom.format.guards import is_list, is_map

__all__ = ["HEX64", "KINDS", "NOT_REFERENCES", "Broken", "Entry", "check_fields", "references"]

Entry = dict[str, Any]

_MAX_SHAPES = 256
HEX64 = re.compile("[0-9a-f]{64}")

# Field -> type, of the fields that each kind must have.
_FIELDS: dict[str, dict[str, str]] = {
    "start": {
        "format": "str",
        "version": "str",
        "run": "str",
        "digest": "str",
        "flags": "list",
        "keys": "int",
        "agent": "str",
        "code": "blob",
        "env": "blob",
        "input": "blob",
        "policy": "blob",
        "nonce": "blob",
        "clock": "dict",
        "epoch": "int",
    },
    "request": {"call": "str", "type": "str", "name": "str", "key": "str", "profile": "str", "req": "blob"},
    "outcome": {"call": "str", "vt": "int", "status": "str"},
    "chunks": {"call": "str", "items": "list", "val": "blob"},
    "timer": {"d": "int", "vt": "int"},
    "cancel": {"d": "int", "vt": "int"},
    "turn": {"d": "int", "vt": "int"},
    "tick": {"d": "int", "vt": "int", "reads": "int"},
    "state": {"call": "str", "name": "str", "key": "str", "val": "blob"},
    "note": {},
    "flag": {},
    "tag": {},
    "gap": {"why": "str"},
    "end": {"status": "str"},
    "suspend": {"ask": "str", "call": "str", "val": "blob"},
    "answer": {"ask": "str", "val": "blob"},
    "signal": {"name": "str", "val": "blob"},
    "resume": {"epoch": "int"},
    "retract": {"from": "int"},
    "erase": {"blobs": "list", "val": "blob"},
    "seal": {"count": "int", "root": "str"},
    "index": {"offset": "int", "last": "int or null"},
    "segment": {"n": "int", "format": "str", "version": "str", "run": "str"},
    "rehash": {"digest": "str", "head": "str"},
}
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "int or null": (int, type(None)),
    "list": (list,),
    "dict": (dict,),
    "blob": (str,),
}
_REQUIRED = {
    kind: [(name, _TYPES[wanted]) for name, wanted in fields.items()] for kind, fields in _FIELDS.items()
}
# The same for kinds whose fields each have one type: what most entries are checked with.
_SIMPLE = {
    kind: [(name, allowed[0]) for name, allowed in fields]
    for kind, fields in _REQUIRED.items()
    if all(len(allowed) == 1 for _, allowed in fields)
}
KINDS = frozenset(_FIELDS)
# Fields of these names are blob ids wherever they stand.
_BLOB_FIELDS = frozenset(
    (
        "code",
        "env",
        "input",
        "policy",
        "tags",
        "conversation",
        "nonce",
        "req",
        "rule",
        "val",
        "err",
        "who",
        "default",
        "changes",
        "secrets",
        "vars",
    )
)
_STATUS = {"outcome": {"ok", "error", "cancelled", "closed"}, "end": {"completed", "failed", "cancelled"}}
# Fields of these names never name a blob, whatever they look like.
_CODES = "call type name key profile src parent effect run agent entry format version digest flags ask origin status"
_NAMES = "reads goto others"  # names of steps and of fields of a state
NOT_REFERENCES = frozenset(
    ["seq", "prev", "at", "kind", "head", "root", "blobs", "sig", *_CODES.split(), *_NAMES.split()]
)


class Broken(Exception):
    """A rule that does not hold; ``integrity`` tells a broken chain or digest from malformed input."""

    def __init__(self, code: str, message: str, *, integrity: bool = False, version: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.integrity = integrity
        self.version = version


def check_fields(entry: Entry, kind: str) -> bool:
    """Whether ``kind`` is known here; raises ``Broken`` when a field that it needs is missing or of another type."""
    simple = _SIMPLE.get(kind)
    if simple is None:
        required = _REQUIRED.get(kind)
        if required is None:
            return False
        for name, allowed in required:
            if type(entry.get(name, ...)) not in allowed:
                raise Broken("entry.field", f"{kind} entry needs {name} ({allowed[0].__name__})")
    else:
        for name, wanted in simple:
            if type(entry.get(name)) is not wanted:  # None, where it is missing, is of no wanted type
                raise Broken("entry.field", f"{kind} entry needs {name} ({wanted.__name__})")
    blobs = tuple(_BLOB_FIELDS.intersection(entry))
    for name in blobs:
        value = entry[name]
        if type(value) is not str or HEX64.fullmatch(value) is None:
            raise Broken("entry.field", f"{name} of {kind} entry is not a blob id")
    statuses = _STATUS.get(kind)
    if statuses is not None and entry["status"] not in statuses:
        raise Broken("entry.field", f"{entry['status']!r} is no status of {kind} entry")
    if len(_shapes) < _MAX_SHAPES:
        _shapes[kind, *entry] = ([*map(type, entry.values())], blobs, statuses)
    return True


_shapes: dict[tuple[str, ...], tuple[list[type], tuple[str, ...], set[str] | None]] = {}
"""Kind and names of the fields of entries that were right, in their order -> the types of the values, which of them are
blobs, and what the status may be: most entries of a trace look like one before."""


def looks_right(entry: Entry) -> bool:
    """Whether an entry looks like one that was right before: ``check_fields`` has nothing to say of it, and seq and at
    are integers. Never raises."""
    kind = entry.get("kind")
    shape = _shapes.get((kind, *entry)) if type(kind) is str else None
    if shape is None or [*map(type, entry.values())] != shape[0]:
        return False
    for name in shape[1]:
        if HEX64.fullmatch(entry[name]) is None:
            return False
    return shape[2] is None or entry["status"] in shape[2]


def references(entry: Entry) -> list[str]:
    """The blob ids that an entry names, in the order of its fields."""
    found: list[str] = []
    _collect(entry, found)
    return found


def _collect(value: Any, found: list[str]) -> None:
    if type(value) is str:
        if len(value) == 64 and HEX64.fullmatch(value):
            found.append(value)
    elif is_list(value):
        for item in value:
            _collect(item, found)
    elif is_map(value):
        for name, item in value.items():
            if name not in NOT_REFERENCES or is_map(item):
                _collect(item, found)
