"""What a mutant changes, read from the file that mutmut wrote, and which rule says that the change means nothing."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["RULES", "Mutant", "Trail", "difference", "mutants_of", "rule_of"]

Trail = list[tuple[ast.AST, str, int | None]]
"""How to reach a node: the nodes above it, each with the field (and the place in a list) that leads on."""

_WORDS = re.compile(r"\w,? +\w")
_NAME = re.compile(r"^x(?:_|ǁ(?P<owner>\w+)ǁ)(?P<function>\w+?)__mutmut_(?P<number>\d+|orig)$")


@dataclass(frozen=True)
class Mutant:
    """One changed function: ``name`` as mutmut says it, ``function`` as ``module.Class.function``."""

    name: str
    function: str
    original: ast.AST
    mutated: ast.AST

    @cached_property
    def change(self) -> str:
        """Lines that go (``-``) and come (``+``), without layout, the same wherever the function stands."""
        before, after = (ast.unparse(node).splitlines() for node in (self.original, self.mutated))
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return "\n".join(
            f"{line[0]} {line[1:].strip()}" for line in lines if not line.startswith(("---", "+++", "@@"))
        )

    @cached_property
    def rule(self) -> str | None:
        """The rule that filters this mutant, or None."""
        return rule_of(*difference(self.original, self.mutated))


def mutants_of(source: str, module: str) -> Iterator[Mutant]:
    """The mutants in ``source``, a file of mutmut that holds a function once for each change."""
    tree = ast.parse(source)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    found = [
        node for body in bodies for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    numbered = [(node, match) for node in found if (match := _NAME.match(node.name)) is not None]
    originals = {
        match.group("owner", "function"): node for node, match in numbered if match["number"] == "orig"
    }
    for node, match in numbered:
        if match["number"] != "orig":
            original = originals[match.group("owner", "function")]
            name, function = node.name, ".".join(filter(None, [module, match["owner"], match["function"]]))
            node.name = original.name = match["function"]
            yield Mutant(f"agentloom.{module}.{name}", function, original, node)


def difference(old: ast.AST, new: ast.AST) -> tuple[Trail, ast.AST, ast.AST]:
    """The smallest parts of two trees that differ, and the way to them in ``old``."""
    trail: Trail = []
    while type(old) is type(new):
        places = _differing(old, new)
        if places is None or len(places) != 1:
            break
        field, index, below, beside = places[0]
        trail.append((old, field, index))
        old, new = below, beside
    return trail, old, new


def _differing(old: ast.AST, new: ast.AST) -> list[tuple[str, int | None, ast.AST, ast.AST]] | None:
    """The children that differ; None where the nodes themselves do."""
    places: list[tuple[str, int | None, ast.AST, ast.AST]] = []
    for field in old._fields:
        below, beside = getattr(old, field, None), getattr(new, field, None)
        if isinstance(below, ast.AST) and isinstance(beside, ast.AST):
            if ast.dump(below) != ast.dump(beside):
                places.append((field, None, below, beside))
        elif isinstance(below, list) and isinstance(beside, list) and len(below) == len(beside):
            for index, (one, other) in enumerate(zip(below, beside, strict=True)):
                if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                    if ast.dump(one) != ast.dump(other):
                        places.append((field, index, one, other))
                elif one != other:
                    return None
        elif below != beside:
            return None
    return places


def _text(trail: Trail, old: ast.AST, new: ast.AST) -> bool:
    """Whether only literal words change: of a sentence, where a space or two stand between letters."""
    if not (isinstance(old, ast.Constant) and isinstance(new, ast.Constant)):
        return False
    before, after = old.value, new.value
    return isinstance(before, str) and isinstance(after, str) and _WORDS.search(before) is not None


def _cast(trail: Trail, old: ast.AST, new: ast.AST) -> bool:
    return any(_calls(node, "cast") and (field, index) == ("args", 0) for node, field, index in trail)


def _codec(trail: Trail, old: ast.AST, new: ast.AST) -> bool:
    call = next((n for n in [old, *(n for n, _, _ in reversed(trail))] if isinstance(n, ast.Call)), None)
    if not (call and isinstance(call.func, ast.Attribute) and call.func.attr in {"encode", "decode"}):
        return False
    if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
        first = bool(trail) and trail[-1][0] is call and trail[-1][1:] == ("args", 0)
        return first and str(old.value).lower() == str(new.value).lower()
    if not (old is call and isinstance(new, ast.Call) and len(call.args) == 1):
        return False
    named = call.args[0]
    return isinstance(named, ast.Constant) and named.value == "utf-8" and not (new.args or new.keywords)


def _strict(trail: Trail, old: ast.AST, new: ast.AST) -> bool:
    if any(isinstance(node, ast.keyword) and node.arg == "strict" for node, _, _ in trail):
        return True
    return (
        isinstance(old, ast.Call)
        and isinstance(new, ast.Call)
        and _calls(old, "zip")
        and len(old.args) == len(new.args)
    )


def _calls(node: ast.AST, name: str) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return (isinstance(called, ast.Name) and called.id == name) or (
        isinstance(called, ast.Attribute) and called.attr == name
    )


RULES = {
    "text": (_text, "the literal words of a sentence"),
    "cast": (_cast, "the type in a cast: for type checkers alone"),
    "codec": (_codec, "a codec in other letters, or utf-8 as the default"),
    "strict": (_strict, "zip(strict=...): a check of what cannot happen"),
}
"""Changes that no test need find, each with the reason."""


def rule_of(trail: Trail, old: ast.AST, new: ast.AST) -> str | None:
    """The first of `RULES` that a change falls under, or None."""
    return next((name for name, (applies, _) in RULES.items() if applies(trail, old, new)), None)
