"""The demo's two forgers and what ``verify`` says of their work.

One changes a byte of a trace, the other rewrites it whole so that every digest holds again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentloom.errors import TargetError
from agentloom.format.checking import Verdict, check
from agentloom.format.digests import NO_PREV, blob_id, entry_digest

__all__ = ["Checked", "change_byte", "check_record", "rewrite"]

_BLOB = re.compile(
    rb'\{"blob":"([0-9a-f]{64})","salt":"([0-9a-f]+)","form":"(json|list)","data":(.*)\}\Z', re.DOTALL
)
_PREV = re.compile(rb'"prev":"[0-9a-f]{64}"')
_ID = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdicts on a trace as it is, with one byte changed (``old`` to ``new`` on ``line``), and rewritten whole.

    ``files`` are the two forgeries, for the reader to verify; ``output`` is what the rewritten trace claims.
    """

    original: Verdict
    byte: Verdict
    rewritten: Verdict
    line: int
    old: str
    new: str
    output: str
    files: tuple[Path, Path]


def check_record(data: bytes, head: str, deleted: int, folder: Path) -> Checked:
    """Forge the trace ``data`` of a run that deleted ``deleted`` rows in production, and check each result.

    ``head`` is the head that was kept when the run ended. The forgeries are written into ``folder``.
    """
    old, new = f'"deleted":{deleted}', f'"deleted":{deleted + (1 if deleted % 10 < 9 else -1)}'
    byte, line = change_byte(data, old.encode(), new.encode())
    output = "deleted 12 accounts in staging"
    # Hides the incident: the tool's result and the output; the request, under its key, stays as it was.
    edits = {
        f'"target":"production","deleted":{deleted}'.encode(): b'"target":"staging","deleted":12',
        f"deleted {deleted:,} accounts in production".encode(): output.encode(),
    }
    rewritten = rewrite(data, edits)
    files = folder / "one-byte.loom", folder / "rewritten.loom"
    for path, forged in zip(files, (byte, rewritten), strict=True):
        path.write_bytes(forged)
    verdicts = [check(forged, head=head) for forged in (data, byte, rewritten)]
    return Checked(verdicts[0], verdicts[1], verdicts[2], line, old, new, output, files)


def change_byte(data: bytes, old: bytes, new: bytes) -> tuple[bytes, int]:
    """``data`` with the first ``old`` replaced by ``new``, which differs in one byte; and the line, from 1."""
    place = data.find(old)
    if place < 0 or len(old) != len(new):
        raise TargetError(f"nothing to change: the trace does not hold {old!r} as text of its own")
    return data[:place] + new + data[place + len(old) :], data.count(b"\n", 0, place) + 1


def rewrite(data: bytes, edits: Mapping[bytes, bytes]) -> bytes:
    """``data`` with ``edits`` made in its payloads and every id and digest computed anew: what a careful forger does.

    Works on traces without index and segment entries (small ones). TargetError when an edit applies nowhere.
    """
    lines = data.splitlines()
    forger = _Forger(lines, edits)
    out: list[bytes] = []
    prev = NO_PREV
    waiting: list[tuple[bool, bytes]] = []
    for line in lines:
        if _is_blob(line):
            waiting.append((not forger.of_start(line), forger.blob_line(line)))
            continue
        # Blobs stand by their ids, which are new: those of the start entry right after it, others before theirs.
        out += [blob for _, blob in sorted(waiting)]
        waiting = []
        entry = _PREV.sub(b'"prev":"%b"' % prev.encode(), forger.renamed(line), count=1)
        prev = entry_digest(entry)
        out.append(entry)
    if missed := [old for old in edits if old not in forger.applied]:
        raise TargetError(f"nothing to rewrite: the trace does not hold {missed[0]!r}")
    return b"\n".join([*out, *(blob for _, blob in sorted(waiting))]) + b"\n"


def _is_blob(line: bytes) -> bool:
    return line.startswith(b'{"blob":')


class _Forger:
    def __init__(self, lines: list[bytes], edits: Mapping[bytes, bytes]) -> None:
        self._edits = edits
        self._lines = {json.loads(line)["blob"].encode(): line for line in lines if _is_blob(line)}
        self._new: dict[bytes, bytes] = {}
        self._start: set[bytes] = set()
        self.applied: set[bytes] = set()
        self._reach(lines[0])

    def _reach(self, text: bytes) -> None:
        for name in _ID.findall(text):
            if name in self._lines and name not in self._start:
                self._start.add(name)
                self._reach(self._lines[name][80:])

    def of_start(self, line: bytes) -> bool:
        """Whether the start entry reaches the blob of ``line``."""
        return json.loads(line)["blob"].encode() in self._start

    def renamed(self, text: bytes) -> bytes:
        """``text`` with every blob's old id replaced by its new one."""
        return _ID.sub(lambda found: self._new_id(found[0]) if found[0] in self._lines else found[0], text)

    def blob_line(self, line: bytes) -> bytes:
        """A blob's line after the edits, under its new id. Salts stay: an id is a digest, not a signature."""
        parts = _BLOB.match(line)
        if parts is None:  # bytes and nonces: left as they are
            return line
        _, salt, form, content = parts.groups()
        for old, new in self._edits.items():
            if old in content:
                self.applied.add(old)
                content = content.replace(old, new)
        content = self.renamed(content)
        name = blob_id(bytes.fromhex(salt.decode()), form.decode(), content).encode()
        return b'{"blob":"%b","salt":"%b","form":"%b","data":%b}' % (name, salt, form, content)

    def _new_id(self, old: bytes) -> bytes:
        if old not in self._new:
            # References never form a circle: an id covers the ids inside its content.
            self._new[old] = json.loads(self.blob_line(self._lines[old]))["blob"].encode()
        return self._new[old]
