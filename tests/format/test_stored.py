"""What a payload is written as: which parts of it stand in lines of their own, and what refers to what."""

from __future__ import annotations

import base64
import itertools
import json
import random
from typing import Any

import pytest

from agentloom.errors import ValueRefused
from agentloom.format import blobs
from agentloom.format.blobs import BlobWriter
from agentloom.format.canonical import dump
from agentloom.format.echoes import STYLES
from agentloom.format.journal import Journal
from spec.vector_maker import Maker


class Writing:
    """A writer whose lines are shown as they were made: only their data, with ``@1``, ``@2`` ... for ids."""

    def __init__(self) -> None:
        count = itertools.count(1)
        self.writer = BlobWriter(lambda size: next(count).to_bytes(size, "big"))
        self.names: dict[str, str] = {}

    def put(self, tree: Any, series: str | None = None, **more: Any) -> list[Any]:
        """The lines that a payload adds, and then the name of its own."""
        blob = self.writer.put(tree, series=series, **more)
        lines = sorted(map(json.loads, self.writer.take().splitlines()), key=lambda line: str(line["salt"]))
        for line in lines:
            self.names[line["blob"]] = f"@{int(line['salt'], 16)}"
        return [*(self._shown(line["data"]) for line in lines), self.names[blob]]

    def _shown(self, data: Any) -> Any:
        text = json.dumps(data)
        for blob, name in self.names.items():
            text = text.replace(blob, name)
        return json.loads(text)


@pytest.fixture
def writing() -> Writing:
    return Writing()


def test_small_payloads_stand_whole_and_once(writing: Writing) -> None:
    assert writing.put({"a": [1, 2]}) == [{"a": [1, 2]}, "@1"]
    assert writing.put({"a": [1, 2]}) == ["@1"]
    assert writing.put({"a": [1, 2.0]}) == [{"a": [1, 2.0]}, "@2"]
    assert writing.put("text") == ["text", "@3"]


def test_from_200_bytes_on_a_part_that_is_said_again_is_a_reference(writing: Writing) -> None:
    """To where it stood in an earlier payload; strings are counted without their quotation marks."""
    for letter, size, again in (("a", 199, False), ("b", 200, True), ("c", 1023, True)):
        said = letter * size
        first = writing.put([0, said])[-1]
        expected = [1, 2, {"$part": [{"$ref": first}, 1]} if again else said]
        assert writing.put([1, 2, said])[0] == expected
    for letter, size, again in (("d", 199, False), ("e", 200, True), ("f", 1023, True)):
        part = {"": letter * (size - 7)}
        first = writing.put({"deep": [0, part]})[-1]
        assert writing.put([1, 2, part])[0] == [
            1,
            2,
            {"$part": [{"$ref": first}, "deep", 1]} if again else part,
        ]


def test_a_whole_payload_that_is_said_again_is_a_reference(writing: Writing) -> None:
    assert writing.put(["a" * 91]) == [["a" * 91], "@1"]
    assert writing.put(["a" * 92]) == [["a" * 92], "@2"]
    assert writing.put({"f": ["a" * 91], "g": ["a" * 92], "h": "b" * 100}) == [
        {"f": ["a" * 91], "g": {"$ref": "@2"}, "h": "b" * 100},
        "@3",
    ]
    assert writing.put("c" * 200) == ["c" * 200, "@4"]
    assert writing.put([["c" * 200]]) == [[[{"$ref": "@4"}]], "@5"]


def test_from_1024_bytes_on_a_part_stands_in_a_line_of_its_own(writing: Writing) -> None:
    text, items, mapping = "a" * 1024, ["b" * 1020], {"": "c" * 1017}
    assert writing.put({"x": "a" * 1023, "y": ["b" * 1019], "z": {"": "c" * 1016}}) == [
        {"x": "a" * 1023, "y": ["b" * 1019], "z": {"": "c" * 1016}},
        "@1",
    ]
    assert writing.put({"x": text, "y": items, "z": mapping}) == [
        text,
        items,
        mapping,
        {"x": {"$ref": "@2"}, "y": {"$ref": "@3"}, "z": {"$ref": "@4"}},
        "@5",
    ]
    assert writing.put([text, [items], mapping]) == [[{"$ref": "@2"}, [{"$ref": "@3"}], {"$ref": "@4"}], "@6"]
    assert writing.put(text) == ["@2"]


