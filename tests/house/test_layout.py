"""The tree says what the product does: every module has its test, its size, its sorted list of names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house import tree

# Modules without a test file of their own name, each with the reason.
NOT_MIRRORED: dict[str, str] = {
    "__init__.py": "the names of other modules; tests/house/test_imports.py loads them all",
    "_version.py": "a constant; tests/cli/test_main.py reads it",
    "__main__.py": "two lines; tests/cli/conftest.py starts every process through it",
    "format/encoding.py": "tests/format/test_values.py holds both directions together",
    "format/decoding.py": "tests/format/test_values.py holds both directions together",
    "format/scalars.py": "tests/format/test_values.py holds both directions together",
    "format/fields.py": "tests/spec/test_vectors.py: a vector for each rule",
    "format/rules.py": "tests/spec/test_vectors.py: a vector for each rule",
    "format/lines.py": "tests/spec/test_vectors.py: a vector for each rule",
    "format/guards.py": "type guards of one line each",
    "format/limits.py": "constants; tests/format/test_journal.py and test_values.py reach each",
    "replay/agreement.py": "tests/replay/test_source_noted.py and tests/secrets hold it with the source that asks",
    "replay/endings.py": "tests/replay/test_source_findings.py reads each of its findings",
    "replay/frontier.py": "tests/api/test_resuming.py: every method of it, through runs that are resumed",
    "replay/resuming.py": "tests/api/test_resuming.py: what it makes ready is resumed there",
    "runtime/calls.py": "three dataclasses without a rule of their own; tests/runtime/test_engine.py reads each field",
    "runtime/outside.py": "a dataclass without a rule of its own; tests/runtime/test_waits.py reads each field",
    "runtime/source.py": "protocols; mypy holds LiveSource, ReplaySource and the source of tests/runtime to them",
}
# Files over 800 lines need a written reason.
LONG_FILES: dict[str, str] = {}
# Functions over 60 lines need a written reason: "file:function".
LONG_FUNCTIONS: dict[str, str] = {}


def family(stem: str) -> list[str]:
    """``models_openai_parts``, ``models_openai``, ``models``: a family of modules may share its tests."""
    parts = stem.split("_")
    return ["_".join(parts[:length]) for length in range(len(parts), 0, -1)]


def test_every_module_has_its_test_file_or_a_reason() -> None:
    missing: list[str] = []
    for name, module in tree.modules().items():
        path = Path(name)
        trivial = path.name == "__init__.py" and all(
            isinstance(n, ast.Expr | ast.ImportFrom | ast.Assign) for n in module.body
        )
        if name in NOT_MIRRORED or trivial:
            continue
        folder = tree.ROOT / "tests" / path.parent
        stem = path.parent.name if path.name == "__init__.py" else path.stem.strip("_")
        if not any(
            any(folder.glob(f"test_{name}.py")) or any(folder.glob(f"test_{name}_*.py"))
            for name in family(stem)
        ):
            missing.append(f"{name}: no tests/{path.parent.as_posix()}/test_{stem}.py")
    assert not missing, "\n".join(missing)


def test_reasons_are_about_files_that_exist() -> None:
    for name in [*NOT_MIRRORED, *LONG_FILES, *(item.split(":")[0] for item in LONG_FUNCTIONS)]:
        assert (tree.SRC / name).exists(), f"{name} is gone: take its reason away"


def test_files_and_functions_are_short() -> None:
    found: list[str] = []
    for name, module in tree.modules().items():
        lines = len((tree.SRC / name).read_text("utf-8").splitlines())
        if lines > 800 and name not in LONG_FILES:
            found.append(f"{name}: {lines} lines")
        for function, line, length in tree.functions(module):
            if length > 60 and f"{name}:{function}" not in LONG_FUNCTIONS:
                found.append(f"{name}:{line} {function}: {length} lines")
    assert not found, "\n".join(found)


def test_every_module_lists_its_names() -> None:
    found: list[str] = []
    for name, module in tree.modules().items():
        public = [
            n for n in module.body if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        listed = [
            ast.literal_eval(node.value)
            for node in module.body
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
        ]
        if not listed:
            if any(not node.name.startswith("_") for node in public):
                found.append(f"{name}: has public names and no __all__")
        elif len(set(listed[0])) != len(listed[0]):
            found.append(f"{name}: __all__ repeats a name")  # the order is ruff's RUF022
    assert not found, "\n".join(found)


def test_no_assert_in_src() -> None:
    """``testing`` is exempt: its contract suites assert on purpose."""
    found = [
        f"{name}:{node.lineno}"
        for name, module in tree.modules().items()
        if not name.startswith("testing/")
        for node in ast.walk(module)
        if isinstance(node, ast.Assert)
    ]
    assert not found, f"assert vanishes under -O; raise an error of agentloom.errors instead: {found}"


def test_no_marks_of_unfinished_work() -> None:
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
    found = [
        f"{path.relative_to(tree.ROOT)}:{number}"
        for path in tree.files()
        if path.suffix in {".py", ".md", ".toml"}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if mark.search(line)
    ]
    assert not found, found


def test_no_path_of_the_machine_it_was_written_on() -> None:
    own = re.compile(r"(?<![\w.~])/(?:root|work)/[\w.-]+")
    home = re.compile(r"(?<![\w.~])/(?:home|Users)/[\w.-]+")  # tests make such paths up
    here = {str(tree.ROOT), str(Path.home())} - {"/", "/root"}
    found: list[str] = []
    for path in tree.files():
        if path.suffix in {".zst", ".png", ".db"}:
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
            told = own.search(line) or ("tests" not in path.parts and home.search(line))
            if told or any(place in line for place in here):
                found.append(f"{path.relative_to(tree.ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)
