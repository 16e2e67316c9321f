"""The tested releases are the same in the adapters, in the environments that test them, and in the docs."""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from types import ModuleType

import pytest

from agentloom.adapters import releases, sdks
from agentloom.adapters.releases import RANGES, Range
from tests.environments.sdk_releases import ENVIRONMENTS, ROOT, covered, requirements

PAGES = ("docs/sdks/index.md", "docs/frameworks.md", "docs/sdks/mcp.md")
ROWS = [
    line
    for page in PAGES
    for line in (ROOT / page).read_text("utf-8").splitlines()
    if line.startswith("| ") or "releases 1" in line
]


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def as_written(known: Range) -> str:
    """The range as a pattern: each end in full or by its minor release; once where they are one."""
    low, new = (rf"{re.escape(minor(end))}(?:\.\d+)?" for end in (known.lowest, known.newest))
    if minor(known.lowest) == minor(known.newest):
        return rf"(?<![\d.]){low}(?![\d])"
    return rf"(?<![\d.]){low} to {new}(?![\d])"


@pytest.mark.parametrize("end", ["lowest", "newest"])
def test_each_end_of_each_range_has_an_environment(end: str) -> None:
    assert covered(end) == set(RANGES)


def test_an_environment_installs_what_the_range_says() -> None:
    for name, made in ENVIRONMENTS.items():
        for end in made.only:
            asked = requirements(name, end)
            for module in made.modules:
                known = RANGES[module]
                assert f"{known.package}=={known.lowest if end == 'lowest' else known.newest}" in asked
        assert made.seams or made.tests or made.program, name
        assert all(
            (ROOT / one).is_file() for one in (*made.tests, *([made.program] if made.program else []))
        ), name


@pytest.mark.parametrize("module", RANGES)
def test_the_docs_name_the_range(module: str) -> None:
    known = RANGES[module]
    names = {known.package.removesuffix("-slim"), module}
    rows = [
        row
        for row in ROWS
        if any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w.-]*\w)", row) for name in names)
    ]
    assert any(re.search(as_written(known), row) for row in rows), f"{known}: {rows}"


@pytest.mark.parametrize("version", ["0.0.1", "99.1"])
@pytest.mark.parametrize("module", RANGES)
def test_a_release_outside_of_a_range_is_named_with_it_and_nothing_breaks(
    module: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way that an import takes, with a module that has nothing that an adapter looks for."""
    real = importlib.metadata.version

    def moved(package: str) -> str:
        return version if package == RANGES[module].package else real(package)

    monkeypatch.setattr(importlib.metadata, "version", moved)
    monkeypatch.setattr(releases, "_said", set())
    patched = [name for name in sdks._PATCHES if releases._ranged(name) == module] or [module]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in patched:
            sdks._patch(ModuleType(name))
    told = [str(warning.message) for warning in caught]
    known = RANGES[module]
    assert told[0].startswith(
        f"{known.package} {version} is outside of what the adapter {module} was tested with ({known}): "
    )
    assert sum("is outside of" in text for text in told) == 1
    silent = {name for name in patched if f"the adapter {name} does not fit" not in " ".join(told)}
    assert silent <= BARE


#: Modules that nothing is looked for in, so that none can be missing; what releases 1.x of MCP have, and 2.x have not.
BARE = {name for name in RANGES if name not in sdks._PATCHES} | {"langgraph.types", "mcp.shared.session"}
BARE |= {"mcp.shared.memory"}
