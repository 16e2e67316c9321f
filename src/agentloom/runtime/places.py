"""Places in the code: which file, line and function made a host call, relative to the agent's own root."""

from __future__ import annotations

import os
import sys
import sysconfig
from asyncio import events
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from agentloom.runtime.installed import in_target

__all__ = ["LIBRARIES", "PACKAGE", "SITES", "Places", "in_site", "is_library", "place_of"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of agentloom itself, with a separator at its end."""
LIBRARIES = tuple(
    {
        os.path.join(sysconfig.get_paths()[name], "")
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if sysconfig.get_paths().get(name)
    }
)
"""Folders of the standard library and of the packages of this environment, each with a separator at its end."""
SITES = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))
"""What the path of an installed package has in it, wherever it is installed."""

_CARRIED = tuple(os.sep + name + os.sep for name in ("_vendor", "_vendored"))

# Where the agent's code begins: frames above these belong to whoever started the run.
_EDGES = {
    (os.path.join(PACKAGE, "runtime", file), function)
    for file, function in (("loop.py", "pump"), ("driver_sync.py", "run_sync"))
} | {(events.__file__, events.Handle._run.__code__.co_name)}  # a task of a stock loop


_EDGE_FILES = {file for file, _ in _EDGES}

# Some steps of Python tell audit hooks, of which a process that has replayed has one: reading ``frame.f_code`` and
# ``id()`` cost a microsecond there. So frames of libraries are known by their globals, and objects by this hash.
_identity: Callable[[object], int] = object.__hash__
_own: dict[int, dict[str, Any]] = {}  # globals of library modules that hold no edge, by their identity


def _is_own(names: dict[str, Any]) -> bool:
    """Whether these are the globals of a module of this package or of another library, none of whose functions is an
    edge. Between a call of an SDK and the request that it sends there are dozens of frames of such."""
    module, file = names.get("__name__"), names.get("__file__")
    if type(module) is not str or type(file) is not str or module == "__main__":
        return False
    found = getattr(sys.modules.get(module), "__dict__", None) is names
    return found and is_library(file) and file not in _EDGE_FILES


def in_site(path: str) -> bool:
    """Whether a file lies in a folder that packages are installed in (of this environment, of the user, of another
    environment on the path), is of a package that is installed in a folder on the path (``pip install --target``), or
    of one that another carries with it (``_vendor``)."""
    return any(site in path for site in SITES) or any(one in path for one in _CARRIED) or in_target(path)


def is_library(filename: str) -> bool:
    """Whether a file is not the agent's own: agentloom, an installed package, the standard library, built-in code."""
    return filename.startswith((PACKAGE, *LIBRARIES, "<frozen", "<string>")) or in_site(filename)


class Places:
    """Finds and names the frames of the agent's own code. Cheap: each code object is classified once.

    Code objects are told apart by identity: equal ones of two files are two, and hashing one looks at all of it.
    """

    __slots__ = ("_codes", "_edges", "_names", "_texts", "root")

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._names: dict[int, str | None] = {}  # by the identity of a code object
        self._codes: list[CodeType] = []  # keeps them alive, and so their identities
        self._edges: set[int] = set()
        self._texts: dict[tuple[int, int], str] = {}  # identity of a code object, instruction -> place

    def name(self, code: CodeType) -> str | None:
        """The file of ``code`` relative to the root (its base name when outside), or None for library code."""
        try:
            return self._names[_identity(code)]
        except KeyError:
            filename = code.co_filename
            name: str | None = None
            if not is_library(filename):
                inside = filename.startswith(self.root + os.sep)
                name = os.path.relpath(filename, self.root) if inside else os.path.basename(filename)
                name = name.replace(os.sep, "/")
            elif (filename, code.co_name) in _EDGES:
                self._edges.add(_identity(code))
            self._codes.append(code)
            self._names[_identity(code)] = name
            return name

    def hide(self, code: CodeType) -> None:
        """Pass over frames of ``code`` from now on: it stands in for something else."""
        self._codes.append(code)
        self._names[_identity(code)] = None

    def caller(self, above: int = 1) -> str:
        """``file:line function`` of the innermost frame of the agent's own code, or ``?`` when there is none
        between here and the start of the run (or of the task: a tool that is a task's whole work). ``above``: so many
        frames above this one it is looked for; what is nearer is known to be agentloom's."""
        frame: FrameType | None = sys._getframe(above)  # pyright: ignore[reportPrivateUsage]  # inspect is slow
        known, own, identity = self._names, _own, _identity
        while frame is not None:
            names = frame.f_globals
            if identity(names) not in own:
                code = frame.f_code
                here = identity(code)
                name = known[here] if here in known else self.name(code)
                if name is not None:
                    at = (here, frame.f_lasti)  # a frame's line is found by reading through a table
                    text = self._texts.get(at)
                    if text is None:
                        text = self._texts[at] = f"{name}:{frame.f_lineno} {code.co_name}"
                    return text
                if here in self._edges:
                    break
                if _is_own(names):
                    own[identity(names)] = names
            frame = frame.f_back
        return "?"


def place_of(function: object, places: Places) -> str:
    """``file:line name`` of a Python function's definition, or its name alone for anything else."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if not isinstance(code, CodeType):
        return str(name)
    return f"{places.name(code) or os.path.basename(code.co_filename)}:{code.co_firstlineno} {name}"
