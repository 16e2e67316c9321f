"""Payloads to blob lines: each content once per run, growing lists by what was added (docs/trace-format.md, Blobs)."""

from __future__ import annotations

import base64
from binascii import hexlify
from collections.abc import Callable, Mapping
from hashlib import sha256

from agentloom.errors import PayloadMissing, ValueRefused
from agentloom.format.canonical import Tree, dump
from agentloom.format.captures import Grown
from agentloom.format.digests import NONCE_BYTES, SALT_BYTES, blob_id
from agentloom.format.divisions import Divisions, division
from agentloom.format.echoes import SHARE_BYTES, Echoes, content, text_of
from agentloom.format.guards import is_container
from agentloom.format.histories import Growth, Histories
from agentloom.format.limits import (
    APART_BYTES,
    EXPANDED_BYTES,
    LINE_BYTES,
    PART_BYTES,
    UNFOLDED_FREE,
    UNFOLDED_RATIO,
)
from agentloom.format.payloads import Journal
from agentloom.format.weights import weight

__all__ = ["BlobWriter", "Gate", "Suspect"]

_REF_BYTES = 96  # content shorter than a reference to it is never worth a reference
_LIST_BYTES = 256  # a list field of a request is looked at as a history from this size on
_AGAIN_BYTES = (
    200  # from here on an item of a history that starts anew stands apart: it may well come a third time
)
_ROOM = LINE_BYTES - 512  # data bytes that fit on a line beside the blob line's other fields
_BINARY = ("$bytes", "$bytearray")
_DIVISIBLE = frozenset((str, list, dict))
_NOTHING_GROWN: Mapping[str, Grown] = {}


class Suspect(Exception):
    """A payload may hold a secret: nothing of it was kept, and it must be looked at before it is put again."""


Gate = Callable[[bytes], None]
"""Sees all data of a run before it becomes part of a line, and raises ``Suspect`` to keep it out."""


