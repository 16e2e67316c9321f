"""Recording an ``@agent`` function or a workflow in the child process."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from agentloom.adapters import sdks
from agentloom.api.trace import Trace
from agentloom.cli.script_endings import as_pressed
from agentloom.cli.script_exec import show_error
from agentloom.cli.script_run import one_press
from agentloom.cli.targets import agent_object, load_module
from agentloom.errors import ControlFlow, LoomError, Suspended, TargetError
from agentloom.runtime.guard_effects import Noting
from agentloom.runtime.live_waits import ask_here
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Watch
from agentloom.store import Appender, Store, open_store
from agentloom.store.in_front import InFront

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentloom.cli.script_child import Results
    from agentloom.cli.terminal import Terminal

__all__ = ["ended_by", "not_recorded", "outcome_of", "record_agent", "show_output", "terminal_of"]


class _Announcing(InFront):
    """A store that tells the parent the id of the run as soon as it exists; otherwise the store that it is given."""

    def __init__(self, store: Store, results: Results) -> None:
        super().__init__(store)
        self._results = results
        self.run: str | None = None

    def create(self, run: str) -> Appender:
        appender = self._store.create(run)
        self._results.send(run=run)
        self.run = run
        return appender


def record_agent(job: dict[str, Any], results: Results) -> int:
    """Run the agent with the job's arguments, print its output, and return 0; 1 when it raised."""
    sdks.watch()
    if job.get("json"):
        os.dup2(2, 1)  # stdout is one document; what the program prints goes beside it
    path: str | None = job.get("path")
    store = _Announcing(open_store(job.get("store")), results)
    noting = Noting()
    logging.getLogger("agentloom.guard").disabled = True  # what is not recorded is in the summary
    with Watch(noting, Places(os.path.dirname(path) if path else os.getcwd()), everything=False).armed():
        module = load_module(path, job.get("module"))
        agent = agent_object(module, job["object"])
        args, kwargs = _arguments(job["args"], agent)
        _check(agent, args, kwargs)
        terminal = terminal_of(job, store, lambda: store.run)
        if terminal is not None:
            ask_here(terminal.ask)
        with one_press() if terminal is None else one_press(terminal.interrupted), as_pressed() as signalled:
            done = _run(agent, args, kwargs, job, store)
            done = ended_by(signalled(), done)
    if store.run is not None:
        done |= not_recorded(Trace(store.read(store.run)), noting.facts(), noting.more)
    results.send(done=done)
    return int(done["exit"])


def ended_by(number: int | None, done: dict[str, Any]) -> dict[str, Any]:
    """``done`` of a run that a signal has ended, where it has: the process ends by that signal, too."""
    if number is None or done["status"] != "cancelled":
        return done
    return done | {"signal": number, "exit": 128 + number}


def terminal_of(job: dict[str, Any], store: Store, run: Callable[[], str | None]) -> Terminal | None:
    """Who answers the questions of ``run`` at once: whoever sits at the terminal; None: nobody is to be asked here."""
    if job.get("json") or job.get("steady") or not (os.isatty(0) and os.isatty(2)):
        return None
    from agentloom.cli.answer import login_name
    from agentloom.cli.terminal import Terminal  # which a run without a terminal starts sooner without

    return Terminal(store, run, login_name())


def not_recorded(trace: Trace, noted: list[dict[str, Any]], more: int) -> dict[str, Any]:
    """What the summary says of the guard, and of what passed it; ``noted``: outside of the run."""
    unrecorded = [*noted, *trace.unrecorded]
    found: dict[str, Any] = {"guard": trace.guard}
    return found | ({"missing": [], "unrecorded": unrecorded, "more": more} if unrecorded else {})


def show_output(trace: Trace) -> None:
    """Print what the run gave: a text as it is, anything else as JSON."""
    output = trace.output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=repr)
    sys.stdout.write(text + "\n")


def _run(
    agent: Any, args: list[Any], kwargs: dict[str, Any], job: dict[str, Any], store: _Announcing
) -> dict[str, Any]:
    options = {
        "seed": job.get("seed"),
        "tags": job.get("tags") or None,
        "conversation": job.get("conversation"),
        "guard": job.get("guard"),
    }
    try:
        trace, done = outcome_of(lambda: agent.run(*args, store=store, **options, **kwargs))
    except Suspended as left:
        return {"status": "suspended", "exit": 75, "due": left.due}
    if trace is not None:
        show_output(trace)
    return done


def outcome_of(run: Callable[[], Trace]) -> tuple[Trace | None, dict[str, Any]]:
    """The trace that ``run`` gives, with the status and exit code to tell; None where it is cancelled, or raises what
    the program raised, which is shown. What agentloom itself has to say is raised: also ``Suspended``."""
    try:
        trace = run()
    except (LoomError, ControlFlow):
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None, {"status": "cancelled", "exit": 130}
    except BaseException as error:  # noqa: BLE001 - as the interpreter does with an uncaught exception
        show_error(error)
        return None, {"status": "failed", "exit": 1}
    return trace, {"status": trace.status, "exit": 0}


def _check(agent: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Whether the agent takes these arguments. Raises ``TargetError`` before anything is recorded."""
    function = getattr(getattr(agent, "function", None), "function", None)
    takes = _WORKFLOW if function is None else inspect.signature(function)
    try:
        takes.bind(*args, **kwargs)
    except TypeError as error:
        raise TargetError(
            f"{agent.name if function is None else function.__name__} does not take these arguments: {error}",
            hint=f"it takes {takes.replace(return_annotation=inspect.Signature.empty)}; give them after --",
        ) from error


_WORKFLOW = inspect.Signature([inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
"""What a workflow takes from a command line."""


def _arguments(given: list[str], agent: Any) -> tuple[list[Any], dict[str, Any]]:
    """Each argument as JSON where it is JSON, as text where not; ``name=value`` for a parameter of that name."""
    names = _parameters(agent)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if equals and name in names:
            kwargs[name] = _value(value)
        elif kwargs:
            raise TargetError(
                f"argument {text!r} comes after name=value", hint="put positional arguments first"
            )
        else:
            args.append(_value(text))
    return args, kwargs


def _parameters(agent: Any) -> set[str]:
    function = getattr(getattr(agent, "function", None), "function", None)
    if function is None:
        return set(_WORKFLOW.parameters)
    code = getattr(function, "__code__", None)
    if code is None:
        return set()
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
