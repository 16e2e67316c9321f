"""What a value that differs between two runs of the same code looks like, and which setting removes it.

Each detector has a pattern. If the recorded and the current value become equal once the pattern's matches are
replaced, the detector explains the whole difference; where several are needed (a time and a UUID), all are named.
What is only likely is marked as a guess.
"""

from __future__ import annotations

import math
import os
import platform
import re
import struct
import sys
from dataclasses import dataclass, replace
from typing import cast

import orjson

from agentloom.format.values import Tree
from agentloom.replay.fields import same_tree

__all__ = ["ALL_LEAKS", "Leak", "classify", "past_the_guard"]

ALL_LEAKS = "all leaks"
"""What the next step of a report is for that looks for every leak of the program."""
_TEXT = 200_000  # characters looked at
_EPOCH_LOW, _EPOCH_HIGH = 978_307_200, 4_102_444_800  # 2001-01-01 to 2100-01-01, seconds


@dataclass(frozen=True, slots=True)
class Leak:
    """``what`` it looks like, the ``likely`` origin, the ``fix``; ``guess`` where the form alone does not settle it."""

    kind: str
    what: str
    likely: str
    fix: str
    guess: bool = False

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON."""
        return {
            "kind": self.kind,
            "looks_like": self.what,
            "likely": self.likely,
            "fix": self.fix,
            "guess": self.guess,
        }


_FIXES: dict[str, tuple[str, str]] = {
    "uuid": ("uuid.uuid4() or a framework's id, made outside a host call", "use agentloom's uuid()"),
    "ulid": ("a ULID or similar sortable id: part time, part random", "use agentloom's uuid()"),
    "time": ("datetime.now(), time.time() or a time stamp of a library", "use agentloom's now()"),
    "duration": ("a measured duration (time.perf_counter)", "use agentloom's now(), or leave durations out"),
    "address": (
        "repr() of an object, or id()",
        "give the object a __repr__, or leave repr() out of requests",
    ),
    "set order": ("iteration over a set: its order depends on the hash seed", "sort it: sorted(...)"),
    "key order": ("a mapping filled from a set or in order of completion", "sort the keys where it is made"),
    "float": ("sums in another order (set, threads, BLAS)", "math.fsum, or round() before it is sent"),
    "temp path": (
        "tempfile: a new name in each run",
        "make the path inside a recorded tool, or use a fixed folder",
    ),
    "folder": ("the working or home folder of the machine", "use paths relative to the project"),
    "host": ("the host's name", "read it with agentloom's env(), or leave it out"),
    "pid": ("os.getpid()", "use agentloom's uuid(), or leave it out"),
    "token": ("secrets, os.urandom or a hash of something random", "use agentloom's random() or uuid()"),
    "random": ("random.random() or another generator outside the run", "use agentloom's random()"),
    "number": (
        "a counter or random number outside the run",
        "use agentloom's random(), or pass it in as input",
    ),
}

_UUID = re.compile(
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([0-9a-fA-F])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str], str, bool], ...] = (
    ("uuid", _UUID, "", False),
    ("ulid", re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "a ULID", False),
    (
        "time",
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"),
        "a date and time",
        False,
    ),
    (
        "time",
        re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [A-Z0-9][\w ]{4,12}(?:, \d{4})?(?: \d\d:\d\d:\d\d)?"),
        "a date",
        False,
    ),
    ("time", re.compile(r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AP]M)?\b"), "a time of day", False),
    ("address", re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "a memory address", False),
    ("temp path", re.compile(r"(?:/private)?/var/folders/[\w/+.-]+|/tmp/[\w.-]+|\btmp[a-z0-9_]{8}\b"), "", False),
    ("folder", re.compile(r"(?:/home|/Users|/root|/workspace|/builds|/mnt|/opt|/srv)(?:/[\w.+-]+)+|[A-Z]:\\[\w\\.-]+"),
     "a path of this machine", True),
    ("duration", re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|sec|seconds)\b"), "a duration", True),
    ("token", re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,128}\b"), "random hexadecimal digits", True),
    ("token", re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{16,128}\b"), "a random token or generated id", True),
)  # fmt: skip


def classify(recorded: Tree, now: Tree) -> Leak | None:
    """What the difference looks like, or None where nothing known explains it."""
    recorded, now = _untag(recorded), _untag(now)
    if isinstance(recorded, str) and isinstance(now, str):
        return _texts(recorded[:_TEXT], now[:_TEXT])
    if isinstance(recorded, bool) or isinstance(now, bool):
        return None
    if isinstance(recorded, int | float) and isinstance(now, int | float):
        return _numbers(recorded, now)
    return _containers(recorded, now)


_PAST_THE_GUARD: dict[str, tuple[str, tuple[str, ...]]] = {
    "uuid": ("uuid_utils, fastuuid or other C code that the guard cannot see", ("uuid_utils", "fastuuid")),
    "ulid": ("C code that the guard cannot see", ("uuid_utils", "ulid")),
    "time": (
        "C code that reads the clock, which the guard cannot see",
        ("numpy", "pandas", "pendulum", "whenever"),
    ),
    "duration": ("C code that reads the clock, which the guard cannot see", ()),
    "token": ("C code that draws random bytes, which the guard cannot see", ("numpy", "cryptography")),
    "random": (
        "C code that draws random numbers, which the guard cannot see",
        ("numpy", "torch", "tensorflow"),
    ),
}
"""What leaks in a run whose clocks and randomness are virtual, and packages that are known for it."""


def past_the_guard(leak: Leak) -> Leak:
    """``leak`` of a run whose guard makes clocks, randomness and identifiers virtual: what Python's own functions give
    there is the same on replay, so that it came past them. Packages that are loaded now are named."""
    known = _PAST_THE_GUARD.get(leak.kind)
    if known is None:
        return leak
    words, packages = known
    loaded = [name for name in packages if name in sys.modules]
    likely = f"{' or '.join(loaded)}, C code that the guard cannot see" if loaded else words
    return replace(leak, likely=likely, guess=True)


def _leak(kind: str, what: str, guess: bool = False) -> Leak:
    likely, fix = _FIXES[kind]
    return Leak(kind, what, likely, fix, guess)


def _untag(tree: Tree) -> Tree:
    """``{"$uuid": "..."}`` -> its text; lists in tags -> the list."""
    if isinstance(tree, dict) and len(tree) == 1:
        tag, value = next(iter(tree.items()))
        if tag.startswith("$") and isinstance(value, str | list):
            return value
    return tree


def _texts(a: str, b: str) -> Leak | None:
    structured = _json_texts(a, b)
    if structured is not None:
        return structured
    host = platform.node()
    if host and len(host) > 2 and host in b and host not in a:
        return _leak("host", "the name of this host", True)
    found: list[Leak] = []
    for kind, pattern, what, guess in _PATTERNS:
        replaced_a, replaced_b = pattern.sub("\0", a), pattern.sub("\0", b)
        if a.count("\0") + b.count("\0") == 0 and replaced_a == a and replaced_b == b:
            continue
        if _matches(pattern, a) == _matches(pattern, b):
            continue
        found.append(_leak(kind, what or _named(kind, a, b), guess))
        a, b = replaced_a, replaced_b
        if a == b:
            return _joined(found)
    return _numbers_in(a, b) or _permuted_text(a, b)


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group() for match in pattern.finditer(text)]


def _joined(found: list[Leak]) -> Leak:
    first = found[0]
    if len(found) == 1:
        return first
    what = ", ".join(dict.fromkeys(leak.what for leak in found))
    return Leak(first.kind, what, first.likely, first.fix, any(leak.guess for leak in found))


def _named(kind: str, a: str, b: str) -> str:
    if kind == "uuid":
        versions = {match.group(1) for text in (a, b) for match in _UUID.finditer(text)}
        version = versions.pop() if len(versions) == 1 else ""
        names = {"1": " (time and host)", "7": " (time-ordered)"}
        return f"a version {version} UUID{names.get(version, '')}" if version else "a UUID"
    return "a path of temporary files"


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _numbers_in(a: str, b: str) -> Leak | None:
    """Texts that differ only in numbers: the first differing pair decides."""
    if _NUMBER.sub("\0", a) != _NUMBER.sub("\0", b):
        return None
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    for x, y in pairs:
        if x != y:
            fractional = any(mark in x + y for mark in ".eE")
            return _numbers(float(x), float(y)) if fractional else _numbers(int(x[:40]), int(y[:40]))
    return None


def _numbers(a: float, b: float) -> Leak | None:
    for unit, scale in (
        ("seconds", 1),
        ("milliseconds", 10**3),
        ("microseconds", 10**6),
        ("nanoseconds", 10**9),
    ):
        if all(_EPOCH_LOW * scale <= x < _EPOCH_HIGH * scale for x in (a, b)):
            return _leak("time", f"a time in {unit} since 1970")
    if isinstance(a, int) and isinstance(b, int):
        if b == os.getpid():
            return _leak("pid", "a process id (this process has it now)")
        if all(0x5000_0000_0000 <= x < 0x8000_0000_0000 for x in (a, b)):
            return _leak("address", "an object's id()", True)
        return _leak("number", "a number that nothing recorded", True)
    return None if isinstance(a, int) or isinstance(b, int) else _floats(a, b)


def _floats(a: float, b: float) -> Leak | None:
    if not (math.isfinite(a) and math.isfinite(b)):
        return None
    if abs(a - b) <= 1e-9 * max(abs(a), abs(b)):
        steps = abs(_ordinal(a) - _ordinal(b))
        return _leak("float", f"a float in its last bits ({steps:,} step{'s' * (steps != 1)} apart)")
    if 0 <= a < 1 and 0 <= b < 1:
        return _leak("random", "a random number between 0 and 1", True)
    return _leak("duration", "a measured duration or clock reading", True)


def _ordinal(x: float) -> int:
    """Position of a float among all floats, so that neighbours differ by one."""
    bits = int(struct.unpack("<q", struct.pack("<d", x))[0])
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _containers(a: Tree, b: Tree) -> Leak | None:
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) > 1:
        if _sorted_dumps(a) == _sorted_dumps(b):
            return _leak("set order", "the same members in another order")
        return None
    if isinstance(a, dict) and isinstance(b, dict) and list(a) != list(b) and same_tree(a, b):
        return _leak("key order", "the same fields in another order")
    return None


def _sorted_dumps(items: list[Tree]) -> list[bytes]:
    return sorted(orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in items)


def _json_texts(a: str, b: str) -> Leak | None:
    """Texts that are JSON: the same value in another order, or one differing member."""
    if not (a[:1] in "[{" and b[:1] in "[{") or not a or not b:
        return None
    try:
        x, y = cast(Tree, orjson.loads(a)), cast(Tree, orjson.loads(b))
    except orjson.JSONDecodeError:
        return None
    return _containers(x, y)


_MEMBER = re.compile(r"""'[^'\n]*'|"[^"\n]*"|[\w.@/-]+""")


def _permuted_text(a: str, b: str) -> Leak | None:
    """``{'b', 'a'}`` or ``x, y, z`` with the same members in another order."""
    found_a, found_b = _MEMBER.findall(a), _MEMBER.findall(b)
    if 1 < len(found_a) == len(found_b) and found_a != found_b and sorted(found_a) == sorted(found_b):
        moved = [pair for pair in zip(found_a, found_b, strict=True) if pair[0] != pair[1]]
        enclosed = "{" in a or a.count(",") >= len(moved) - 1
        if enclosed:
            return _leak("set order", "the same members in another order")
    return None
