"""Growing lists: a run of N turns takes O(N) bytes, and every list comes back exactly."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.format import echoes
from agentloom.format.canonical import Tree
from agentloom.format.captures import Captures, Grown
from agentloom.format.declared import Types
from agentloom.format.echoes import content
from agentloom.format.histories import Growth, Histories
from spec.vector_maker import Maker
from tests.format.strategies import same
from tests.format.traces import hold, journal, maker


def growing(turns: int, edit: Any = None) -> tuple[Maker, list[tuple[str, Any]]]:
    made = maker()
    messages: list[Any] = [{"role": "system", "content": "rules " * 80}]
    sent: list[tuple[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} " + "question " * 30})
        if edit:
            messages = edit(messages, turn)
        request = {"model": "m", "messages": list(messages)}
        sent.append((hold(made, request, "model:m"), request))
        answer = {"role": "assistant", "content": f"{turn} " + "answer " * 40}
        hold(made, answer)
        messages.append(answer)
    return made, sent


@pytest.mark.parametrize(
    ("edit", "bound"),
    [
        (None, 2.1),
        (lambda messages, turn: [*messages[:-1], {**messages[-1], "now": turn}], 2.1),
        (lambda messages, turn: [messages[0], *messages[-8:]], 2.3),
        (lambda messages, turn: messages if turn % 10 else [messages[0], messages[-1]], 2.2),
        (lambda messages, turn: [*messages, {"role": "system", "content": f"the time is {turn}"}], 2.2),
    ],
    ids=["grows", "last edited", "window", "compacted", "suffix"],
)
def test_a_run_grows_with_its_turns(edit: Any, bound: float) -> None:
    made, sent = growing(40, edit)
    assert len(growing(80, edit)[0].data) < bound * len(made.data)
    read = journal(made)
    for blob, request in sent:
        assert same(read.tree(blob), request)


def test_an_answer_that_is_sent_back_is_stored_once() -> None:
    made, _ = growing(10)
    assert made.data.count(b'"5 ' + b"answer " * 40) == 1


def test_a_message_edited_in_place_is_seen() -> None:
    made = maker()
    messages: list[Any] = [{"content": "a" * 300}, {"content": "b" * 300}]
    first = hold(made, {"messages": messages}, "s")
    messages[0]["content"] = "A" + "a" * 299
    second = hold(made, {"messages": messages}, "s")
    read = journal(made)
    assert read.tree(first) == {"messages": [{"content": "a" * 300}, {"content": "b" * 300}]}
    assert read.tree(second) == {"messages": messages}


def test_two_conversations_of_one_series_take_turns() -> None:
    def data(turns: int) -> int:
        made = maker()
        talks: list[list[Any]] = [["left " * 80], ["right " * 80]]
        for turn in range(turns):
            talk = talks[turn % 2]
            talk.append(f"{turn} " * 60)
            hold(made, {"messages": list(talk)}, "s")
        return len(made.data)

    assert data(80) < 2.1 * data(40)


def test_a_history_that_comes_back_has_its_id_again() -> None:
    made = maker()
    one, two = {"messages": ["y" * 300]}, {"messages": ["y" * 300, "z" * 300]}
    first = hold(made, one, "s")
    second = hold(made, two, "s")
    assert (hold(made, one, "s"), hold(made, two, "s")) == (first, second)


def test_long_chains_are_read_without_recursion() -> None:
    made = maker()
    messages: list[Any] = ["m" * 300]
    for turn in range(3000):
        messages.append(turn)
        last = hold(made, {"messages": list(messages)}, "s")
    assert journal(made).tree(last) == {"messages": messages}


def grown(histories: Histories, items: list[Any], field: str = "m", series: str = "s") -> Growth:
    return histories.growth(series, field, items, None)


def test_a_list_is_told_by_what_it_begins_with() -> None:
    histories = Histories()
    first = grown(histories, ["a", {"b": 1}])
    assert (first.base, first.keep, first.again, first.size) == ("", 0, False, len('["a",{"b":1}]'))
    assert [text for text, _ in first.added] == [b'"a"', b'{"b":1}']
    assert first.added[0][1] == content(b"json", b'"a"')
    assert (first.stem, len(first.digests), first.digest) == (b'["a",{"b":1}', 3, first.digests[2])
    histories.wrote("s", first, "one")
    longer = grown(histories, ["a", {"b": 1}, [2.5], None])
    assert (longer.base, longer.keep, longer.again) == ("one", 2, False)
    assert longer.size == len('["a",{"b":1},[2.5],null]')
    assert [text for text, _ in longer.added] == [b"[2.5]", b"null"]
    assert longer.digests[0] == first.digest
    histories.wrote("s", longer, "two")
    fresh = Histories()
    assert grown(fresh, ["a", {"b": 1}, [2.5], None]).digest == longer.digest
    assert grown(fresh, ["a", {"b": 1}, [2.5], None], "n").digest != longer.digest
    part = grown(histories, ["a", {"b": 1}, [2.5]])  # a prefix that was written only within a longer list
    assert (part.base, part.keep, part.added, part.again) == ("two", 3, [], False)
    other = grown(histories, ["b", {"b": 1}])
    assert (other.base, other.keep, other.again) == ("", 0, True)
    assert grown(histories, ["b"], "n").again is False
    assert grown(histories, ["b"], "m", "t").again is False
    edited = grown(histories, ["a", {"b": 2}, [2.5]])
    assert (edited.base, edited.keep) == ("one", 1)


def test_texts_that_begin_alike_are_not_lists_that_do() -> None:
    histories = Histories()
    histories.wrote("s", grown(histories, [1]), "one")
    assert grown(histories, [12]).keep == 0
    assert grown(histories, [1, 2]).keep == 1
    assert grown(histories, [1]).keep == 1
    assert grown(histories, [[1]]).keep == 0


def test_a_list_that_adds_nothing_is_read_from_where_it_was_first_written() -> None:
    histories = Histories()
    first = histories.wrote("s", grown(histories, [1, 2]), "one")
    assert (first.blob, first.count, first.size) == ("one", 2, 5)
    again = histories.wrote("s", grown(histories, [1, 2]), "two")
    assert again.blob == "one"
    assert histories.wrote("s", grown(histories, [1, 2, 3]), "three").blob == "three"
    assert grown(histories, [1, 2, 3, 4]).base == "three"


def test_eight_lists_that_take_turns_are_known_by_their_bytes() -> None:
    histories = Histories()
    for number in range(10):
        histories.wrote("s", grown(histories, [number, "x"]), f"blob {number}")
    latest = histories._latest["s", "m"]
    assert [history.blob for history in latest] == [f"blob {number}" for number in range(9, 1, -1)]
    longer = grown(histories, [5, "x", "y"])
    assert (longer.base, longer.keep) == ("blob 5", 2)
    histories.wrote("s", longer, "longer")
    assert [history.blob for history in latest] == ["longer", *(f"blob {n}" for n in (9, 8, 7, 6, 4, 3, 2))]
    for _ in range(3):
        histories.wrote("s", grown(histories, [5, "x", "y"]), "again")
    assert [history.blob for history in latest] == ["longer", *(f"blob {n}" for n in (9, 8, 7, 6, 4, 3, 2))]
    old = grown(histories, [0, "x", "y"])  # by its digest
    assert (old.base, old.keep, old.again) == ("blob 0", 2, False)


def test_what_capturing_found_out_is_used() -> None:
    histories, captures = Histories(), Captures(Types())

    def captured(items: list[Any]) -> Grown:
        return captures.capture({"m": items}, "s")[1]["m"]

    first = captured(["a", 1])
    growth = histories.growth("s", "m", first.items, first)
    assert (growth.base, growth.stem, growth.size) == ("", b"", len('["a",1]'))
    first.history = histories.wrote("s", growth, "one")
    same = histories.growth("s", "m", first.items, first)
    assert (same.base, same.keep, same.added, same.size) == ("one", 2, [], growth.size)
    first.history = histories.wrote("s", same, "again")
    second = captured(["a", 1, {"b": 2}])
    assert second.base is first
    growth = histories.growth("s", "m", second.items, second)
    assert (growth.base, growth.keep, growth.size) == ("one", 2, len('["a",1,{"b":2}]'))
    assert [text for text, _ in growth.added] == [b'{"b":2}']
    assert growth.digest == grown(Histories(), ["a", 1, {"b": 2}]).digest
    second.history = histories.wrote("s", growth, "two")
    second.settle()
    plain = grown(
        histories, ["a", 1, {"b": 2}, 3]
    )  # what was captured has no bytes: it is found by its digest
    assert (plain.base, plain.keep) == ("two", 3)
    assert [history.blob for history in histories._latest["s", "m"]] == ["two"]
    assert histories.growth("s", "m", second.items, second).base == "two"


def test_how_many_beginnings_are_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echoes, "CONTENTS", 64)
    made = maker()
    messages: list[Tree] = []
    for number in range(300):
        messages.append({"role": "user", "content": f"message {number} " * 20})
        blob = hold(made, {"messages": list(messages)}, "s")
        assert len(made.blobs._histories._prefixes) <= 64 + 2
    assert journal(made).tree(blob) == {"messages": messages}
    assert len(made.data) < 300 * 1200  # each is what it adds to the one before
    branch = [*messages[:2], {"role": "user", "content": "another way " * 20}]
    blob = hold(made, {"messages": branch}, "s")
    assert journal(made).tree(blob) == {"messages": branch}