def test_large_parts_are_taken_out_from_within(writing: Writing) -> None:
    """A list whose large items are references is small itself; what is equal stands once."""
    tree = [["a" * 1024, 2], {"deep": {"deeper": ["b" * 1024]}, "again": ["a" * 1024, 2]}, 3, None]
    assert writing.put(tree) == [
        "a" * 1024,
        "b" * 1024,
        [
            [{"$ref": "@1"}, 2],
            {"deep": {"deeper": [{"$ref": "@2"}]}, "again": [{"$ref": "@1"}, 2]},
            3,
            None,
        ],
        "@3",
    ]
    many = [["x" * 1024], *("a" * 150 for _ in range(7))]
    assert writing.put({"many": many}) == [
        "x" * 1024,
        [[{"$ref": "@4"}], *many[1:]],
        {"many": {"$ref": "@5"}},
        "@6",
    ]


def test_bytes_are_kept_decoded_from_1024_characters_on(writing: Writing) -> None:
    assert writing.put({"$bytes": "A" * 1020}) == [{"$bytes": "A" * 1020}, "@1"]
    assert writing.put({"$bytes": "A" * 1024}) == ["A" * 1024, {"$bytes": [{"$ref": "@2"}]}, "@3"]
    assert writing.put([{"$bytearray": "B" * 1024}]) == ["B" * 1024, [{"$bytearray": [{"$ref": "@4"}]}], "@5"]
    assert writing.put({"$str": "A" * 1024}) == ["A" * 1024, {"$str": {"$ref": "@6"}}, "@7"]
    two = {"$bytes": "A" * 1024, "n": 1}
    assert writing.put(two) == [{"$bytes": {"$ref": "@6"}, "n": 1}, "@8"]


def test_parts_are_looked_for_five_levels_down(writing: Writing) -> None:
    said = [letter * 200 for letter in "abcdefg"]
    tree: Any = said[-1]
    for text in reversed(said[:-1]):
        tree = {"t": text, "more": tree}
    place: list[Any] = [{"$ref": writing.put(tree)[-1]}]
    for text in said[:-2]:
        assert writing.put([[text]])[0] == [[{"$part": [*place, "t"]}]]
        place.append("more")
    assert writing.put([[said[-2]]])[0] == [[said[-2]]]


def test_the_json_text_of_what_was_said_is_a_reference_with_its_style(writing: Writing) -> None:
    value = {"a": ["\u00e9" * 100], "b": ["x" * 100]}
    writing.put(value)
    for style, how in STYLES.items():
        text = json.dumps(value, separators=how[:2], ensure_ascii=how[2])
        assert writing.put({"text": text})[0] == {"text": {"$json": [{"$ref": "@1"}, style]}}
    part = json.dumps({"p": value})
    writing.put({"p": {"q": value}})
    assert writing.put(["it", part])[0] == ["it", part]
    short = {"s": ["y" * 180]}
    writing.put(short)
    assert writing.put([json.dumps(short), "z" * 200])[0] == [json.dumps(short), "z" * 200]


def test_the_json_text_of_what_holds_floats_is_kept_as_it_is(writing: Writing) -> None:
    for index, number in enumerate((0.5, 1e300, 1e-7)):
        value = {"n": number, "t": "abcdefghij"[index] * 200}
        writing.put(value)
        assert writing.put({"text": json.dumps(value)})[0] == {"text": json.dumps(value)}
    value = {"no float": "1.5 and 1e+5", "t": "k" * 200}
    [*_, known] = writing.put(value)
    assert writing.put({"text": json.dumps(value)})[0] == {
        "text": {"$json": [{"$ref": known}, "spaced-ascii"]}
    }


