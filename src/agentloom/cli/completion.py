"""``agentloom completion SHELL``: print the script that completes commands, options and arguments."""

from __future__ import annotations

import click

from agentloom.cli.options import Settings, common
from agentloom.errors import NotSupported

__all__ = ["command"]

_SHELLS = ("bash", "fish", "zsh")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(_SHELLS))
@common
def command(settings: Settings, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    eval "$(agentloom completion bash)"       in ~/.bashrc
    eval "$(agentloom completion zsh)"        in ~/.zshrc
    agentloom completion fish | source        in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from agentloom.cli.group import cli

    found = get_completion_class(shell)
    if found is None:
        raise NotSupported(f"no completion for {shell}", hint=f"one of: {', '.join(_SHELLS)}")
    script = found(cli, {}, "agentloom", "_AGENTLOOM_COMPLETE").source()
    if settings.json:
        settings.screen().data({"shell": shell, "script": script})
    else:
        click.echo(script)
