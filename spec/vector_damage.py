"""Vectors that must be refused, each with the code and the line that a checker gives."""

from __future__ import annotations

from typing import Any

from agentloom.format.digests import blob_id
from spec.vector_maker import (
    Maker,
    Vector,
    blob_line,
    edited,
    entry_line,
    finished,
    join,
    lines,
    number_of,
    rechained,
    small,
)
from spec.vector_traces import erase, merkle_root

SALT = bytes(range(16))
ID = b"0" * 64


def bad(name: str, about: str, data: bytes, code: str, line: int) -> Vector:
    """A vector that must be refused with ``code`` at ``line``."""
    return Vector(f"invalid/{name}.loom", about, data, code, line)


def vectors() -> list[Vector]:
    """All of them."""
    return [
        *_files(),
        *_lines(),
        *_json(),
        *_versions(),
        *_chain(),
        *_fields(),
        *_blobs(),
        *_order(),
        *_later(),
    ]


def _files() -> list[Vector]:
    whole = finished()
    return [
        bad("empty", "no bytes", b"", "file.empty", 1),
        bad("compressed", "a Zstandard frame", b"\x28\xb5\x2f\xfd\x04\x00", "file.compressed", 1),
        bad("bom", "a byte order mark", b"\xef\xbb\xbf" + whole, "file.bom", 1),
        bad("binary", "an image", b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "file.foreign", 1),
        bad(
            "foreign-json",
            "JSON lines of something else",
            b'{"id":1}\n{"id":2}\n',
            "file.foreign",
            1,
        ),
        bad(
            "foreign-seq",
            "begins like an entry",
            b'{"seq":0,"prev":"","at":1,"kind":"log"}\n',
            "file.foreign",
            1,
        ),
        bad(
            "foreign-format",
            "a start entry of another format",
            small(format="weft").data,
            "file.foreign",
            1,
        ),
        bad(
            "utf16",
            "UTF-16",
            b"\xff\xfe" + whole.decode().encode("utf-16-le"),
            "file.foreign",
            1,
        ),
        bad("cut-in-first-line", "stops in its first line", whole[:100], "file.torn", 1),
        bad("cut-in-first-bytes", "four bytes", whole[:4], "file.torn", 1),
        bad("no-start", "the start entry is gone", join(lines(whole)[1:]), "file.foreign", 1),
        bad("segment-alone", "a later segment by itself", _segment(), "segment.alone", 1),
    ]


def _segment() -> bytes:
    maker = Maker("segment alone")
    maker.entry("segment", n=1, format="loom", version="1.0", run="01hf7yat00abcdefghjkmnpqrs")
    return maker.data


def _lines() -> list[Vector]:
    whole = finished()
    crlf = whole.replace(b"\n", b"\r\n")
    empty = join([*lines(whole)[:3], b"", *lines(whole)[3:]])
    comment = join([*lines(whole)[:3], b"# a comment", *lines(whole)[3:]])
    indented = edited(whole, 5, lambda line: b" " + line)
    zeros = edited(whole, 4, lambda line: b"\x00" * len(line))
    merged = whole.replace(b"}\n{", b"} {", 1)
    return [
        bad("crlf", "CR LF line ends", crlf, "line.cr", 1),
        bad("empty-line", "an empty line", empty, "line.kind", 4),
        bad("comment", "a comment", comment, "line.kind", 4),
        bad("indented", "a space before a line", indented, "line.kind", 5),
        bad("zeros-inside", "a line of zero bytes in the middle", zeros, "line.kind", 4),
        bad("two-on-a-line", "a line end is lost", merged, "json.syntax", 1),
    ]