def test_a_history_is_what_it_adds_to_the_list_it_begins_with(writing: Writing) -> None:
    first = ["a" * 300]
    assert writing.put({"m": first}, "s") == [{"m": first}, "@1"]
    assert writing.put({"m": [*first, "b"]}, "s") == [{"m": {"$list": ["@1", 1, ["b"]]}}, "@2"]
    assert writing.put({"m": [*first, "b", 3, [4]]}, "s") == [{"m": {"$list": ["@2", 2, [3, [4]]]}}, "@3"]
    assert writing.put({"m": [*first, "b"]}, "s") == ["@2"]
    assert writing.put({"m": [*first, "b"], "n": 1}, "s") == [{"m": {"$list": ["@2", 2, []]}, "n": 1}, "@4"]
    assert writing.put({"m": [*first, "B"]}, "s") == [{"m": {"$list": ["@1", 1, ["B"]]}}, "@5"]


def test_histories_of_another_field_or_series_are_lists_of_their_own(writing: Writing) -> None:
    items = ["a" * 300]
    writing.put({"m": items}, "s")
    assert writing.put({"n": [*items, 1]}, "s") == [{"n": [*items, 1]}, "@2"]
    assert writing.put({"m": [*items, 2]}, "t") == [{"m": {"$list": ["@1", 1, [2]]}}, "@3"]  # by its digest


def test_a_list_under_256_bytes_is_no_history(writing: Writing) -> None:
    for size, again in ((251, False), (252, True)):
        items = [str(size) + "x" * (size - 3)]
        first = writing.put({"m": items}, "s")[-1]
        expected = {"$list": [first, 1, [1]]} if again else [*items, 1]
        assert writing.put({"m": [*items, 1]}, "s")[0] == {"m": expected}


def test_only_fields_of_a_request_in_a_series_are_histories(writing: Writing) -> None:
    items = ["a" * 300]
    writing.put({"m": items}, "s")
    for tree, series in (({"m": ["a" * 300, 1]}, None), ({"m": {"n": ["b" * 300]}}, "s"), (["d" * 300], "s")):
        assert writing.put(tree, series)[0] == tree
    for name, kept in (("$tuple", False), ("$", False), ("tuple", True)):
        first = writing.put({name: [(name * 300)[:300]]}, "s")[-1]
        again = {"$list": [first, 1, [5]]} if kept else [{"$part": [{"$ref": first}, name, 0]}, 5]
        assert writing.put({name: [(name * 300)[:300], 5]}, "s")[0] == {name: again}
    writing.put({"$m": ["e" * 300], "k": 1}, "s")
    assert writing.put({"$m": ["e" * 300, 6], "k": 1}, "s")[0] == {"$m": {"$list": ["@11", 1, [6]]}, "k": 1}


def test_what_a_history_adds_refers_to_what_was_said(writing: Writing) -> None:
    """Large items stand apart; those that were said before are references, from 96 bytes of JSON on."""
    start = ["a" * 300]
    writing.put({"m": start}, "s")
    answer = {"role": "assistant", "text": "b" * 190}
    writing.put(answer)
    writing.put(["c" * 91])
    writing.put(["d" * 92])
    added = [
        answer,
        ["c" * 91],
        ["d" * 92],
        {**answer, "name": "x"},
        "e" * 1024,
        {"deep": "f" * 1024},
        {},
        [],
    ]
    assert writing.put({"m": start + added}, "s") == [
        "e" * 1024,
        "f" * 1024,
        {
            "m": {
                "$list": [
                    "@1",
                    1,
                    [
                        {"$ref": "@2"},
                        ["c" * 91],
                        {"$ref": "@4"},
                        {"role": "assistant", "text": "b" * 190, "name": "x"},
                        {"$ref": "@5"},
                        {"deep": {"$ref": "@6"}},
                        {},
                        [],
                    ],
                ]
            }
        },
        "@7",
    ]


def test_items_of_a_history_that_starts_anew_stand_apart_from_200_bytes_on(writing: Writing) -> None:
    writing.put({"m": ["a" * 300]}, "s")
    small, large = {"t": "b" * 191}, {"t": "c" * 192}
    assert writing.put({"m": [small, large, "d" * 300]}, "s") == [
        large,
        {"m": [small, {"$ref": "@2"}, "d" * 300]},
        "@3",
    ]
    assert writing.put({"m": [large, small]}, "s") == [{"m": [{"$ref": "@2"}, small]}, "@4"]


