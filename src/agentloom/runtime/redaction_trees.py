"""Payloads as trees: texts, keys and values of every type, with placeholders for what is secret in them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, cast

from agentloom.format.canonical import Tree, canonical
from agentloom.format.echoes import text_of
from agentloom.format.guards import class_of
from agentloom.format.placeholders import START
from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_formats import is_open_value
from agentloom.runtime.redaction_found import NAMED, Known
from agentloom.runtime.redaction_names import is_secret_header, is_secret_name, scheme_of
from agentloom.runtime.redaction_numbers import Numbers
from agentloom.runtime.redaction_rules import Rules
from agentloom.runtime.redaction_texts import values_in
from agentloom.runtime.redaction_tokens import PIECES, beside

__all__ = ["Trees", "free_key"]

_FORMAT_TAGS = frozenset(("$ref", "$part", "$json", "$text", "$bytes", "$bytearray"))
_NUMBER_DIGITS = 6
_INNER = 3  # texts in texts that are taken apart
_PIECES = re.compile(rf'"(?:{"|".join((*PIECES, "parts", "done"))})"\s*:')


class Trees:
    """What is never shared in the trees of one run. What holds no secret is shared, not copied."""

    def __init__(
        self, finder: Finder, numbers: Numbers, rules: Rules, joined: Callable[[list[Tree]], list[Tree]]
    ) -> None:
        """``joined``: gives values that follow each other without secrets that go on from one in the next."""
        self.joined = joined
        self.use(rules)
        self._inner = 0  # JSON in a text in JSON
        self._spelt_alone = False
        self.path = numbers.path
        self._finder = finder
        self._numbers = numbers

    def use(self, rules: Rules) -> None:
        """From now on these are the rules of the user."""
        self.rules = rules
        self._declared = [f'"{name.decode()}"' for name in rules.field_names]

    def text(self, text: str) -> str:
        """``text`` with placeholders for its secrets; the very same where there are none."""
        if '"' in text:
            text = self._inside(text)
        if self._spelt_alone:
            return text
        data = text.encode("utf-8", "surrogatepass")
        changed = self._finder.applied(data, self._numbers.replace)
        return text if changed is data else changed.decode("utf-8", "surrogatepass")

    def spelt(self, tree: Tree) -> Tree:
        """A tree in which nothing but JSON in texts, with texts in pieces, must be looked at."""
        self._spelt_alone = True
        try:
            return cast(Tree, self.tree(tree, None))
        finally:
            self._spelt_alone = False

    def _inside(self, text: str) -> str:
        """A text that is JSON: fields that a user declared secret, and texts in pieces."""
        wanted = any(name in text for name in self._declared)
        if (not wanted and _PIECES.search(text) is None) or self._inner == _INNER:
            return text
        found = values_in(text)
        if found is None:
            return text
        values, made = found
        self._inner += 1
        try:
            kept = self.joined(values)
            if wanted:
                kept = [self.tree(value, None) for value in kept]
        finally:
            self._inner -= 1
        return text if all(map(is_, kept, values)) else made(kept)

    def bytes_of(self, data: bytes) -> bytes:
        """The same of bytes."""
        return self._finder.applied(data, self._numbers.replace)

    def tree(self, tree: Any, name: str | None) -> Any:
        """A tree with placeholders; the very same where nothing in it is secret. ``name``: of its field."""
        kind = class_of(tree)
        if kind is str:
            if name is not None and not self._spelt_alone and self._is_secret(name):
                return self._named(tree)
            return self.text(tree)
        if kind is dict:
            if len(tree) == 1:
                tag, payload = next(iter(tree.items()))
                if tag[:1] == "$":
                    return self._tagged(tree, tag, payload, name)
            return self._fields(tree)
        if kind is list:
            return self.items(tree, name)
        if kind is int or kind is float:
            return self._number_leaf(tree, name)
        return tree

    def _is_secret(self, name: str) -> bool:
        return is_secret_name(name) or self.rules.names(self.path)

    def _named(self, value: str) -> str:
        """The value of a field that holds a credential; the scheme before it stays."""
        scheme, rest = scheme_of(value)
        if scheme and " " not in rest:
            return f"{scheme} {self._named(rest)}"
        data = value.encode("utf-8", "surrogatepass")
        if is_open_value(data) and not self.rules.names(self.path):
            return self.text(value)
        inner = self.text(value)
        if inner is not value or START in value or (" " in value.strip() and not self.rules.names(self.path)):
            return inner  # a sentence, or what is secret in it is known
        return self._numbers.replace(data, self._finder.known(data) or Known(NAMED)).decode()

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] | None = None
        for key, value in fields.items():
            new_key = self.text(key)
            self.path.append(new_key)
            new = self.tree(value, key)
            self.path.pop()
            if changed is None and (new is not value or new_key is not key):
                names = list(fields)
                changed = {name: fields[name] for name in names[: names.index(key)]}
            if changed is not None:
                changed[free_key(new_key, changed)] = new
        if changed is not None:
            beside(changed, fields)
        if changed is not None and len(changed) == 1 and next(iter(changed))[:1] == "$":
            return cast("dict[str, Any]", {"$map": [[key, value] for key, value in changed.items()]})
        return fields if changed is None else changed

    def items(self, items: list[Any], name: str | None) -> list[Any]:
        """The same of a list."""
        if len(items) == 2 and type(items[0]) is str and type(items[1]) is str and is_secret_header(items[0]):
            value = self._named(items[1])  # a header as a pair
            return items if value is items[1] else [items[0], value]
        within = name if name is not None and is_secret_header(name) else None
        changed: list[Any] | None = None
        for index, item in enumerate(items):
            self.path.append(index)
            new = self.tree(item, within) if not self.rules.fields else self.tree(item, within or "[]")
            self.path.pop()
            if changed is None and new is not item:
                changed = items[:index]
            if changed is not None:
                changed.append(new)
        return items if changed is None else changed

    def _number_leaf(self, tree: float, name: str | None) -> Tree:
        if type(tree) is float and name is None:
            return tree
        text = str(tree)
        if len(text.lstrip("-")) < _NUMBER_DIGITS:
            return tree
        data = text.encode()
        known = self._finder.known(data)
        if known is None and name is not None and self._is_secret(name):
            known = Known(NAMED)
        return tree if known is None else self._numbers.replace(data, known).decode()

    def _tagged(self, tree: Any, tag: str, payload: Any, name: str | None) -> Any:
        if tag in ("$bytes", "$bytearray") and type(payload) is str:
            plain = base64.b64decode(payload)
            changed = self.bytes_of(plain)
            return tree if changed is plain else {tag: base64.b64encode(changed).decode()}
        if tag in _FORMAT_TAGS:
            return tree  # of a blob as it lies in a file: what it refers to has a line of its own
        if tag == "$list":
            items = self.items(payload[2], None)
            return tree if items is payload[2] else {tag: [*payload[:2], items]}
        if tag == "$str" and type(payload) is str:
            plain = base64.b64decode(payload)
            changed = self.bytes_of(plain)
            return tree if changed is plain else _text_tree(changed)
        if tag in ("$tuple", "$map", "$set", "$frozenset"):
            new = self._pairs(payload) if tag == "$map" else self.items(payload, name)
            if new is payload:
                return tree
            return {tag: sorted(new, key=canonical) if tag in ("$set", "$frozenset") else new}
        if tag == "$obj":
            new = self.tree(payload["data"], name)
            return tree if new is payload["data"] else {tag: {**payload, "data": new}}
        if tag == "$error":
            return self._error(tree, payload)
        if tag == "$path":
            new = self.tree(payload[1], None)
            return tree if new is payload[1] else {tag: [payload[0], new]}
        return self._scalar(tree, payload)

    def _pairs(self, pairs: list[Any]) -> list[Any]:
        changed = False
        made: list[Any] = []
        for key, value in pairs:
            name = key if type(key) is str else None
            new_key = self.tree(key, None)
            self.path.append(new_key if name is not None else "[]")
            new = self.tree(value, name)
            self.path.pop()
            changed = changed or new_key is not key or new is not value
            made.append([new_key, new])
        return made if changed else pairs

    def _error(self, tree: Any, body: dict[str, Any]) -> Any:
        new: dict[str, Any] = {}
        same = True
        for field_name, value in body.items():
            kept = new[field_name] = value if field_name in ("type", "lost") else self.tree(value, None)
            same = same and kept is value
        return tree if same else {"$error": new}

    def _scalar(self, tree: Any, payload: Any) -> Any:
        """A value of another type: where its text holds a secret, a placeholder takes the place of all of it."""
        data = payload.encode() if type(payload) is str else text_of(payload)
        known = self._finder.known(data)
        if known is None:
            changes = self._finder.changes(data, lambda secret, _: secret)
            if not changes:
                return tree
            known = Known("value")
        return self._numbers.replace(data, known).decode()


def free_key(key: str, taken: Mapping[str, Any]) -> str:
    """A key that is not taken: two keys may become one where the run's own data looks like a placeholder."""
    while key in taken:
        key += "_"
    return key


def _text_tree(data: bytes) -> Tree:
    from agentloom.format.scalars import pack_str

    return pack_str(data.decode("utf-8", "surrogatepass"))
