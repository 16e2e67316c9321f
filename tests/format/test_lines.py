"""Single lines: what each may look like, and what a wrong one is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agentloom.format import lines
from agentloom.format.digests import blob_id
from agentloom.format.fields import Broken
from agentloom.format.limits import LINE_BYTES, PART_BYTES
from agentloom.format.lines import blob_references, blob_tree, foreign, list_tag, read_blob, read_entry

ID, OTHER = "ab" * 32, "cd" * 32


def line_of(data: str, form: str = "json", covered: bytes | None = None) -> bytes:
    salt = bytes(range(16))
    blob = blob_id(salt, form, data.encode() if covered is None else covered)
    return f'{{"blob":"{blob}","salt":"{salt.hex()}","form":"{form}","data":{data}}}'.encode()


def binary(data: bytes, form: str = "bytes") -> bytes:
    return line_of(f'"{base64.b64encode(data).decode()}"', form, data)


@pytest.mark.parametrize("data", ["1", '{"a":[1,"}"]}', '"}\\n"', "[ 1 ]"])
def test_a_json_blob_is_its_text(data: str) -> None:
    blob, form, covered = read_blob(line_of(data))
    assert (form, covered) == ("json", data.encode())
    assert blob == blob_id(bytes(range(16)), "json", data.encode())


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(PART_BYTES)], ids=len)
def test_a_bytes_blob_is_decoded(data: bytes) -> None:
    assert read_blob(binary(data))[1:] == ("bytes", data)


def test_a_nonce_has_32_bytes() -> None:
    assert read_blob(binary(bytes(32), "nonce"))[1:] == ("nonce", bytes(32))


GOOD = line_of("1")
WRONG: list[tuple[str, bytes, str, str]] = [
    ("too long", GOOD + b" " * LINE_BYTES, "line.long", f"a line of {LINE_BYTES + len(GOOD)} bytes; the"),
    ("without an end", GOOD[:-1], "blob.form", "not exactly the fields"),
    ("with an end of its own", GOOD[:-1] + b"]", "blob.form", "not exactly the fields"),
    ("without data", GOOD[:-2] + b"}", "blob.form", "not exactly the fields"),
    ("two lines", GOOD[:-1] + b"\n}", "blob.form", "not exactly the fields"),
    ("upper case", GOOD.replace(b"00010203", b"0001020A"), "blob.form", "not exactly the fields"),
    ("another form", GOOD.replace(b'"json"', b'"text"'), "blob.form", "not exactly the fields"),
    ("another salt", GOOD.replace(b"00010203", b"00010204"), "blob.id", "the data is not that of blob"),
    ("other data", GOOD[:-2] + b"2}", "blob.id", "the data is not that of blob " + GOOD[9:21].decode() + "$"),
    ("a codec", GOOD.replace(b'"data"', b'"codec":"zstd","data"'), "version.codec", "an encoded blob"),
    ("odd base64", line_of('"AA=A"', "bytes", b""), "blob.base64", "the data of a bytes blob is not base64"),
    ("no text", line_of("7", "bytes", b""), "blob.base64", "the data of a bytes blob is not base64"),
    ("other bits", line_of('"AB=="', "bytes", b"\0"), "blob.base64", "the data of a bytes blob is not base64"),
    ("an odd nonce", line_of('"%"', "nonce", b""), "blob.base64", "the data of a nonce blob is not base64"),
    ("too much", binary(bytes(PART_BYTES + 1)), "blob.size", f"{PART_BYTES + 1} bytes in a bytes blob"),
    ("a short nonce", binary(bytes(31), "nonce"), "blob.size", "31 bytes in a nonce blob"),
    ("a long nonce", binary(bytes(33), "nonce"), "blob.size", "33 bytes in a nonce blob"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_blob_line_is_named(line: bytes, code: str, words: str) -> None:
    with pytest.raises(Broken, match=words) as caught:
        read_blob(line)
    assert caught.value.code == code
    assert caught.value.integrity is (code == "blob.id")
    assert caught.value.version is (code == "version.codec")


def test_a_line_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = b'{"seq":1}'
    for size, read, line in ((len(GOOD), read_blob, GOOD), (len(entry), read_entry, entry)):
        monkeypatch.setattr(lines, "LINE_BYTES", size)
        assert read(line)
        monkeypatch.setattr(lines, "LINE_BYTES", size - 1)
        with pytest.raises(Broken, match=f"a line of {size} bytes; the limit is {size - 1}") as caught:
            read(line)
        assert caught.value.code == "line.long"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b'{"seq":1,"a":{"b":1,"b":2}}', "json.duplicate", "the key 'b' stands twice in one object$"),
        (b'{"seq":1', "json.syntax", "not JSON: unexpected end"),
        (b'{"seq":1180591620717411303424}', "json.number", "the integer 1180591620717411303424 is"),
        (b'{"seq":' + b"[" * 210 + b"]" * 210 + b"}", "json.depth", "more than 210 levels"),
        (b'{"seq":' + b"[" * 400 + b"]" * 400 + b"}", "json.depth", "more than 210 levels"),
        (b'{"seq":"\xff"}', "json.syntax", "not JSON: "),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_a_wrong_entry_line_is_named(line: bytes, code: str, words: str) -> None:
    with pytest.raises(Broken, match=words) as caught:
        read_entry(line)
    assert (caught.value.code, caught.value.integrity, caught.value.version) == (code, False, False)


def test_an_entry_line_is_read_in_any_spelling_and_up_to_any_width() -> None:
    assert read_entry(b'{ "seq" : 1.50, "a": "\\u0041" }') == {"seq": 1.5, "a": "A"}
    wide: Any = {"seq": 1, "a": [[]] * 300, "b": "[" * 300}
    assert read_entry(json.dumps(wide, separators=(",", ":")).encode()) == wide
    deep: Any = 1
    for _ in range(209):
        deep = [deep]
    assert read_entry(json.dumps({"seq": deep}, separators=(",", ":")).encode()) == {"seq": deep}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "file.empty"),
        (b"\x28\xb5\x2f\xfd\x00", "file.compressed"),
        (b"\xef\xbb\xbf{", "file.bom"),
        (b"[", "file.foreign"),
        (b'{"blob":', "file.foreign"),
        (b'{"seq":', None),
        (b'{"seq":0,', None),
        (b"{", None),
        (b'{"se', None),
        (b'{"sea', "file.foreign"),
    ],
)
def test_what_is_no_trace_is_told_by_its_first_bytes(data: bytes, code: str | None) -> None:
    found = foreign(data)
    assert (found and found.code) == code
    assert found is None or len(found.message.split()) > 3


def test_a_payload_that_is_not_strict_is_named_without_its_code_twice() -> None:
    with pytest.raises(Broken, match="^the key 'a' stands twice in one object$") as caught:
        blob_tree(b'{"a":1,"a":2}')
    assert caught.value.code == "json.duplicate"
    assert blob_tree(b" [1]") == [1]


@pytest.mark.parametrize(
    ("tree", "tag"),
    [
        ({"$list": [ID, 1, []]}, (ID, 1, [])),
        ({"$list": [ID, 7, [1, [2]]]}, (ID, 7, [1, [2]])),
        ({"$list": [ID, 1, []], "a": 1}, None),
        ({"list": [ID, 1, []]}, None),
        ([["$list"]], None),
        ("$list", None),
    ],
    ids=str,
)
def test_a_list_that_extends_another(tree: Any, tag: Any) -> None:
    assert list_tag(tree) == tag


@pytest.mark.parametrize(
    "parts",
    [7, [], [ID, 1], [ID, 1, [], []], [7, 1, []], [ID[1:], 1, []], [ID.upper(), 1, []], [ID, 0, []], [ID, -1, []],
     [ID, True, []], [ID, 1.0, []], [ID, "1", []], [ID, 1, {}], [ID, 1, None], {"a": 1, "b": 2, "c": 3}],
    ids=str,
)  # fmt: skip
def test_a_list_that_extends_nothing_is_named(parts: Any) -> None:
    for tree in ({"$list": parts}, {"a": {"$list": parts}}):
        with pytest.raises(Broken, match="holds a blob id, a count from 1 and a list") as caught:
            blob_references(json.dumps(tree).encode())
        assert caught.value.code == "blob.list"


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(
    ("tree", "found"),
    [
        ({"$ref": ID}, [ID]),
        ([{"a": {"$ref": ID}}, [{"$ref": OTHER}]], [ID, OTHER]),
        ({"$list": [ID, 1, [{"$ref": OTHER}]]}, [ID, OTHER]),
        ({"m": {"$list": [ID, 1, []]}, "n": 1}, [ID]),
        ({"m": {"n": {"$list": [ID, 1, []]}}}, []),
        ({"$ref": ID, "more": 1}, []),
        ({"$ref": ID[1:]}, []),
        ({"$ref": ID.upper()}, []),
        ({"$ref": 7}, []),
        ({"$part": [{"$ref": ID}, "a"]}, [ID]),
        ({"text": f'{{"$ref":"{ID}"}}'}, []),
        ([1, None, "x"], []),
    ],
    ids=str,
)
def test_the_blobs_that_a_payload_names(tree: Any, found: list[str], spaced: bool) -> None:
    text = json.dumps(tree, indent=1 if spaced else None, separators=None if spaced else (",", ":"))
    assert sorted(blob_references(text.encode())) == sorted(found)


def test_a_list_in_another_spelling_extends_one() -> None:
    assert blob_references(b'{"\\u0024list":["%b",1,[]]}' % ID.encode()) == [ID]
    assert blob_references(
        b'{"m" : {"\\u0024list":["%b",1,[{"\\u0024ref":"%b"}]]}}' % (ID.encode(), OTHER.encode())
    ) == [
        ID,
        OTHER,
    ]
