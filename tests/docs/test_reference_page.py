"""docs/reference.md names every public name, its public members and its parameters; nothing in it is gone."""

from __future__ import annotations

import inspect
import re

import pytest

import agentloom
import agentloom.sync
from agentloom import errors
from tests.docs import blocks as md

PAGE = (md.ROOT / "docs" / "reference.md").read_text("utf-8")
SECTIONS = {match[1]: match[2] for match in re.finditer(r"(?ms)^### `(.+?)`\n(.*?)(?=^##|\Z)", PAGE)}


def words(text: str) -> set[str]:
    """Every identifier inside backticks or a code block."""
    return set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`\n]+)`", text))))


@pytest.mark.parametrize("name", sorted({*agentloom.__all__, *agentloom.sync.__all__}))
def test_every_public_name_has_its_section(name: str) -> None:
    assert name in SECTIONS


def test_every_section_is_a_public_name() -> None:
    assert set(SECTIONS) <= {*agentloom.__all__, *agentloom.sync.__all__}


@pytest.mark.parametrize("name", agentloom.__all__)
def test_every_member_and_parameter_is_documented(name: str) -> None:
    thing = getattr(agentloom, name)
    wanted: set[str] = set()
    if inspect.isclass(thing):
        base = set(dir(dict)) | set(dir(BaseException))
        wanted |= {member for member in vars(thing) if not member.startswith("_") and member not in base}
    elif callable(thing):
        wanted |= {parameter for parameter in inspect.signature(thing).parameters if parameter != "function"}
    missing = wanted - words(SECTIONS[name])
    assert not missing, f"docs/reference.md, {name}: {sorted(missing)}"


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_documented(name: str) -> None:
    assert name in words(PAGE.partition("## Errors")[2])


def test_sync_has_the_host_functions_of_the_front_door() -> None:
    front = {name for name in agentloom.sync.__all__ if name in agentloom.__all__}
    assert front == set(agentloom.sync.__all__)
