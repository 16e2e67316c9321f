"""Check one .loom file against docs/trace-format.md: python spec/verify.py FILE [--head HEX]

Standard library only, Python 3.11 or later. Exit status: 0 when no verdict is "no", 5 when one is, 2 for a wrong call
or a file that cannot be opened. Numbers in comments are sections of the specification.
"""

import argparse
import base64
import functools
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

Place = tuple[int, int]  # line from 1, byte offset
LINE, PART, DEPTH, ID = 16 * 1024 * 1024, 1024 * 1024, 210, 65536  # 16
HEX = re.compile("[0-9a-f]{64}")
BLOB_HEAD = rb'\{"blob":"([0-9a-f]{64})","salt":"([0-9a-f]{32})","form":"'
BLOB = re.compile(BLOB_HEAD + rb'(json|bytes|nonce)","data":(.+)\}')  # 5.1
SEGMENT = r"(?:[A-Za-z0-9_.-]|%[0-9A-F]{2})+(?:\[(?:0|[1-9][0-9]*)\])?"
CALL = re.compile(rf"{SEGMENT}(?:/{SEGMENT})*#(?:0|[1-9][0-9]*)(?:~(?:[2-9]|[1-9][0-9]+))?")  # 8
RUN = re.compile("[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}")  # 9
NOT_REFS_TEXT = """seq prev at kind head root blobs sig call type name key profile src parent effect run agent entry
    format version digest flags ask origin status reads goto others"""  # 5.5
BLOBS_TEXT = "code env input policy tags conversation nonce req rule val err who default vars secrets"
NOT_REFS, BLOB_FIELDS = set(NOT_REFS_TEXT.split()), set(BLOBS_TEXT.split())
FIELDS = """start format:str version:str run:str digest:str flags:list keys:int agent:str code:str env:str input:str
    policy:str nonce:str clock:dict epoch:int | request call:str type:str name:str key:str profile:str req:str |
    outcome call:str vt:int status:str | chunks call:str items:list val:str | timer d:int vt:int | cancel d:int vt:int
    | turn d:int vt:int | tick d:int vt:int reads:int | state call:str name:str key:str val:str | note | flag | tag |
    gap why:str | end status:str | suspend ask:str call:str val:str | answer ask:str val:str | signal name:str val:str
    | resume epoch:int | retract from:int | erase blobs:list val:str | seal count:int root:str | index offset:int
    last:int? | segment n:int format:str version:str run:str | rehash digest:str head:str"""  # 4.2
TYPES = {"str": (str,), "list": (list,), "dict": (dict,), "int": (int,), "int?": (int, type(None))}
KINDS = {words[0]: [word.split(":") for word in words[1:]] for words in map(str.split, FIELDS.split("|"))}
AFTER_END = {"erase", "seal", "tag", "flag", "note", "index", "retract"}
STATUS = {"outcome": "ok error cancelled closed", "end": "completed failed cancelled"}


def need(holds: object, message: str) -> None:
    if not holds:
        raise ValueError(message)


def sha(prefix: str, data: bytes) -> bytes:  # 7
    return hashlib.sha256(b"agentloom/v1/" + prefix.encode() + b"\x00" + data).digest()


def strict_json(text: bytes) -> Any:  # 3.2
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(items)) == len(items), "a key stands twice in one object")
        return dict(items)

    level = [value := json.loads(text.decode(), object_pairs_hook=pairs)]
    json.dumps(value, ensure_ascii=False).encode()  # finds lone surrogates
    for _ in range(DEPTH + 1):
        need(all(map(fits, level)), "a number out of range")
        last, level = level, [item for box in level for item in inside(box)]
    need(not any(isinstance(item, (dict, list)) for item in last), f"more than {DEPTH} levels")
    return value


def fits(item: Any) -> bool:
    return -(2**63) <= item < 2**64 if type(item) is int else type(item) is not float or item - item == 0


def inside(box: Any) -> list[Any]:
    return list(box.values()) if isinstance(box, dict) else box if isinstance(box, list) else []


def entry_refs(value: Any) -> list[str]:  # 5.5
    if isinstance(value, dict):
        value = [item for name, item in value.items() if isinstance(item, dict) or name not in NOT_REFS]
    if isinstance(value, list):
        return [found for item in value for found in entry_refs(item)]
    return [value] if isinstance(value, str) and HEX.fullmatch(value) else []