def test_other_fields_of_a_request_are_divided_as_those_of_any_payload(writing: Writing) -> None:
    tools = [{"name": "t" * 1100}]
    request = {"m": ["a" * 300], "tools": tools, "system": "s" * 1024, "n": 1}
    assert writing.put(request, "s") == [
        "t" * 1100,
        "s" * 1024,
        {"m": ["a" * 300], "tools": [{"name": {"$ref": "@1"}}], "system": {"$ref": "@2"}, "n": 1},
        "@3",
    ]
    assert writing.put({**request, "m": ["a" * 300, "b"]}, "s")[0] == {
        "m": {"$list": ["@3", 1, ["b"]]},
        "tools": {"$list": ["@3", 1, []]},
        "system": {"$ref": "@2"},
        "n": 1,
    }


@pytest.mark.parametrize(("ratio", "expanded"), [(0, 10_000), (2, 10_000), (40, 1_300), (2, 1_100)])
def test_a_payload_may_weigh_so_much_beside_what_the_file_holds(
    monkeypatch: pytest.MonkeyPatch, writing: Writing, ratio: int, expanded: int
) -> None:
    """As much as readers unfold: something in any file, and in proportion to all data before and of the payload."""
    for name, value in (("PART_BYTES", 20), ("UNFOLDED_FREE", 1_000), ("UNFOLDED_RATIO", ratio)):
        monkeypatch.setattr(blobs, name, value)
    monkeypatch.setattr(blobs, "EXPANDED_BYTES", expanded)
    written = len(b'{"some":"data"}') + len(b"12")
    writing.put({"some": "data"})
    writing.put(12)
    assert writing.writer._size == written
    refused = 0
    for count in range(39, 0, -1):
        tree: Any = {"a": [[]] * count}
        text = json.dumps(tree, separators=(",", ":"))
        weight = len(text) + 48 * (count + 2)
        most = min(expanded, 1_000 + ratio * (written + len(text)))
        if weight <= most:
            writing.put(tree)
            written += len(text)
        else:
            refused += 1
            with pytest.raises(ValueRefused) as caught:
                writing.put(tree)
            assert (caught.value.path, caught.value.type_name) == ("value", "value")
            assert f"it weighs {weight} bytes" in str(caught.value)
            assert f"(over {most})" in str(caught.value)
            assert (caught.value.hint or "").startswith("give out less at once")
    assert 0 < refused < 39


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part of a payload has at most 2,000 bytes."""
    monkeypatch.setattr(blobs, "PART_BYTES", 2_000)
    monkeypatch.setattr(blobs, "_ROOM", 5_000)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.usefixtures("short_lines")
def test_text_over_a_part_is_kept_as_bytes_in_parts(writing: Writing) -> None:
    assert writing.put("x" * 2_000) == ["x" * 2_000, "@1"]
    assert writing.put("y" * 2_001) == [
        encoded("y" * 2_000),
        encoded("y"),
        {"$text": [{"$ref": "@2"}, {"$ref": "@3"}]},
        "@4",
    ]
    assert writing.put(["z" * 2_000, "y" * 2_001]) == [
        "z" * 2_000,
        [{"$ref": "@5"}, {"$ref": "@4"}],
        "@6",
    ]
    assert writing.put(["\u00e9" * 1_001]) == [
        encoded("\u00e9" * 1_000),
        encoded("\u00e9"),
        [{"$text": [{"$ref": "@7"}, {"$ref": "@8"}]}],
        "@9",
    ]
    assert writing.put(['"' * 1_500]) == [
        '"' * 1_500,
        [{"$ref": "@10"}],
        "@11",
    ]  # bytes of the text, not of its JSON


LONG = [f"{number:02}" + "x" * 95 for number in range(45)]  # 100 bytes each, with a comma


def pieces(first: int, items: list[Any], size: int = 21) -> list[Any]:
    """What a list over a part is written as: each piece extends the one before."""
    lines: list[Any] = [items[:size]]
    for start in range(size, len(items), 21):
        lines.append({"$list": [f"@{first + len(lines) - 1}", start, items[start : start + 21]]})
    return lines


@pytest.mark.usefixtures("short_lines")
def test_a_list_over_a_part_is_kept_in_pieces(writing: Writing) -> None:
    exact = [*LONG[:19], "x" * 96]
    assert len(json.dumps(exact, separators=(",", ":"))) == 2_000
    assert writing.put(exact) == [exact, "@1"]
    over = [*LONG[:19], "y" * 97]
    assert writing.put(over) == [over, {"$ref": "@2"}, "@3"]
    assert writing.put(LONG) == [*pieces(4, LONG), {"$ref": "@6"}, "@7"]
    assert writing.put({"m": LONG[1:]}) == [*pieces(8, LONG[1:]), {"m": {"$ref": "@10"}}, "@11"]
    wide = {f"key{number:02}": "v" * 90 for number in range(30)}
    assert writing.put({"w": wide}) == [wide, {"w": {"$ref": "@12"}}, "@13"]
    assert writing.put([LONG[1:], 1]) == [[{"$ref": "@10"}, 1], "@14"]
    assert writing.put([*LONG, "more"]) == [
        {"$list": ["@5", 42, [*LONG[42:], "more"]]},
        {"$ref": "@15"},
        "@16",
    ]


@pytest.mark.usefixtures("short_lines")
def test_a_history_that_adds_more_than_a_part_is_a_list_in_pieces(writing: Writing) -> None:
    start = ["s" * 300]
    writing.put({"m": start}, "s")
    assert writing.put({"m": start + LONG}, "s") == [
        *pieces(2, start + LONG, 18),
        {"m": {"$ref": "@4"}},
        "@5",
    ]
    assert writing.put({"m": [*start, *LONG, "more"]}, "s") == [{"m": {"$list": ["@5", 46, ["more"]]}}, "@6"]


@pytest.mark.usefixtures("short_lines")
def test_a_history_that_adds_large_items_stays_a_history(writing: Writing) -> None:
    """What counts is what its line holds; items of 1,024 bytes stand apart."""
    start = ["s" * 300]
    writing.put({"m": start}, "s")
    large = [letter * 1_100 for letter in "abc"]
    assert writing.put({"m": start + large}, "s") == [
        *large,
        {"m": {"$list": ["@1", 1, [{"$ref": "@2"}, {"$ref": "@3"}, {"$ref": "@4"}]]}},
        "@5",
    ]
    exact = [item + "x" for item in LONG[:20]]  # 2,000 bytes, without what stands between them
    assert writing.put({"m": start + exact}, "s") == [{"m": {"$list": ["@1", 1, exact]}}, "@6"]
    assert writing.put({"m": [*start, 1, *exact]}, "s")[-2] == {"m": {"$ref": "@8"}}


@pytest.mark.usefixtures("short_lines")
def test_a_line_that_would_be_too_long_is_refused(writing: Writing) -> None:
    mapping = {f"key{number:03}": "v" * 90 for number in range(48)}
    size = len(json.dumps(mapping, separators=(",", ":")))
    exact = {**mapping, "k": "w" * (5_000 - size - 7)}
    assert writing.put(exact) == [exact, "@1"]
    with pytest.raises(ValueRefused) as caught:
        writing.put({**exact, "k": "w" * (5_000 - size - 6)})
    assert (caught.value.path, caught.value.type_name) == ("value", "json")
    assert caught.value.reason.startswith("5001 bytes in one mapping; a line holds 16777216")


def test_bytes_and_nonces_have_their_sizes(writing: Writing) -> None:
    for put, data, path, reason in (
        (writing.writer.put_bytes, bytes(2**20 + 1), "value", "one bytes blob holds at most 1048576 bytes"),
        (writing.writer.put_nonce, bytes(31), "nonce", "a nonce has 32 bytes, not 31"),
    ):
        with pytest.raises(ValueRefused) as caught:
            put(data)
        assert (caught.value.path, caught.value.type_name, caught.value.reason) == (path, "bytes", reason)
    assert writing.writer.put_bytes(b"a" * 32) != writing.writer.put_nonce(b"a" * 32)
    assert writing.writer.put_bytes(b"a" * 32) == writing.writer.put_bytes(b"a" * 32)


def test_small_payloads_hold_no_references(writing: Writing) -> None:
    """A payload of under 200 bytes is written as it is, although a part of it was said before."""
    writing.put(["a" * 92])
    small = {"g": ["a" * 92], "h": "b" * 90}
    assert len(json.dumps(small, separators=(",", ":"))) == 199
    assert writing.put(small) == [small, "@2"]
    assert writing.put({**small, "h": "b" * 91}) == [{"g": {"$ref": "@1"}, "h": "b" * 91}, "@3"]
    writing.put("s" * 150)
    writing.put({"m": ["a" * 300]}, "s")
    assert writing.put({"m": ["a" * 300, "s" * 150]}, "s")[0] == {"m": {"$list": ["@5", 1, ["s" * 150]]}}
    writing.put("t" * 200)
    assert writing.put({"x": "t" * 200, "y": "s" * 150})[0] == {"x": {"$ref": "@7"}, "y": "s" * 150}


def test_the_first_history_of_a_series_starts_nothing_anew(writing: Writing) -> None:
    writing.put({"m": ["a" * 300]}, "s")
    other = {"m": [{"t": "b" * 300}]}
    assert writing.put(other, "t") == [other, "@2"]
    assert writing.put({"n": [{"t": "c" * 300}]}, "s") == [{"n": [{"t": "c" * 300}]}, "@3"]


def test_a_tree_that_nobody_checked_is_checked(writing: Writing) -> None:
    nan = float("nan")
    for tree, series in (({"a": nan}, None), ({"m": [1], "a": nan}, "s"), ({"a": 2**64}, None)):
        with pytest.raises(ValueRefused):
            writing.put(tree, series)
    assert writing.writer.pending == b""
    assert writing.put({"a": [1]}, encoded=True) == [{"a": [1]}, "@1"]
    assert writing.put({"m": ["a" * 300]}, "s", encoded=True) == [{"m": ["a" * 300]}, "@2"]


def test_a_writer_that_goes_on_knows_all_that_is_whole() -> None:
    made = Maker("resumed").start()
    made.entry("note", val=made.put({"m": ["a" * 300]}, "s")).entry(
        "note", val=made.put({"m": ["a" * 300, 1]}, "s")
    )
    lost = made.put({"big": "x" * 2000})
    made.entry("note", val=lost)
    binary = made.blobs.put_bytes(b"$$")
    made.entry("note", val=binary)
    trees: list[Any] = [{"a": [1]}, {"t": "$5"}, {"x": "y" * 1100, "z": 1}, {"b": {"$bytes": "A" * 1024}}]
    ids: list[Any] = [made.put(tree) for tree in trees]
    made.entry("note", reads=ids)
    (part,) = (line for line in made.data.splitlines() if b"xxxx" in line)
    data = made.end().data.replace(part + b"\n", b"")
    again = BlobWriter.resume(Journal.parse(data), random.Random(1).randbytes)
    assert [again.put(tree) for tree in trees] == ids
    assert again.put_bytes(b"$$") == binary
    assert again.pending == b""
    assert again.put({"big": "x" * 2000}) != lost
    assert again._size == len(data) + len(b'{"big":{"$ref":"') + 64 + len(b'"}}') + 2002


@pytest.mark.usefixtures("short_lines")
def test_a_gate_sees_every_content_once_before_it_is_written() -> None:
    seen: list[bytes] = []
    count = itertools.count(1)
    writer = BlobWriter(lambda size: next(count).to_bytes(size, "big"), seen.append)
    writer.put({"a": ["x" * 1100]})
    assert seen == [dump("x" * 1100), dump({"a": [{"$ref": writer.put("x" * 1100)}]})]
    writer.put({"a": ["x" * 1100]})
    writer.put_nonce(b"n" * 32)
    assert len(seen) == 2
    writer.put_bytes(b"plain")
    assert seen[2:] == [b"plain"]
    writer.put({"$bytes": encoded("y" * 2_000)})
    assert [len(data) for data in seen[3:]] == [2_000, len(writer.put({"$bytes": encoded("y" * 2_000)})) + 24]
    writer.put("w" * 2_500)  # across the edge of two parts
    assert [data[:3] for data in seen[5:]] == [b"www", b"www", b"www", b'{"$']
    assert [len(data) for data in seen[5:8]] == [2_500, 2_000, 500]

    def refuse(data: bytes) -> None:
        raise ValueRefused("value", "str", "not this one")

    writer.gate = refuse
    with pytest.raises(ValueRefused, match="not this one"):
        writer.put({"b": 1})
    before = writer.take()
    assert b'{"b":1}' not in before
