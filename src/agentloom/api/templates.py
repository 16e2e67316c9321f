"""Templates with variables. What is rendered inside a run is recorded: the template, its source, the variables.

A template in braces has plain names only, ``{order}``, and ``{{`` and ``}}`` for braces: variables are data, and no
template reaches into them. One whose file ends in ``.j2`` is rendered by Jinja2, in its sandbox. The text that the
agent gets is made from what was recorded, so a run with another template and the same variables can be made of a trace.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import os
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import FrameType
from typing import Any, Literal, cast

from agentloom.errors import TemplateError
from agentloom.format.words import kind_of
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.names import name_of
from agentloom.runtime.plainly import copied

__all__ = ["Template", "as_text", "render", "render_in", "template_at"]

Engine = Literal["braces", "jinja2"]

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_EXCERPT = 40


class Template:
    """A template from its text. ``name`` is what errors and the trace call it.

    ``engine``: ``"braces"`` or ``"jinja2"``. Raises ``TemplateError`` with line for a text that is no template.
    """

    def __init__(self, text: str, *, name: str = "template", engine: Engine = "braces") -> None:
        if engine not in ("braces", "jinja2"):
            raise ValueError(f"Template(engine={engine!r}): it is 'braces' or 'jinja2'")
        if not isinstance(cast("object", text), str):
            raise TypeError(f"a template is made of a text, not of {kind_of(text)}")
        self.text = text
        self.name = name_of("a template", name)
        self.engine: Engine = engine
        self.source: str | None = None
        self._fields: tuple[tuple[str, int], ...] | None = None
        if engine == "braces":
            self._fields = tuple(_fields_of(text, name))

    @classmethod
    def file(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Template:
        """The template in a file, relative to the file of the code that calls this. Name: the file's, without its
        ending. ``.j2`` files are for Jinja2. Raises ``TemplateError`` for one that cannot be read."""
        return template_at(path, _folder_of(sys._getframe(1)), name=name)  # pyright: ignore[reportPrivateUsage]

    @property
    def fields(self) -> tuple[tuple[str, int], ...]:
        """The variables that it names, each with the line of its first appearance."""
        if self._fields is None:
            from agentloom.api import templates_jinja

            self._fields = templates_jinja.fields_of(self.text, self.name)
        return self._fields

    def fill(self, variables: Mapping[str, object]) -> str:
        """The text with ``variables`` in it; nothing is recorded. ``TemplateError`` for one that is missing, that the
        template does not name, or that has no form as text."""
        _check_names(self, variables)
        if self.engine == "jinja2":
            from agentloom.api import templates_jinja

            return templates_jinja.fill(self.text, self.name, variables)
        return "".join(_filled(self, variables))

    def __repr__(self) -> str:
        return f"Template(name={self.name!r})"


def template_at(path: str | os.PathLike[str], folder: str, *, name: str | None = None) -> Template:
    """The template in the file at ``path``, relative to ``folder``."""
    given = os.fspath(path)
    full = os.path.join(folder, given)
    own = os.path.basename(given).split(".")[0] or "template"
    named = own if name is None else name_of("a template", name)
    try:
        with open(full, encoding="utf-8", newline="") as opened:
            text = opened.read().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else (error.strerror or str(error))
        raise TemplateError(
            f"template {named!r} cannot be read from {given}: {why}",
            template=named,
            hint="paths are relative to the file of the code that names them; a text is given as Template(text)",
        ) from error
    made = Template(text, name=named, engine="jinja2" if given.endswith(".j2") else "braces")
    made.source = given.replace(os.sep, "/") if not os.path.isabs(given) else os.path.basename(given)
    return made


# -- rendering inside a run ----------------------------------------------------------------------------------------


def render(template: Template | str | os.PathLike[str], /, **variables: object) -> str:
    """The template's text with ``variables``, recorded in the run; the same in sync and async agents. ``template`` is a
    ``Template``, or the path of a file relative to the file of the calling code."""
    if not isinstance(template, Template):
        template = template_at(template, _folder_of(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    return render_in(template, variables, ())


def render_in(template: Template, variables: Mapping[str, object], reads: tuple[str, ...]) -> str:
    """As ``render``; ``reads`` names the fields of a workflow's state that the variables are."""
    scope = taking_part("render")
    _check_names(template, variables)
    value = {
        "template": template.text,
        "engine": template.engine,
        "source": template.source,
        "variables": dict(variables),
    }
    if scope is None:
        kept = cast("dict[str, Any]", copied(value))
    else:
        name = f"template:{template.name}"
        kept = cast("dict[str, Any]", scope.session.engine.state(scope, name, value, reads))
    recorded = template
    if (kept["template"], kept["engine"]) != (template.text, template.engine):
        recorded = Template(kept["template"], name=template.name, engine=kept["engine"])
    return recorded.fill(kept["variables"])


