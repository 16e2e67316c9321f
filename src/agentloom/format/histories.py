"""Growing lists: which earlier list does this one extend, and by what?

An agent of N turns sends its whole history each turn. A history that extends an earlier one is known as such since it
was captured, or is recognised by comparing bytes (one memcmp); only what was added is looked at item by item. A history
that was edited or compacted is compared with every earlier prefix by digest, and starts anew where nothing fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from agentloom.format.canonical import Tree
from agentloom.format.captures import Grown
from agentloom.format.echoes import drop_oldest, text_of

__all__ = ["Growth", "Histories", "History"]

_REMEMBERED = 8  # lists of one field of a series that are kept as bytes: conversations that take turns


@dataclass(slots=True, eq=False)
class History:
    """A list as it was last written: in which blob, its JSON without the closing bracket (empty where the list is known
    since it was captured), the size of its JSON, how many items."""

    blob: str
    stem: bytes
    size: int
    count: int
    digest: bytes


@dataclass(slots=True)
class Growth:
    """A list and what it extends: the first ``keep`` items are those of ``base``, ``added`` are the rest, each with its
    JSON and what stands for its content.

    ``digest`` stands for the whole content, ``size`` is that of its JSON; ``again``: nothing fits although the series
    had lists before.
    """

    field: str
    items: list[Tree]
    stem: bytes
    size: int
    base: str
    keep: int
    added: list[tuple[bytes, bytes]]
    digests: list[bytes]
    again: bool

    @property
    def digest(self) -> bytes:
        """The chained digest over all items."""
        return self.digests[-1]


class Histories:
    """The lists that a run has written: every prefix by its digest, and the latest of each series as bytes."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], list[History]] = {}
        self._prefixes: dict[bytes, str] = {}  # digest of a prefix -> a blob whose list begins so

    def growth(self, series: str, field: str, items: list[Tree], grown: Grown | None) -> Growth:
        """What ``items`` (not empty) adds to an earlier list that it begins with; ``grown`` is what capturing it found
        out, if it did."""
        latest = self._latest.setdefault((series, field), [])
        if grown is None:
            text = text_of(items)
            stem = text[:-1]
            for history in latest:
                end = len(history.stem)
                if end and text.startswith(history.stem) and text[end : end + 1] in (b",", b"]"):
                    return _extended(field, items, stem, history, latest, None)
        else:
            stem = b""
            base = grown if grown.base is None else grown.base
            if base.history is not None:
                texts_added = grown.texts if base is not grown else None
                return _extended(field, items, stem, base.history, latest, texts_added)
        texts = _identified([text_of(item) for item in items])
        size = _size(texts) + 1
        digests = _chain(field.encode(), texts)
        for keep in range(len(items), 0, -1):
            known = self._prefixes.get(digests[keep])
            if known is not None:
                return Growth(field, items, stem, size, known, keep, texts[keep:], digests[keep:], False)
        return Growth(field, items, stem, size, "", 0, texts, digests, bool(latest))

    def wrote(self, series: str, growth: Growth, blob: str) -> History:
        """The list of ``growth`` is in ``blob`` now (perhaps it was already)."""
        for link in growth.digests[1:]:  # the first is that of nothing, or of what it extends
            self._prefixes.setdefault(link, blob)
        drop_oldest(self._prefixes)
        latest = self._latest[series, growth.field]
        # A list that adds nothing is better read from where it was first written.
        source = blob if growth.added else growth.base
        written = History(source, growth.stem, growth.size, len(growth.items), growth.digest)
        latest.insert(0, written)
        del latest[_REMEMBERED:]
        return written


def _extended(
    field: str,
    items: list[Tree],
    stem: bytes,
    history: History,
    latest: list[History],
    added: list[bytes] | None,
) -> Growth:
    """The growth of a list that begins with all of ``history``, which it takes the place of; ``added`` is the JSON of
    the items after it, where it is known."""
    if history in latest:
        latest.remove(history)
    if added is None:
        added = [text_of(item) for item in items[history.count :]]
    # What ``_identified``, ``_size`` and ``_chain`` do, in one walk.
    texts: list[tuple[bytes, bytes]] = []
    digest, size = history.digest, history.size
    digests = [digest]
    for text in added:
        known = sha256(b"json" + text).digest()
        digest = sha256(digest + known).digest()
        texts.append((text, known))
        digests.append(digest)
        size += len(text) + 1
    return Growth(field, items, stem, size, history.blob, history.count, texts, digests, False)


def _size(texts: list[tuple[bytes, bytes]]) -> int:
    """The bytes of items in the JSON of a list, each with what stands before it."""
    return sum([len(text) for text, _ in texts]) + len(texts)


def _identified(texts: list[bytes]) -> list[tuple[bytes, bytes]]:
    return [(text, sha256(b"json" + text).digest()) for text in texts]


def _chain(digest: bytes, texts: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The digest so far, and after each further item."""
    digests = [digest]
    for _, known in texts:
        digest = sha256(digest + known).digest()
        digests.append(digest)
    return digests
