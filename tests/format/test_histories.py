"""Growing lists: a run of N turns takes O(N) bytes, and every list comes back exactly."""

from __future__ import annotations

from typing import Any

import pytest

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
