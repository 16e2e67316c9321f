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
from agentloom.format.limits import EXPANDED_BYTES, LINE_DEPTH
from agentloom.format.lines import blob_tree, list_tag
from agentloom.format.scanning import Fault, Scan, scan

__all__ = ["Journal"]

_LISTS = 32  # resolved lists that are kept: a history is mostly read next to the one it extends
_TAGGED = re.compile(rb'\{\s*"(?:\$|\\u0024)')
_PARTED = ("$bytes", "$bytearray", "$text")


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
        self._lists: dict[tuple[str, str | None], tuple[list[Tree], int]] = {}
        self._shared: dict[str, tuple[Tree, int]] = {}
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

    @property
    def nonce(self) -> bytes | None:
        """The run's key nonce; None when it was erased, which happens together with any payload."""
        held = self._blobs.get(self.entries[0]["nonce"])
        return None if held is None else held[1]

    def tree(self, blob: str) -> Tree:
        """The payload with everything that it refers to put in its place. ``PayloadMissing``, ``FormatError``."""
        return self._resolved(blob, 0)[0]

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

    def _resolved(self, blob: str, depth: int) -> tuple[Tree, int]:
        """Tree and size of its text. The size keeps a small file from unfolding into endless memory."""
        form, covered = self._line(blob)
        if form != "json":
            return {"$bytes": base64.b64encode(covered).decode()}, len(covered) * 4 // 3
        tree = self._load(blob)
        if b"$" not in covered and b"\\u0024" not in covered:
            return tree, len(covered)
        shared = self._shared.get(blob)
        if shared is None:
            filled, size = self._filled_root(blob, tree, depth)
            shared = (filled, self._bounded(blob, size + len(covered)))
            if depth:  # something else refers to it: it may well be asked for again
                self._shared[blob] = shared
        return shared

    def _filled_root(self, blob: str, tree: Tree, depth: int) -> tuple[Tree, int]:
        """The only places where a list may extend another: the whole payload, or a field of it."""
        if self._list_tag(blob, tree):
            return self._list(blob, None, depth)
        if type(tree) is not dict or not any(self._list_tag(blob, value) for value in tree.values()):
            return self._filled(tree, depth) if is_container(tree) else (tree, 0)
        size = 0
        fields: dict[str, Tree] = {}
        for key, value in tree.items():
            if self._list_tag(blob, value):
                fields[key], more = self._list(blob, key, depth)
            else:
                fields[key], more = self._filled(value, depth + 1) if is_container(value) else (value, 0)
            size += more
        return fields, size

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

    def _bounded(self, blob: str, size: int) -> int:
        if size > EXPANDED_BYTES:
            raise FormatError("limit.expanded", f"payload {blob[:12]} unfolds to over {EXPANDED_BYTES} bytes")
        return size

    def _filled(self, tree: Tree, depth: int) -> tuple[Tree, int]:
        """A tree with its references replaced, and the size of what they brought in."""
        if depth > 2 * LINE_DEPTH:
            raise FormatError("json.depth", "references nest too deep")
        size = 0
        if is_list(tree):
            items: list[Tree] = []
            for item in tree:
                filled, more = self._filled(item, depth + 1) if is_container(item) else (item, 0)
                items.append(filled)
                size += more
            return items, size
        if not is_map(tree):
            return tree, 0
        if len(tree) == 1:
            tag, payload = next(iter(tree.items()))
            if tag == "$ref" and type(payload) is str and HEX64.fullmatch(payload):
                return self._resolved(payload, depth + 1)
            if tag in _PARTED and is_list(payload):
                return self._parts(tag, payload)
            if tag in ("$part", "$json") and is_list(payload):
                return self._echo(tag, payload, depth)
        fields: dict[str, Tree] = {}
        for key, item in tree.items():
            fields[key], more = self._filled(item, depth + 1) if is_container(item) else (item, 0)
            size += more
        return fields, size

    def _echo(self, tag: str, payload: list[Any], depth: int) -> tuple[Tree, int]:
        """A part of another payload, or the JSON text of one."""
        try:
            found: Any = self._filled(_inside(payload, 0), depth + 1)[0]
            if tag == "$part":
                for key in payload[1:]:
                    found = _inside(found, key)
            else:
                _, style = payload
                found = json_text(found, style)
        except (LookupError, ValueError, TypeError) as error:
            raise FormatError("value.parts", f"a {tag} that leads nowhere: {error}") from error
        return found, len(text_of(found))

    def _parts(self, tag: str, parts: list[Any]) -> tuple[Tree, int]:
        pieces: list[bytes] = []
        for part in parts:
            ref = part.get("$ref") if is_map(part) and len(part) == 1 else None
            form, covered = self._line(ref) if type(ref) is str else ("", b"")
            if form != "bytes":
                raise FormatError("value.parts", f"the parts of {tag} are references to bytes blobs")
            pieces.append(covered)
        data = b"".join(pieces)
        if tag != "$text":
            return {tag: base64.b64encode(data).decode()}, len(data) * 4 // 3
        try:
            return data.decode(), len(data)
        except UnicodeDecodeError as error:
            raise FormatError("value.parts", "the parts of a $text are not UTF-8") from error

    def _whole_list(self, blob: str, value: Tree, depth: int) -> tuple[list[Tree], int]:
        filled, size = self._filled(value, depth + 1) if is_container(value) else (value, 0)
        if type(filled) is not list:
            raise FormatError("blob.list", f"blob {blob[:12]} is extended but holds no list there")
        return filled, size + len(self._line(blob)[1])

    def _list(self, blob: str, field: str | None, depth: int) -> tuple[list[Tree], int]:
        """A list, by going back along its bases and forward again. Bases may be thousands: no recursion."""
        chain: list[tuple[str, int, list[Tree], int]] = []
        items: list[Tree] = []
        size = 0
        at = blob
        while True:
            cached = self._lists.pop((at, field), None)
            if cached is not None:
                self._lists[at, field] = cached
                items, size = cached
                break
            whole = self._load(at)
            value = whole if field is None else whole.get(field) if type(whole) is dict else None
            tag = self._list_tag(at, value)
            length = len(self._line(at)[1])
            if tag is None:
                items, size = self._whole_list(at, value, depth)
                break
            chain.append((at, tag[1], tag[2], length))
            at = tag[0]
        for name, keep, added, length in reversed(chain):
            if keep > len(items):
                raise FormatError("blob.list", f"blob {name[:12]} keeps {keep} items of {len(items)}")
            filled, more = self._filled(added, depth + 1)
            items = [*items[:keep], *cast("list[Tree]", filled)]
            size = self._bounded(blob, size + more + length)
        self._lists[blob, field] = (items, size)
        while len(self._lists) > _LISTS:
            del self._lists[next(iter(self._lists))]
        return items, size


def _inside(tree: Any, key: object) -> Any:
    """What stands in a container under a key; ``KeyError`` where there is no such place."""
    if is_map(tree) and type(key) is str:
        return tree[key]
    if is_list(tree) and type(key) is int and 0 <= key < len(tree):
        return tree[key]
    raise KeyError(key)