def _json() -> list[Vector]:
    whole = finished()
    last = len(lines(whole))

    def at_end(name: str, about: str, code: str, old: bytes, new: bytes) -> Vector:
        return bad(
            name,
            about,
            edited(whole, last, lambda line: line.replace(old, new, 1)),
            code,
            last,
        )

    kind = b'"kind":"end"'
    return [
        at_end(
            "duplicate-key", "a member twice in an entry", "json.duplicate", kind, kind + b',"kind":"end"'
        ),
        at_end("nan", "NaN in an entry", "json.syntax", kind, kind + b',"x-n":NaN'),
        at_end("overflow", "a number that overflows", "json.syntax", kind, kind + b',"x-n":1e400'),
        at_end(
            "big-integer", "an integer of 65 bits", "json.number", kind, kind + b',"x-n":18446744073709551616'
        ),
        at_end(
            "low-integer",
            "an integer below -2^63",
            "json.number",
            kind,
            kind + b',"x-n":-9223372036854775809',
        ),
        at_end("bad-utf8", "not UTF-8", "json.syntax", kind, kind + b',"x-s":"\xc3("'),
        at_end(
            "encoded-surrogate", "a surrogate in UTF-8", "json.syntax", kind, kind + b',"x-s":"\xed\xa0\x80"'
        ),
        at_end(
            "escaped-surrogate", "a lone surrogate, escaped", "json.syntax", kind, kind + b',"x-s":"\\ud800"'
        ),
        at_end("control-character", "a bare control character", "json.syntax", kind, kind + b',"x-s":"\x01"'),
        at_end("trailing-comma", "not JSON", "json.syntax", kind, kind + b","),
        at_end("too-deep", "211 levels", "json.depth", kind, kind + b',"x-d":' + b"[" * 210 + b"]" * 210),
        bad(
            "entry-is-cut",
            "half an entry, and its line end",
            edited(whole, 1, lambda part: part[:90]),
            "json.syntax",
            1,
        ),
        bad(
            "blob-duplicate-key",
            "a member twice in a payload",
            *_blob_json(b'{"a":1,"a":2}', "json.duplicate"),
        ),
        bad(
            "blob-big-integer",
            "2^70 in a payload",
            *_blob_json(b"[1180591620717411303424]", "json.number"),
        ),
        bad("blob-not-json", "a payload that is not JSON", *_blob_json(b"{a:1}", "json.syntax")),
        bad(
            "blob-too-deep",
            "a payload of 211 levels",
            *_blob_json(b"[" * 211 + b"]" * 211, "json.depth"),
        ),
        bad(
            "blob-bad-list",
            "$list with a count of 0",
            *_blob_json(b'{"$list":["%b",0,[]]}' % ID, "blob.list"),
        ),
        bad(
            "blob-odd-list",
            "$list with a member missing",
            *_blob_json(b'{"messages":{"$list":["%b",1]}}' % ID, "blob.list"),
        ),
    ]


def _blob_json(content: bytes, code: str) -> tuple[bytes, str, int]:
    """A run whose end value is a json blob with that content and a right id."""
    ident = blob_id(SALT, "json", content)
    start = Maker("blob json").start()
    before = len(lines(start.data))
    line = blob_line(ident, SALT, "json", content)
    start.data += line + b"\n"
    return start.entry("end", status="completed", val=ident).data, code, before + 1


def _versions() -> list[Vector]:
    def start(**changes: Any) -> bytes:
        return small(**changes).end().data

    encrypted = blob_line("0" * 64, SALT, "json", b"1").replace(
        b',"data"', b',"codec":"age","kid":"k1","data"'
    )
    rehash = small().entry("rehash", digest="sha3-512", head="0" * 128).end().data
    return [
        bad("newer-major", "version 2.0", start(version="2.0"), "version.major", 1),
        bad("version-text", "a version that is none", start(version="1"), "entry.field", 1),
        bad("must-understand", "an unknown flag", start(flags=["time-travel"]), "version.flag", 1),
        bad(
            "other-digest",
            "another digest algorithm",
            start(digest="sha3-512"),
            "version.digest",
            1,
        ),
        bad("other-keys", "another key algorithm", start(keys=2), "version.digest", 1),
        bad(
            "rehash",
            "goes on with another digest",
            rehash,
            "version.digest",
            entry_line(rehash, "rehash"),
        ),
        bad(
            "encrypted",
            "an encrypted payload",
            join([*lines(start())[:1], encrypted]),
            "version.codec",
            2,
        ),
    ]