class BlobWriter:
    """Turns trees into blob lines and remembers which contents this run already holds.

    ``entropy(n)`` gives n random bytes (salts). Lines collect until ``take``; ids are valid at once. ``gate`` sees what
    is new, and only that.
    """

    def __init__(self, entropy: Callable[[int], bytes], gate: Gate | None = None) -> None:
        self._entropy = entropy
        self.gate = gate
        self._pending: list[tuple[str, bytes]] = []
        self._size = 0  # bytes of all data written
        self._echoes = Echoes()
        self._histories = Histories()

    @classmethod
    def resume(cls, journal: Journal, entropy: Callable[[int], bytes]) -> BlobWriter:
        """A writer that knows what ``journal`` holds: contents are stored once although another process wrote them.

        Histories are not looked at: the first request of each starts anew, with references to what is known.
        """
        writer = cls(entropy)
        writer._size = journal.size
        for blob in journal.blobs:
            data = journal.data(blob)
            form = journal.form(blob)
            if form == "json" and b"$" in data:
                if b'"$list"' in data:
                    continue
                try:
                    data = text_of(journal.tree(blob))
                except PayloadMissing:
                    continue
            writer._echoes.whole[content(form.encode(), data)] = blob
        return writer

    def release(self) -> None:
        """Forget what the run holds; nothing more will be put."""
        self._echoes = Echoes()
        self._histories = Histories()

    @property
    def pending(self) -> bytes:
        """The lines that ``take`` would return now."""
        if len(self._pending) < 2:  # most often
            return self._pending[0][1] if self._pending else b""
        return b"".join([line for _, line in sorted(self._pending)])

    def take(self) -> bytes:
        """The lines since the last ``take``, in the order that the format wants: by id."""
        pending = self._pending
        lines = pending[0][1] if len(pending) == 1 else self.pending  # most often one
        pending.clear()
        return lines

    def put(
        self,
        tree: Tree,
        *,
        series: str | None = None,
        grown: Mapping[str, Grown] = _NOTHING_GROWN,
        encoded: bool = False,
        text: bytes | None = None,
    ) -> str:
        """The id of the blob that holds ``tree``; new lines collect in ``pending``.

        ``series`` names a growing history (for example ``model:gpt-4o``): lists that are fields of its trees are
        written as what they add to an earlier list of the run that they begin with. ``grown``: which those are, as
        far as it is known since the tree was captured. ``encoded``: the tree is one that ``encode`` made, and need
        not be checked again; ``text`` is its JSON then, where it is at hand.
        """
        before, size = len(self._pending), self._size
        try:
            if series is not None and type(tree) is dict and (len(tree) != 1 or next(iter(tree))[:1] != "$"):
                return self._put_request(tree, series, grown, encoded)
            return self._put_plain(tree, text or (text_of(tree) if encoded else dump(tree)))
        except (ValueRefused, Suspect):
            # Parts that were written for a payload that is refused would be blobs that no entry names.
            orphans = {blob for blob, _ in self._pending[before:]}
            del self._pending[before:]
            self._size = size
            self._echoes.forget(orphans)
            raise
        finally:
            self._echoes.done()

    def put_first(self, tree: Tree, divisions: Divisions) -> str:
        """As ``put``, of a payload that other runs of the process begin with, and that is a tree for sure.
        ``divisions``: how such were divided whose data the very same gate has seen; it need not see that again."""
        echoes = self._echoes
        if echoes.whole or self._pending:
            return self.put(tree)
        text = text_of(tree)
        known = divisions.get(text)
        if known is None:
            found = self.put(tree)
            if len(text) <= PART_BYTES:
                divisions.keep(text, division(self._pending, echoes.whole, echoes.parts))
            return found
        ids = known.write(self._write_seen)
        for part, piece, keys in known.parts:
            echoes.parts[part] = (ids[piece], *keys)
        return ids[-1]

    def _put_plain(self, tree: Tree, text: bytes) -> str:
        known = sha256(b"json" + text).digest()
        found = self._echoes.whole.get(known)
        if found is None:
            found = self._write_json(text if len(text) < SHARE_BYTES else self._divided(tree, text), known)
            if len(text) > PART_BYTES:
                self._refuse_endless(text)
            if len(text) >= SHARE_BYTES:
                self._echoes.learn(found, tree)
        return found

    def _refuse_endless(self, text: bytes) -> None:
        """``ValueRefused`` for a payload that no reader would unfold from a file as small as this one is so far."""
        most = min(EXPANDED_BYTES, UNFOLDED_FREE + UNFOLDED_RATIO * self._size)
        if weight(text) > most:
            raise ValueRefused(
                "value",
                "value",
                f"it weighs {weight(text)} bytes, which readers of the trace refuse (over {most})",
                hint="give out less at once, or keep it in a file and record its name",
            )

    def put_bytes(self, data: bytes) -> str:
        """The id of a ``bytes`` blob of at most 1 MiB. Longer data goes through ``put({"$bytes": ...})`` in parts."""
        if len(data) > PART_BYTES:
            raise ValueRefused("value", "bytes", f"one bytes blob holds at most {PART_BYTES} bytes")
        return self._put_binary("bytes", data)

    def put_nonce(self, nonce: bytes) -> str:
        """The id of the run's nonce blob (32 random bytes), under which request keys are made."""
        if len(nonce) != NONCE_BYTES:
            raise ValueRefused("nonce", "bytes", f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
        return self._put_binary("nonce", nonce)

    def _put_binary(self, form: str, data: bytes) -> str:
        known = content(form.encode(), data)
        return self._echoes.whole.get(known) or self._write(
            form, data, b'"%b"' % base64.b64encode(data), known
        )

    def _write_json(self, data: bytes, known: bytes) -> str:
        if len(data) > _ROOM:
            raise _too_long("json", data)
        if self.gate is not None:
            self.gate(data)
        return self._write_seen(data, known)

    def _write_seen(self, data: bytes, known: bytes) -> str:
        salt = self._entropy(SALT_BYTES)
        blob = blob_id(salt, "json", data)
        line = b'{"blob":"%b","salt":"%b","form":"json","data":%b}\n' % (blob.encode(), hexlify(salt), data)
        self._pending.append((blob, line))
        self._size += len(data)
        self._echoes.whole[known] = blob
        return blob

    def _write(self, form: str, covered: bytes, data: bytes, known: bytes) -> str:
        if len(data) > _ROOM:
            raise _too_long(form, data)
        if self.gate is not None and form != "nonce":
            self.gate(covered)
        salt = self._entropy(SALT_BYTES)
        blob = blob_id(salt, form, covered)
        line = b'{"blob":"%b","salt":"%b","form":"%b","data":%b}\n'
        self._pending.append((blob, line % (blob.encode(), hexlify(salt), form.encode(), data)))
        self._size += len(data)
        self._echoes.whole[known] = blob
        return blob

    # -- requests with histories

    def _put_request(
        self, tree: dict[str, Tree], series: str, grown: Mapping[str, Grown], encoded: bool
    ) -> str:
        growths: list[Growth] = []
        outline = tree.copy()  # what tells this request from others: each list by its digest
        for name, value in tree.items():
            if type(value) is list and value:
                growth = self._histories.growth(series, name, value, grown.get(name))
                if growth.size >= _LIST_BYTES:
                    growths.append(growth)
                    outline[name] = growth.digest.hex()
        known = content(b"request", text_of(outline) if encoded else dump(outline))
        found = self._echoes.whole.get(known)
        if found is None:
            written = tree.copy()
            for growth in growths:
                written[growth.field] = self._added(growth)
            for name, value in tree.items():
                if type(value) in _DIVISIBLE and written[name] is value:
                    written[name] = self._part(value)
            found = self._write_json(text_of(written), known)
        for growth in growths:
            history = self._histories.wrote(series, growth, found)
            if growth.field in grown:
                grown[growth.field].history = history
        return found

    def _added(self, growth: Growth) -> Tree:
        """A list as written: whole, or what it adds to an earlier one."""
        apart = _AGAIN_BYTES if growth.again else APART_BYTES
        items = growth.items[growth.keep :]
        size = 0
        for index, (text, known) in enumerate(growth.added):
            size += len(text)
            if len(text) < _REF_BYTES:
                continue
            item = items[index]
            if apart >= APART_BYTES and type(item) is dict and item:
                items[index] = self._known_part(item, text, known)
            else:
                self._echoes.identified(item, text, known)
                items[index] = self._item(item, apart)
        if size > PART_BYTES and len(text_of(items)) > PART_BYTES:
            return {"$ref": self._wide([self._part(item) for item in growth.items])}
        return {"$list": [growth.base, growth.keep, items]} if growth.keep else items

    def _item(self, item: Tree, apart: int) -> Tree:
        """An added item of a history; from ``apart`` bytes on a blob of its own."""
        part = self._part(item)
        if apart >= APART_BYTES or not is_container(part):
            return part
        data = text_of(part)
        return part if len(data) < apart else {"$ref": self._write_json(data, self._echoes.identify(item)[1])}

    # -- dividing a large content into blobs of its own

    def _divided(self, tree: Tree, text: bytes) -> bytes:
        """The data of ``tree``, the root of a payload, with its large parts replaced by references; ``text`` is its
        JSON."""
        if type(tree) is str:
            encoded = tree.encode()
            return text if len(encoded) <= PART_BYTES else text_of({"$text": self._parts(encoded)})
        shrunk = self._shrunk(tree)
        data = text if shrunk is tree else text_of(shrunk)
        if type(tree) is list and len(data) > PART_BYTES:
            return text_of({"$ref": self._wide([self._part(item) for item in tree])})
        return data

    def _shrunk(self, tree: Tree) -> Tree:
        """A container with its large items replaced by references; itself where it has none."""
        if type(tree) is list:
            items: list[Tree] | None = None
            for index, item in enumerate(tree):
                if type(item) not in _DIVISIBLE or (type(item) is str and len(item) < SHARE_BYTES):
                    continue
                if (part := self._part(item)) is not item:
                    items = tree.copy() if items is None else items
                    items[index] = part
            return tree if items is None else items
        if type(tree) is not dict:
            return tree
        if len(tree) == 1:
            tag, payload = next(iter(tree.items()))
            if tag in _BINARY and type(payload) is str and len(payload) >= APART_BYTES:
                return {tag: self._parts(base64.b64decode(payload))}
        fields: dict[str, Tree] | None = None
        for key, item in tree.items():
            # What ``_part`` does, without a step for each field.
            if type(item) is str:
                if len(item) < SHARE_BYTES:
                    continue
                part = self._text(item)
            elif (type(item) is dict or type(item) is list) and item:
                text, known = self._echoes.identify(item)
                if len(text) < _REF_BYTES:
                    continue
                part = self._known_part(item, text, known)
            else:
                continue
            if part is not item:
                fields = tree.copy() if fields is None else fields
                fields[key] = part
        return tree if fields is None else fields

    def _part(self, item: Tree) -> Tree:
        """An item of a container: itself, or a reference to it when it is large or was said before in this run."""
        if type(item) is str:
            return item if len(item) < SHARE_BYTES else self._text(item)
        if not item or type(item) not in _DIVISIBLE:
            return item
        text, known = self._echoes.identify(item)
        return item if len(text) < _REF_BYTES else self._known_part(item, text, known)

    def _known_part(self, item: Tree, text: bytes, known: bytes) -> Tree:
        """As ``_part``, of a list or a mapping whose JSON and content are at hand."""
        found = self._echoes.find(known)
        if found is not None:
            return found
        if len(text) < SHARE_BYTES:
            return item
        shrunk = self._shrunk(item)
        data = text if shrunk is item else text_of(shrunk)
        if len(data) < APART_BYTES:
            return shrunk
        if type(shrunk) is list and len(data) > PART_BYTES:
            self._echoes.whole[known] = self._wide(shrunk)
            return {"$ref": self._echoes.whole[known]}
        return {"$ref": self._write_json(data, known)}

    def _text(self, text: str) -> Tree:
        found = self._echoes.find_text(text) if text[0] in "{[" else None
        if found is not None:
            return found
        data, known = self._echoes.identify(text)
        found = self._echoes.find(known)
        if found is not None:
            return found
        if len(data) > PART_BYTES and len(encoded := text.encode()) > PART_BYTES:
            return {"$text": self._parts(encoded)}
        return text if len(text) < APART_BYTES else {"$ref": self._write_json(data, known)}

    def _parts(self, data: bytes) -> Tree:
        if self.gate is not None and len(data) > PART_BYTES:
            self.gate(data)  # what lies across the edge of two parts is in neither
        starts = range(0, len(data), PART_BYTES)
        return [{"$ref": self.put_bytes(data[start : start + PART_BYTES])} for start in starts]

    def _wide(self, items: list[Tree]) -> str:
        """A list that is too long for one line, as blobs that each extend the one before."""
        blob, kept, start, size = "", 0, 0, 0
        for index, item in enumerate(items):
            size += len(text_of(item)) + 1
            if size > PART_BYTES or index == len(items) - 1:
                piece: Tree = items[start : index + 1]
                data = text_of({"$list": [blob, kept, piece]} if blob else piece)
                known = content(b"piece", data)
                blob = self._echoes.whole.get(known) or self._write_json(data, known)
                kept = start = index + 1
                size = 0
        return blob


def _too_long(form: str, data: bytes) -> ValueRefused:
    return ValueRefused("value", form, f"{len(data)} bytes in one mapping; a line holds {LINE_BYTES}")
