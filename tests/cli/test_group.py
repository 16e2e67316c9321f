"""The list of commands: lazy, ordered, and its one-line helps equal to those of the commands."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from agentloom.cli.group import cli
from agentloom.cli.main import COMMANDS
from agentloom.cli.options import Settings


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_loads_and_has_the_same_line_of_help(name: str) -> None:
    command = cli.commands[name]
    assert command.get_short_help_str(200).rstrip(".") == COMMANDS[name][1].rstrip(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_takes_the_common_options(name: str) -> None:
    common = {"--store", "--json", "--quiet", "--verbose", "--no-color"}
    options = {option for param in cli.commands[name].params for option in param.opts}
    assert common <= options


def test_help_loads_no_command() -> None:
    code = (
        "import sys\nfrom agentloom.cli.main import COMMANDS, main\nmain(['--help'])\n"
        "loaded = [m for m, _ in COMMANDS.values() if m.split(':')[0] in sys.modules]\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [
        line.split()[0] for line in done.stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    ] == list(COMMANDS)


def test_what_is_no_command_is_a_clear_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "odd", ("agentloom.cli.main:COMMANDS", "odd"))
    with pytest.raises(TypeError, match="agentloom.cli.main:COMMANDS is not a click command"):
        cli.commands["odd"]


def test_settings_have_no_state_between_calls() -> None:
    context = click.Context(cli)
    assert context.ensure_object(Settings) == Settings()
