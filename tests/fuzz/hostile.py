"""Large hostile files, one of each kind: about 10 MB, or as few bytes as it takes to ask for too much.

Each is sound as far as it goes (chain, ids, places), so that a reader that looks only at those goes on into it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import zstandard

from agentloom.testing.store_contract import Sample
from tests.fuzz.draft import Blob, Draft

__all__ = ["HOSTILE", "SIZE"]

SIZE = 10_000_000
_VALUE = 0xB0  # the name of the blob that the only call of a trace returns


def _draft() -> Draft:
    sample = Sample()
    return Draft.of(b"".join([sample.start(), *sample.call(), sample.end()]))


def _returning(*trees: object) -> bytes:
    """A trace whose only call returns the last of ``trees``; the others are blobs named 1, 2, ... by position."""
    draft = _draft()
    outcome = next(entry for entry in draft.entries if entry["kind"] == "outcome")
    at = draft.lines.index(outcome)
    dropped, outcome["val"] = outcome["val"], f"{len(trees):064x}"
    tail, draft.lines = draft.lines[at:], draft.lines[:at]
    draft.lines = [line for line in draft.lines if not (isinstance(line, Blob) and line.name == dropped)]
    for number, tree in enumerate(trees, start=1):
        draft.add(number, tree)
    draft.lines += tail
    return draft.write()


def _ref(number: int) -> dict[str, str]:
    return {"$ref": f"{number:064x}"}


def deep_json() -> bytes:
    return b'{"seq":0,"x":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}\n"


def deep_value() -> bytes:
    """As deep as a line may be."""
    tree: object = 1
    for level in range(205):
        tree = [tree] if level % 2 else {"a": tree}
    return _returning(tree)


def deep_references() -> bytes:
    """Blob in blob, 5,000 levels, each of them shallow."""
    return _returning(1, *({"a": _ref(number)} for number in range(1, 5000)))


def deep_values_in_deep_references() -> bytes:
    def wrap(inner: object) -> object:
        for _ in range(190):
            inner = [inner]
        return inner

    return _returning(1, *(wrap(_ref(number)) for number in range(1, 60)))


def long_integer() -> bytes:
    return b'{"seq":' + b"9" * SIZE + b"}\n"


def long_integers_in_values() -> bytes:
    """Integers of the longest size that a value may have."""
    return _returning([{"$int": "9" * 100_000} for _ in range(SIZE // 100_000)])


def too_long_integer_in_a_value() -> bytes:
    return _returning({"$int": "7" * SIZE})


def long_fraction() -> bytes:
    return _returning([float("1e308")] * 10)[:-1] + b'\n{"seq":7,"at":0.' + b"1" * SIZE + b"}\n"


def duplicate_keys() -> bytes:
    """Half a million keys, of which the last two are equal."""
    keys = [f'"{number}":0' for number in range(SIZE // 12)]
    return b'{"seq":0,' + ",".join([*keys, '"z":0', '"z":0']).encode() + b"}\n"


def duplicate_keys_in_a_value() -> bytes:
    draft = _draft()
    keys = [f'"{number}":0' for number in range(SIZE // 12)]
    blob = draft.blobs[-1]
    blob.data = b"{" + ",".join([*keys, '"z":0', '"z":0']).encode() + b"}"
    return draft.write()


def loop_of_references() -> bytes:
    """Blobs that name each other. No ids can make this hold."""
    return _returning([_ref(2)], [_ref(1)])


def loop_of_lists() -> bytes:
    return _returning({"$list": [f"{2:064x}", 1, []]}, {"$list": [f"{1:064x}", 1, []]})


def laughs() -> bytes:
    """Ten times ten times ten: a terabyte out of a few lines."""
    return _returning("x" * 1000, *([_ref(number)] * 10 for number in range(1, 10)))


def empty_laughs() -> bytes:
    """The same, of empty lists: small as text, large as objects."""
    return _returning([[]] * 50, *([_ref(number)] * 50 for number in range(1, 5)))


def list_one_by_one() -> bytes:
    """Each list extends the one before by an item: quadratic when each is unfolded anew."""
    count = SIZE // 310
    lists: list[object] = [[0]]
    lists += [{"$list": [f"{number:064x}", number, [number]]} for number in range(1, count)]
    return _returning(*lists)


def list_and_back() -> bytes:
    """Each list keeps one item of the one before and adds a few references to it."""
    lists: list[object] = [[0]]
    lists += [{"$list": [f"{number:064x}", 1, [_ref(number), _ref(number)]]} for number in range(1, 60)]
    return _returning(*lists)


def lists_all_named() -> bytes:
    """Growing lists, each of them the value of a call."""
    sample = Sample()
    draft = Draft.of(sample.start())
    count = SIZE // 900
    draft.add(1, [0])
    draft.add(10**6, {})
    for number in range(1, count):
        call = f"root/a#{number}"
        request, outcome = (
            {"seq": 0, "prev": "", "at": 1, "kind": kind, "call": call} for kind in ("request", "outcome")
        )
        request |= {
            "type": "model",
            "name": "m",
            "key": "0" * 32,
            "profile": "plain/1",
            "req": f"{10**6:064x}",
        }
        draft.lines.append(request)
        draft.add(number + 1, {"$list": [f"{number:064x}", number, [number]]})
        draft.lines.append(outcome | {"vt": 1, "d": number, "status": "ok", "val": f"{number + 1:064x}"})
    return draft.write()


def texts_of_one_part() -> bytes:
    """One part of a mebibyte, named as often as fits on a line."""
    return _parts("$text")


def bytes_of_one_part() -> bytes:
    return _parts("$bytes")


def _parts(tag: str) -> bytes:
    draft = Draft.of(_returning(1, 2))
    at = next(i for i, line in enumerate(draft.lines) if isinstance(line, Blob) and line.data == b"2")
    value = draft.lines.pop(at)
    assert isinstance(value, Blob)
    draft.lines = [line for line in draft.lines if not (isinstance(line, Blob) and line.data == b"1")]
    outcome = next(line for line in draft.lines if isinstance(line, dict) and line["kind"] == "outcome")
    place = draft.lines.index(outcome)
    rest, draft.lines = draft.lines[place:], draft.lines[:place]
    draft.add(1, b"x" * 1024 * 1024, form="bytes")
    refs = [_ref(1)] * (SIZE // 80)
    outcome["val"] = draft.add(2, {tag: refs} if tag else refs)
    draft.lines += rest
    return draft.write()


def list_of_one_part() -> bytes:
    return _parts("")


def json_of_json() -> bytes:
    """The JSON text of a JSON text of ...: quotation marks double each time."""
    return _returning(['\\"' * 100], *({"$json": [_ref(number), "compact"]} for number in range(1, 60)))


def parts_of_parts() -> bytes:
    return _returning([[1]], *({"$part": [_ref(number), 0]} for number in range(1, 3000)))


def many_seals() -> bytes:
    """Each seal is over everything before it. Only the first can be right here: a reader should see that cheaply."""
    return _after_the_end(lambda seq: {"kind": "seal", "count": seq, "root": "0" * 64})


def many_good_seals() -> bytes:
    """Seals that hold, one after the other: quadratic when each is computed from the start."""
    from agentloom.format import merkle
    from agentloom.format.digests import entry_digest

    draft = _draft()
    lines = draft.write().splitlines(keepends=True)
    tree = merkle.Tree()
    digests = [entry_digest(line[:-1]) for line in lines if line.startswith(b'{"seq":')]
    for digest in digests:
        tree.add(digest)
    for seq in range(len(digests), len(digests) + SIZE // 220):
        entry = {"seq": seq, "prev": digests[-1], "at": 1, "kind": "seal", "count": seq, "root": tree.root()}
        line = json.dumps(entry, separators=(",", ":")).encode()
        digests.append(entry_digest(line))
        tree.add(digests[-1])
        lines.append(line + b"\n")
    return b"".join(lines)


def many_retracts() -> bytes:
    """Each takes back its neighbour only, and a careless reader copies all calls for each."""
    sample = Sample()
    draft = Draft.of(sample.start())
    draft.add(10**6, {})
    for number in range(SIZE // 700):
        request = {
            "seq": 0,
            "prev": "",
            "at": 1,
            "kind": "request",
            "call": f"root/a#{number}",
            "type": "tool",
        }
        draft.lines.append(
            request | {"name": "t", "key": "0" * 32, "profile": "plain/1", "req": f"{10**6:064x}"}
        )
    count = len(draft.entries)
    for number in range(SIZE // 350):
        draft.lines.append({"seq": 0, "prev": "", "at": 1, "kind": "retract", "from": count + number - 1})
    return draft.write()


def _after_the_end(fields: Callable[[int], dict[str, object]]) -> bytes:
    draft = _draft()
    first = len(draft.entries)
    for seq in range(first, first + SIZE // 220):
        draft.lines.append({"seq": 0, "prev": "", "at": 1, **fields(seq)})
    return draft.write()


def many_erasures() -> bytes:
    draft = _draft()
    nonce, blob = draft.entries[0]["nonce"], draft.blobs[0].name
    draft.lines = [
        line for line in draft.lines if not (isinstance(line, Blob) and line.name in (nonce, blob))
    ]
    for _ in range(SIZE // 400):
        entry = {"seq": 0, "prev": "", "at": 1, "kind": "erase", "blobs": [nonce, blob], "val": blob}
        draft.lines.append(entry)
    return draft.write()


def many_tags() -> bytes:
    draft = _draft()
    blobs = [draft.add(10**6 + number, {f"name{number}": "v"}) for number in range(SIZE // 450)]
    added = draft.lines[-len(blobs) :]
    del draft.lines[-len(blobs) :]
    for line, blob in zip(added, blobs, strict=True):
        draft.lines += [line, {"seq": 0, "prev": "", "at": 1, "kind": "tag", "val": blob}]
    return draft.write()


def many_calls() -> bytes:
    """Calls of distinct names, none of them answered."""
    sample = Sample()
    draft = Draft.of(sample.start())
    draft.add(10**6, {})
    for number in range(SIZE // 330):
        request = {
            "seq": 0,
            "prev": "",
            "at": 1,
            "kind": "request",
            "call": f"root/a{number}#1",
            "type": "tool",
        }
        draft.lines.append(
            request
            | {"name": f"t{number}", "key": f"{number:032x}", "profile": "plain/1", "req": f"{10**6:064x}"}
        )
    return draft.write()


def long_call_id() -> bytes:
    draft = _draft()
    request = next(entry for entry in draft.entries if entry["kind"] == "request")
    request["call"] = "root/" + "a/" * (SIZE // 2) + "!"
    return draft.write()


def escapes_in_a_call_id() -> bytes:
    draft = _draft()
    request = next(entry for entry in draft.entries if entry["kind"] == "request")
    request["call"] = "root/" + "%C3%A9" * (SIZE // 6) + "#1"
    return draft.write()


def long_names() -> bytes:
    draft = _draft()
    for entry in draft.entries:
        for name in ("agent", "name", "src", "type", "entry"):
            if name in entry:
                entry[name] = "\x1b]0;gotcha\x07\x1b[2J\u202e" + "n" * (SIZE // 5)
    return draft.write()


def one_text() -> bytes:
    return _returning("a b " * (SIZE // 4))


def one_text_of_lines() -> bytes:
    return _returning("\n".join(str(number) for number in range(SIZE // 7)))


def one_list() -> bytes:
    return _returning(list(range(SIZE // 7)))


def one_mapping() -> bytes:
    return _returning({str(number): number for number in range(SIZE // 16)})


def pairs_of_mappings() -> bytes:
    """Mappings with mappings for keys, in other mappings for keys."""
    tree: object = {"$map": [[1, 2]]}
    for _ in range(60):
        tree = {"$map": [[tree, 1], [{"$tuple": [tree]}, 2]]} if len(json.dumps(tree)) < SIZE // 3 else tree
    return _returning(tree)


def sets_of_tuples() -> bytes:
    return _returning(
        {"$set": [{"$tuple": [number, {"$frozenset": [number]}]} for number in range(SIZE // 50)]}
    )


def line_too_long() -> bytes:
    return _returning(1)[:-1] + b'\n{"seq":9,"x":"' + b"a" * (17 * 1024 * 1024) + b'"}\n'


def no_newline() -> bytes:
    return b'{"seq":0,"prev":"' + b"0" * SIZE


def newlines() -> bytes:
    return b"\n" * SIZE


def zeros() -> bytes:
    return bytes(SIZE)


def carriage_returns() -> bytes:
    return b'{"seq":0}' + b"\r\n" * (SIZE // 2)


def brackets_in_blobs() -> bytes:
    """Where a search for tags could go back and forth."""
    return _returning("{ " * (SIZE // 4), [{"a": "{" + " " * (SIZE // 2)}])


def surrogates() -> bytes:
    draft = _draft()
    draft.blobs[-1].data = b'"' + b"\\ud800" * (SIZE // 6) + b'"'
    return draft.write()


def not_utf8() -> bytes:
    draft = _draft()
    draft.blobs[-1].data = b'"' + b"\xff" * SIZE + b'"'
    return draft.write()


def odd_base64() -> bytes:
    draft = _draft()
    blob = next(blob for blob in draft.blobs if blob.form == "nonce")
    blob.data = b'"' + b"=" * SIZE + b'"'
    return draft.write()


def _frames(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=19).compress(data)


def zstd_of_zeros() -> bytes:
    return _frames(bytes(1 << 28))


def zstd_of_one_line() -> bytes:
    return _frames(b'{"seq":0,"prev":"' + b"0" * (1 << 28))


def zstd_many_frames() -> bytes:
    """Ten megabytes that unfold to far more than any limit."""
    frame = _frames(b'{"seq":0}\n' * 800_000)
    return frame * (SIZE // len(frame))


def zstd_wide_window() -> bytes:
    """A frame that asks for a window of two gibibytes."""
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xA8]) + b"\x01\x00\x00" + bytes(64)


def zstd_of_laughs() -> bytes:
    return _frames(laughs())


def zstd_skippable() -> bytes:
    return b"\x50\x2a\x4d\x18\x00\x00\x00\x00" * (SIZE // 8)


_NOT = ("Callable", "Draft", "Blob", "Sample")
HOSTILE: dict[str, Callable[[], bytes]] = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and not name.startswith("_") and name not in _NOT and made.__module__ == __name__
}
"""Name of the kind -> what makes the bytes."""