def blob_refs(tree: Any) -> list[str]:  # 5.4, 5.5
    found: list[str] = []
    for box in [tree, *(inside(tree) if isinstance(tree, dict) else [])]:
        if isinstance(box, dict) and list(box) == ["$list"]:
            parts = box["$list"]
            typed = isinstance(parts, list) and list(map(type, parts)) == [str, int, list]
            need(typed and HEX.fullmatch(parts[0]) and parts[1] > 0, "a malformed $list")
            found.append(parts[0])
    todo = [tree]
    while todo:
        item = todo.pop()
        ref = item.get("$ref") if isinstance(item, dict) and len(item) == 1 else None
        found += [ref] if isinstance(ref, str) and HEX.fullmatch(ref) else []
        todo += inside(item)
    return found


def is_call(text: str) -> bool:  # 8: the grammar, UTF-8 under the escapes, and no escape that is not needed
    raw = b"".join(bytes.fromhex(code or "2F") for code in re.findall("%([0-9A-F]{2})|[^%]", text[:ID]))
    plain = raw.decode("utf-8", "surrogatepass")
    return len(text) <= ID and CALL.fullmatch(text) is not None and not re.search("[A-Za-z0-9_.-]", plain)


def root_of(full: list[tuple[int, bytes]], digests: list[str]) -> str:  # 7.5: full trees so far
    for digest in digests[sum(size for size, _ in full) :]:
        full.append((1, sha("leaf", bytes.fromhex(digest))))
        while len(full) > 1 and full[-2][0] == full[-1][0]:
            (size, left), (_, right) = full.pop(-2), full.pop()
            full.append((2 * size, sha("node", left + right)))
    return functools.reduce(lambda right, tree: sha("node", tree[1] + right), full[-2::-1], full[-1][1]).hex()


