"""Says once when a model answers as another one than before (resolved model, ``system_fingerprint``), and when a server
serves other tools than before.

The answers of a run are looked at as they reach the agent, recorded ones as well as live ones: what a resumed or forked
run asks live is compared with what its trace holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from agentloom.runtime.scope import current
from agentloom.runtime.served import Served, compare_tools

__all__ = ["teller", "tools_served"]

_log = logging.getLogger("agentloom.drift")
_FACTS = {"model": "model", "modelVersion": "model", "system_fingerprint": "system_fingerprint"}
_TELLING = (*_FACTS, "response", "message")
_seen: dict[tuple[str, str, str], str] = {}
_told: set[tuple[str, str, str]] = set()
_RUNS = 64  # whose facts are remembered
_runs: list[str] = []


def teller(asked: str) -> Callable[[Any], None]:
    """What looks at the answer of a call, or at the events of its stream, which asked for the model ``asked``."""
    before: tuple[object, ...] = ()

    def look(answer: Any) -> None:
        nonlocal before
        if isinstance(answer, Mapping):
            facts = cast("Mapping[str, Any]", answer)
            tells = tuple(map(facts.get, _TELLING))
            if tells != before:  # the events of a stream tell the same again and again
                before = tells
                _look(asked, facts)

    return look


def _look(asked: str, answer: Mapping[str, Any]) -> None:
    scope = current()
    if scope is None:
        return
    run = scope.session.run_id
    for inner in (answer, answer.get("response"), answer.get("message")):
        if not isinstance(inner, Mapping):
            continue
        facts = cast("Mapping[str, Any]", inner)
        for name, fact in _FACTS.items():
            value = facts.get(name)
            if isinstance(value, str) and value:
                _compare(run, asked, fact, value)


def _compare(run: str, asked: str, fact: str, value: str) -> None:
    key = (run, asked, fact)
    before = _seen.get(key)
    if before is None:
        _remember(run)
        _seen[key] = value
    elif before != value and key not in _told:
        _told.add(key)
        _log.warning("%s of %s changed within the run: it was %r, it is %r", fact, asked, before, value)


def _remember(run: str) -> None:
    if run in _runs:
        return
    _runs.append(run)
    if len(_runs) > _RUNS:
        gone = _runs.pop(0)
        for key in [key for key in _seen if key[0] == gone]:
            del _seen[key]
            _told.discard(key)


_served: dict[str, tuple[str, list[Any]]] = {}
_SERVERS = 256  # whose tools are remembered


def tools_served(server: str, tools: Served) -> None:
    """``server`` (its name) says that it has ``tools``. What is different from the list before, of this run or of an
    earlier one in the process, is said once."""
    scope = current()
    if scope is None:
        return
    run = scope.session.run_id
    before = _served.get(server)
    if before is None and len(_served) >= _SERVERS:
        del _served[next(iter(_served))]
    _served[server] = (run, list(tools))
    if before is None:
        return
    said = compare_tools(before[1], tools)
    if said:
        when = "within the run" if before[0] == run else f"since run {before[0]}"
        _log.warning("the tools of server %s changed %s: %s", server, when, "; ".join(said))
