"""Typed outputs: what a model is asked to answer with, how its answer is read, and what it is told when that fails.

``shape_of`` makes a ``Shape`` of a pydantic model, a dataclass, a ``TypedDict``, an Enum, a ``Literal``, any other type
that pydantic can check, or a JSON Schema. pydantic and jsonschema are imported when the first of them is needed.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from agentloom.errors import AnswerError, NotSupported, OutputError
from agentloom.runtime.answers import Answer
from agentloom.runtime.plain_json import Ambiguous, read_json
from agentloom.runtime.registry import TYPES

__all__ = ["NotOfShape", "Problem", "Shape", "TypedAnswer", "read_answer", "repair_message", "shape_of"]

T = TypeVar("T")
Problem = dict[str, str]

_FENCED = re.compile(r"```[A-Za-z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
"""Pydantic would make a schema of their arguments, and call them with the answer."""
_MOST = 8  # problems that are listed
_EXCERPT = 80  # characters of a wrong value that are quoted


class _NoValue:
    """The model called tools; its value is yet to come."""


@dataclass(frozen=True, slots=True)
class TypedAnswer(Answer, Generic[T]):
    """An ``Answer`` whose text was read as what ``output=`` asked for."""

    _value: Any = _NoValue

    @property
    def value(self) -> T:
        """The answer as the type asked for. AnswerError where the model called tools instead."""
        if self._value is _NoValue:
            names = ", ".join(call.name for call in self.tool_calls)
            raise AnswerError(
                f"the model called tools ({names}), so there is no value yet",
                text=self.text,
                hint="answer the tool calls, and ask again with the longer history",
            )
        return cast(T, self._value)


class NotOfShape(Exception):
    """A text that is not what was asked for; ``problems`` says why. Never leaves this package."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


class Shape:
    """What an answer has to be. ``parse`` gives the value of a text, or raises ``NotOfShape``."""

    __slots__ = ("name", "parse", "response_format")

    def __init__(self, name: str, response_format: Mapping[str, Any], parse: Callable[[str], Any]) -> None:
        self.name = name
        self.response_format = response_format
        self.parse = parse


# -- making one ------------------------------------------------------------------------------------------------------


def shape_of(output: Any) -> Shape:
    """The shape for ``output``. TypeError for what is no type and no schema, ValueError for a schema that is wrong,
    NotSupported where a package is missing."""
    if isinstance(output, Shape):
        return output
    if isinstance(output, Mapping):
        return _of_schema(cast("Mapping[str, Any]", output))
    if isinstance(output, (str, *_FUNCTIONS)):
        what = f"the text {output!r}" if isinstance(output, str) else "a function"
        raise TypeError(f"output= takes a type or a JSON Schema, not {what}")
    TYPES.declare(output)
    try:
        return _of_type(output)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _of_type.__wrapped__(output)


@functools.lru_cache(maxsize=256)
def _of_type(output: Any) -> Shape:
    from agentloom.api.outputs_schema import closed, root_of

    pydantic = _module("pydantic", output)
    name = getattr(output, "__name__", None) or "answer"
    try:
        adapter = _adapter(output)
        schema = adapter.json_schema()
    except (
        pydantic.PydanticSchemaGenerationError,
        pydantic.PydanticInvalidForJsonSchema,
        pydantic.PydanticUserError,
    ) as error:
        raise TypeError(
            f"output={output!r} is no type that a model could answer with: {str(error).splitlines()[0]}"
        ) from None
    bare = root_of(schema).get("type") == "object"
    if not bare:  # providers want an object at the root
        made = pydantic.create_model("Answer", __config__=_FINITE, value=(output, ...))
        adapter = pydantic.TypeAdapter(made)
        schema = adapter.json_schema()

    def parse(text: str) -> Any:
        _refuse_ambiguous(text)
        try:
            value = adapter.validate_json(text)
        except pydantic.ValidationError as error:
            raise NotOfShape(
                [_of_pydantic(one, bare=bare) for one in error.errors(include_url=False)]
            ) from None
        return value if bare else value.value

    return Shape(name, _format(name, closed(schema)), parse)


_FINITE: Any = {"allow_inf_nan": False}


def _adapter(output: Any) -> Any:
    """What pydantic checks ``output`` with. Numbers are finite, where the type does not say that for itself."""
    pydantic = _module("pydantic", output)
    try:
        return pydantic.TypeAdapter(output, config=_FINITE)
    except pydantic.PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        return pydantic.TypeAdapter(output)  # a model, a dataclass or a TypedDict: it has a config of its own


