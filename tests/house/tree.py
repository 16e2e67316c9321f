"""What the house tests look at: the files of the repository, parsed once."""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "agentloom"
GENERATED = {".venv", "venvs", ".git", "__pycache__", "dist", "build", ".agentloom"}


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of ``src`` by its path below ``src/agentloom``, parsed."""
    return {
        path.relative_to(SRC).as_posix(): ast.parse(path.read_text("utf-8"), str(path))
        for path in sorted(SRC.rglob("*.py"))
    }


@functools.cache
def files() -> list[Path]:
    """The files that git tracks or would track; all but generated folders where there is no git."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        found = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not GENERATED.intersection(path.relative_to(ROOT).parts)]
    return [path for path in found if path.is_file()]


def imports(tree: ast.Module) -> list[tuple[str, int]]:
    """``(absolute module or name, line)`` of every import of a module, also those inside functions."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


def functions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """``(name, line, number of lines)`` of every function, its docstring not counted."""
    found: list[tuple[str, int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            found.append((node.name, node.lineno, (node.end_lineno or 0) - body[0].lineno + 1))
    return found
