"""The files of a target: a script or module with the files beside it that it imports, or every file of a folder.

Files are parsed, never imported: a check runs nothing of what it looks at.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import sys
import tokenize
import warnings
from collections.abc import Iterator

from agentloom.cli.checks.findings import Source
from agentloom.cli.checks.flow.names import base_of, package_of
from agentloom.cli.targets import parse_target
from agentloom.errors import TargetError

__all__ = ["sources_of"]

_MOST = 2000
_DEEPEST = 600
"""Levels of a syntax tree that are followed. Each ``elif`` and each ``+`` of a sum is one; Python itself reads some
thousands."""
_SKIPPED = frozenset(["__pycache__", "node_modules", "site-packages", "venv", "build", "dist"])


def sources_of(target: str) -> list[Source]:
    """The parsed files of ``target`` (``file.py``, ``file.py:name``, ``package.module:name``, or a folder).

    TargetError for a target that is not there or is no Python; another file that is none has a ``problem`` and no code.
    """
    if os.path.isdir(target):
        paths = list(_folder(target))
        if not paths:
            raise TargetError(
                f"{target} holds no Python file", hint="name a file, or a folder with files", target=target
            )
        return [_or_problem(path) for path in paths]
    found = parse_target(target)
    path = found.path or _module(str(found.module), os.getcwd())
    if path is None:
        raise TargetError(
            f"no module named {found.module}",
            hint="run from its folder, or name the file: agentloom check agent.py",
            target=target,
        )
    return list(_with_imports(path, os.getcwd()))


def _folder(root: str) -> Iterator[str]:
    count = 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                count += 1
                if count > _MOST:
                    raise TargetError(
                        f"{root} holds more than {_MOST:,} Python files",
                        hint="name a part of it",
                        target=root,
                    )
                yield os.path.join(folder, name)


def _or_problem(path: str) -> Source:
    try:
        return _parsed(path)
    except TargetError as error:
        return Source(path, os.path.relpath(path), ast.Module([], []), error.message)


def _parsed(path: str) -> Source:
    shown = os.path.relpath(path)
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the interpreter has to say about the file is not asked for
            data = file.read()
            tree = ast.parse(data, shown)
    except (RecursionError, MemoryError):  # the parser says the one or the other of a deep text
        return Source(path, shown, ast.Module([], []), f"{shown} is nested too deep to be followed")
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise TargetError(
            f"{shown}{line} is no Python that can be read: {error}", hint=f"python -m py_compile {shown}"
        ) from error
    except OSError as error:
        raise TargetError(f"{shown} cannot be read: {error.strerror}", hint="name a Python file") from error
    if _too_deep(tree):
        return Source(path, shown, ast.Module([], []), f"{shown} is nested too deep to be followed")
    text = decoded(data)
    return Source(path, shown if not shown.startswith("..") else path, tree, text=text)


def _too_deep(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def decoded(data: bytes) -> str:
    """The text of a Python file that was parsed: by its own coding line, UTF-8 without one."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def _with_imports(start: str, root: str) -> Iterator[Source]:
    """``start``, then what it imports from its own folder or from ``root``, each once."""
    todo, known = [os.path.abspath(start)], set[str]()
    while todo:
        path = todo.pop(0)
        if path in known or len(known) >= _MOST:
            continue
        known.add(path)
        source = _or_problem(path) if len(known) > 1 else _parsed(path)
        yield source
        for name in _imported(source.tree, path):
            found = next(
                (one for place in (os.path.dirname(start), root) if (one := _module(name, place))), None
            )
            if found is not None:
                todo.append(found)


def _imported(tree: ast.Module, path: str) -> Iterator[str]:
    package = package_of(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, package)
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _module(name: str, root: str) -> str | None:
    """The file of a module below ``root``; None where it is not there (installed packages are none of the target)."""
    if not name or not all(part.isidentifier() for part in name.split(".")):
        return None
    base = os.path.join(root, *name.split("."))
    candidates = (f"{base}.py", os.path.join(base, "__init__.py"))
    found = next((path for path in candidates if os.path.isfile(path)), None)
    if found is None and root == os.getcwd() and "." not in name:
        return _of_src(name)
    return found


def _of_src(name: str) -> str | None:
    """A package of the project itself that is installed in place (a ``src`` layout)."""
    if not os.path.isdir("src") or name in sys.builtin_module_names or name == "__main__":
        return None
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module of this process that came from no file
        return None
    origin = spec.origin if spec and spec.origin else ""
    inside = origin.startswith(os.path.abspath("src") + os.sep)
    return origin if inside and origin.endswith(".py") else None
