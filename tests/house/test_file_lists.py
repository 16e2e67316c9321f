"""Files that the code names in lists exist: a list that names a file of yesterday does nothing today."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from agentloom.runtime import finding, interrupts, places
from tests.house import tree

RUNTIME = Path(finding.__file__).parent
LISTS: dict[str, list[str]] = {
    "finding.STANDS_IN": sorted(finding.STANDS_IN),
    "interrupts._AT_ONCE": sorted(interrupts._AT_ONCE),
    "places._EDGES": sorted(file for file, _ in places._EDGES),
}


@pytest.mark.parametrize("name", LISTS)
def test_what_a_list_names_exists(name: str) -> None:
    assert len(LISTS[name]) > 1
    assert [path for path in LISTS[name] if not os.path.exists(path)] == []


def test_what_tells_of_effects_is_known_to_stand_in_for_python() -> None:
    """Or its own frame would be taken for whoever did it."""
    tells = {
        RUNTIME / Path(name).name
        for name, module in tree.modules().items()
        for used, _ in tree.imports(module)
        if used in ("agentloom.runtime.refuse.see", "agentloom.runtime.guard_files.served")
    }
    assert len(tells) > 1
    assert [path for path in tells if str(path) not in finding.STANDS_IN] == []


def test_functions_that_are_edges_exist() -> None:
    for file, function in places._EDGES:
        names = {name for name, _, _ in tree.functions(ast.parse(Path(file).read_text("utf-8")))}
        assert function in names, file


def test_files_of_the_standard_library_that_are_named_exist_in_some_form() -> None:
    """A module may be a file in one Python and a folder in another: one of the two is to be there."""
    named = [*finding._UPKEEP, *(file for file, _ in finding._HARMLESS if not file.startswith("<"))]
    folder = os.path.dirname(os.__file__) + os.sep
    stems = {path.removeprefix(folder).partition(".")[0].partition(os.sep)[0] for path in named}
    there = os.listdir(folder)
    assert [
        stem for stem in stems if not any(name.partition(".")[0].startswith(stem) for name in there)
    ] == []
