"""A trace in memory: its entries, and its payloads with references and lists resolved."""

from __future__ import annotations

import base64
import re
from typing import Any, cast

from agentloom.errors import FormatError, PayloadMissing
from agentloom.format.canonical import Tree
from agentloom.format.digests import NO_PREV
from agentloom.format.echoes import json_text, text_of
from agentloom.format.fields import HEX64, Broken, Entry
from agentloom.format.guards import is_container, is_list, is_map
from agentloom.format.limits import EXPANDED_BYTES, LINE_DEPTH, UNFOLDED_FREE, UNFOLDED_RATIO
from agentloom.format.lines import blob_links, blob_tree, list_tag
from agentloom.format.scanning import Fault, Scan, scan
from agentloom.format.weights import height_of, levels, weight

__all__ = ["Journal"]

Filled = tuple[Tree, int, int]
"""A tree with its references replaced, its weight (see ``weights``), and its levels of arrays and objects."""

_LEVELS = (
    LINE_DEPTH + 40
)  # of a tree that is put together; what was written as one value has at most LINE_DEPTH
_LISTS = 32  # resolved lists that are kept: a history is mostly read next to the one it extends
_TAGGED = re.compile(rb'\{\s*"(?:\$|\\u0024)')
_PARTED = ("$bytes", "$bytearray", "$text")
_WHOLE, _BASE, _FILL = range(3)
"""What `Journal._share` does with a payload: fill it in, when what it refers to is (``_FILL``), or, with one that is
only extended, nothing but look at what it refers to."""