def _of_schema(schema: Mapping[str, Any]) -> Shape:
    jsonschema = _module("jsonschema", "a JSON Schema")
    name = str(schema.get("title") or "answer")
    checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        checker.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(
            f"output= is no JSON Schema: {_where(error.absolute_path) or 'it'}: {error.message}"
        ) from None
    bare = schema.get("type") == "object" or "properties" in schema
    if not bare:
        schema = _wrapped(schema)
    # An empty registry: a reference to an address is an error, never a request.
    validator = checker(schema, registry=_module("referencing", "a JSON Schema").Registry())

    def parse(text: str) -> Any:
        value = _json(text)
        found = sorted(
            validator.iter_errors(value), key=lambda error: [str(step) for step in error.absolute_path]
        )
        if found:
            raise NotOfShape([_of_jsonschema(error, bare=bare) for error in found])
        return value if bare else value["value"]

    return Shape(name, _format(name, schema), parse)


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object whose one field, ``value``, is of ``schema``; its definitions stay at the root."""
    kept = {word: value for word, value in schema.items() if word not in ("$defs", "definitions", "$schema")}
    root = {word: schema[word] for word in ("$schema", "$defs", "definitions") if word in schema}
    return {
        **root,
        "type": "object",
        "properties": {"value": kept},
        "required": ["value"],
        "additionalProperties": False,
    }


def _format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    from agentloom.api.outputs_schema import is_strict

    label = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "answer"
    form: dict[str, Any] = {"name": label, "schema": dict(schema)}
    if is_strict(schema):
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}


def _module(name: str, what: object) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        said = what if isinstance(what, str) else f"output={getattr(what, '__name__', what)}"
        raise NotSupported(
            f"{said} needs the package {name}", hint="pip install 'agentloom-runtime[outputs]'"
        ) from error


# -- reading an answer -----------------------------------------------------------------------------------------------


def read_answer(shape: Shape, answer: Answer, *, model: str, answers: int) -> TypedAnswer[Any]:
    """The answer with its value. ``OutputError``; its ``reason`` says whether asking again could help (``invalid``)."""
    if answer.tool_calls:
        return TypedAnswer(answer.raw)
    if answer.refusal is not None or answer.finish_reason == "content_filter":
        why = answer.refusal or answer.text or "no reason was given"
        problem = {"where": "", "what": f"the model refused: {_cut(why)}"}
        raise _error(shape, answer, [problem], model, answers, "refused")
    text = answer.text.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        return TypedAnswer(answer.raw, shape.parse(fenced[1] if fenced else text))
    except NotOfShape as wrong:
        problems = wrong.problems
        reason = "invalid"
        if answer.finish_reason == "length":
            reason = "cut off"
            problems = [
                {
                    "where": "",
                    "what": f"it was cut off at the limit of tokens, after {len(text):,} characters",
                }
            ]
        elif not text:
            problems = [{"where": "", "what": "the answer is empty"}]
        raise _error(shape, answer, problems, model, answers, reason) from None


_HINTS = {
    "invalid": "say in the prompt or in the fields' descriptions what is wanted, raise repair=, or name a second model",
    "cut off": "raise max_tokens=, or ask for less",
    "refused": "change the prompt, or name a second model",
}


def _error(
    shape: Shape, answer: Answer, problems: list[Problem], model: str, answers: int, reason: str
) -> OutputError:
    first = _line(problems[0])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    tries = f" in {answers} answers" if answers > 1 else ""
    return OutputError(
        f"{model} gave no {shape.name}{tries}: {first}{more}",
        text=answer.text,
        model=model,
        problems=problems,
        answers=answers,
        reason=reason,
        hint=_HINTS[reason],
    )


def repair_message(error: OutputError) -> dict[str, Any]:
    """What the model is told about its wrong answer."""
    lines = [f"- {_line(problem)}" for problem in error.problems[:_MOST]]
    if len(error.problems) > _MOST:
        lines.append(f"- and {len(error.problems) - _MOST} more")
    told = "\n".join(lines)
    return {
        "role": "user",
        "content": f"Your answer cannot be used:\n{told}\nAnswer again. Write only the JSON, and all of it.",
    }


# -- what is wrong, in words -----------------------------------------------------------------------------------------


def _line(problem: Problem) -> str:
    where = f"{problem['where']}: " if problem["where"] else ""
    got = f"; it is {problem['got']}" if "got" in problem else ""
    return f"{where}{problem['what']}{got}"


def _of_pydantic(error: Mapping[str, Any], *, bare: bool) -> Problem:
    place = error["loc"] if bare else error["loc"][1:]
    if error["type"] == "json_invalid":
        return {"where": "", "what": str(error["msg"]).replace("Invalid JSON", "it is not JSON")}
    found = {"where": _where(place), "what": str(error["msg"]).removeprefix("Value error, ")}
    if error["type"] not in ("missing", "value_error"):
        found["got"] = _cut(_text(error.get("input")))
    return found


def _of_jsonschema(error: Any, *, bare: bool) -> Problem:
    place = list(error.absolute_path)
    return {"where": _where(place if bare else place[1:]), "what": _cut(str(error.message), 3 * _EXCERPT)}


def _where(place: Iterable[object]) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _json(text: str) -> Any:
    _refuse_ambiguous(text)
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise NotOfShape([{"where": "", "what": f"it is not JSON: {error}"}]) from None


def _refuse_ambiguous(text: str) -> None:
    """Raise ``NotOfShape`` for what readers of JSON would differ about; what is no JSON at all is found afterwards."""
    try:
        read_json(text)
    except Ambiguous as error:
        raise NotOfShape([{"where": "", "what": str(error)}]) from None
    except (ValueError, RecursionError):
        return


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def _cut(text: str, most: int = _EXCERPT) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
