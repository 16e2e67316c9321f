"""The Merkle tree over a run's entries, as in RFC 9162 section 2.1 with prefixes of its own (docs/trace-format.md).

One leaf per entry, over the entry's digest. A signed root with its count proves that one entry belongs to the run by
about log2(n) digests, without showing the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from agentloom.format.digests import LEAF, NODE

__all__ = ["Tree", "leaf", "proof", "root", "verify"]


class Tree:
    """A tree that grows: keeps the roots of the complete subtrees only, so that adding costs O(1) on average."""

    def __init__(self) -> None:
        self.count = 0
        self._peaks: list[bytes] = []  # roots of the complete subtrees, largest first

    def add(self, entry_digest: str) -> None:
        """Add the next entry by its digest (64 hex digits)."""
        node = leaf(entry_digest)
        self.count += 1
        size = self.count
        while size % 2 == 0:
            node = _node(self._peaks.pop(), node)
            size //= 2
        self._peaks.append(node)

    def root(self) -> str:
        """The root over everything added so far, 64 hex digits. Of no entries: the digest of nothing."""
        if not self._peaks:
            return sha256(b"").hexdigest()
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = _node(peak, node)
        return node.hex()


def leaf(entry_digest: str) -> bytes:
    """The leaf of an entry."""
    return sha256(LEAF + bytes.fromhex(entry_digest)).digest()


def root(entry_digests: Sequence[str]) -> str:
    """The root over entries by their digests, 64 hex digits."""
    tree = Tree()
    for digest in entry_digests:
        tree.add(digest)
    return tree.root()


def proof(entry_digests: Sequence[str], index: int) -> list[str]:
    """The inclusion path of entry ``index``, lowest first: ``index`` must be below the number of entries."""
    if not 0 <= index < len(entry_digests):
        raise IndexError(f"entry {index} of {len(entry_digests)}")
    return [node.hex() for node in _path([leaf(digest) for digest in entry_digests], index)]


def verify(entry_digest: str, index: int, count: int, path: Sequence[str], root: str) -> bool:
    """Whether ``path`` shows that the entry is number ``index`` of ``count`` under ``root`` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < count:
        return False
    at, last, node = index, count - 1, leaf(entry_digest)
    for item in path:
        if last == 0:
            return False
        sibling = bytes.fromhex(item)
        if at & 1 or at == last:
            node = _node(sibling, node)
            while not at & 1 and at:
                at >>= 1
                last >>= 1
        else:
            node = _node(node, sibling)
        at >>= 1
        last >>= 1
    return last == 0 and node.hex() == root


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(NODE + left + right).digest()


def _split(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1


def _root(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return _node(_root(leaves[:middle]), _root(leaves[middle:]))


def _path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*_path(leaves[:middle], index), _root(leaves[middle:])]
    return [*_path(leaves[middle:], index - middle), _root(leaves[:middle])]
