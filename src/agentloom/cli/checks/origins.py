"""From a difference of a double run to findings: the place of the call, and the static findings that explain it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.checks.double import EVERY, Difference, part
from agentloom.cli.checks.findings import Finding, Source
from agentloom.cli.checks.flow.names import written
from agentloom.cli.checks.flow.roles import FunctionNode

__all__ = ["facets_of", "finding_of", "home_of", "origins_of", "variables_read"]

_BY_FACET: dict[str, frozenset[str]] = {
    "hash seed": frozenset(["set-order", "hash", "float-sum", "json-default"]),
    "time zone": frozenset(["time-zone", "import-time"]),
    "locale": frozenset(["locale", "environment"]),
    "working folder": frozenset(["folder", "unrecorded-read", "unrecorded-effect", "listing-order"]),
    "environment": frozenset(["environment", "folder", "machine", "unrecorded-read"]),
    "arguments": frozenset(["arguments"]),
    "umask": frozenset(["machine", "unrecorded-effect"]),
    EVERY: frozenset(
        """address unseen-random unseen-clock hidden-clock import-time listing-order machine
        counter global-state mutable-default cache tool-state traceback unrecorded-effect set-order json-default
        arguments""".split()
    ),
}
_MOST = 3
_WHY: dict[str, tuple[str, str]] = {
    "hash seed": (
        "the order of a set and hash() of a text depend on it",
        "sorted(...); hashlib in the place of hash()",
    ),
    "time zone": (
        "something asks the process for its zone, past the guard",
        "datetime.now().astimezone(), or a ZoneInfo",
    ),
    "locale": ("something formats by the locale of the process", "a fixed format, or a fixed locale by name"),
    "working folder": (
        "a path, or what is found by one, comes from the working folder",
        "paths from __file__, or input",
    ),
    "environment": ("a variable was read at import, where it is not recorded", "read it inside the run"),
    "arguments": ("sys.argv is of the process", "pass it in as input of the agent"),
    "umask": ("the umask is of the process", "leave it out"),
}
"""For each facet: what is behind it, and what to do, where the value does not say more."""


def origins_of(difference: Difference, found: Iterable[Finding], target: str) -> list[Finding]:
    """The static findings that may explain ``difference``, those of the same function first; at most three."""
    rules = frozenset[str]().union(*(_BY_FACET.get(facet, frozenset()) for facet in difference.facets))
    file, line, function = _place(difference.report, target)
    fitting = [one for one in found if one.check in rules]
    near = sorted(fitting, key=lambda one: (one.file != file, one.function != function, abs(one.line - line)))
    return near[:_MOST]


def facets_of(found: Iterable[Finding]) -> list[str]:
    """The facets that the static findings make likely."""
    rules = {finding.check for finding in found}
    return [facet for facet, names in _BY_FACET.items() if facet != EVERY and names & rules]


def finding_of(
    difference: Difference, origins: Sequence[Finding], target: str, home: tuple[int, str] = (0, "")
) -> Finding:
    """The finding ``double-run`` for one difference: where the diverging call is, or where its value comes from, or
    (an output of nobody knows what) at ``home``: line and name of the agent."""
    rule = RULES["double-run"]
    file, line, function = _place(difference.report, target)
    if not line and origins:
        file, line, function = origins[0].file, origins[0].line, origins[0].function
    elif not line and difference.report is not None:
        line, function = home
    subject = " and ".join(difference.facets) if len(difference.facets) < 3 else "the world"
    said = f"{_what(difference)} {_when(difference.facets)}"
    leak = part(difference.report, "cause", "leak")
    why, instead = (
        _WHY.get(difference.facets[0], (rule.reason, rule.fix)) if len(difference.facets) == 1 else ("", "")
    )
    reason = f"looks like {leak['looks_like']}: {leak['likely']}" if leak else why or rule.reason
    fix = origins[0].fix if origins else str(leak.get("fix") or instead or rule.fix)
    return Finding(
        "double-run", rule.level, file, line, 1 if line else 0, subject, said, reason, fix, function
    )


def _what(difference: Difference) -> str:
    report = difference.report
    if report is None:
        return str((difference.error or {}).get("message", "there is no verdict")).rstrip(".")
    call = part(report, "call")
    items: list[dict[str, Any]] = part(report, "differences").get("items") or []
    if report.get("class") == "output" or not call.get("kind"):
        return f"the {items[0]['path'] or 'output' if items else 'output'} differs"
    field = f", {items[0]['path']}" if items and items[0].get("path") else ""
    number = f"call {call['index']}, " if call.get("index") else ""
    return f"{number}{call['kind']} {call['name']}{field} differs"


def _when(facets: tuple[str, ...]) -> str:
    if facets == (EVERY,):
        return "in every replay"
    return f"with another {facets[0]}" if len(facets) == 1 else f"in another world ({', '.join(facets)})"


def _place(report: dict[str, Any] | None, target: str) -> tuple[str, int, str]:
    """File, line and function of the diverging call; the target alone where there is none."""
    src = str(part(report, "call").get("src") or "")
    place, _, function = src.partition(" ")
    file, _, line = place.rpartition(":")
    if not line.isdecimal():
        return target, 0, ""
    beside = os.path.join(os.path.dirname(target), file)
    return os.path.normpath(beside if os.path.isfile(beside) else file), int(line), function


def variables_read(sources: Iterable[Source]) -> Iterator[str]:
    """The names of variables of the environment that the sources read, as far as they are written out."""
    for source in sources:
        for node in ast.walk(source.tree):
            name: ast.expr | None = None
            if isinstance(node, ast.Subscript) and _is_environ(node.value):
                name = node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                reads = node.func.attr == "getenv" or (
                    node.func.attr in ("get", "setdefault") and _is_environ(node.func.value)
                )
                name = node.args[0] if reads else None
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "getenv"
                and node.args
            ):
                name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value


def _is_environ(node: ast.expr) -> bool:
    return written(node) == "environ"


def home_of(sources: Sequence[Source], qualname: str) -> tuple[int, str]:
    """Line and name of the function ``qualname`` in the first of the sources; (0, "") where it is not there."""
    name = qualname.rpartition(".")[2]
    for node in ast.walk(sources[0].tree) if sources else ():
        if isinstance(node, FunctionNode) and node.name == name:
            return node.lineno, name
    return 0, ""
