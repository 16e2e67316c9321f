"""Divisions: a payload that is known is written as it would be written anew."""

from __future__ import annotations

import itertools
import json

import pytest

from agentloom.format.blobs import BlobWriter, Suspect
from agentloom.format.canonical import Tree
from agentloom.format.divisions import Divisions

_LONG = "".join(f"line {n} of some source\n" for n in range(300))
_FIRST: list[Tree] = [
    {"modules": {"a": {"source": _LONG}, "b": {"source": _LONG + "x"}}, "packages": [f"p{n}==1.0" for n in range(200)]},
    {"small": 1},
    {},
    [],
    "text",
    _LONG,
    None,
    {"twice": [{"text": _LONG}, {"text": _LONG}], "apart": {"of": ["y" * 300, {"n": "z" * 500}]}},
    {"looks like an id": "0" * 64, "dollar": {"$int": "5" * 300}},
    {"wide": [f"item {n} of a list that is too long for a line, or nearly" for n in range(15_000)]},
    {"bytes": {"$bytes": "QUJD" * 1000}},
]  # fmt: skip
_LATER: list[Tree] = [{"again": _LONG}, {"n": "z" * 500}, "y" * 300, {"text": _LONG}, "5" * 300]


def _writer(seed: int = 0) -> BlobWriter:
    numbers = itertools.count(seed)
    return BlobWriter(lambda size: next(numbers).to_bytes(size, "big"))


@pytest.mark.parametrize("tree", _FIRST, ids=lambda tree: json.dumps(tree)[:30])
def test_a_known_payload_is_written_as_anew_and_later_ones_refer_to_it(tree: Tree) -> None:
    divisions = Divisions()
    _writer().put_first(tree, divisions)
    for seed in (0, 1000):
        anew, known = _writer(seed), _writer(seed)
        assert known.put_first(tree, divisions) == anew.put(tree)
        assert known.take() == anew.take()
        for later in _LATER:
            assert known.put(later) == anew.put(later)
            assert known.take() == anew.take()
        assert known._size == anew._size


def test_only_the_first_payload_of_a_run_is_written_from_what_is_known() -> None:
    divisions = Divisions()
    _writer().put_first({"text": _LONG}, divisions)
    later = _writer()
    part = later.put(_LONG)
    later.put_first({"text": _LONG}, divisions)
    assert f'{{"text":{{"$ref":"{part}"}}}}'.encode() in later.take()


def test_what_a_gate_suspects_is_not_known_afterwards() -> None:
    def suspicious(data: bytes) -> None:
        if b"some source" in data:
            raise Suspect

    divisions = Divisions()
    for _ in range(2):
        writer = _writer()
        writer.gate = suspicious
        with pytest.raises(Suspect):
            writer.put_first({"text": _LONG}, divisions)
        assert writer.take() == b""


def test_a_known_payload_is_not_shown_to_the_gate_again() -> None:
    seen: list[bytes] = []
    divisions = Divisions()
    for _ in range(2):
        writer = _writer()
        writer.gate = seen.append
        writer.put_first({"text": _LONG}, divisions)
    assert len(seen) == 2


def test_so_many_payloads_are_known_at_most() -> None:
    divisions = Divisions()
    for number in range(40):
        _writer().put_first({"n": number}, divisions)
    assert len(divisions._held) == 16
    assert _writer(7).put_first({"n": 39}, divisions) == _writer(7).put({"n": 39})
