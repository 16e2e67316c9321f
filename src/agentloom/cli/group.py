"""The click group behind ``agentloom``: commands are loaded when used, their one-line help is known without."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping

import click

from agentloom._version import __version__
from agentloom.cli.main import COMMANDS
from agentloom.cli.options import common_options

__all__ = ["cli"]


class _LazyCommands(MutableMapping[str, click.Command]):
    """The commands of ``COMMANDS``, each imported on first use. Iterating names imports nothing."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = COMMANDS[name][0].partition(":")
            found = getattr(importlib.import_module(module), attribute or "command")
            if not isinstance(found, click.Command):
                raise TypeError(f"{COMMANDS[name][0]} is not a click command")
            self._loaded[name] = found
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS or name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS | self._loaded)

    def __len__(self) -> int:
        return len(COMMANDS | self._loaded)


class _Group(click.Group):
    """A group whose help lists the commands in the order of ``COMMANDS`` without loading them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(
    cls=_Group,
    commands=_LazyCommands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A run is named by its id, four characters of its start or end, 'last', a tag, or a file. "
    "First steps: agentloom demo",
)
@click.version_option(__version__, "-V", "--version", prog_name="agentloom", message="%(prog)s %(version)s")
@common_options
def cli() -> None:
    """Record an agent's run once, replay it byte for byte, see the first divergence."""
