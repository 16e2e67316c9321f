"""The table of the corpus through real SDKs as a test: what applies, counted whole; a part of the exchanges, run. The
whole table is a command, ``python -m tests.corpus.sdk_table``, which fails as soon as one exchange is not equal."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from agentloom.testing import Exchange, Player
from tests.corpus import sdk_table
from tests.corpus.files import CORPUS, WHY, api_of, exchanges, rows
from tests.corpus.sdk_rebuild import programs, sdk_of
from tests.corpus.sdk_table import Line

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)

FILES = 90
PARTS = 24


def test_enough_files_apply_and_each_through_the_sdk_of_its_api() -> None:
    assert len({row.file for row, _ in exchanges()}) >= FILES
    assert len({row.file for row in rows()}) >= FILES
    found = Counter(sdk_of(one, api_of(one)) for _, one in exchanges())
    assert found["openai"] > 100, found
    assert found["anthropic"] > 40, found
    assert found["google-genai"] > 15, found


def test_a_part_of_the_exchanges_is_equal_in_every_run() -> None:
    lines = sdk_table.run(part=1, parts=PARTS)
    print("\n".join(sdk_table.show(lines, every=False)))
    assert [(line.name, line.found) for line in lines if not line.equal] == []
    assert len(lines) > 8


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # SDKs warn of old models
@pytest.mark.parametrize("api", ["chat", "messages", "responses", "generateContent"])
def test_sdks_read_the_recorded_answers(api: str) -> None:
    """Equal errors would be equal too: whole answers of status 200 are read as objects of the SDK."""
    chosen = [
        one
        for _, one in exchanges()
        if api_of(one) == api and one.status == 200 and sdk_of(one, api) != "httpx2"
    ][:6]
    assert len(chosen) == 6
    good = 0
    for one in chosen:
        with Player(one, compare="path", repeat=True) as player:
            found: Any = programs(one, api)["sync"](player.url)
            assert not player.misses
        good += bool(found) and not any("cause" in item for item in found)
    assert good >= 5


def test_the_table_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    row, one = next(
        (row, e) for row, e in exchanges() if api_of(e) == "chat" and e.status == 200 and e.streamed
    )
    assert sdk_table.examine(row, one).equal
    numbers = iter(range(100))

    def counting(one: Exchange, api: str) -> Any:
        return {"sync": lambda _: [next(numbers)]}

    monkeypatch.setattr(sdk_table, "programs", counting)
    line = sdk_table.examine(row, one)
    assert not line.equal
    assert "recording: [0] was" in line.found["sync"]


def test_totals() -> None:
    lines = [
        Line("a", "a 0", "chat", "openai", {"sync": "", "cut": "recording: x"}),
        Line("b", "b 0", "chat", "openai", {"sync": "", "async": ""}),
    ]
    shown = "\n".join(sdk_table.show(lines, every=False))
    assert "| openai | 2 | 2 | 2/2 | 1/1 | 0/0 | 0/1 |" in shown
    assert "files equal: 1 of 2" in shown
