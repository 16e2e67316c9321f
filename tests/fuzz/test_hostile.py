"""Hostile files cost a bounded amount of time and memory, whoever reads them, and end in a clear answer.

Here files of 1 MB; ``python -m tests.fuzz`` gives files of 10 MB to all readers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz import hostile
from tests.fuzz.hostile import HOSTILE
from tests.fuzz.victims import VICTIMS
from tests.fuzz.ward import Bounds, run_in_ward

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and peaks as Linux has them"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
SMALL = 1_000_000
BOUNDS = Bounds(seconds=3, memory=256 << 20)
#: What unfolds by itself, or is 16 MB to be over a limit, takes as long whatever the size of the others.
BIG = Bounds(seconds=6, memory=768 << 20)
ALWAYS_BIG = ("laughs", "json_of_json", "line_too_long", "zstd", "one_part", "long_integer")


@pytest.fixture
def small() -> Iterator[None]:
    whole, hostile.SIZE = hostile.SIZE, SMALL
    yield
    hostile.SIZE = whole


@pytest.mark.parametrize("kind", HOSTILE)
def test_every_reader_survives_every_kind(tmp_path: Path, small: None, kind: str) -> None:
    path = tmp_path / "hostile.loom"
    path.write_bytes(HOSTILE[kind]())
    bounds = BIG if any(word in kind for word in ALWAYS_BIG) else BOUNDS
    for name, victim in VICTIMS.items():
        if name not in READ_WHOLE if kind.startswith("zstd") else name in LEFT_OUT:
            continue
        ended = run_in_ward(victim, str(path), bounds)
        assert ended.problem is None, name


#: Where a file is decompressed and then refused like any other, these stand for all.
READ_WHOLE = ("store", "show", "verify")
#: These read what others here read too; `python -m tests.fuzz` has them all.
LEFT_OUT = ("show_json", "replay", "verify", "diff", "ls")

#: Each of these once took minutes, all of the memory, or the process with it, at 10 MB.
ONCE_DEADLY = (
    "duplicate_keys", "texts_of_one_part", "list_of_one_part", "many_good_seals", "many_retracts", "long_call_id",
    "long_integers_in_values",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ONCE_DEADLY)
def test_ten_megabytes_of_the_worst(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "hostile.loom"
    path.write_bytes(HOSTILE[kind]())
    for name in ("parse", "own_checker"):
        ended = run_in_ward(VICTIMS[name], str(path), Bounds(seconds=12, memory=768 << 20))
        assert ended.problem is None, name


def test_the_ward_notices_what_takes_too_much(tmp_path: Path) -> None:
    """Otherwise all of this would prove nothing. Each victim can pass one bound alone, on a loaded machine too."""
    path = str(tmp_path / "none")
    brief = Bounds(seconds=0.3, memory=4 << 30)
    small = Bounds(seconds=120, memory=64 << 20)

    def spins(_: str) -> str:
        while True:
            pass

    def lingers(_: str) -> str:
        began = time.process_time()
        while time.process_time() - began < 0.4:
            pass
        return ""

    def eats(_: str) -> str:
        return str(len(bytearray(b"x") * (100 << 20)))

    def devours(_: str) -> str:
        return str(len(bytearray(b"x") * (1000 << 20)))

    def crashes(_: str) -> str:
        raise KeyError("crash")

    def said(victim: Callable[[str], str], bounds: Bounds) -> str:
        return str(run_in_ward(victim, path, bounds).problem)

    assert "ended with SIGXCPU" in said(spins, brief)
    assert "s, more than 0.3" in said(lingers, brief)
    assert "MiB, more than 64" in said(eats, small)
    assert "MemoryError" in said(devours, small)
    assert "KeyError: 'crash'" in said(crashes, small)
    assert run_in_ward(lambda _: "", path, small).problem is None