class Checker:
    def __init__(self) -> None:
        self.at: Place = (1, 0)  # what is looked at
        self.entries, self.digests = list[tuple[dict[str, Any], Place]](), list[str]()
        self.blobs: dict[str, tuple[bytes, bytes, Place, int]] = {}  # form, content, place, entries before
        self.asked, self.done = dict[str, int](), dict[str, int]()  # call -> seq
        self.given, self.ended = dict[int, int](), dict[str, int]()  # delivery -> seq; the end entry
        self.erased, self.missing, self.owner = set[str](), set[str](), dict[str, int]()
        self.epoch, self.torn, self.trees = 1, 0, list[tuple[int, bytes]]()  # 7.5

    def read(self, data: bytes) -> None:  # steps 1 to 6
        need(data, "the file is empty")
        need(data[:4] != b"\x28\xb5\x2f\xfd", "the file is compressed; decompress it first: zstd -d")
        need(data.startswith(b'{"seq":'[: len(data)]), "not a trace: it does not begin with an entry")
        number = end = 0
        while end < len(data):
            number, start, end = number + 1, end, data.find(b"\n", end) + 1
            self.at = (number, start)
            if end == 0 or (start and end == len(data) and b"\x00" in data[start:end]):  # 3.6
                self.torn = len(data) - start
                break
            line = data[start : end - 1]
            need(b"\r" not in line and len(line) <= LINE, "a carriage return, or over 16 MiB")
            if line.startswith(b'{"blob":'):
                self.blob(line)
            else:
                need(line.startswith(b'{"seq":'), "neither an entry nor a blob")
                entry = strict_json(line)
                self.entry(entry, entry.get("kind"), len(self.entries))
                self.entries.append((entry, self.at))
                self.digests.append(sha("entry", line).hex())
        need(self.entries, "stops before its first line ends")
        loose = [place[1] for _, _, place, before in self.blobs.values() if before == len(self.entries) > 1]
        self.torn = len(data) - min(loose) if loose else self.torn  # blob lines without their entry

    def blob(self, line: bytes) -> None:  # step 3
        match = BLOB.fullmatch(line)
        need(match, "not a blob line of version 1.0 (or an encrypted one)")
        ident, salt, form, content = match.groups() if match else (b"",) * 4
        if form != b"json":
            text, content = content, base64.b64decode(content[1:-1], validate=True)
            need(text == b'"' + base64.b64encode(content) + b'"', "another spelling of base64")
            need(len(content) <= PART and (form == b"bytes" or len(content) == 32), "too much or too little")
        digest = sha("blob", bytes.fromhex(salt.decode()) + form + b"\x00" + content).hex()
        need(digest == ident.decode(), "the content is not that of the id")
        need(digest not in self.blobs, "the blob stands in the file twice")
        self.blobs[digest] = (form, content, self.at, len(self.entries))

    def entry(self, entry: dict[str, Any], kind: Any, here: int) -> None:  # steps 4 and 5
        seq, prev = entry.get("seq"), self.digests[-1] if here else "0" * 64
        need(type(seq) is type(entry.get("at")) is int and type(kind) is str, "seq, at or kind is missing")
        if seq == here == 0:
            self.start(entry, kind)
        need(seq == here < 2**53, f"entry {seq} where entry {here} belongs")
        need(entry.get("prev") == prev, "prev is not the digest of the entry before")
        need(here == 0 or kind != "start", "a second start entry")
        need(not self.ended or kind in AFTER_END, f"a {kind} entry after the end entry")
        self.fields(entry, kind)
        self.rules(entry, kind, here)

    def start(self, entry: dict[str, Any], kind: str) -> None:
        need(kind == "start" and entry.get("format") == "loom", "not a start entry (or a later segment)")
        version = re.fullmatch(r"([1-9][0-9]*)\.(?:0|[1-9][0-9]*)", str(entry.get("version")))
        need(version and version[1] == "1", f"version {entry.get('version')} needs a newer checker")
        self.fields(entry, kind)
        need((entry["digest"], entry["keys"], entry["flags"]) == ("sha256", 1, []), "needs a newer checker")
        need(RUN.fullmatch(entry["run"]), "run is not a run id")
        self.epoch = entry["epoch"]

    def fields(self, entry: dict[str, Any], kind: str) -> None:
        for name, wanted in KINDS.get(kind, []):
            need(type(entry.get(name, ...)) in TYPES[wanted], f"a {kind} entry needs {name} ({wanted})")
        for name in entry.keys() & BLOB_FIELDS if kind in KINDS else []:
            need(HEX.fullmatch(str(entry[name])), f"{name} is not a blob id")
        need(kind not in STATUS or entry["status"] in STATUS[kind].split(), f"status {entry.get('status')}")

    def rules(self, entry: dict[str, Any], kind: str, here: int) -> None:  # step 6
        call = str(entry.get("call"))
        if kind == "request":
            need(call not in self.asked and is_call(call), f"{call[:99]}: requested twice, or not a call id")
            self.asked[call] = here
        elif kind in ("outcome", "chunks"):
            need(call in self.asked, f"nothing requested {call[:99]}")
            need(call not in self.done, f"{call} has its outcome already")
            self.done |= {call: here} if kind == "outcome" else {}
        one = "d" in entry and kind in ("outcome", "timer", "cancel", "turn", "tick")
        for item in [[entry["d"], 0, 0]] if one else entry["items"] if kind == "chunks" else []:
            typed = isinstance(item, list) and list(map(type, item)) == [int, int, int]
            need(typed and item[0] > 0, "not a delivery [d, vt, offset]")
            need(item[0] not in self.given, f"delivery {item[0]} happens twice")
            self.given[item[0]] = here
        if kind == "end":
            need(max(self.given, default=0) == len(self.given), "a delivery never happened")
            counts = {"calls": len(self.asked), "deliveries": len(self.given)}
            totals = entry.get("totals", counts)
            need(type(totals) is dict and totals | counts == counts | totals, "the totals are wrong")
            self.ended = {kind: here}
        elif kind == "resume":
            self.epoch += 1
            need(entry["epoch"] == self.epoch, f"epoch {entry['epoch']} where {self.epoch} belongs")
        elif kind == "retract":
            need(0 < (first := entry["from"]) <= min([here - 1, *self.ended.values()]), "a bad retract")
            for since in (self.asked, self.done, self.given, self.ended):  # each in the order of entries
                while since and next(reversed(since.values())) >= first:
                    since.popitem()
        elif kind == "erase":
            need(all(HEX.fullmatch(str(ident)) for ident in entry["blobs"]), "erase names blobs by their ids")
            self.erased.update(entry["blobs"])
            need(self.entries[0][0]["nonce"] in self.erased, "a payload was erased, the key nonce was not")
        elif kind == "seal":
            need(entry["count"] == here and entry["root"] == root_of(self.trees, self.digests), "a bad seal")
        need(kind != "rehash", "goes on with an algorithm that needs a newer checker")

    def place_blobs(self) -> None:  # steps 7 and 8
        links: dict[str, list[str]] = {}
        for ident, (form, content, place, _) in self.blobs.items():
            self.at = place
            need(ident not in self.erased, "an erased blob is there")
            links[ident] = blob_refs(strict_json(content)) if form == b"json" else []
        for seq, (entry, _) in enumerate(self.entries):
            todo = entry_refs(entry)
            while todo:
                ident = todo.pop()
                if ident not in self.blobs:
                    self.missing |= {ident} - self.erased
                elif ident not in self.owner:
                    self.owner[ident] = seq
                    todo += links[ident]
        last = (-1, "")
        for ident, (_, _, place, before) in self.blobs.items():
            if ident in self.owner:
                self.at, owner, allowed = place, self.owner[ident], (0, 1) if before == 1 else (before,)
                need(owner in allowed or self.erased, f"the blob belongs to entry {owner}")
                last, earlier = (owner if owner in allowed else allowed[-1], ident), last
                need(last > earlier, "the blob is not in its place by id")

    def complete(self) -> None:  # step 11
        for entry, place in self.entries:
            self.at = place
            need(not self.missing.intersection(entry_refs(entry)), "a payload is not in the file")
        need(not self.missing, "a part of a payload is not in the file")
        need(not self.torn, f"{self.torn} bytes of an unfinished append after the last entry")
        need(self.ended, "no end entry: it goes on, stopped, or was cut")
        gaps = [place for entry, place in self.entries if entry["kind"] == "gap"]
        self.at = (gaps or [self.at])[0]
        need(not gaps, "something was not recorded here")