def _chain() -> list[Vector]:
    whole = finished()
    parts = lines(whole)
    request, outcome = entry_line(whole, "request"), entry_line(whole, "outcome")
    end = len(parts)
    swapped = list(parts)
    swapped[request - 1], swapped[outcome - 1] = parts[outcome - 1], parts[request - 1]
    doubled = [*parts[:request], parts[request - 1], *parts[request:]]
    dropped = parts[: request - 1] + parts[request:]
    changed = edited(whole, outcome, lambda line: line.replace(b'"status":"ok"', b'"status":"no"'))
    quiet = edited(whole, outcome, lambda line: line.replace(b'"dur":300000000', b'"dur":300000001'))
    first = edited(whole, 1, lambda line: line.replace(b'"agent":"support"', b'"agent":"suppose"'))
    following = entry_line(whole, "request", 1)
    return [
        bad(
            "entry-changed",
            "a duration changed: seen one later",
            quiet,
            "chain.prev",
            following,
        ),
        bad("entry-status", "a status that there is not", changed, "entry.field", outcome),
        bad("start-changed", "the agent's name changed", first, "chain.prev", request),
        bad("entries-swapped", "two entries exchanged", join(swapped), "entry.seq", request),
        bad("entry-doubled", "an entry twice", join(doubled), "entry.seq", request + 1),
        bad(
            "entry-dropped",
            "an entry gone",
            join(dropped),
            "entry.seq",
            entry_line(join(dropped), "outcome"),
        ),
        bad("prev-of-first", "entry 0 with a digest before it", _first_prev(), "chain.prev", 1),
        bad("seq-skipped", "numbers skip one", _renumbered(end), "entry.seq", end),
    ]


def _first_prev() -> bytes:
    return small().data.replace(b"0" * 64, b"1" * 64, 1)


def _renumbered(end: int) -> bytes:
    return rechained(finished(), end, lambda entry: entry.update(seq=entry["seq"] + 1))


def _fields() -> list[Vector]:
    whole = finished()

    def changed(name: str, about: str, kind: str, code: str = "entry.field", **changes: Any) -> Vector:
        line = entry_line(whole, kind)

        def edit(entry: dict[str, Any]) -> None:
            entry.update(changes)
            for gone in [key for key, value in entry.items() if value == "absent"]:
                del entry[gone]

        return bad(name, about, rechained(whole, line, edit), code, line)

    tick = small().entry("tick", d=4, vt=9_000_000).end().data
    again = small().entry("tick", d=1, vt=9_000_000, reads=2).end().data
    return [
        bad("tick-without-reads", "a tick at no reading", tick, "entry.field", entry_line(tick, "tick")),
        bad("tick-doubled", "a tick of another's number", again, "order.delivery", entry_line(again, "tick")),
        changed("request-without-key", "a request without a key", "request", key="absent"),
        changed("call-is-a-number", "a call id that is a number", "request", call=7),
        changed(
            "call-id-syntax", "a call id without a counter", "request", "callid.syntax", call="root/agent"
        ),
        changed(
            "call-id-escape",
            "an escape that is not needed",
            "request",
            "callid.syntax",
            call="root/%41gent#0",
        ),
        changed(
            "call-id-zero", "a counter with a leading zero", "request", "callid.syntax", call="root/agent#00"
        ),
        changed(
            "call-id-long",
            "a call id of more than 65,536 characters",
            "request",
            "callid.syntax",
            call=f"root/{'a' * 65_530}#1",
        ),
        changed("req-is-text", "text where a payload's id belongs", "request", req="lookup_order(812)"),
        changed("vt-is-float", "virtual time with a fraction", "outcome", vt=1.5),
        changed("at-is-text", "a time that is text", "outcome", at="2024-01-01"),
        changed("flag-as-true", "true where an integer belongs", "outcome", vt=True),
        changed("end-status", "a run that ended as nothing known", "end", status="done"),
        changed("run-id", "a run id of another kind", "start", run="7f3a"),
        changed("start-without-nonce", "no nonce", "start", nonce="absent"),
        changed("delivery-zero", "delivery numbers begin at 1", "outcome", d=0),
    ]


