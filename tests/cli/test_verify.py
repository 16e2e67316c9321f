"""``verify``: three verdicts, the place of the first fault, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom import agent
from agentloom.store import LocalStore
from tests.cli import samples

Call = Callable[..., Any]
DATA = samples.refund().data


@pytest.fixture
def verify(cli: Call, tmp_path: Path) -> Call:
    def call(data: bytes, *args: str) -> Any:
        (tmp_path / "a.loom").write_bytes(data)
        return cli("verify", "a.loom", *args)

    return call


def test_a_sound_file_is_consistent_and_no_more(verify: Call) -> None:
    result = verify(DATA)
    assert result.code == 0
    assert result.out.startswith("CONSISTENT  a.loom  12 entries, 5 calls, ")
    assert "unaltered    not known: give the head" in result.out
    assert "complete     yes" in result.out
    assert verify(DATA, "--json").data["unaltered"] is None


def test_with_its_head_it_is_unaltered(verify: Call) -> None:
    head = verify(DATA, "--json").data["head"]
    for given in (head, f"sha256:{head}", head.upper()):
        result = verify(DATA, "--head", given)
        assert result.code == 0
        assert result.out.startswith("UNALTERED")


def test_an_earlier_head_verifies_as_a_prefix(verify: Call) -> None:
    before = verify(samples.refund(end=False).data, "--json").data["head"]
    result = verify(DATA, "--head", before)
    assert result.code == 0
    assert "kept head    is that of entry 10; 1 follow" in result.out


def test_a_chain_written_anew_is_consistent_and_altered(verify: Call) -> None:
    head = verify(DATA, "--json").data["head"]
    forged = samples.refund(end=False)
    result = verify(forged.end("Refunded order 812: $4,000.00"), "--head", head)
    assert result.code == 5
    assert result.out.startswith("ALTERED")
    facts = verify(forged.data, "--head", head, "--json").data
    assert (facts["consistent"], facts["unaltered"], facts["complete"]) == (True, False, True)


def test_every_flipped_byte_is_noticed(verify: Call) -> None:
    """With the head: no later entry holds the digest of the last one."""
    head = verify(DATA, "--json").data["head"]
    for at in range(0, len(DATA), 97):
        damaged = DATA[:at] + bytes([DATA[at] ^ 1]) + DATA[at + 1 :]
        result = verify(damaged, "--head", head, "--json")
        assert result.code == 5, at
        line, named = DATA[:at].count(b"\n") + 1, result.data["line"]
        between = DATA.splitlines()[line : named - 1]
        assert named >= line, at
        assert not [text for text in between if text.startswith(b'{"seq"')], (
            at
        )  # an entry shows in the one after it


def test_the_first_fault_is_named(verify: Call) -> None:
    line = DATA[: DATA.index(b'"paid":true')].count(b"\n") + 1
    result = verify(DATA.replace(b'"paid":true', b'"paid":tru3'))
    assert result.code == 5
    assert result.out.startswith(f"NOT CONSISTENT  a.loom\n  first fault  line {line}, byte ")
    assert "[blob.id]" in result.out


def test_an_open_run_is_incomplete_and_no_fault(verify: Call) -> None:
    result = verify(samples.refund(end=False).data)
    assert result.code == 0
    assert "complete     no: " in result.out
    assert verify(DATA[:-20], "--json").data["torn_bytes"] > 0


def test_a_missing_payload_is_a_fault(verify: Call) -> None:
    lines = DATA.splitlines(keepends=True)
    blob = next(number for number, line in enumerate(lines) if b"Refund when paid" in line)
    result = verify(b"".join(lines[:blob] + lines[blob + 1 :]))
    assert result.code == 5


def test_a_word_that_is_no_head_is_a_usage_error(verify: Call) -> None:
    result = verify(DATA, "--head", "abc")
    assert result.code == 2
    assert "64 hex digits" in result.err


def test_runs_of_the_store_are_verified_by_name(cli: Call, tmp_path: Path) -> None:
    (tmp_path / "a.loom").write_bytes(DATA)
    assert cli("import", "a.loom").code == 0
    assert cli("verify", "last", "--json").data["run"] == samples.refund().run


def test_a_compressed_file_is_verified_too(cli: Call, tmp_path: Path) -> None:
    (tmp_path / "a.loom").write_bytes(DATA)
    cli("export", "a.loom", "-o", "b.loom.zst")
    assert cli("verify", "b.loom.zst").code == 0
    data = (tmp_path / "b.loom.zst").read_bytes()
    (tmp_path / "b.loom.zst").write_bytes(data[: len(data) // 2])
    assert cli("verify", "b.loom.zst").code == 5


@pytest.mark.parametrize(("durability", "tail"), [("process", True), ("power", False)])
def test_of_a_run_without_an_end_it_says_what_a_power_cut_may_have_taken(
    cli: Call, tmp_path: Path, durability: Any, tail: bool
) -> None:
    @agent
    def left() -> None:
        raise SystemExit

    store = LocalStore(tmp_path / "store", durability=durability)
    with pytest.raises(SystemExit):
        left.run(store=store)
    data = store.read(store.resolve("last"))
    (tmp_path / "open.loom").write_bytes(data[: data.rstrip().rfind(b"\n") + 1])
    result = cli("verify", "open.loom")
    assert result.code == 0
    assert ("a power cut may have taken the last entries" in result.out) == tail
    assert cli("verify", "open.loom", "--json").data["durability"] == durability
