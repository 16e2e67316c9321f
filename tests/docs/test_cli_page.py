"""docs/cli.md names every command, option, exit code; nothing in it is gone."""

from __future__ import annotations

import re

import pytest

from agentloom.cli.exits import Exit
from agentloom.cli.group import cli
from agentloom.cli.main import COMMANDS
from tests.docs import blocks as md

PAGE = (md.ROOT / "docs" / "cli.md").read_text("utf-8")
SECTIONS = {match[1]: match[2] for match in re.finditer(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", PAGE)}
COMMON = SECTIONS["Common options"]


def options(name: str) -> set[str]:
    return {option for param in cli.commands[name].params for option in param.opts if option.startswith("-")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    section = SECTIONS.get(f"agentloom {name}")
    assert section, f"docs/cli.md has no section '## agentloom {name}'"
    known = set(re.findall(r"(?<![\w-])(-{1,2}[a-z][a-z-]*|-[A-Z])", section + COMMON))
    missing = {option for option in options(name) if option not in known and not option.startswith("--help")}
    assert not missing, f"not in the section of agentloom {name}: {sorted(missing)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_documented_that_is_gone(name: str) -> None:
    rows = re.findall(r"(?m)^\| (`-.*?) \|", SECTIONS.get(f"agentloom {name}", ""))
    listed = {option for row in rows for option in re.findall(r"(?<![\w-])(--?[A-Za-z][a-z-]*)", row)}
    assert not listed - options(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_documents_its_json(name: str) -> None:
    assert "JSON" in SECTIONS.get(f"agentloom {name}", ""), f"say what `agentloom {name} --json` prints"


def test_every_section_is_a_command() -> None:
    assert {title.removeprefix("agentloom ") for title in SECTIONS if title.startswith("agentloom ")} == set(
        COMMANDS
    )


def test_every_exit_code_is_documented() -> None:
    listed = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", SECTIONS["Exit codes"])}
    assert listed == {int(code) for code in Exit}
