"""Bytes of a trace to lines: entries and blobs, each checked for itself. Nothing is looked at across lines here."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import orjson

from agentloom.errors import FormatError
from agentloom.format.canonical import Tree, load
from agentloom.format.digests import NONCE_BYTES, blob_id
from agentloom.format.fields import HEX64, Broken
from agentloom.format.limits import LINE_BYTES, LINE_DEPTH, PART_BYTES

__all__ = [
    "BLOB_START",
    "ENTRY_START",
    "bare",
    "blob_links",
    "blob_references",
    "blob_tree",
    "foreign",
    "list_tag",
    "read_blob",
    "read_entry",
]

BLOB_START = b'{"blob":'
ENTRY_START = b'{"seq":'
_BLOB = re.compile(  # up to where the data begins, which goes on until the line's last character
    rb'\{"blob":"([0-9a-f]{64})","salt":"([0-9a-f]{32})","form":"(json|bytes|nonce)","data":'
)
_ENCRYPTED = re.compile(rb'\{"blob":"[0-9a-f]{64}","salt":"[0-9a-f]{32}","form":"[a-z]+","codec":"')
_ZSTD = b"\x28\xb5\x2f\xfd"
_REF = re.compile(rb'\{"\$ref":"([0-9a-f]{64})"\}')


def foreign(data: bytes) -> Broken | None:
    """Why ``data`` is not a trace at all, by its first bytes."""
    if not data:
        return Broken("file.empty", "the file is empty")
    if data.startswith(_ZSTD):
        return Broken("file.compressed", "the file is compressed; decompress it first (zstd -d)")
    if data.startswith(b"\xef\xbb\xbf"):
        return Broken("file.bom", "the file begins with a byte order mark")
    if not data.startswith(ENTRY_START[: len(data)]):
        return Broken("file.foreign", "the first line is not a start entry of format loom")
    return None


def read_entry(line: bytes) -> dict[str, Any]:
    """An entry line as a mapping, strictly; raises ``Broken``."""
    if len(line) > LINE_BYTES:
        raise Broken("line.long", f"a line of {len(line)} bytes; the limit is {LINE_BYTES}")
    try:
        entry: dict[str, Any] = orjson.loads(line)
        deep = len(line) >= 2 * LINE_DEPTH and line.count(b"[") + line.count(b"{") > LINE_DEPTH
        if deep or orjson.dumps(entry) != line:
            load(line)
    except FormatError as error:
        raise Broken(error.code, bare(error)) from error
    except (ValueError, TypeError) as error:
        raise Broken("json.syntax", f"not JSON: {error}") from error
    return entry


def read_blob(line: bytes) -> tuple[str, str, bytes]:
    """Id, form and covered bytes of a blob line whose id holds; raises ``Broken``."""
    if len(line) > LINE_BYTES:
        raise Broken("line.long", f"a line of {len(line)} bytes; the limit is {LINE_BYTES}")
    match = _BLOB.match(line)
    covered = line[match.end() : -1] if match is not None else b""
    if match is None or not covered or line[-1:] != b"}" or b"\n" in covered:
        if _ENCRYPTED.match(line):
            raise Broken("version.codec", "an encoded blob; this reader knows no codec", version=True)
        raise Broken("blob.form", "not exactly the fields of a blob line: blob, salt, form, data")
    name, salt, form_name = match.groups()
    blob = name.decode()
    if form_name == b"json":
        form = "json"
    else:
        form = form_name.decode()
        covered = _decoded(covered, form)
    if blob_id(binascii.unhexlify(salt), form, covered) != blob:
        raise Broken("blob.id", f"the data is not that of blob {blob[:12]}", integrity=True)
    return blob, form, covered


def _decoded(text: bytes, form: str) -> bytes:
    try:
        data = base64.b64decode(text[1:-1])
    except ValueError:
        data = b""
    if b'"%b"' % base64.b64encode(data) != text:
        raise Broken(
            "blob.base64", f"the data of a {form} blob is not base64 as RFC 4648 section 4 writes it"
        )
    if len(data) > PART_BYTES or (form == "nonce" and len(data) != NONCE_BYTES):
        raise Broken("blob.size", f"{len(data)} bytes in a {form} blob")
    return data


def blob_tree(covered: bytes) -> Tree:
    """The JSON of a ``json`` blob, strictly; raises ``Broken``."""
    try:
        return load(covered)
    except FormatError as error:
        raise Broken(error.code, bare(error)) from error


def bare(error: FormatError) -> str:
    """The message without its code, which will be named again where the place is known."""
    return error.message.removesuffix(f" [{error.code}]")


def list_tag(tree: Tree) -> tuple[str, int, list[Tree]] | None:
    """Base, keep and items of ``{"$list": [base, keep, items]}``, None for others; ``Broken`` when it is a bad one."""
    if type(tree) is not dict or len(tree) != 1 or "$list" not in tree:
        return None
    parts = tree["$list"]
    if type(parts) is list and len(parts) == 3:
        base, keep, items = parts
        if (
            type(base) is str
            and HEX64.fullmatch(base)
            and type(keep) is int
            and keep > 0
            and type(items) is list
        ):
            return base, keep, items
    raise Broken("blob.list", '{"$list": [...]} holds a blob id, a count from 1 and a list')


def blob_references(covered: bytes) -> list[str]:
    """The blobs that a ``json`` blob names; raises ``Broken`` when its JSON is bad."""
    bases, others = blob_links(covered)
    return bases + others


def blob_links(covered: bytes) -> tuple[list[str], list[str]]:
    """The blobs whose lists a ``json`` blob extends, and the blobs that it refers to; raises ``Broken``.

    In the writer's own spelling a reference has one form, and text cannot forge it; any other spelling is walked.
    """
    tree = blob_tree(covered)
    bases: list[str] = []
    compact = orjson.dumps(tree) == covered
    if not compact or b"$list" in covered:
        for value in (tree, *(tree.values() if type(tree) is dict else ())):
            tag = list_tag(value)
            if tag is not None:
                bases.append(tag[0])
    if compact:
        return bases, [match.decode() for match in _REF.findall(covered)]
    found: list[str] = []
    todo: list[Tree] = [tree]
    while todo:
        item = todo.pop()
        if type(item) is list:
            todo.extend(item)
        elif type(item) is dict:
            ref = item.get("$ref") if len(item) == 1 else None
            if type(ref) is str and HEX64.fullmatch(ref):
                found.append(ref)
            else:
                todo.extend(item.values())
    return bases, found