def _blobs() -> list[Vector]:
    whole = finished()
    parts = lines(whole)
    blob = number_of(whole, lambda line: b'"order":812' in line)
    line = parts[blob - 1]
    one, two = _pair(whole)
    exchanged = list(parts)
    exchanged[one - 1], exchanged[two - 1] = parts[two - 1], parts[one - 1]
    early = [*parts[:1], line, *(part for part in parts[1:] if part != line)]
    doubled = [*parts[:blob], line, *parts[blob:]]

    def changed(name: str, about: str, code: str, old: bytes, new: bytes) -> Vector:
        return bad(
            name,
            about,
            edited(whole, blob, lambda part: part.replace(old, new, 1)),
            code,
            blob,
        )

    return [
        changed("blob-changed", "one digit of a payload changed", "blob.id", b'"order":812', b'"order":813'),
        changed("blob-spacing", "a space in a payload", "blob.id", b'"order":812', b'"order": 812'),
        changed(
            "blob-salt", "another salt", "blob.id", line[83:85], b"00" if line[83:85] != b"00" else b"11"
        ),
        changed("blob-salt-short", "a salt of 15 bytes", "blob.form", line[83:115], line[83:113]),
        changed("blob-salt-long", "a salt of 17 bytes", "blob.form", line[83:115], line[83:115] + b"00"),
        changed("blob-upper-case", "upper-case hex", "blob.form", line[9:73], line[9:73].upper()),
        changed("blob-form", "an unknown form", "blob.form", b'"form":"json"', b'"form":"yaml"'),
        changed("blob-extra-member", "a member too many", "blob.form", b',"data"', b',"size":3,"data"'),
        changed("blob-space-in-frame", "a space in the frame", "blob.form", b',"data":', b', "data":'),
        bad(
            "blob-space-at-end",
            "a space at the end",
            edited(whole, blob, lambda part: part + b" "),
            "blob.form",
            blob,
        ),
        bad("blob-doubled", "a payload twice", join(doubled), "blob.duplicate", blob + 1),
        bad("blobs-exchanged", "two payloads exchanged", join(exchanged), "blob.order", two),
        bad("blob-moved", "a payload far from its entry", join(early), "blob.place", 2),
        bad(
            "base64-spelling",
            "base64 with loose bits",
            *_binary(b'"AB=="', b"\x00", "blob.base64"),
        ),
        bad(
            "base64-url",
            "base64 of the other alphabet",
            *_binary(b'"-_8="', b"\xfb\xff", "blob.base64"),
        ),
        bad("nonce-short", "a nonce of 31 bytes", *_short_nonce()),
    ]


def _spaced(whole: bytes, number: int) -> bytes:
    return edited(whole, number, lambda part: part + b" ")


def _pair(whole: bytes) -> tuple[int, int]:
    """Two neighbouring blob lines of the start entry."""
    parts = lines(whole)
    return next((n, n + 1) for n in range(2, len(parts)) if parts[n - 1][:7] == parts[n][:7] == b'{"blob"')


def _binary(text: bytes, content: bytes, code: str) -> tuple[bytes, str, int]:
    maker = Maker("binary").start()
    before = len(lines(maker.data))
    ident = blob_id(SALT, "bytes", content)
    maker.data += blob_line(ident, SALT, "bytes", text) + b"\n"
    return maker.entry("end", status="completed", val=ident).data, code, before + 1


