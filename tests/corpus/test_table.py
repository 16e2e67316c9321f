"""The table of the corpus as a test: what applies, counted whole; a part of the exchanges, run. The whole table is a
command, ``python -m tests.corpus.table``, which fails as soon as one exchange is wrong."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest

from agentloom.testing import Exchange, Faults, Player
from tests.corpus import oracle, table
from tests.corpus.files import CORPUS, WHY, api_of, exchanges
from tests.corpus.rebuild import Call, Unsaid, call_of, normal
from tests.corpus.table import Line

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)

# Exchanges that apply, by API. A number may grow with the corpus and with what `model` speaks; it must not fall.
# Of messages one more was recorded whose request is refused before it is sent: tests/adapters/test_models_corpus.py.
APPLY = {"chat": 100, "messages": 51, "responses": 27, "generateContent": 22, "converse": 6, "invoke": 2}
PARTS = 8


def test_as_many_exchanges_apply_as_ever() -> None:
    found: Counter[str] = Counter()
    for _, one in exchanges():
        with contextlib.suppress(Unsaid):
            call_of(one, api_of(one))
            found[api_of(one)] += 1
    assert all(found[api] >= count for api, count in APPLY.items()), found


def test_a_part_of_the_exchanges_is_right_in_every_run() -> None:
    lines = table.run(part=1, parts=PARTS)
    print("\n".join(table.show(lines, every=False)))
    assert [f"{line.name}: {said}" for line in lines for said in table.wrong(line)] == []
    whole = table.totals(lines)["all"]
    assert whole["apply"] >= sum(APPLY.values()) // PARTS - 2 * len(APPLY)
    assert whole["read"] == whole["replayed"] == whole["apply"]
    assert whole["left early"] == whole["tried to leave"] > 5
    assert whole["cut"] == whole["tried to cut"] > 15


def test_the_table_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is read otherwise, a request that arrives otherwise, a run that crashes: each is shown."""
    one = next(
        e for _, e in exchanges() if api_of(e) == "chat" and e.status == 200 and e.url and not e.streamed
    )
    assert table.wrong(table.examine(one)) == []
    with monkeypatch.context() as patch:
        patch.setattr(oracle, "read", lambda *_: oracle.Said(text="something else", finished=True))
        (found,) = table.wrong(table.examine(one))
        assert "is not 'something else'" in found
    with monkeypatch.context() as patch:
        patch.setattr(table, "call_of", warmer)
        assert table.wrong(table.examine(one)) == ["arrives: differs added temperature"]
    with monkeypatch.context() as patch:
        patch.setattr(table, "_arrived", lambda *_: 1 / 0)
        assert "crash: ZeroDivisionError" in " ".join(table.wrong(table.examine(one)))


def warmer(one: Exchange, api: str) -> Call:
    call = call_of(one, api)
    call.params["temperature"] = 0.125
    return call


def test_a_run_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(e for _, e in exchanges() if api_of(e) == "chat" and e.status == 200 and not e.streamed)
    monkeypatch.setattr(table, "LIMIT", 0.2)
    monkeypatch.setattr(table, "Player", slow)
    assert "no end after 0.2 s" in " ".join(table.wrong(table.examine(one)))


def slow(one: Exchange, **options: Any) -> Player:
    return Player(one, **options | {"faults": Faults(delay=1)})


def test_totals_count_what_was_tried() -> None:
    lines = [
        Line(
            "a",
            "chat",
            True,
            200,
            arrives="added stream_options",
            reads="ok",
            replays="ok",
            leaves="ok",
            cut="ok",
        ),
        Line(
            "b", "chat", False, 429, arrives="exact", reads="status 429 gave 200", replays="ok", cut="gave x"
        ),
        Line("c", "audio", False, 200, applies="another API: audio"),
    ]
    rows = table.totals(lines)
    assert (rows["chat"]["apply"], rows["audio"]["apply"], rows["all"]["exchanges"]) == (2, 0, 3)
    assert (rows["chat"]["added"], rows["chat"]["exact"], rows["chat"]["read"]) == (1, 1, 1)
    assert (rows["chat"]["left early"], rows["chat"]["tried to leave"]) == (1, 1)
    assert (rows["chat"]["cut"], rows["chat"]["tried to cut"]) == (1, 2)
    shown = "\n".join(table.show(lines, every=False))
    assert "wrong: 1 of 2" in shown
    assert "1 another API: audio" in shown


@pytest.mark.parametrize(
    ("api", "one", "other", "same"),
    [
        ("chat", {"a": None, "stream": False, "b": 1}, {"b": 1}, True),
        ("chat", {"b": 1}, {"b": True, "c": 1}, False),
        (
            "messages",
            {"system": "s", "messages": [{"role": "user", "content": "a"}]},
            {
                "system": [{"type": "text", "text": "s"}],
                "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
            },
            True,
        ),
        (
            "responses",
            {"input": "a"},
            {"input": [{"type": "message", "role": "user", "content": "a"}], "tools": []},
            True,
        ),
        ("responses", {"input": "a"}, {"input": [{"role": "system", "content": "a"}]}, False),
    ],
)
def test_two_ways_to_say_the_same(api: str, one: object, other: object, same: bool) -> None:
    assert (normal(one, api) == normal(other, api)) is same
