"""What a run was made from: the agent's own sources, its repository, the packages, the interpreter."""

from __future__ import annotations

import functools
import hashlib
import locale
import os
import platform
import subprocess
import sys
import time
from operator import is_
from typing import Any

from agentloom.format.values import Tree
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.guard_zone import zone_facts
from agentloom.runtime.homes import below_home
from agentloom.runtime.places import is_library

__all__ = ["code_identity", "environment", "own_modules"]

_MAX_FILES = 16_384
_MAX_SOURCE = 1_000_000
"""Bytes of a source file beyond which only its digest is kept."""


def code_identity(agent: AgentFunction) -> dict[str, Tree]:
    """Entry point, sources of the agent's own modules, repository state and installed packages."""
    modules = own_modules(agent.root, agent.module, agent.file)
    return {
        "entry": {
            "module": agent.module,
            "qualname": agent.qualname,
            "file": _relative(agent.file, agent.root),
            "path": None if agent.file is None else below_home(agent.file),
            "kind": "agent",
        },
        "modules": modules,
        "vcs": _repository(agent.root),
        "packages": list(_packages()),
    }


def own_modules(root: str, module: str, file: str | None) -> dict[str, Tree]:
    """The loaded modules under ``root`` that are nobody's library, with their sources: what a report compares.

    Each maps its name to ``{"file", "digest", "source"}``; the file is relative to the root.
    """
    found: dict[str, Tree] = {}
    prefix = os.path.join(root, "")
    for name, loaded in _candidates():
        given = getattr(loaded, "__file__", None)
        if type(given) is not str:
            continue
        path = _files[given] if given in _files else _own_file(given)
        if path is not None and path.startswith(prefix) and _belongs(path, file, root):
            _keep(found, name, path, root)
    if file is not None and module not in found and os.path.isfile(file):
        _keep(found, module, file, root)
    return found


_looked: list[tuple[list[str], list[Any], list[tuple[str, Any]]]] = []  # what _candidates found the last time


def _candidates() -> list[tuple[str, Any]]:
    """The loaded modules but those of libraries. As long as no module comes or goes they are those of last time: asking
    each for its file takes as long as a quarter of a start."""
    # A copy, made in one step: making a list of pairs may run the collector, and destructors that import.
    modules = sys.modules.copy()
    names, loaded = list(modules), list(modules.values())
    for names_then, loaded_then, found in _looked:
        if names == names_then and all(map(is_, loaded, loaded_then)):
            return found
    found = [pair for pair in zip(names, loaded, strict=True) if not _is_library(pair[1])]
    _looked[:] = [(names, loaded, found)]
    return found


def _is_library(loaded: Any) -> bool:
    given = getattr(loaded, "__file__", None)
    if type(given) is not str:
        return False  # it may get a file yet
    return (_files[given] if given in _files else _own_file(given)) is None


_files: dict[str, str | None] = {}
"""The absolute ``__file__`` of loaded modules -> where it is, or None for what nobody's agent consists of."""


def _own_file(given: str) -> str | None:
    """The place of a module's source that is nobody's library; None for other files."""
    absolute = os.path.isabs(given)
    path: str | None = None
    if given.endswith(".py"):
        path = os.path.normpath(given) if absolute else os.path.abspath(given)
        if is_library(path):
            path = None
    if absolute and len(_files) < _MAX_FILES:
        _files[given] = path
    return path


def _keep(found: dict[str, Tree], name: str, path: str, root: str) -> None:
    """Add a module's source, unless its file is gone by now, or no file of its own (a zip archive)."""
    try:
        found[name] = _source(path, root)
    except OSError:
        return


def _belongs(path: str, file: str | None, root: str) -> bool:
    """Only modules beside or below the agent's own file or package, not everything under a large root."""
    if file is None:
        return os.path.dirname(path) == root
    home = os.path.dirname(file)
    return path.startswith(os.path.join(home, "")) or os.path.dirname(path) == root


def _source(path: str, root: str) -> dict[str, Tree]:
    status = os.stat(path)
    return dict(_read_source(path, root, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=1024)
def _read_source(path: str, root: str, _mtime: int, _size: int) -> tuple[tuple[str, Tree], ...]:
    with open(path, "rb") as file:
        data = file.read()
    digest = hashlib.sha256(data).hexdigest()
    source: Tree = None
    if len(data) <= _MAX_SOURCE:
        try:
            source = data.decode("utf-8")
        except UnicodeDecodeError:
            source = None  # a module in another encoding: its digest still says whether it changed
    return (("file", _relative(path, root)), ("digest", digest), ("source", source))


def _relative(path: str | None, root: str) -> str | None:
    if path is None:
        return None
    inside = path.startswith(os.path.join(root, ""))
    return (os.path.relpath(path, root) if inside else os.path.basename(path)).replace(os.sep, "/")


@functools.lru_cache(maxsize=64)
def _repository_facts(root: str) -> tuple[tuple[str, Tree], ...] | None:
    folder = root
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return None
    patch = _git(root, "diff", "HEAD", "--no-ext-diff", "--no-color", "--", ".")
    digest = hashlib.sha256(patch.encode("utf-8", "surrogateescape")).hexdigest() if patch else None
    return (("kind", "git"), ("commit", commit.strip()), ("dirty", digest))


def _repository(root: str) -> Tree:
    """Commit and the digest of uncommitted changes, read once a process; None outside a repository."""
    facts = _repository_facts(root)
    return None if facts is None else dict(facts)


def _git(root: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", root, *arguments],
            capture_output=True,
            timeout=5,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git here, or a repository that it cannot read: the sources are in the trace anyway
    return done.stdout.decode("utf-8", "surrogateescape")


@functools.lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """``name==version`` of every installed distribution, from the names of their metadata folders (no parsing)."""
    found: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix == ".dist-info" and "-" in stem:
                package, _, version = stem.rpartition("-")
                found.add(f"{package.lower().replace('_', '-')}=={version}")
    return tuple(sorted(found))


def environment() -> dict[str, Tree]:
    """Interpreter, platform, hash seed, locale, time zone (``zone``: its IANA name, seconds east of UTC), and the
    variables named in ``AGENTLOOM_RECORD_ENV``."""
    allowed = [name for name in os.environ.get("AGENTLOOM_RECORD_ENV", "").split(",") if name]
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": sys.platform,
        "machine": platform.machine(),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "time_zone": list(time.tzname),
        "zone": {**zone_facts(time.time())},
        "locale": locale.setlocale(locale.LC_CTYPE),
        "variables": {name: os.environ[name] for name in allowed if name in os.environ},
    }


def source_of(path: str, root: str) -> dict[str, Tree]:
    """One source file as ``own_modules`` has it: ``{"file", "digest", "source"}``, the file relative to ``root``."""
    return _source(path, root)
