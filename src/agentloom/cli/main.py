"""The ``agentloom`` command: finds the command, runs it, turns what it raises into a message and an exit code.

Command modules are imported when they are used, and ``--version`` imports nothing at all, so that the command line
answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from agentloom._version import __version__
from agentloom.errors import ControlFlow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentloom.cli.options import Settings
    from agentloom.cli.render import Screen

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("agentloom.cli.run", "Record an agent or a script."),
    "replay": ("agentloom.cli.replay", "Run a recorded run again, offline; nothing is ever performed."),
    "resume": ("agentloom.cli.resume", "Go on with a run that waits, or whose process died."),
    "inbox": ("agentloom.cli.inbox", "Open questions, the oldest first."),
    "answer": ("agentloom.cli.answer", "Answer a question that a run asks."),
    "signal": ("agentloom.cli.signal", "Send a named message to a run."),
    "work": ("agentloom.cli.work", "Go on with runs that were answered or are due."),
    "cancel": ("agentloom.cli.cancel", "Stop a run."),
    "rollback": ("agentloom.cli.rollback", "Take back what a run has done, newest first."),
    "check-deploy": (
        "agentloom.cli.check_deploy",
        "Would the suspended runs go on with the code as it is now?",
    ),
    "ls": ("agentloom.cli.ls", "Find runs."),
    "show": ("agentloom.cli.show", "Read a run, a call or a field."),
    "diff": ("agentloom.cli.diff", "Where two runs part, and why."),
    "check": ("agentloom.cli.check", "Find what will not be the same next time."),
    "scan": ("agentloom.cli.scan", "Find secrets in the store, or in files."),
    "verify": ("agentloom.cli.verify", "Check that nobody altered a run."),
    "export": ("agentloom.cli.store_commands:export", "Copy a run into a file."),
    "import": ("agentloom.cli.store_commands:import_", "Take a trace file into the store."),
    "demo": ("agentloom.cli.demo", "An agent deletes the wrong accounts, on a real local model."),
    "doctor": ("agentloom.cli.doctor", "Check this installation and say what to do."),
    "completion": ("agentloom.cli.completion", "Print the completion script for a shell."),
}
"""Command name to its module (and the name in it, ``command`` unless said) and its line in ``--help``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``agentloom ARGV`` (default: the process's arguments) and return the exit code; see ``exits``."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args in (["--version"], ["-V"]):
        sys.stdout.write(f"agentloom {__version__}\n")
        return 0
    _be_lenient(sys.stdout)
    _be_lenient(sys.stderr)
    from agentloom.cli.options import Settings
    from agentloom.cli.render import Screen

    settings = Settings()
    try:
        code = _run(args, settings)
        sys.stdout.flush()
        if settings.ended_by is not None and argv is None:
            _end_by(settings.ended_by)
        return code
    except BrokenPipeError:
        return _broken_pipe()
    except KeyboardInterrupt:
        return _interrupted(Screen(settings))
    except (Exception, ControlFlow) as error:  # noqa: BLE001
        # The last resort of the process: everything is reported with its traceback, nothing is swallowed.
        from agentloom.cli.exits import report

        return int(report(error, Screen(settings)))


def _run(args: list[str], settings: Settings) -> int:
    """Parse and invoke; click's own exceptions become messages and exit codes."""
    import click

    from agentloom.cli.group import cli

    if instruction := os.environ.get("_AGENTLOOM_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "agentloom", "_AGENTLOOM_COMPLETE", instruction)
    try:
        with cli.make_context("agentloom", args, obj=settings) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as stop:
        sys.stderr.write(stop.format_message() + "\n")
        return stop.exit_code
    except click.Abort as stop:
        raise KeyboardInterrupt from stop
    except click.ClickException as problem:
        settings.json = settings.json or "--json" in args
        return _usage(problem, settings.screen())
    return result if isinstance(result, int) else 0


def _usage(problem: Exception, screen: Screen) -> int:
    """Report a command line that cannot be understood: exit code 2 (1 for a file that cannot be opened)."""
    import json

    import click

    message = problem.format_message() if isinstance(problem, click.ClickException) else str(problem)
    message = " ".join(message.split())  # click lists choices on lines of their own
    code = problem.exit_code if isinstance(problem, click.ClickException) else 2
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    hint = f"{context.command_path if context else 'agentloom'} --help"
    if (
        isinstance(problem, click.NoSuchOption)
        and context
        and any(p.name == "args" for p in context.command.params)
    ):
        hint += f"; what is meant for the program goes after --: {context.command_path} ... -- {problem.option_name}"
    if screen.json:
        facts = {"type": type(problem).__name__, "message": message, "next": hint, "exit": code}
        screen.error_text(json.dumps({"error": facts}))
    else:
        screen.problem(message, hint)
    return code


def _interrupted(screen: Screen) -> int:
    """Ctrl-C: say so; exit code 130."""
    if screen.json:
        screen.error_text('{"error": {"type": "KeyboardInterrupt", "message": "interrupted", "exit": 130}}')
    else:
        screen.problem("interrupted", None)
    return 130


def _end_by(number: int) -> None:
    """End this process by a signal, as the program that it ran has ended: whoever started it cannot tell the two
    apart. Another dump of the memory is not left."""
    import contextlib
    import signal

    sys.stderr.flush()
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(AttributeError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)


def _broken_pipe() -> int:
    """The reader (``head``, a closed pager) has what it wants: be quiet, also in the interpreter's last flush."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 141


def _be_lenient(stream: object) -> None:
    """A character that the terminal's encoding lacks is written as an escape instead of failing the command."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
