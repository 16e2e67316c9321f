"""The model names that a file's source gives to calls, each with its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from agentloom.cli.checks.flow.names import defaults_of

__all__ = ["NamedModel", "named_models"]

_KEYWORDS = frozenset(["model", "model_name", "model_id", "modelId", "models", "fallback_models"])
_FIRST = frozenset(["model", "init_chat_model", "get_model", "completion", "acompletion"])
"""Functions whose first argument is a model's name; so it may be of a class (``Agent("openai:gpt-4o")``)."""
_CALLS = frozenset(
    """completions.create completions.parse completions.stream messages.create messages.stream messages.parse
    responses.create responses.parse responses.stream models.generate_content models.generate_content_stream
    chat.complete chat.stream client.converse client.converse_stream""".split()
)
"""Calls of SDKs that ask a model, by the end of their names."""
_DEEP = 8


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A name in the source. ``call``: the call that it is for, as text; ``certain``: that call asks a model."""

    name: str
    line: int
    column: int
    call: str
    certain: bool


def named_models(tree: ast.Module) -> list[NamedModel]:
    """Every name that the source gives to a model call or under a key ``model``, in the order of the lines.

    Names are followed through constants, attributes, defaults of parameters, ``or``, conditions and the default of a
    look-up in the environment; what is put together at run time is not seen.
    """
    known = _Constants(tree)
    found: dict[tuple[int, int], NamedModel] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = _of_call(node)
        elif isinstance(node, ast.Dict):
            given = _of_mapping(node)
        else:
            continue
        for value, call, certain in given:
            for text in known.texts(value):
                place = (text.lineno, text.col_offset + 1)
                if place not in found or certain:
                    found[place] = NamedModel(str(text.value), *place, call, certain)
    return [found[place] for place in sorted(found)]


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, str, bool]]:
    name = _dotted(node.func)
    last = name.rpartition(".")[2]
    certain = last in {"model", "step", "verify"} or ".".join(name.split(".")[-2:]) in _CALLS
    for keyword in node.keywords:
        if keyword.arg in _KEYWORDS:
            yield keyword.value, f"{name}({keyword.arg}=...)", certain
    if node.args and (last in _FIRST or last[:1].isupper()):
        yield node.args[0], f"{name}(...)", last == "model"


def _of_mapping(node: ast.Dict) -> Iterator[tuple[ast.expr, str, bool]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in ("model", "modelId"):
            yield value, f"{{{key.value!r}: ...}}", False


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return node.id if isinstance(node, ast.Name) else ""


class _Constants:
    """What names and attributes of a file are set to, wherever that is written."""

    def __init__(self, tree: ast.Module) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._note(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._note(node.target, node.value)
            elif isinstance(node, ast.arguments):
                for name, value in defaults_of(node):
                    self._values.setdefault(name, []).append(value)

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        name = (
            target.id
            if isinstance(target, ast.Name)
            else target.attr
            if isinstance(target, ast.Attribute)
            else None
        )
        if name is not None:
            self._values.setdefault(name, []).append(value)

    def texts(self, node: ast.expr) -> Iterator[ast.Constant]:
        """The literal texts that an expression may be; each expression is looked into once."""
        seen: set[ast.expr] = set()
        level = [node]
        for _ in range(_DEEP + 1):
            below: list[ast.expr] = []
            for one in level:
                if one in seen:
                    continue
                seen.add(one)
                if isinstance(one, ast.Constant):
                    if isinstance(one.value, str) and one.value:
                        yield one
                else:
                    below += self._inner(one)
            level = below

    def _inner(self, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.Name | ast.Attribute):
            return self._values.get(node.id if isinstance(node, ast.Name) else node.attr, [])
        if isinstance(node, ast.Tuple | ast.List):
            return node.elts
        if isinstance(node, ast.BoolOp):
            return node.values
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, ast.Await | ast.NamedExpr):
            return [node.value]
        if isinstance(node, ast.Call) and _dotted(node.func).rpartition(".")[2] in ("get", "getenv", "env"):
            default = [keyword.value for keyword in node.keywords if keyword.arg == "default"]
            return [*node.args[1:2], *default]
        return []
