"""Searching the conversation of a run: what is found, what is not looked at, and texts that a file holds in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync, tool
from agentloom.format.values import Types, encode
from agentloom.store import LocalStore, MemoryStore, Query, Store
from agentloom.store.scan import Source
from agentloom.store.searching import TextSearch
from tests.cli import samples

LONG = "filler " * 200_000  # over 1 MiB: kept in pieces


class Backend:
    """Streams its answer in pieces of three letters."""

    answer = "The refund was approved at noon."

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"content": self.answer}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.complete_sync(request)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self.answer), 3):
            yield {"content": self.answer[start : start + 3]}

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        for delta in self.stream_sync(request):
            yield delta


@tool(effect="read")
def lookup(order: int, note: str) -> dict[str, Any]:
    return {"customer": "Ann Müller", "lines": [{"sku": 'teapot "blue"'}], "total": 40.5}


@agent
def support(question: str, page: str) -> str:
    sync.model("m", question)
    for delta in sync.model("m", [{"role": "user", "content": "Stream it, please."}], stream=True):
        assert delta is not None
    lookup(812, page)
    return "Closed the ticket."


@pytest.fixture(params=[MemoryStore, lambda: None], ids=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made: Callable[[], Store | None] = request.param
    store = made() or LocalStore(tmp_path / "store")
    before = agentloom.set_backend(Backend())
    support.run("Where is my refund?", LONG + "needle in the haystack " + LONG, store=store)
    agentloom.set_backend(before)
    return store


FOUND = [
    "where is my REFUND",
    "stream it, please",
    "refund was approved at noon",  # in pieces of three letters
    "Müller",
    'teapot "blue"',
    "812",
    "40.5",
    "closed the ticket",
    "needle in the haystack",  # in a text over 1 MiB
    "",
]
NOT_FOUND = [
    "Streams its answer in pieces",  # a source of the agent
    "customer",  # the name of a field
    '"content":',
    "agentloom.model/1",  # an entry
    "MÜLLER",  # other letters have their case
    "never said",
    "CPython",
]


@pytest.mark.parametrize("text", FOUND)
def test_what_was_said_is_found(store: Store, text: str) -> None:
    assert len(store.runs(Query(text=text))) == 1


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_was_not_said_is_not(store: Store, text: str) -> None:
    assert store.runs(Query(text=text)) == []


def test_a_history_is_found_where_it_grew() -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "first words " * 30}]
    maker = samples.Maker(1)
    for turn in range(4):
        history.append({"role": "user", "content": f"turn {turn} says marmalade{turn}"})
        maker.call(turn, "model", "m", {"model": "m", "messages": list(history)}, {"content": "ok"})
    maker.end("done")
    for turn in range(4):
        assert TextSearch(f"Marmalade{turn}").found(Source.of(maker.data))
    assert not TextSearch("marmalade4").found(Source.of(maker.data))


def test_ids_of_payloads_are_no_text(store: Store) -> None:
    data = store.read(store.runs()[0].run)
    refs = {
        data[at + 8 : at + 20].decode() for at in range(len(data)) if data.startswith(b'{"$ref":"', at - 1)
    }
    assert refs
    assert not any(TextSearch(ref).found(Source.of(data)) for ref in refs)


@pytest.mark.parametrize("cut", [1, 7, 40, 200])
def test_a_damaged_trace_is_searched_as_far_as_it_reads(cut: int) -> None:
    torn = samples.refund(1).data[:-cut]
    assert TextSearch("refund when paid").found(Source.of(torn))
    assert not TextSearch("refund when paid").found(
        Source.of(b"rubbish\n" + b"\x00" * 50 + b'\n{"blob":"x"}\n')
    )
    assert not TextSearch("x").found(Source.of(b""))


def test_pieces_are_joined_within_a_call_and_a_field_alone() -> None:
    maker = samples.Maker(1)
    for number in (0, 1):
        maker.entry("request", call=f"root/a#{number}", type="model", name="m", key="0" * 32, profile="m/1",
                    req=maker.blobs.put({"n": number}), src="a.py:1 a")  # fmt: skip
    pieces = [(0, ["ma", "rma"]), (1, ["zeb"]), (0, ["la", "de"]), (1, ["ra"])]
    for d, (number, texts) in enumerate(pieces):
        chunks: list[Any] = [{"delta": text, "other": "x"} for text in texts]
        maker.entry(
            "chunks", call=f"root/a#{number}", items=[[d, d, 0]] * len(texts), val=maker.blobs.put(chunks)
        )
    data = maker.end()
    for text, found in (
        ("marmalade", True),
        ("ZEBRA", True),
        ("rmazeb", False),
        ("lara", False),
        ("maxrma", False),
    ):
        assert TextSearch(text).found(Source.of(data)) is found, text


PART = 1 << 20


@pytest.mark.parametrize("sought", ["the needle itself", "ä needle ö", "N" * 3000])
@pytest.mark.parametrize("before", [1, 5, 10])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_text_across_two_pieces_is_found(sought: str, before: int, as_bytes: bool) -> None:
    """``before``: how many bytes of it lie in the first piece."""
    encoded = sought.encode()
    whole = b"-" * (2 * PART - before) + encoded + b"-" * PART
    maker = samples.Maker(1)
    maker.call(0, "tool", "read", {"path": "a"}, encode(whole if as_bytes else whole.decode(), Types()))
    maker.end("done")
    source = Source.of(maker.data)
    assert TextSearch(sought).found(source)
    assert TextSearch(sought.upper().replace("Ä", "ä").replace("Ö", "ö")).found(source)
    assert not TextSearch(sought + sought).found(source)
    assert not TextSearch(sought[1:] + "+").found(source)


def test_a_text_over_three_pieces_is_found_and_other_neighbours_are_none() -> None:
    sought = "begin" + "m" * PART + "end"
    maker = samples.Maker(1)
    maker.call(0, "tool", "read", {"path": "a"}, "-" * (PART - 5) + sought + "." * 5)
    maker.call(1, "tool", "read", {"path": "b"}, "." * (PART - 4) + "left" + "-" * PART)
    maker.call(2, "tool", "read", {"path": "c"}, "-" * PART + "." * (PART - 1) + "#" + "right" + "-" * 10)
    maker.end("done")
    source = Source.of(maker.data)
    assert TextSearch(sought).found(source)
    assert TextSearch("left---").found(source)
    assert TextSearch("#right-").found(source)
    assert not TextSearch("leftright").found(source)  # the end of one text and the start of another