def check(data: bytes, head: str | None = None) -> dict[str, Any]:
    """The three verdicts, and line, offset and text of the first fault, or else of what is incomplete."""
    checker, message, result = Checker(), "", dict[str, Any](consistent=False, complete=False)
    try:
        checker.read(data)
        checker.place_blobs()
        result["consistent"] = True
        checker.complete()
        result["complete"] = True
    except (ValueError, RecursionError) as error:
        message = str(error)
    result["unaltered"] = None if head is None else result["consistent"] and head in checker.digests
    if result["unaltered"] is False and result["consistent"]:
        message, checker.at = "no entry has the given head", checker.entries[-1][1]
    result |= {"place": checker.at if message else None, "message": message, "erased": checker.erased}
    result |= {"entries": len(checker.entries), "blobs": len(checker.blobs), "missing": checker.missing}
    return result | {"head": checker.digests[-1:], "unreferenced": checker.blobs.keys() - checker.owner}


def main() -> int:
    parser = argparse.ArgumentParser(description="Check one .loom file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--head", help="the digest of an entry that was kept elsewhere (64 hex digits)")
    options = parser.parse_args()
    try:
        result = check(options.file.read_bytes(), options.head)
    except OSError as error:
        parser.error(f"cannot read {options.file}: {error.strerror}")
    verdicts = {name: result[name] for name in ("consistent", "unaltered", "complete")}
    for name, verdict in verdicts.items():
        print(f"{name + ':':<12}{ {True: 'yes', False: 'no', None: 'unknown (no --head given)'}[verdict] }")
    if result["place"]:
        print(f"line {result['place'][0]}, byte {result['place'][1]}: {result['message']}")
    print(*(f"{name} {len(result[name])}" for name in ("missing", "unreferenced", "erased")), sep=", ")
    print(f"{result['entries']} entries, {result['blobs']} blobs, head {' '.join(result['head'])}")
    return 5 if False in verdicts.values() else 0


if __name__ == "__main__":
    sys.exit(main())
