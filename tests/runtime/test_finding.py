"""Whose doing an effect is: by the frames between it and the program's own code."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from agentloom.runtime import finding
from agentloom.runtime.effects import Kind
from agentloom.runtime.places import Places

STDLIB = os.path.dirname(os.__file__)
Frames = Callable[..., FrameType]


@pytest.fixture
def frames(tmp_path: Path) -> Frames:
    """Builds a stack of functions, ``(file, function)`` from the outermost; the innermost frame."""

    def build(*places: tuple[str, str]) -> FrameType:
        def innermost() -> FrameType:
            return sys._getframe(1)  # pyright: ignore[reportPrivateUsage]

        call: Callable[[], FrameType] = innermost
        for file, function in reversed(places):
            names: dict[str, object] = {"call": call}
            path = file.replace("OWN", str(tmp_path)).replace("STDLIB", STDLIB)
            exec(compile(f"def {function}():\n    return call()\n", path, "exec"), names)
            call = names[function]  # type: ignore[assignment]
        return call()

    return build


OWN = ("OWN/program.py", "main")
CASES: dict[str, tuple[tuple[tuple[str, str], ...], Kind, bool, bool]] = {
    "the program itself": ((OWN,), "file read", True, True),
    "through the standard library": ((OWN, ("STDLIB/pathlib.py", "open")), "file read", True, True),
    "through a package": ((OWN, ("STDLIB/site-packages/p.py", "f")), "file write", True, False),
    "importing": ((OWN, ("<frozen importlib._bootstrap>", "_find_and_load")), "file read", True, False),
    "showing source": ((OWN, ("STDLIB/linecache.py", "updatecache")), "file read", True, False),
    "time zones": ((OWN, ("STDLIB/zoneinfo/_common.py", "load_tzdata")), "file read", True, False),
    "making a path absolute": ((OWN, ("STDLIB/posixpath.py", "realpath")), "file read", True, False),
    "an address, itself": ((OWN,), "identity", True, True),
    "an address, in a library": ((OWN, ("STDLIB/copy.py", "deepcopy")), "identity", False, False),
}


@pytest.mark.parametrize("name", CASES)
def test_the_programs_own_code_is_found(frames: Frames, tmp_path: Path, name: str) -> None:
    stack, kind, found, direct = CASES[name]
    places = Places(str(tmp_path))
    # Functions of this test stand around and below; they are the program's own too, and further out.
    own, is_direct = finding.find_own(_below(frames(*stack)), places, kind)
    assert (own == "program.py:2 main") is found
    assert is_direct is direct


def _below(frame: FrameType) -> FrameType:
    return frame


@pytest.mark.parametrize(
    ("stack", "upkeep"),
    [
        ((OWN, ("STDLIB/linecache.py", "f")), True),
        ((OWN, ("STDLIB/importlib/metadata/__init__.py", "f"), ("STDLIB/pathlib.py", "open")), True),
        ((OWN, ("STDLIB/pathlib.py", "open")), False),
        ((("STDLIB/linecache.py", "f"), OWN), False),
    ],
)
def test_upkeep_lies_below_any_other_code(
    frames: Frames, stack: tuple[tuple[str, str], ...], *, upkeep: bool
) -> None:
    assert finding.is_upkeep(frames(*stack)) is upkeep


@pytest.mark.parametrize(
    ("stack", "probe"),
    [
        ((OWN, ("STDLIB/tempfile.py", "_get_default_tempdir")), True),
        ((OWN, ("STDLIB/tempfile.py", "mkstemp")), False),
        ((OWN, ("STDLIB/platform.py", "from_subprocess"), ("STDLIB/subprocess.py", "run")), True),
        ((("STDLIB/platform.py", "f"), OWN, ("STDLIB/subprocess.py", "run")), False),
    ],
)
def test_what_python_tries_for_itself(
    frames: Frames, stack: tuple[tuple[str, str], ...], *, probe: bool
) -> None:
    assert finding.is_probe(frames(*stack)) is probe


def test_imports_are_known_from_any_depth(frames: Frames) -> None:
    deep = frames(("<frozen importlib._bootstrap>", "_find_and_load"), OWN, ("STDLIB/socket.py", "bind"))
    assert finding.in_import(deep)
    assert finding.is_import_probe("listens on ::1:0", deep)
    assert not finding.is_import_probe("connects to ::1:0", deep)
    assert not finding.in_import(frames(OWN))


def test_modules_of_libraries_are_known_by_their_globals(frames: Frames) -> None:
    class Copied:
        def __deepcopy__(self, _memo: object) -> FrameType:
            return sys._getframe(1)  # pyright: ignore[reportPrivateUsage]

    library: object = copy.deepcopy(Copied())
    assert isinstance(library, FrameType)
    for _ in range(2):
        assert finding.known_library(library)
    assert not finding.known_library(frames(OWN))  # made by exec, and no module
    assert not finding.known_library(sys._getframe())  # pyright: ignore[reportPrivateUsage]