class Journal:
    """A parsed trace. Trees that it returns share structure: decode them, do not change them.

    ``torn`` is the size in bytes of an unfinished last append (a crash): what ``size`` leaves out of the file.
    """

    def __init__(self, found: Scan, size: int) -> None:
        self.entries: list[Entry] = found.entries
        self.digests: list[str] = found.digests
        self.head = found.digests[-1] if found.digests else NO_PREV
        self.closed = found.rules.end is not None
        self.erased: dict[str, int] = found.rules.erased
        self.fault: Fault | None = found.fault
        self._blobs = found.blobs
        self._lists: dict[tuple[str, str | None], Filled] = {}
        self._shared: dict[str, Filled] = {}
        self._seen: set[str] = set()  # lists that were extended, and all that they refer to is shared
        self._most = min(EXPANDED_BYTES, UNFOLDED_FREE + UNFOLDED_RATIO * size)
        self.size = found.whole(size)
        self.torn = size - self.size

    @classmethod
    def parse(cls, data: bytes, *, strict: bool = True) -> Journal:
        """Parse a whole trace, checking lines, chain, order and blob ids.

        Raises ``FormatError`` (malformed), ``UnsupportedVersion`` or ``IntegrityError`` (edited), each with line and
        offset. With ``strict=False`` what stands before the first fault is kept and ``fault`` names it; only
        a file without a readable start entry raises.
        """
        found = scan(data)
        if found.fault is not None and (strict or not found.entries):
            raise found.fault.error()
        return cls(found, len(data) if found.fault is None else found.fault.offset)

    def has(self, blob: str) -> bool:
        """Whether the blob's own line is there."""
        return blob in self._blobs

    @property
    def blobs(self) -> list[str]:
        """The ids of all blobs whose lines are there, in the order of the file."""
        return list(self._blobs)

    def form(self, blob: str) -> str:
        """The blob's form: ``json``, ``bytes`` or ``nonce``. ``PayloadMissing`` when it is not there."""
        return self._line(blob)[0]

    def data(self, blob: str) -> bytes:
        """What the blob's id covers: its JSON as written, or its decoded bytes. ``PayloadMissing``."""
        return self._line(blob)[1]

    def text(self, blob: str) -> bytes:
        """What ``data`` gives; nothing where the blob's line is not there."""
        held = self._blobs.get(blob)
        return b"" if held is None else held[1]

    @property
    def nonce(self) -> bytes | None:
        """The run's key nonce; None when it was erased, which happens together with any payload."""
        held = self._blobs.get(self.entries[0]["nonce"])
        return None if held is None else held[1]

    def tree(self, blob: str) -> Tree:
        """The payload with everything that it refers to put in its place. ``PayloadMissing``, ``FormatError``."""
        return self._resolved(blob, -1)[0]

    def value(self, blob: str) -> tuple[Tree, bool]:
        """The payload as ``tree`` gives it, and whether it is its own value (nothing in it is tagged) and nobody
        else's: then the caller may have it without decoding it."""
        form, covered = self._line(blob)
        dollar = b"$" in covered or b"\\u0024" in covered
        if form == "json" and not (dollar and _TAGGED.search(covered)):
            return self._load(blob), True
        return self.tree(blob), False

    def _line(self, blob: str) -> tuple[str, bytes]:
        try:
            return self._blobs[blob]
        except KeyError:
            seq = self.erased.get(blob)
            why = "is not in the trace" if seq is None else f"was erased (entry {seq})"
            raise PayloadMissing(f"payload {blob[:12]} {why}", blob=blob, erased=seq is not None) from None

    def _resolved(self, blob: str, depth: int) -> Filled:
        """A payload filled in. ``depth``: the levels above it; -1 for the payload that was asked for."""
        form, covered = self._line(blob)
        if form != "json":
            binary = self._shared.get(blob)
            if binary is None:
                text = base64.b64encode(covered).decode()
                binary = self._shared[blob] = ({"$bytes": text}, len(text), 1)
            return binary
        if b"$" not in covered and b"\\u0024" not in covered:
            tree = self._load(blob)
            return tree, weight(covered), height_of(tree, covered)
        shared = self._shared.get(blob)
        if shared is None:
            if depth < 0:
                return self._filled_root(blob)
            self._share(blob)
            shared = self._shared[blob]
        return shared

    def _share(self, blob: str) -> None:
        """Fill in a payload that another one refers to, and all that it refers to itself, from below and without
        recursion: a file can hold a chain of them of any length. They may well be asked for again."""
        todo = [(blob, _WHOLE)]
        while todo:  # it ends: ids that hold make no loop
            at, what = todo.pop()
            if what == _FILL:
                self._shared[at] = self._filled_root(at)
                continue
            if at in self._shared or (what == _BASE and at in self._seen):
                continue
            if what == _BASE:
                self._seen.add(at)
            else:
                todo.append((at, _FILL))
            bases, others = self._links(at)
            todo += [(name, _BASE) for name in bases if self._tagged(name)]
            todo += [(name, _WHOLE) for name in others if self._tagged(name)]

    def _tagged(self, blob: str) -> bool:
        """Whether a payload is there and may refer to others."""
        try:
            form, covered = self._line(blob)
        except PayloadMissing:
            return False  # whoever needs it will say so
        return form == "json" and (b"$" in covered or b"\\u0024" in covered)

    def _links(self, blob: str) -> tuple[list[str], list[str]]:
        """The payloads whose lists a payload extends, and those that it refers to."""
        try:
            return blob_links(self._line(blob)[1])
        except Broken as error:
            raise FormatError(error.code, f"blob {blob[:12]}: {error.message}") from error

    def _filled_root(self, blob: str) -> Filled:
        """A payload filled in, with the only places where a list may extend another: all of it, or a field of it."""
        tree = self._load(blob)
        covered = self._line(blob)[1]
        if self._list_tag(blob, tree):
            return self._list(blob, None)
        if not is_map(tree) or not any(self._list_tag(blob, value) for value in tree.values()):
            filled, size, height = self._below(tree, 0)
            return filled, self._bounded(blob[:12], size + weight(covered)), height
        size = height = 0
        fields: dict[str, Tree] = {}
        for key, value in tree.items():
            if self._list_tag(blob, value):
                fields[key], more, below = self._list(blob, key)
            else:
                fields[key], more, below = self._below(value, 1)
            size += more
            height = max(height, below + 1)
        return fields, self._bounded(blob[:12], size + weight(covered)), height

    def _load(self, blob: str) -> Tree:
        try:
            return blob_tree(self._line(blob)[1])
        except Broken as error:
            raise FormatError(error.code, f"blob {blob[:12]}: {error.message}") from error

    def _list_tag(self, blob: str, tree: Tree) -> tuple[str, int, list[Tree]] | None:
        try:
            return list_tag(tree)
        except Broken as error:
            raise FormatError(error.code, f"blob {blob[:12]}: {error.message}") from error

    def _bounded(self, name: str, size: int) -> int:
        """``size``, when it is no more than what an honest file of this size unfolds to. ``name``: of the payload."""
        if size > self._most:
            raise FormatError(
                "limit.expanded",
                f"payload {name} unfolds to over {self._most} bytes, far more than the file holds",
            )
        return size

    def _below(self, tree: Tree, depth: int) -> Filled:
        """What `_filled` gives of an array or object; anything else as it is."""
        return self._filled(tree, depth) if is_container(tree) else (tree, 0, 0)

    def _filled(self, tree: Tree, depth: int) -> Filled:
        """An array or object with its references replaced, the weight of what they brought in, and its levels.
        ``depth``: the levels above it."""
        size, height = 0, 1
        if is_list(tree):
            items: list[Tree] = []
            for item in tree:
                filled, more, below = self._filled(item, depth + 1) if is_container(item) else (item, 0, 0)
                items.append(filled)
                size += more
                if below >= height:
                    height = below + 1
            return items, size, height
        mapping = cast("dict[str, Tree]", tree)
        if len(mapping) == 1:
            tag, payload = next(iter(mapping.items()))
            if tag == "$ref" and type(payload) is str and HEX64.fullmatch(payload):
                return self._fits(self._resolved(payload, depth), depth)
            if tag in _PARTED and is_list(payload):
                return self._parts(tag, payload)
            if tag in ("$part", "$json") and is_list(payload):
                return self._fits(self._echo(tag, payload), depth)
        fields: dict[str, Tree] = {}
        for key, item in mapping.items():
            fields[key], more, below = self._filled(item, depth + 1) if is_container(item) else (item, 0, 0)
            size += more
            if below >= height:
                height = below + 1
        return fields, size, height

    def _fits(self, filled: Filled, depth: int) -> Filled:
        """``filled``, when it is not too deep for a place that is ``depth`` levels down."""
        tree, size, height = filled
        if depth + height > _LEVELS:
            height = levels(tree)
            if depth + height > _LEVELS:
                raise FormatError("json.depth", "references nest too deep")
        return tree, size, height

    def _echo(self, tag: str, payload: list[Any]) -> Filled:
        """A part of another payload, or the JSON text of one."""
        try:
            source = _inside(payload, 0)
            found, size, height = self._below(source, 0)
            if tag == "$part":
                for key in payload[1:]:
                    found = _inside(found, key)
                text = text_of(found)
                return found, weight(text), min(height, height_of(found, text))
            _, style = payload
            self._bounded("of a $json", 2 * size)  # before it is made: quotation marks in it double
            written = json_text(found, style)
        except (LookupError, ValueError, TypeError) as error:
            raise FormatError("value.parts", f"a {tag} that leads nowhere: {error}") from error
        return written, len(text_of(written)), 0

    def _parts(self, tag: str, parts: list[Any]) -> Filled:
        pieces: list[bytes] = []
        for part in parts:
            ref = part.get("$ref") if is_map(part) and len(part) == 1 else None
            if type(ref) is not str or self.form(ref) != "bytes":
                raise FormatError("value.parts", f"the parts of {tag} are references to bytes blobs")
            pieces.append(self.data(ref))
        self._bounded(f"of a {tag}", sum(map(len, pieces)))  # before they are joined
        data = b"".join(pieces)
        if tag != "$text":
            return {tag: base64.b64encode(data).decode()}, len(data) * 4 // 3, 1
        try:
            return data.decode(), len(data), 0
        except UnicodeDecodeError as error:
            raise FormatError("value.parts", "the parts of a $text are not UTF-8") from error

    def _whole_list(self, blob: str, value: Tree, depth: int) -> Filled:
        filled, size, height = self._below(value, depth)
        if type(filled) is not list:
            raise FormatError("blob.list", f"blob {blob[:12]} is extended but holds no list there")
        return filled, size + weight(self._line(blob)[1]), height

    def _list(self, blob: str, field: str | None) -> Filled:
        """A list, by going back along its bases and forward again. Bases may be thousands: no recursion."""
        chain: list[tuple[str, int, list[Tree]]] = []
        at, depth = blob, 0 if field is None else 1
        while True:
            found = self._lists.pop((at, field), None)
            if found is not None:
                self._lists[at, field] = found
                break
            whole = self._load(at)
            value = whole if field is None else whole.get(field) if type(whole) is dict else None
            tag = self._list_tag(at, value)
            if tag is None:
                found = self._whole_list(at, value, depth)
                break
            chain.append((at, tag[1], tag[2]))
            at = tag[0]
        items, size, height = [*cast("list[Tree]", found[0])], found[1], found[2]
        for name, keep, added in reversed(chain):
            if keep > len(items):
                raise FormatError("blob.list", f"blob {name[:12]} keeps {keep} items of {len(items)}")
            filled, more, below = self._filled(added, depth)
            items[keep:] = cast("list[Tree]", filled)
            size = self._bounded(blob[:12], size + more + weight(self._line(name)[1]))
            height = max(height, below)
        self._lists[blob, field] = (items, size, height)
        while len(self._lists) > _LISTS:
            del self._lists[next(iter(self._lists))]
        return items, size, height


def _inside(tree: Any, key: object) -> Any:
    """What stands in a container under a key; ``KeyError`` where there is no such place."""
    if is_map(tree) and type(key) is str:
        return tree[key]
    if is_list(tree) and type(key) is int and 0 <= key < len(tree):
        return tree[key]
    raise KeyError(key)
