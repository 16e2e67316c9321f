"""What keeps secrets from being written: the redactor of one run, which every payload passes before it is serialised.

Live code has the real values; what is written has placeholders, numbered by first appearance (docs/secrets.md).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agentloom.format.blobs import Suspect
from agentloom.format.canonical import Tree, canonical
from agentloom.format.captures import Grown
from agentloom.format.echoes import text_of
from agentloom.format.guards import class_of, is_map
from agentloom.format.marks import Marks
from agentloom.format.placeholders import PLACEHOLDER, START, placeholder
from agentloom.runtime.redaction_env import environment_values, password_in
from agentloom.runtime.redaction_find import NAMED, Finder, Known
from agentloom.runtime.redaction_formats import is_open_value
from agentloom.runtime.redaction_layers import local_layers
from agentloom.runtime.redaction_names import is_secret_header, is_secret_name, is_secret_variable, scheme_of
from agentloom.runtime.redaction_rules import NO_RULES, Rules

if TYPE_CHECKING:
    from agentloom.format.journal import Journal
    from agentloom.runtime.profiles import Profile

__all__ = ["Redactor", "Secret", "secrets_in", "secrets_line"]

_LEARNED = 256  # values that are looked for in every form because they were met
_LEARNED_BYTES = 8  # from here on: what is shorter stands in too much that is no secret
_LONG_BYTES = 24
_LARGE = 1 << 16  # bytes from which on one pass more costs more than a call
_CODINGS = 4
_SAID = 4  # secrets that one line names
_FORMAT_TAGS = frozenset(("$ref", "$part", "$json", "$text", "$bytes", "$bytearray"))
_LEAD_BYTES = 12
_SHORT_BYTES = 3
_ARMOUR = re.compile(rb"-----[^-]*-----|\s")
_BEGINNING = "beginning of a secret"
_NUMBER_DIGITS = 6
_NAMES = 4096


@dataclass(slots=True)
class Secret:
    """A secret of a run: its number, what it is, the name that it goes by, where it was met first."""

    number: int
    kind: str
    name: str | None
    place: str | None = None

    def facts(self) -> dict[str, Tree]:
        """What the trace says of it."""
        facts: dict[str, Tree] = {"n": self.number, "kind": self.kind}
        if self.name is not None:
            facts["name"] = self.name
        if self.place is not None:
            facts["place"] = self.place
        return facts

    @classmethod
    def of_record(cls, facts: object) -> Secret | None:
        """The secret that ``facts`` of a trace tell of; None where they do not."""
        if not is_map(facts) or type(facts.get("n")) is not int:
            return None
        name, place = facts.get("name"), facts.get("place")
        return cls(
            facts["n"],
            str(facts.get("kind", "secret")),
            name if type(name) is str else None,
            place if type(place) is str else None,
        )


class Redactor:
    """``rules``: what the user declared. ``given``: secrets of a trace by number, on replay."""

    def __init__(self, rules: Rules = NO_RULES, given: Mapping[int, Secret] | None = None) -> None:
        self.rules = rules
        self.met: list[Secret] = []
        self.place: str | None = None
        """What is being written now, for reports: ``call 3``, ``input``."""
        self.on_found: Callable[[tuple[object, ...], Known], None] | None = None
        """Called for each secret found, with its path in the payload."""
        self.clear: set[str] = set()
        """Names of calls in which there is no secret."""
        self._numbers: dict[bytes, int] = {}
        self._given = dict(given or {})
        self._alias: dict[int, int] = {}
        self._told = 0
        self._next = 1 + max(self._given, default=0)
        self._path: list[object] = []
        self._leads: dict[int, bytes] = {}
        self._begun: tuple[bytes, int] | None = None
        self._environment = environment_values()
        self._finder = Finder(
            {**self._environment.values, **rules.values}, names=rules.field_names, more=rules.finder()
        )
        for value, number in _numbers_by_name(self._environment.values, self._given):
            self._numbers[value] = number

    # -- the gate ------------------------------------------------------------------------------------------------

    def gate(self, data: bytes) -> None:
        """Raise ``Suspect`` where bytes about to be written may hold a secret."""
        environment = self._environment
        if len(environment.raw) != len(environment.seen):  # variables came or went
            self._learn_environment()
        finder = self._finder
        if (len(data) > _LARGE or finder.find(data, True) or not finder.quick) and finder.suspects(data):
            raise Suspect

    def _learn_environment(self) -> None:
        fresh = environment_values()
        new = {value: known for value, known in fresh.values.items() if not self._finder.knows(value)}
        self._environment = fresh
        if new:
            self._finder.learn(new)

    def learn(self, value: object, kind: str, name: str | None = None) -> None:
        """Look for a value from now on: one that a declared secret field held."""
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            return
        data = scheme_of(text)[1].encode(
            "utf-8", "surrogateescape" if isinstance(value, bytes) else "surrogatepass"
        )
        if _is_telling(data) and not self._finder.knows(data) and self._finder.learned < _LEARNED:
            self._finder.learn({data: Known(kind, name)})

    def variable(self, name: str, value: str) -> str:
        """What stands in the trace for the value of a variable that holds a credential, however short it is. Of an
        address with a password in it, which a client may want to read, the password alone is hidden."""
        known = Known("environment", name)
        at = None if is_secret_variable(name) else password_in(value)
        if at is not None:
            password = value[at[0] : at[1]]
            self.learn(password, "environment", name)
            hidden = self._replace(password.encode("utf-8", "surrogateescape"), known).decode()
            return value[: at[0]] + hidden + value[at[1] :]
        self.learn(value, "environment", name)
        return self._replace(value.encode("utf-8", "surrogateescape"), known).decode()

    def clean(self, tree: Tree) -> Tree:
        """``tree`` as it is written; looked at closely only where its JSON is suspect."""
        return self.tree(tree) if self._finder.suspects(text_of(tree)) else tree

    def name(self, name: str) -> str:
        """The name of a call as it is written."""
        if name in self.clear:
            return name
        new = self.text(name)
        if new is name and len(self.clear) < _NAMES:
            self.clear.add(name)
        return new

    def learn_request(self, rule: Profile, request: Mapping[str, object]) -> None:
        """Look from now on for what a request has in fields that are never written."""
        for field_name, value in request.items():
            if field_name in rule.secret:
                self._learn_all(value, field_name)
            elif field_name in rule.scrub and isinstance(value, Mapping):
                for name, item in cast("Mapping[object, object]", value).items():
                    if is_secret_name(str(name)):
                        self._learn_all(item, str(name))

    def _learn_all(self, value: object, name: str) -> None:
        if isinstance(value, str | bytes):
            self.learn(value, "secret field", name)
        elif isinstance(value, Mapping):
            for item in cast("Mapping[object, object]", value).values():
                self._learn_all(item, name)
        elif isinstance(value, list | tuple):
            for item in cast("list[object]", value):
                self._learn_all(item, name)

    # -- numbers -------------------------------------------------------------------------------------------------

    def _replace(self, secret: bytes, known: Known) -> bytes:
        found, secret = secret, _plain(secret)
        number = self._numbers.get(secret)
        begun = self._begun
        if number is None and begun is not None and found.startswith(begun[0]):
            number = self._numbers[secret] = begun[1]
        if number is None:
            number = self._numbers[secret] = self._number(secret)
            if self._given.get(number) is None:
                self.met.append(Secret(number, known.kind, known.name, self.place))
            fresh = known.kind != _BEGINNING and not self._finder.knows(secret)
            if fresh and len(self._numbers) < _LEARNED and _is_telling(secret):
                self._finder.learn({secret: known})
        if self.on_found is not None:
            self.on_found(tuple(self._path), known)
        return self._leads.get(number, b"") + placeholder(self._alias.get(number, number)).encode()

    def _number(self, secret: bytes) -> int:
        number = self._next
        while number in self._finder.marked:  # the run's own data has a text like that
            number += 1
        self._next = number + 1
        return number

    def agree(self, then: Tree, now: Tree) -> bool:
        """On replay: whether two payloads are equal but for the numbers of secrets, each of which stands for
        the same one everywhere. From then on this process numbers them as the trace does."""
        before, after = PLACEHOLDER.split(_text(then)), PLACEHOLDER.split(_text(now))
        if len(before) != len(after) or len(before) == 1 or before[::2] != after[::2]:
            return False
        pairs = {(int(new), int(old)) for new, old in zip(after[1::2], before[1::2], strict=True)}
        if len({new for new, _ in pairs}) != len(pairs) or len({old for _, old in pairs}) != len(pairs):
            return False
        back = {alias: number for number, alias in self._alias.items()}
        for new, old in pairs:
            self._alias[back.get(new, new)] = old
        return True

    @property
    def fresh(self) -> bool:
        """Whether secrets were met that no entry tells of yet."""
        return len(self.met) > self._told

    def untold(self) -> list[Tree]:
        """The secrets that were met since this was asked last, for the entry that first holds them."""
        fresh = self.met[self._told :]
        self._told = len(self.met)
        return [secret.facts() for secret in fresh]

    # -- texts and trees -----------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """``text`` with placeholders for its secrets; the very same where there are none."""
        data = text.encode("utf-8", "surrogatepass")
        changed = self._finder.applied(data, self._replace)
        return text if changed is data else changed.decode("utf-8", "surrogatepass")

    def bytes_of(self, data: bytes) -> bytes:
        """The same of bytes."""
        return self._finder.applied(data, self._replace)

    def suspects(self, data: bytes) -> bool:
        """Whether the JSON of a payload must be looked at closely."""
        return self._finder.suspects(data)

    def found_in(self, data: bytes) -> list[tuple[int, int, Known]]:
        """Where secrets are in bytes, and what they are."""
        if not self._finder.suspects(data):
            return []
        kinds: list[Known] = []

        def noted(_secret: bytes, known: Known) -> bytes:
            kinds.append(known)
            return b"\x00"

        changes = self._finder.changes(data, noted)
        last = kinds[-1] if kinds else Known("secret")
        return [
            (one.start, one.end, kinds[index] if index < len(kinds) else last)
            for index, one in enumerate(changes)
        ]

    def stream_spans(self, data: bytes, begun: bytes, *, final: bool) -> list[tuple[int, int, bytes]]:
        """What must be replaced in the text of a stream: start, end, and what stands there. Unless it is
        ``final``, what may be the beginning of a secret at its end is one. ``begun``: such a beginning,
        written before."""
        number = self._numbers.get(_plain(begun)) if begun else None
        if number is not None:
            self._begun = (begun, number)
        start = None if final else self._finder.beginning(data)
        whole = data if start is None else data[:start]
        spans = [(one.start, one.end, one.text) for one in self._finder.changes(whole, self._replace)]
        if start is not None:
            spans.append((start, len(data), self._replace(data[start:], Known(_BEGINNING))))
        self._begun = None
        return spans

    def kept(self, begun: bytes) -> None:
        """What looked like the beginning of a secret was written as one, and was none. It stays one in this
        run, so that a replay, which has a placeholder there, makes what is written later."""
        if len(begun) >= _SHORT_BYTES and not self._finder.knows(begun):
            self._finder.learn({begun: Known(_BEGINNING)})

    def led(self, secret: bytes, lead: bytes) -> None:
        """The first bytes of a secret were written before it could be told: from now on they stand before its
        placeholder everywhere, for on replay they do."""
        number = self._numbers.get(_plain(secret))
        if number is not None and len(lead) <= _LEAD_BYTES:
            self._leads.setdefault(number, lead)

    def tree(self, tree: Tree) -> Tree:
        """A payload with placeholders for its secrets; the very same where there are none. What holds none is
        shared."""
        return cast(Tree, self._tree(tree, None))

    def _tree(self, tree: Any, name: str | None) -> Any:
        kind = class_of(tree)
        if kind is str:
            return self._named(tree) if name is not None and self._is_secret(name) else self.text(tree)
        if kind is dict:
            if len(tree) == 1:
                tag, payload = next(iter(tree.items()))
                if tag[:1] == "$":
                    return self._tagged(tree, tag, payload, name)
            return self._fields(tree)
        if kind is list:
            return self._items(tree, name)
        if kind is int or kind is float:
            return self._number_leaf(tree, name)
        return tree

    def _is_secret(self, name: str) -> bool:
        return is_secret_name(name) or self.rules.names(self._path)

    def _named(self, value: str) -> str:
        """The value of a field that holds a credential; the scheme before it stays."""
        scheme, rest = scheme_of(value)
        if scheme and " " not in rest:
            return f"{scheme} {self._named(rest)}"
        data = value.encode("utf-8", "surrogatepass")
        if is_open_value(data) and not self.rules.names(self._path):
            return self.text(value)
        inner = self.text(value)
        if (
            inner is not value
            or START in value
            or (" " in value.strip() and not self.rules.names(self._path))
        ):
            return inner  # a sentence, or what is secret in it is known
        return self._replace(data, self._finder.known(data) or Known(NAMED)).decode()

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] | None = None
        for key, value in fields.items():
            new_key = self.text(key)
            self._path.append(new_key)
            new = self._tree(value, key)
            self._path.pop()
            if changed is None and (new is not value or new_key is not key):
                names = list(fields)
                changed = {name: fields[name] for name in names[: names.index(key)]}
            if changed is not None:
                changed[_free(new_key, changed)] = new
        if changed is not None and len(changed) == 1 and next(iter(changed))[:1] == "$":
            return cast("dict[str, Any]", {"$map": [[key, value] for key, value in changed.items()]})
        return fields if changed is None else changed

    def _items(self, items: list[Any], name: str | None) -> list[Any]:
        if len(items) == 2 and type(items[0]) is str and type(items[1]) is str and is_secret_header(items[0]):
            value = self._named(items[1])  # a header as a pair
            return items if value is items[1] else [items[0], value]
        within = name if name is not None and is_secret_header(name) else None
        changed: list[Any] | None = None
        for index, item in enumerate(items):
            self._path.append(index)
            new = self._tree(item, within) if not self.rules.fields else self._tree(item, within or "[]")
            self._path.pop()
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
        return tree if known is None else self._replace(data, known).decode()

    def _tagged(self, tree: Any, tag: str, payload: Any, name: str | None) -> Any:
        if tag in ("$bytes", "$bytearray") and type(payload) is str:
            plain = base64.b64decode(payload)
            changed = self.bytes_of(plain)
            return tree if changed is plain else {tag: base64.b64encode(changed).decode()}
        if tag in _FORMAT_TAGS:
            return tree  # of a blob as it lies in a file: what it refers to has a line of its own
        if tag == "$list":
            items = self._items(payload[2], None)
            return tree if items is payload[2] else {tag: [*payload[:2], items]}
        if tag == "$str" and type(payload) is str:
            plain = base64.b64decode(payload)
            changed = self.bytes_of(plain)
            return tree if changed is plain else _text_tree(changed)
        if tag in ("$tuple", "$map", "$set", "$frozenset"):
            new = self._pairs(payload) if tag == "$map" else self._items(payload, name)
            if new is payload:
                return tree
            return {tag: sorted(new, key=canonical) if tag in ("$set", "$frozenset") else new}
        if tag == "$obj":
            new = self._tree(payload["data"], name)
            return tree if new is payload["data"] else {tag: {**payload, "data": new}}
        if tag == "$error":
            return self._error(tree, payload)
        if tag == "$path":
            new = self._tree(payload[1], None)
            return tree if new is payload[1] else {tag: [payload[0], new]}
        return self._scalar(tree, payload)

    def _pairs(self, pairs: list[Any]) -> list[Any]:
        changed = False
        made: list[Any] = []
        for key, value in pairs:
            name = key if type(key) is str else None
            new_key, new = self._tree(key, None), self._tree(value, name)
            changed = changed or new_key is not key or new is not value
            made.append([new_key, new])
        return made if changed else pairs

    def _error(self, tree: Any, body: dict[str, Any]) -> Any:
        new: dict[str, Any] = {}
        same = True
        for field_name, value in body.items():
            kept = new[field_name] = value if field_name in ("type", "lost") else self._tree(value, None)
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
        return self._replace(data, known).decode()

    # -- requests ------------------------------------------------------------------------------------------------

    def request(
        self, tree: dict[str, Tree], grown: Mapping[str, Grown]
    ) -> tuple[dict[str, Tree], dict[str, Grown]]:
        """The tree and the histories of a request as they are written; the very same where nothing is secret. Of a
        history only what was added is looked at."""
        made: dict[str, Tree] = {}
        histories: dict[str, Grown] = {}
        same = True
        for name, value in tree.items():
            self._path[:] = [name]
            one = grown.get(name)
            if one is not None:
                kept = histories[name] = self._history(one)
                made[name] = cast(Tree, kept.items)
                same = same and kept is one
            else:
                new_name = _free(self.text(name), made)
                made[new_name] = self._tree(value, name)
                same = same and new_name is name and made[new_name] is value
        self._path.clear()
        return (tree, dict(grown)) if same else (made, histories)

    def _history(self, one: Grown) -> Grown:
        """The list as it is written. It extends the written form of the list that ``one`` extends."""
        if one.twin is not None:
            return one.twin
        base = one.base
        before = None if base is None else base.twin or base
        added = one.items if base is None else one.items[one.keep :]
        new = self._items(added, None) if added else added
        if new is added and (base is None or base.twin is None):
            return one
        items = new if before is None else before.items + new
        texts = None if before is None else [text_of(item) for item in new]
        one.twin = Grown(items, Marks(), before, texts)
        return one.twin

    def needs(self, grown: Mapping[str, Grown]) -> bool:
        """Whether one of the histories extends one that was not written as it is."""
        for one in grown.values():  # noqa: SIM110 - a generator costs more than this does
            if one.twin is not None or (one.base is not None and one.base.twin is not None):
                return True
        return False


def secrets_in(journal: Journal) -> dict[int, Secret]:
    """The secrets that a trace has placeholders for, by number (see ``secrets`` of entries).
    ``PayloadMissing`` where what says so was erased."""
    found: dict[int, Secret] = {}
    for entry in journal.entries:
        blob = entry.get("secrets")
        given = journal.tree(blob) if isinstance(blob, str) else None
        for facts in given if isinstance(given, list) else ():
            secret = Secret.of_record(facts)
            if secret is not None:
                found.setdefault(secret.number, secret)
    return found


def secrets_line(secrets: Iterable[Secret]) -> str:
    """How many there are and what they are, never what they hold: ``2 secrets redacted (OPENAI_API_KEY, 1 JWT
    in call 3)``."""
    known = list(secrets)
    if not known:
        return "0 secrets redacted"
    words: dict[str, int] = {}
    for secret in known:
        name = secret.name or secret.kind + (f" in {secret.place}" if secret.place else "")
        words[name] = words.get(name, 0) + 1
    said = [name if count == 1 and name.isupper() else f"{count} {name}" for name, count in words.items()]
    more = f", {len(said) - _SAID} more" if len(said) > _SAID else ""
    return f"{len(known)} secret{'' if len(known) == 1 else 's'} redacted ({', '.join(said[:_SAID])}{more})"


def _numbers_by_name(
    values: Mapping[bytes, Known], given: Mapping[int, Secret]
) -> Iterator[tuple[bytes, int]]:
    """The values of this machine's variables that the trace has numbers for."""
    by_name = {secret.name: number for number, secret in given.items() if secret.kind == "environment"}
    for value, known in values.items():
        if known.name in by_name:
            yield value, by_name[known.name]


def _plain(secret: bytes) -> bytes:
    """A secret without the escapes of the text that it was found in: it is one secret in each of them."""
    for _ in range(_CODINGS):
        layer = next((one for one in local_layers(secret) if one.data != secret), None)
        if layer is None:
            break
        secret = layer.data
    if secret.startswith(b"-----BEGIN"):
        return _ARMOUR.sub(b"", secret)  # spaces may be coded in several ways
    return secret


def _is_telling(value: bytes) -> bool:
    """Whether a value that was met once may be looked for in every text: no word, and no path of names."""
    return (
        len(value) >= _LEARNED_BYTES
        and not is_open_value(value)
        and START.encode() not in value
        and (len(value) >= _LONG_BYTES or any(byte in b"0123456789" for byte in value))
    )


def _text(tree: Tree) -> str:
    return text_of(tree).decode()


def _free(key: str, taken: Mapping[str, Any]) -> str:
    """A key that is not taken: two keys may become one where the run's own data looks like a placeholder."""
    while key in taken:
        key += "_"
    return key


def _text_tree(data: bytes) -> Tree:
    from agentloom.format.scalars import pack_str

    return pack_str(data.decode("utf-8", "surrogatepass"))
