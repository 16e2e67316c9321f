"""What every command takes: ``--store --json -q -v --no-color``, before or after the command's name.

A command is written as::

    @click.command()
    @click.argument("run")
    @common
    def command(settings: Settings, run: str) -> int | None: ...

It returns its exit code, or ``None`` for 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from agentloom.cli.render import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentloom.store import Store

__all__ = ["Settings", "common", "common_options"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Settings:
    """The common options of one command line."""

    store: str | None = None
    json: bool = False
    quiet: bool = False
    verbosity: int = 0
    color: bool | None = None
    ended_by: int | None = None
    """The signal that ended the program which the command ran: the command's own process ends by it too."""

    def screen(self) -> Screen:
        """Where the command writes."""
        return Screen(self)

    def open_store(self) -> Store:
        """The store of ``--store``, else of ``AGENTLOOM_STORE``, else ``./.agentloom``. Raises ``StoreError``."""
        from agentloom.store import open_store

        return open_store(self.store)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Put a given option into the settings; an option that was not given changes nothing."""
    if ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.DEFAULT:
        return
    settings = ctx.ensure_object(Settings)
    match param.name:
        case "store":
            settings.store = str(value)
        case "json":
            settings.json = bool(value)
        case "quiet":
            settings.quiet = bool(value)
        case "verbose":
            settings.verbosity = int(value)
        case _:
            settings.color = not value


def common_options(function: Callable[P, R]) -> Callable[P, R]:
    """Add the common options; their values go to the ``Settings`` of the context, not to ``function``."""

    def option(*names: str, **attrs: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
        return click.option(*names, expose_value=False, callback=_keep, **attrs)

    function = option(
        "--no-color", is_flag=True, help="No colours (also: NO_COLOR; FORCE_COLOR for the contrary)."
    )(function)
    function = option("-v", "--verbose", count=True, help="More detail; repeat for more.")(function)
    function = option("-q", "--quiet", is_flag=True, help="Only the result, no notes.")(function)
    function = option(
        "--json", is_flag=True, help="The result as one JSON document; errors as JSON on stderr."
    )(function)
    return option(
        "--store", metavar="DIR", help="Where runs are kept (default: AGENTLOOM_STORE, else ./.agentloom)."
    )(function)


def common(function: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
    """Add the common options and hand the settings to ``function`` as its first argument."""

    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(click.get_current_context().ensure_object(Settings), *args, **kwargs)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    for name, value in vars(function).items():  # parameters that decorators below this one declared
        setattr(wrapped, name, value)
    return common_options(wrapped)
