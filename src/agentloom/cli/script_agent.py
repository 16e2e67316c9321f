"""Recording an ``@agent`` function or a workflow in the child process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from agentloom.adapters import sdks
from agentloom.cli.targets import agent_object, load_module
from agentloom.errors import LoomError, TargetError
from agentloom.store import Appender, Query, RunRow, Store, open_store

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results

__all__ = ["record_agent"]

_ALL = Query()


class _Announcing:
    """A store that tells the parent the id of the run as soon as it exists; otherwise the store that it is given."""

    def __init__(self, store: Store, results: Results) -> None:
        self._store = store
        self._results = results

    def create(self, run: str) -> Appender:
        appender = self._store.create(run)
        self._results.send(run=run)
        return appender

    def reopen(self, run: str) -> Appender:
        return self._store.reopen(run)

    def read(self, run: str) -> bytes:
        return self._store.read(run)

    def runs(self, query: Query = _ALL) -> list[RunRow]:
        return self._store.runs(query)

    def resolve(self, ref: str) -> str:
        return self._store.resolve(ref)

    def add(self, data: bytes) -> str:
        return self._store.add(data)

    def remove(self, run: str) -> None:
        self._store.remove(run)


def record_agent(job: dict[str, Any], results: Results) -> int:
    """Run the agent with the job's arguments, print its output, and return 0; 1 when it raised."""
    sdks.watch()
    path: str | None = job.get("path")
    root = os.path.dirname(path) if path else os.getcwd()
    module = load_module(path, job.get("module"))
    agent = agent_object(module, job["object"])
    args, kwargs = _arguments(job["args"], agent)
    store = _Announcing(open_store(job.get("store")), results)
    try:
        trace = agent.run(*args, seed=job.get("seed"), store=store, tags=job.get("tags") or None, **kwargs)
    except LoomError:
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        results.send(done={"status": "cancelled", "exit": 130})
        return 130
    except Exception as error:  # noqa: BLE001 - as the interpreter does with an uncaught exception
        traceback.print_exception(error)
        results.send(done={"status": "failed", "exit": 1, "root": root})
        return 1
    output = trace.output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=repr)
    print(text, file=sys.stderr if job.get("json") else sys.stdout)
    results.send(done={"status": trace.status, "exit": 0, "root": root})
    return 0


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
    code = getattr(function, "__code__", None)
    if code is None:
        return set()
    return set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
