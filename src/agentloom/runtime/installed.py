"""Packages that are installed beside the environment: ``pip install --target FOLDER``, and the folder on the path.

What is installed has its metadata beside it (PEP 376: ``NAME.dist-info``, with a ``RECORD`` of its files). So in a
folder with such metadata, be it that of a deployment in which the program itself lies too, the packages are told from
the program. A project that is installed to be edited has its metadata elsewhere: its files are the program's own.
"""

from __future__ import annotations

import os
import sys
from threading import get_ident  # before the guard watches who asks for it by its name

__all__ = ["in_target", "target_package"]

_METADATA = ".dist-info"
_KNOWN = tuple(os.sep + name for name in ("site-packages", "dist-packages"))  # known by their names
_seen: list[str] = []
_looking: set[int] = set()
"""Threads that look just now: what a run reads is asked about too, that very reading among it."""
_prefixes: tuple[str, ...] = ()
_found: dict[str, tuple[str, ...]] = {}
"""Folders that were looked into, and what the paths of packages in them begin with."""
_listdir, _getcwd = os.listdir, os.getcwd  # of a run there are others


def in_target(path: str) -> bool:
    """Whether a file is of a package that is installed in a folder on the path of modules."""
    if sys.path != _seen and get_ident() not in _looking:
        _looking.add(get_ident())
        try:
            _look()
        finally:
            _looking.discard(get_ident())
    return path.startswith(_prefixes)


def target_package(path: str) -> str:
    """The name of that package, such as ``requests``; empty for other files."""
    if not in_target(path):
        return ""
    prefix = next(one for one in _prefixes if path.startswith(one))
    return os.path.basename(prefix.rstrip(os.sep)).removesuffix(".py")


def _look() -> None:
    global _seen, _prefixes
    seen = [*sys.path]
    prefixes: list[str] = []
    for folder in filter(None, map(_folder, seen)):
        if folder not in _found:
            _found[folder] = tuple(_packages(folder))
        prefixes += _found[folder]
    _prefixes = tuple(prefixes)
    _seen = seen  # last: another thread may ask meanwhile


def _folder(entry: object) -> str:
    """The folder of an entry of the path; empty where nothing is to be told there. Python passes over what is no text,
    and over the working folder where there is none any more."""
    if not isinstance(entry, str) or entry.endswith(_KNOWN):
        return ""
    if os.path.isabs(entry):
        return os.path.normpath(entry)
    try:
        return os.path.normpath(os.path.join(_getcwd(), entry))
    except FileNotFoundError:
        return ""


def _packages(folder: str) -> list[str]:
    try:
        names = _listdir(folder)
    except OSError:
        return []  # a zip file, or nothing
    tops: set[str] = set()
    for name in names:
        if name.endswith(_METADATA):
            tops |= _tops(os.path.join(folder, name, "RECORD"))
    return [
        os.path.join(folder, top, "")
        if os.path.isdir(os.path.join(folder, top))
        else os.path.join(folder, top)
        for top in sorted(tops)
    ]


def _tops(record: str) -> set[str]:
    """What the files of a distribution lie in below the folder: packages, and modules as files."""
    try:
        with open(record, encoding="utf-8", errors="replace") as lines:
            paths = [line.lstrip('"').partition(",")[0].rstrip('"\n') for line in lines]
    except OSError:
        return set()
    tops = {path.split("/")[0] for path in paths if path}
    return {
        top
        for top in tops
        if top not in ("..", "bin", "__pycache__") and not top.endswith((_METADATA, ".pth"))
    }