def _folder_of(frame: FrameType) -> str:
    """The folder of the code that runs in ``frame``; that of the process for code without a file."""
    filename = frame.f_code.co_filename
    return os.path.dirname(os.path.abspath(filename)) if os.path.exists(filename) else os.getcwd()


# -- braces --------------------------------------------------------------------------------------------------------


def _tokens(text: str, name: str) -> Iterator[tuple[int, int, str | None]]:
    """The braces of a text: where each begins and ends, and the variable's name; None for an escaped brace."""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("{{", "}}"):
            yield match.start(), match.end(), None
            continue
        inside = match.group(1)
        if inside is None or not inside.isidentifier():
            line = text.count("\n", 0, match.start()) + 1
            near = text[match.start() : match.start() + _EXCERPT].split("\n", 1)[0]
            raise TemplateError(
                f"template {name!r}, line {line}: {near!r} is no variable; a variable is a plain name, as in {{order}}",
                template=name,
                line=line,
                hint="write {{ and }} for braces, or make it a .j2 template: there they are {{ order }}",
            )
        yield match.start(), match.end(), inside


def _fields_of(text: str, name: str) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for start, _, variable in _tokens(text, name):
        if variable is not None and variable not in seen:
            seen.add(variable)
            yield variable, text.count("\n", 0, start) + 1


def _filled(template: Template, variables: Mapping[str, object]) -> Iterator[str]:
    text, at = template.text, 0
    for start, end, variable in _tokens(text, template.name):
        yield text[at:start]
        at = end
        if variable is None:
            yield text[start]
            continue
        try:
            yield as_text(variables[variable])
        except TypeError as error:
            line = text.count("\n", 0, start) + 1
            raise TemplateError(
                f"template {template.name!r}, line {line}: variable {variable!r}: {error}",
                template=template.name,
                line=line,
                variable=variable,
                hint="give it as a text",
            ) from None
    yield text[at:]


def _check_names(template: Template, variables: Mapping[str, object]) -> None:
    wanted = dict(template.fields)
    for name in variables:
        if name not in wanted:
            raise TemplateError(
                f"template {template.name!r} has no variable {name!r}; it has {', '.join(wanted) or 'none'}",
                template=template.name,
                variable=name,
                hint="leave it out, or name it in the template",
            )
    if template.engine == "jinja2":
        return  # a template may ask whether a variable is there
    for name, line in wanted.items():
        if name not in variables:
            raise TemplateError(
                f"template {template.name!r}, line {line}: {{{name}}} was not given; there are {_listed(variables)}",
                template=template.name,
                line=line,
                variable=name,
                hint=f"give {name}=..., or write {{{{{name}}}}} for the text in braces",
            )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"


# -- values as text ------------------------------------------------------------------------------------------------


def as_text(value: object) -> str:
    """A text as it is; an Enum's member as its value; a date, time, UUID or Decimal in its usual form; everything else
    as JSON, dataclasses and pydantic models by their fields. TypeError for what has no one form (a set has no order).
    """
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    try:
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise TypeError(f"{kind_of(value)} has no form as JSON: {error}") from None


def _plain(value: object) -> Any:
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {_key(name): _plain(one) for name, one in items}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("list[object]", value)]
    return _of_fields(value)


def _of_fields(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    dump = getattr(type(value), "model_dump", None)
    if dump is not None and hasattr(type(value), "model_fields"):
        return dump(value, mode="json")
    kind = type(value).__name__
    if kind in ("set", "frozenset"):
        raise TypeError(f"{kind_of(value)} has no order; sorted(...) makes a list of it")
    raise TypeError(f"{kind_of(value)} has no one form as text")


def _key(name: object) -> str:
    plain = _plain(name)
    if isinstance(plain, str):
        return plain
    if plain is None or isinstance(plain, bool | int | float):
        return json.dumps(plain)
    raise TypeError(f"a mapping with {kind_of(name)} as a key has no form as JSON")
