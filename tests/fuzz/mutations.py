"""Structure-aware damage: sound traces taken apart, changed at random places, and put together again.

Half of the results have a chain and ids that hold, so that readers go on into what was changed.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentloom.testing.store_contract import Sample
from tests.fuzz.draft import Draft

__all__ = ["mutated", "seeds_of"]

_ROOT = Path(__file__).resolve().parents[2]
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 2**63, 2**64 - 1, -(2**63), 0.5, 1e308, "", "x", "0" * 64, "f" * 64, "ok",
    "start", "\u0000", "\ud800", "é" * 100, "root/agent#1", "root/agent#1~2", "#", "%", [], {}, [[]], [1, 2],
    [0, 0, 0],
    {"$ref": "0" * 64}, {"$list": ["0" * 64, 1, []]}, {"$int": "1" * 50}, {"$int": "x"}, {"$map": [[1]]},
    {"$tuple": {}},
    {"$error": {}}, {"$obj": {"type": "os:system", "how": "dataclass", "data": {"command": "x"}}}, {"$bytes": "?"},
    {"$text": [1]}, {"$part": []}, {"$json": [[], "odd"]}, {"$datetime": "never"}, {"$float": "nan"}, {"$": 1},
    {"$unknown": 1}, {"a": {"$ref": 5}},
)  # fmt: skip


@functools.cache
def seeds_of() -> list[bytes]:
    """Small sound traces of every kind: the vectors, the golden files, a sample."""
    places = [*(_ROOT / "spec/vectors/v1/valid").glob("*.loom"), *(_ROOT / "tests/golden/v1").glob("*.loom")]
    found = [path.read_bytes() for path in sorted(places)]
    sample = Sample(tags={"a": "b"}, conversation="c")
    parts = [
        sample.start(),
        *sample.call("model", "m", {"text": "hi"}),
        sample.mark("note", "n"),
        sample.end(),
    ]
    found.append(b"".join(parts))
    return [data for data in found if len(data) < 40_000 and _apart(data) is not None]


def _apart(data: bytes) -> Draft | None:
    try:
        return Draft.of(data)
    except ValueError:
        return None


def mutated(seed: int) -> bytes:
    """A damaged trace: the same for the same number."""
    rng = random.Random(f"mutation {seed}")
    data = rng.choice(seeds_of())
    if rng.random() < 0.25:
        return _bytes(rng, data)
    draft = Draft.of(data)
    for _ in range(rng.randint(1, 3)):
        rng.choice(_CHANGES)(rng, draft)
    data = draft.write()
    return _bytes(rng, data) if rng.random() < 0.1 else data


def _bytes(rng: random.Random, data: bytes) -> bytes:
    """Damage that knows nothing of the format."""
    at = rng.randrange(len(data))
    what = rng.randrange(6)
    if what == 0:
        return data[:at]
    if what == 1:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if what == 2:
        return (
            data[:at] + rng.choice([b"\r", b"\x00", b"\n", b'"', b"[", b"\xff", b"$", b"\\ud800"]) + data[at:]
        )
    if what == 3:
        to = rng.randrange(at, len(data))
        return data[:to] + data[at:to] + data[to:]
    if what == 4:
        return data[:at] + data[rng.randrange(at, len(data)) :]
    lines = data.splitlines(keepends=True)
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def _drop(rng: random.Random, draft: Draft) -> None:
    if len(draft.lines) > 1:
        del draft.lines[rng.randrange(1, len(draft.lines))]


def _repeat(rng: random.Random, draft: Draft) -> None:
    draft.lines.insert(rng.randrange(1, len(draft.lines) + 1), rng.choice(draft.lines))


def _move(rng: random.Random, draft: Draft) -> None:
    line = draft.lines.pop(rng.randrange(len(draft.lines)))
    draft.lines.insert(rng.randrange(len(draft.lines) + 1), line)


def _field(rng: random.Random, draft: Draft) -> None:
    if draft.entries:
        entry = rng.choice(draft.entries)
        name = rng.choice([*entry, "x-new", "d", "call", "val", "err", "reads", "totals", "goto"])
        entry[name] = rng.choice(_ODD)


def _lost_field(rng: random.Random, draft: Draft) -> None:
    if draft.entries:
        entry = rng.choice(draft.entries)
        entry.pop(rng.choice([*entry]), None)


def _kind(rng: random.Random, draft: Draft) -> None:
    if draft.entries:
        kinds = "start request outcome chunks timer cancel turn state note gap end suspend answer resume retract erase"
        rng.choice(draft.entries)["kind"] = rng.choice(
            [*kinds.split(), "seal", "index", "segment", "rehash", "signal", "new"]
        )


def _other_blob(rng: random.Random, draft: Draft) -> None:
    """An entry names another payload than it did."""
    if draft.entries and draft.blobs:
        entry = rng.choice(draft.entries)
        names = [
            name
            for name, value in entry.items()
            if isinstance(value, str) and len(value) == 64 and name != "prev"
        ]
        if names:
            entry[rng.choice(names)] = rng.choice(draft.blobs).name


def _payload(rng: random.Random, draft: Draft) -> None:
    """Something odd somewhere in a payload."""
    blobs = [blob for blob in draft.blobs if blob.form == "json"]
    if not blobs:
        return
    blob = rng.choice(blobs)
    try:
        tree = json.loads(blob.data)
    except (ValueError, RecursionError):
        return
    odd = rng.choice([*_ODD, {"$ref": rng.choice(blobs).name}, {"$list": [rng.choice(blobs).name, 1, [1]]}])
    tree = _replaced(rng, tree, odd)
    blob.data = json.dumps(tree, separators=(",", ":")).encode()


def _replaced(rng: random.Random, tree: Any, odd: Any) -> Any:
    if isinstance(tree, dict) and tree and rng.random() < 0.8:
        key = rng.choice([*tree])
        return {**tree, key: _replaced(rng, tree[key], odd)}
    if isinstance(tree, list) and tree and rng.random() < 0.8:
        at = rng.randrange(len(tree))
        return [*tree[:at], _replaced(rng, tree[at], odd), *tree[at + 1 :]]
    return odd


def _blob_text(rng: random.Random, draft: Draft) -> None:
    """A payload that is no JSON, or JSON that is spelled in another way."""
    if draft.blobs:
        blob = rng.choice(draft.blobs)
        data = blob.data
        blob.data = rng.choice(
            [b"", b"{", b"[1,]", b"NaN", b'{"a":1,"a":2}', b" " + data, data + b" ", data.replace(b":", b" : "),
             b"1e400", b"9" * 400, b'"\\ud800"', b"[" * 300 + b"]" * 300, b'{"$r\\u0065f":"' + b"0" * 64 + b'"}',
             b"null"]
        )  # fmt: skip


def _form(rng: random.Random, draft: Draft) -> None:
    if draft.blobs:
        rng.choice(draft.blobs).form = rng.choice(["json", "bytes", "nonce", "other"])


_CHANGES: tuple[Callable[[random.Random, Draft], None], ...] = (
    _drop, _repeat, _move, _field, _field, _lost_field, _kind, _other_blob, _payload, _payload, _payload, _blob_text,
    _form,
)  # fmt: skip
