"""What ``run`` and ``replay`` run: a script, or an agent or workflow in a file or module."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from agentloom.errors import ControlFlow, LoomError, TargetError
from agentloom.runtime.loading import loading

__all__ = ["Target", "agent_names", "agent_object", "load_module", "parse_target"]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, slots=True)
class Target:
    """``path``: a file, absolute. ``module``: an importable name. ``name``: the object; None for a whole script."""

    path: str | None
    module: str | None
    name: str | None


def parse_target(text: str) -> Target:
    """``script.py``, ``file.py:name`` or ``module:name``. Raises ``TargetError`` when no such file exists."""
    head, colon, name = text.rpartition(":")
    if not colon:
        head, name = text, ""
    if head.endswith(".py") or os.sep in head or os.path.exists(head):
        path = os.path.abspath(head)
        if not os.path.isfile(path):
            what = "is a folder" if os.path.isdir(path) else "does not exist"
            raise TargetError(
                f"{head} {what}", hint="name a Python file: agentloom run agent.py", target=text
            )
        return Target(path, None, name or None)
    if not colon or not name or not all(part.isidentifier() for part in head.split(".")):
        raise TargetError(
            f"{text} is neither a file nor module:name",
            hint="agentloom run agent.py -- ARGS, agentloom run file.py:agent, agentloom run module:agent",
            target=text,
        )
    return Target(None, head, name)


def load_module(path: str | None, module: str | None, *, main: bool = False) -> ModuleType:
    """Import a file (under its stem, or as ``__main__`` without its ``if __name__`` part) or a module by name.

    Raises ``TargetError`` for what is not there, and for what the module raises while it is imported.
    """
    if path is None:
        sys.path.insert(0, os.getcwd())
        try:
            with _importing(str(module)):
                return _imported(str(module))
        except TargetError as error:
            missing = getattr(error.__cause__, "name", None) or ""
            if (
                isinstance(error.__cause__, ModuleNotFoundError)
                and missing
                and str(module).startswith(missing)
            ):
                raise TargetError(
                    f"no module named {missing}",
                    hint="run from its folder, or name the file: file.py:agent",
                ) from error
            raise
    root = _root(path, module)
    sys.path.insert(0, root or os.path.dirname(path))
    with _importing(path):
        if main:
            return _as_main(path)
        if root is not None:
            return _imported(str(module))
        name = module or os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or not spec.loader:
            raise TargetError(f"{path} cannot be imported", hint="name a .py file")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        with loading():
            spec.loader.exec_module(loaded)
        return loaded


def _root(path: str, module: str | None) -> str | None:
    """The folder above the package that ``module`` at ``path`` belongs to; None for a module of no package."""
    parts = (module or "").split(".")
    tails = (os.path.join(*parts) + ".py", os.path.join(*parts, "__init__.py"))
    tail = next((tail for tail in tails if path.endswith(os.sep + tail) and os.sep in tail), None)
    return None if tail is None else path[: -len(tail) - 1]


@contextmanager
def _importing(target: str) -> Generator[None]:
    """Whatever the program raises while it is imported becomes a ``TargetError`` that names the place."""
    try:
        yield
    except (LoomError, ControlFlow, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, SystemExit):
            what = f"it ends the program (exit code {error.code})"
        raise TargetError(
            f"{target} cannot be imported: {what}{_place(error)}",
            hint=f"python {target}" if target.endswith(".py") else f"python -m {target}",
            target=target,
        ) from error


def _place(error: BaseException) -> str:
    """`` (file:line)`` of the innermost line of plain code in the traceback, or of the syntax error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno})"
    frames = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen", _PACKAGE))
    ]
    return f" ({frames[-1]})" if frames else ""


def _imported(name: str) -> ModuleType:
    """Import a module by name; where it starts a run at its top level, what is above that line."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    with loading():
        spec.loader.exec_module(loaded)
    return loaded


def _as_main(path: str) -> ModuleType:
    """A script's definitions under the name ``__main__``, which its types were recorded under."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    tree.body = [node for node in tree.body if not _is_main_guard(node)]
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __spec__=None)
    sys.modules["__main__"] = module
    with loading():
        exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {
        part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)
    }


def agent_object(module: ModuleType, name: str) -> Any:
    """The agent or workflow called ``name``. Raises ``TargetError`` that lists what the module has instead."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        found = _workflow_called(module, name)
    if found is not None and callable(getattr(found, "run", None)):
        return found
    names = agent_names(module)
    listed = f"it has {', '.join(names)}" if names else "decorate a function with @agentloom.agent"
    if names and (path := getattr(module, "__file__", None)):
        listed += f"; to replay with another: --target {os.path.basename(path)}:{names[0]}"
    where = getattr(module, "__file__", None) or module.__name__
    what = "is not an agent or a workflow" if found is not None else "does not exist"
    raise TargetError(f"{name} {what} in {where}", hint=listed, target=name)


def agent_names(module: ModuleType) -> list[str]:
    """The agents and workflows that a module holds, by the names of their variables."""
    return sorted(key for key, value in vars(module).items() if _is_agent(value))


def _workflow_called(module: ModuleType, name: str) -> Any:
    """A workflow is recorded under its own name, which need not be the name of the variable that holds it."""
    held = (
        value for value in vars(module).values() if _is_agent(value) and getattr(value, "name", None) == name
    )
    return next(held, None)


def _is_agent(value: object) -> bool:
    return type(value).__module__.startswith("agentloom.api.") and callable(getattr(value, "run", None))
