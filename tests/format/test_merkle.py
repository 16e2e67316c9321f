"""The Merkle tree: the same root however it is computed, and proofs that hold for one entry only."""

from __future__ import annotations

from hashlib import sha256

import pytest

from agentloom.format import merkle
from spec import verify

DIGESTS = [sha256(bytes([n])).hexdigest() for n in range(70)]


def root(count: int) -> str:
    tree = merkle.Tree()
    for digest in DIGESTS[:count]:
        tree.add(digest)
    return tree.root()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 70])
def test_roots_and_proofs(count: int) -> None:
    found = root(count)
    assert found == verify.root_of([], DIGESTS[:count])
    for index in range(count):
        path = merkle.proof(DIGESTS[:count], index)
        assert len(path) <= (count - 1).bit_length()
        assert merkle.verify(DIGESTS[index], index, count, path, found)
        assert not merkle.verify(DIGESTS[index - 1], index, count, path, found) or count == 1
        assert not merkle.verify(DIGESTS[index], (index + 1) % count, count, path, found) or count == 1
        assert not merkle.verify(DIGESTS[index], index, count + 1, [*path, found], found)
        if path:
            assert not merkle.verify(DIGESTS[index], index, count, path[:-1], found)
            assert not merkle.verify(DIGESTS[index], index, count, [*path, path[0]], found)


def test_two_entries_by_hand() -> None:
    def sha(prefix: bytes, data: bytes) -> bytes:
        return sha256(b"agentloom/v1/" + prefix + b"\x00" + data).digest()

    left, right = (sha(b"leaf", bytes.fromhex(digest)) for digest in DIGESTS[:2])
    assert root(2) == sha(b"node", left + right).hex()


def test_roots_differ() -> None:
    assert len({root(count) for count in range(1, 70)}) == 69


def test_of_nothing_and_outside() -> None:
    assert merkle.Tree().root() == sha256(b"").hexdigest()
    with pytest.raises(IndexError):
        merkle.proof(DIGESTS[:3], 3)
    assert not merkle.verify(DIGESTS[0], 3, 3, [], root(3))


def test_a_number_at_or_beyond_the_count_is_in_no_tree() -> None:
    root = merkle.leaf(DIGESTS[0]).hex()
    assert merkle.verify(DIGESTS[0], 0, 1, [], root)
    assert not merkle.verify(DIGESTS[0], 1, 1, [], root)
    assert not merkle.verify(DIGESTS[0], -1, 1, [], root)


def test_a_proof_outside_of_the_entries_is_an_error() -> None:
    for index in (-1, 3, 4):
        with pytest.raises(IndexError, match=f"^entry {index} of 3$"):
            merkle.proof(DIGESTS[:3], index)
    assert merkle.proof(DIGESTS[:3], 2) == [merkle.root(DIGESTS[:2])]
    assert merkle.proof(DIGESTS[:1], 0) == []


def test_a_path_that_is_too_long_proves_nothing() -> None:
    root = merkle.leaf(DIGESTS[0]).hex()
    assert not merkle.verify(DIGESTS[0], 0, 1, [DIGESTS[1]], root)
    assert merkle.root([]) == sha256(b"").hexdigest()
    assert merkle.Tree().count == 0


def test_a_tree_counts_what_was_added() -> None:
    tree = merkle.Tree()
    for number, digest in enumerate(DIGESTS[:9], 1):
        tree.add(digest)
        assert tree.count == number
