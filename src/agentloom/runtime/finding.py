"""Whose doing an effect is: the frames between it and the program's own code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from agentloom.runtime.effects import DIRECT, NOBODY, Effect, Kind
from agentloom.runtime.places import Places, in_site

__all__ = [
    "STANDS_IN",
    "attributed",
    "done_for_own",
    "find_own",
    "in_import",
    "is_import_probe",
    "is_probe",
    "is_upkeep",
    "known_library",
]

_STDLIB = os.path.dirname(os.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_IMPORTS = "<frozen importlib"

STANDS_IN: set[str] = {
    _HERE + name
    for name in (
        "refuse.py",
        "guard_effects.py",
        "guard_wraps.py",
        "guard_files.py",
        "guard_input.py",
        "guard_facts.py",
        "guard_values.py",
        "guard_waits.py",
    )
}
"""Files of this package whose functions stand in the place of Python's own: their frames do not count."""

_UPKEEP = tuple(
    _STDLIB + name
    for name in (
        # showing source lines
        "linecache.py", "tokenize.py", "inspect.py", "traceback.py", "warnings.py", "pdb.py", "bdb.py",
        # tables that come with Python or with the system
        "zoneinfo" + os.sep, "importlib" + os.sep, "encodings" + os.sep, "locale.py", "gettext.py", "mimetypes.py",
        "platform.py", "sysconfig.py", "sysconfig" + os.sep, "_sysconfigdata", "ssl.py", "pkgutil.py", "site.py",
    )
)  # fmt: skip
"""Where the standard library looks into the world for its own upkeep, and not for what the program asked of it."""

_HARMLESS = frozenset(
    (_STDLIB + file, function)
    for file, function in (
        # only asks which names are links, to make a path absolute
        ("posixpath.py", "realpath"),
        ("posixpath.py", "_joinrealpath"),
        ("pathlib.py", "resolve"),
        (os.path.join("pathlib", "_local.py"), "resolve"),
        # reads what a process writes, whose start is the effect
        ("subprocess.py", "_communicate"),
    )
) | {("<frozen posixpath>", "realpath"), ("<frozen posixpath>", "_joinrealpath")}


def find_own(frame: FrameType | None, places: Places, kind: Kind) -> tuple[str | None, bool]:
    """The innermost frame of the program's own code as ``file:line function``, and whether only the standard library
    lies below it. An ``identity`` counts only where that code itself asks for it."""
    frame = _past_stand_ins(frame)
    direct = True
    while frame is not None:
        code = frame.f_code
        name = places.name(code)
        if name is not None:
            return f"{name}:{frame.f_lineno} {code.co_name}", direct
        if kind == "identity":
            return None, False
        if direct and (
            not _is_plain_library(code.co_filename) or (code.co_filename, code.co_name) in _HARMLESS
        ):
            direct = False
        frame = frame.f_back
    return None, False


def attributed(
    found: tuple[Kind, str], frame: FrameType | None, places: Places, *, everything: bool
) -> tuple[Effect | None, bool]:
    """The effect that an event is, with its place, and whether the program's own code does it directly; None where it
    is nothing of the program's. ``everything``: also what none of its own code is on the stack of."""
    kind, what = found
    own, direct = find_own(frame, places, kind)
    if (kind in DIRECT and not direct) or (own is None and not everything):
        return None, direct
    if not direct and is_import_probe(what, frame):
        return None, direct
    return Effect(kind, what, NOBODY if own is None else own), direct


def done_for_own(frame: FrameType | None, places: Places) -> bool:
    """Whether the program's own code, or the standard library in its service, is what runs in ``frame``."""
    frame = _past_stand_ins(frame)
    while frame is not None:
        code = frame.f_code
        if places.name(code) is not None:
            return True
        name = code.co_filename
        if not name.startswith(("<", _STDLIB)) or name.startswith(_IMPORTS) or in_site(name):
            return False
        frame = frame.f_back
    return False


def _past_stand_ins(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename in STANDS_IN:
        frame = frame.f_back
    return frame


def _is_plain_library(filename: str) -> bool:
    """The standard library, without its import system (modules are read by importing them, which is not an effect) and
    without its upkeep."""
    if filename.startswith(_IMPORTS) or filename.startswith(_UPKEEP):
        return False
    if filename.startswith("<"):
        return True
    return filename.startswith(_STDLIB) and not in_site(filename)


def in_import(frame: FrameType | None) -> bool:
    """Whether ``frame`` runs because a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def is_upkeep(frame: FrameType | None) -> bool:
    """Whether the import system, or the standard library for its own upkeep, is what runs in ``frame``: before any code
    that is not the standard library's."""
    frame = _past_stand_ins(frame)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_IMPORTS) or name.startswith(_UPKEEP):
            return True
        if not _is_plain_library(name):
            return False
        frame = frame.f_back
    return False


def is_probe(frame: FrameType | None) -> bool:
    """Whether Python asks the system for its own purposes, and leaves nothing there: ``tempfile`` looks for a folder
    that can be written, ``platform`` runs ``uname``."""
    frame = _past_stand_ins(frame)
    for depth in range(_DEPTH):
        if frame is None:
            return False
        code = frame.f_code
        name = code.co_filename
        if name == _PLATFORM or (depth < 3 and code.co_name == "_get_default_tempdir" and name == _TEMPFILE):
            return True
        if not name.startswith(_STDLIB):
            return False
        frame = frame.f_back
    return False


_DEPTH = 10
_PLATFORM, _TEMPFILE = _STDLIB + "platform.py", _STDLIB + "tempfile.py"


def is_import_probe(what: str, frame: FrameType | None) -> bool:
    """Whether a package that is being imported tries whether it could listen (whether there is IPv6)."""
    return what.startswith("listens on ") and in_import(frame)


# ``id()`` is asked for all the time in libraries; they are known by their globals, which costs no audit event.
_identity: Callable[[object], int] = object.__hash__
_libraries: dict[int, dict[str, Any]] = {}  # globals of library modules by their identity


def known_library(frame: FrameType) -> bool:
    """Whether ``frame`` is code of a module that is no program's own. Quick; False where it is not known yet."""
    names = frame.f_globals
    if _identity(names) in _libraries:
        return True
    module, file = names.get("__name__"), names.get("__file__")
    if type(module) is not str or type(file) is not str:
        return False
    if getattr(sys.modules.get(module), "__dict__", None) is not names:
        return False  # made by exec: it may be gone soon, and another one in its place
    if file.startswith((_STDLIB, os.path.dirname(_HERE[:-1]) + os.sep)) or in_site(file):
        _libraries[_identity(names)] = names
        return True
    return False
