"""What keeps secrets from being written: the redactor of one run, which every payload passes before it is serialised.

Live code has the real values; what is written has placeholders, numbered by first appearance (docs/secrets.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, cast

from agentloom.errors import ValueRefused
from agentloom.format.blobs import Suspect
from agentloom.format.canonical import Tree
from agentloom.format.captures import Grown
from agentloom.format.divisions import Divisions
from agentloom.format.echoes import text_of
from agentloom.format.marks import Marks
from agentloom.format.placeholders import PLACEHOLDER
from agentloom.runtime.redaction_env import (
    WATCH,
    environment_values,
    hidden_parts,
    passwords_in,
    secret_texts,
)
from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_found import BEGINNING, REST, Known
from agentloom.runtime.redaction_names import is_secret_name, is_secret_variable, scheme_of
from agentloom.runtime.redaction_numbers import LEARNED, Numbers, is_telling
from agentloom.runtime.redaction_plan import PIECED, SPELT
from agentloom.runtime.redaction_rules import NO_RULES, Rules, in_effect, joined
from agentloom.runtime.redaction_secrets import Secret
from agentloom.runtime.redaction_streams import Joined, flowing
from agentloom.runtime.redaction_trees import Trees, free_key

if TYPE_CHECKING:
    from agentloom.runtime.profiles import Profile

__all__ = ["Redactor", "hidden_name"]

_LARGE = 1 << 16  # bytes from which on one pass more costs more than a call
_SHORT_BYTES = 3
_NAMES = 4096


def hidden_name(name: str) -> str:
    """``name`` with stars for what is secret in it by the rules in effect; the very same where nothing is."""
    found = Redactor(in_effect()).text(name)
    return name if found is name else PLACEHOLDER.sub("***", found)


class Redactor:
    """``rules``: what the user declared. ``given``: secrets of a trace by number, on replay."""

    def __init__(self, rules: Rules = NO_RULES, given: Mapping[int, Secret] | None = None) -> None:
        self.rules = rules
        self._added_rules = [rules]
        self._replays = given is not None
        self._just_joined: list[Tree] | None = None
        self.clear: set[str] = set()
        """Names of calls in which there is no secret."""
        self._environment = environment_values()
        values = self._environment.values
        self._finder = Finder({**values, **rules.values}, names=rules.field_names, more=rules.finder())
        self._numbers = Numbers(self._finder, given or {}, values)
        self._trees = Trees(self._finder, self._numbers, rules, self._joined)
        self.text = self._trees.text
        self.bytes_of = self._trees.bytes_of
        self.suspects = partial(self._finder.suspects, pieces=(PIECED, SPELT))
        self.agree = self._numbers.agree
        self.untold = self._numbers.untold
        self.led = self._numbers.led
        self.hidden = self._numbers.replace

    @property
    def place(self) -> str | None:
        """What is being written now, for reports: ``call 3``, ``input``."""
        return self._numbers.place

    @place.setter
    def place(self, place: str | None) -> None:
        self._numbers.place = place

    def tell(self, found: Callable[[tuple[object, ...], Known], None]) -> None:
        """Call ``found`` for each secret that is found, with its path in the payload."""
        self._numbers.on_found = found

    @property
    def fresh(self) -> bool:
        """Whether secrets were met that no entry tells of yet."""
        return self._numbers.fresh

    def add(self, rules: Rules) -> None:
        """From now on these rules hold as well: those of an agent that is called in the run."""
        if rules is NO_RULES or any(one is rules for one in self._added_rules):
            return
        self._added_rules.append(rules)
        self.rules = whole = joined(self.rules, rules)
        self._finder.add(whole.values, whole.field_names, whole.finder())
        self._trees.use(whole)
        self.clear.clear()

    def check_name(self, what: str, name: str) -> None:
        """``ValueRefused`` where a run is recorded and a name holds a secret: names are part of the ids of calls, which
        stand in the trace as they are."""
        if not self._replays and self.name(name) is not name:
            raise ValueRefused(
                what,
                "str",
                "it looks like a secret, and names stand in the trace as they are",
                hint="give another name; a value belongs into an argument or a tag",
            )

    # -- the gate ------------------------------------------------------------------------------------------------

    def gate(self, data: bytes) -> None:
        """Raise ``Suspect`` where bytes about to be written may hold a secret."""
        if self._environment.writes != WATCH.writes or not WATCH.told:
            self._look_around()
        finder = self._finder
        if (len(data) > _LARGE or not finder.quick or finder.find(data, True)) and finder.suspects(
            data, pieces=(PIECED, SPELT)
        ):
            raise Suspect

    def divisions(self) -> Divisions | None:
        """How payloads are divided that ``gate`` has seen as it is now, in this or another run."""
        self._look_around()
        return self._finder.divisions

    def _look_around(self) -> None:
        if not self._environment.current:
            self._environment = environment_values()
            self._learn_environment(self._environment.values)

    def _learn_environment(self, values: Mapping[bytes, Known]) -> None:
        new = {value: known for value, known in values.items() if not self._finder.knows(value)}
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
        if is_telling(data) and not self._finder.knows(data) and self._finder.learned < LEARNED:
            self._finder.learn({data: Known(kind, name)})

    def variable(self, name: str, value: str) -> str:
        """What stands in the trace for the value of a variable that holds a credential, however short it is. Of an
        address and of JSON, which a client may want to read, what is secret in it alone is hidden."""
        known = Known("environment", name)
        parts = hidden_parts(value) if is_secret_variable(name) else passwords_in(value)
        shown, at = "", 0
        for start, end in parts:
            self.learn(value[start:end], "environment", name)
            hidden = self._numbers.replace(value[start:end].encode("utf-8", "surrogateescape"), known)
            shown += value[at:start] + hidden.decode()
            at = end
        return shown + value[at:]

    def set_variable(self, name: str, value: str) -> None:
        """Look from now on for what a run has put into a variable that holds a credential."""
        known = Known("environment", name)
        chosen = name in self.rules.variables
        texts = [text.encode("utf-8", "surrogateescape") for text in secret_texts(name, value, chosen=chosen)]
        self._learn_environment(dict.fromkeys(texts, known))

    def clean(self, tree: Tree) -> Tree:
        """``tree`` as it is written; looked at closely only where its JSON is suspect."""
        return self.tree(tree) if self.suspects(text_of(tree)) else tree

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

    # -- texts and trees -----------------------------------------------------------------------------------------

    def found_in(self, data: bytes) -> list[tuple[int, int, Known]]:
        """Where secrets are in bytes, and what they are."""
        if not self._finder.suspects(data):
            return []
        return [
            (one.start, one.end, known) for one in self._finder.changes(data, _nothing) for known in one.known
        ]

    def stream_spans(self, data: bytes, begun: bytes, *, final: bool) -> list[tuple[int, int, bytes]]:
        """What must be replaced in the text of a stream: start, end, and what stands there. Unless it is
        ``final``, what may be the beginning of a secret at its end is one. ``begun``: such a beginning,
        written before."""
        self._numbers.goes_on(begun)
        start = None if final else self._finder.beginning(data)
        whole = data if start is None else data[:start]
        spans = [(one.start, one.end, one.text) for one in self._finder.changes(whole, self._numbers.replace)]
        if start is not None:
            spans.append((start, len(data), self._numbers.replace(data[start:], Known(BEGINNING))))
        self._numbers.begun_no_more()
        return spans

    def rest_span(self, data: bytes, start: int, end: int) -> list[tuple[int, int, bytes]]:
        """What must be replaced where a secret of which the beginning stands elsewhere may go on: nothing, where a
        secret of its own begins there, or what would be looked for from then on stands in too many texts."""
        rest = data[start:end]
        if not is_telling(rest) or any(one.start < end for one in self._finder.changes(data, _nothing)):
            return []
        return [(start, end, self._numbers.replace(rest, Known(REST)))]

    def kept(self, begun: bytes) -> None:
        """What looked like the beginning of a secret was written as one, and was none. It stays one in this
        run, so that a replay, which has a placeholder there, makes what is written later."""
        if len(begun) >= _SHORT_BYTES and not self._finder.knows(begun):
            self._finder.learn({begun: Known(BEGINNING)})

    def tree(self, tree: Tree) -> Tree:
        """A payload with placeholders for its secrets; the very same where there are none. What holds none is
        shared."""
        self._look_around()
        if tree is not self._just_joined:
            tree = flowing(self, tree)
        self._just_joined = None
        text = text_of(tree)
        if self._finder.suspects(text):
            return cast(Tree, self._trees.tree(tree, None))
        if self._finder.suspects(text, pieces=(SPELT,)):
            return self._trees.spelt(tree)
        return tree

    def was_joined(self, values: list[Tree]) -> None:
        """These are chunks whose texts were looked at as one: that need not be done again when they are written."""
        self._just_joined = values

    def _joined(self, values: list[Tree]) -> list[Tree]:
        if len(values) == 1:
            return [flowing(self, values[0])]
        return Joined(self).redacted(values, final=True)

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
            self._trees.path[:] = [name]
            one = grown.get(name)
            if one is not None:
                kept = histories[name] = self._history(one)
                made[name] = cast(Tree, kept.items)
                same = same and kept is one
            else:
                new_name = free_key(self.text(name), made)
                made[new_name] = self._trees.tree(flowing(self, value), name)
                same = same and new_name is name and made[new_name] is value
        self._trees.path.clear()
        return (tree, dict(grown)) if same else (made, histories)

    def _history(self, one: Grown) -> Grown:
        """The list as it is written. It extends the written form of the list that ``one`` extends."""
        if one.twin is not None:
            return one.twin
        base = one.base
        before = None if base is None else base.twin or base
        added = one.items if base is None else one.items[one.keep :]
        new = self._added(added) if added else added
        if new is added and (base is None or base.twin is None):
            return one
        items = new if before is None else before.items + new
        texts = None if before is None else [text_of(item) for item in new]
        one.twin = Grown(items, Marks(), before, texts)
        return one.twin

    def _added(self, added: list[Tree]) -> list[Tree]:
        """Items of a history. Each is a text of its own: it may be written with others or alone."""
        new = [flowing(self, item) for item in added]
        return self._trees.items(added if all(map(is_, new, added)) else new, None)

    def needs(self, grown: Mapping[str, Grown]) -> bool:
        """Whether one of the histories extends one that was not written as it is."""
        for one in grown.values():  # noqa: SIM110 - a generator costs more than this does
            if one.twin is not None or (one.base is not None and one.base.twin is not None):
                return True
        return False


def _nothing(_secret: bytes, _known: Known) -> bytes:
    """In the place of a secret, for who wants to know where they are."""
    return b"\x00"
