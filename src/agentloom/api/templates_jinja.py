"""Templates of Jinja2: in its sandbox, without what differs from run to run; errors name line and variable."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, cast

from agentloom.errors import NotSupported, TemplateError
from agentloom.format.words import kind_of

__all__ = ["fields_of", "fill"]

_UNDEFINED = re.compile(r"'([^']+)' is undefined")


@functools.cache
def _environment() -> Any:
    jinja2, sandbox = _jinja("jinja2"), _jinja("jinja2.sandbox")
    environment = sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    # What gives another text each time: a draw belongs before the template, where it is recorded.
    environment.filters.pop("random", None)
    environment.globals.pop("lipsum", None)
    return environment


def _jinja(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotSupported(
            "a .j2 template needs the package jinja2", hint="pip install 'agentloom-runtime[templates]'"
        ) from error


def fields_of(text: str, name: str) -> tuple[tuple[str, int], ...]:
    """The variables of a template, each with the line of its first appearance. ``TemplateError`` where it is none."""
    jinja2, nodes, meta = _jinja("jinja2"), _jinja("jinja2.nodes"), _jinja("jinja2.meta")
    environment = _environment()
    try:
        tree = environment.parse(text)
        _compiled(text)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(
            f"template {name!r}, line {error.lineno}: {error.message}", template=name, line=error.lineno
        ) from None
    for kind in ("Include", "Import", "FromImport", "Extends"):
        for node in tree.find_all(getattr(nodes, kind)):
            raise NotSupported(
                f"template {name!r}, line {node.lineno}: it takes in another template, which would not be recorded",
                hint="render that one by itself, and give its text as a variable",
            )
    free = cast("set[str]", meta.find_undeclared_variables(tree)) - set(environment.globals)
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.name in free:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return tuple(sorted(lines.items(), key=lambda item: (item[1], item[0])))


@functools.lru_cache(maxsize=128)
def _compiled(text: str) -> Any:
    return _environment().from_string(text)


def fill(text: str, name: str, variables: Mapping[str, object]) -> str:
    """The template with ``variables``. ``TemplateError`` with line and variable."""
    jinja2 = _jinja("jinja2")
    for variable, value in variables.items():
        _refuse_sets(value, name, variable)
    try:
        return cast(str, _compiled(text).render(dict(variables)))
    except (jinja2.TemplateError, TypeError, ArithmeticError, LookupError, ValueError) as error:
        line = _line_of(error.__traceback__)
        found = _UNDEFINED.search(str(error))
        missing = found[1] if found and found[1] not in variables else None
        at = "" if line is None else f", line {line}"
        told = f"{{{{ {missing} }}}} was not given" if missing else f"{type(error).__name__}: {error}"
        raise TemplateError(
            f"template {name!r}{at}: {told}; there are {', '.join(variables) or 'none'}",
            template=name,
            line=line,
            variable=missing,
            hint=f"give {missing}=..., or test it with {{% if {missing} is defined %}}" if missing else None,
        ) from error


def _line_of(traceback: TracebackType | None) -> int | None:
    """The line of the template that an error came from; Jinja2 puts it into the traceback."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _refuse_sets(value: object, name: str, variable: str) -> None:
    """A loop over a set has another order in every process."""
    kind = type(value).__name__
    if kind in ("set", "frozenset"):
        raise TemplateError(
            f"template {name!r}: variable {variable!r} holds {kind_of(value)}, which has no order",
            template=name,
            variable=variable,
            hint="sorted(...) makes a list of it",
        )
    if isinstance(value, Mapping):
        for one in cast("Mapping[object, object]", value).values():
            _refuse_sets(one, name, variable)
    elif isinstance(value, list | tuple):
        for one in cast("list[object]", value):
            _refuse_sets(one, name, variable)