def _short_nonce() -> tuple[bytes, str, int]:
    whole = finished()
    number = number_of(whole, lambda line: b'"form":"nonce"' in line)
    text = b'"' + b"A" * 41 + b'A=="'
    ident = blob_id(SALT, "nonce", b"\x00" * 31)
    return edited(whole, number, lambda _: blob_line(ident, SALT, "nonce", text)), "blob.size", number


def _order() -> list[Vector]:
    def ended(name: str, about: str, code: str, maker: Maker, kind: str, nth: int = 0) -> Vector:
        return bad(name, about, maker.data, code, entry_line(maker.data, kind, nth))

    twice = small().request("root/agent#2", "tool", "x", {})
    lost = small().outcome("root/agent#9", 1)
    answered = small().outcome("root/agent#2", 1)
    chunks = small().entry("chunks", call="root/agent#2", items=[], val=small().put([]))
    same = small().entry("timer", d=3, vt=0)
    hole = small().entry("timer", d=5, vt=0).end()
    after = small().end().request("root/agent#3", "tool", "x", {})
    return [
        ended("request-twice", "a call requested twice", "call.duplicate", twice, "request", 3),
        ended("outcome-unknown", "an outcome that nothing requested", "call.unknown", lost, "outcome", 3),
        ended("outcome-twice", "two outcomes of a call", "call.answered", answered, "outcome", 3),
        ended(
            "chunks-after-outcome", "a stream that goes on after its end", "call.answered", chunks, "chunks"
        ),
        ended("delivery-twice", "two events with one number", "order.delivery", same, "timer"),
        ended("delivery-missing", "a number that nothing has", "order.delivery", hole, "end"),
        ended("after-the-end", "a request after the end", "order.closed", after, "request", 3),
        ended("end-twice", "two ends", "order.closed", small().end().end(), "end", 1),
        ended("second-start", "a start entry in the middle", "order.start", _second_start(), "start", 1),
        ended(
            "epoch-older",
            "an epoch that is not one more",
            "order.epoch",
            small().entry("resume", epoch=1),
            "resume",
        ),
        ended("totals", "totals that are not right", "end.totals", small().end(totals={"calls": 2}), "end"),
    ]


def _second_start() -> Maker:
    maker = small()
    before = maker.data
    maker.data = b""
    maker.start()
    first = maker.data.index(b"\n") + 1
    maker.data = before + maker.data[:first]
    return maker


def _later() -> list[Vector]:
    count = small().end()
    count.entry("seal", count=2, root="0" * 64)
    root = small().end()
    root.entry("seal", count=root.journal.seq + 1, root=merkle_root(small().data))
    kept, nonce, text = erase(drop=False), erase(nonce=False), erase(blobs=["all of it"])
    first = {"from": 0}
    retract = small().entry("retract", **first).data
    ended = small().end()
    behind = ended.entry("note").entry("retract", **{"from": ended.journal.seq}).data
    erased = number_of(kept, lambda line: b'"form":"nonce"' in line)
    return [
        bad(
            "seal-count",
            "a seal over another count",
            count.data,
            "seal.count",
            entry_line(count.data, "seal"),
        ),
        bad(
            "seal-root",
            "a seal of something else",
            root.data,
            "seal.root",
            entry_line(root.data, "seal"),
        ),
        bad("erased-but-there", "an erased payload is still there", kept, "erase.present", erased),
        bad(
            "erased-without-nonce",
            "the nonce was left",
            nonce,
            "erase.nonce",
            entry_line(nonce, "erase"),
        ),
        bad("erase-by-name", "erase names no ids", text, "entry.field", entry_line(text, "erase")),
        bad(
            "retract-all",
            "retracts the start",
            retract,
            "retract.range",
            entry_line(retract, "retract"),
        ),
        bad(
            "retract-behind-the-end",
            "retracts what stands behind the end",
            behind,
            "retract.range",
            entry_line(behind, "retract"),
        ),
    ]
