"""Run ids: their order is that of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError
from agentloom.format import runids
from spec import verify
from tests.format.strategies import STEADY

NO_RUN_IDS = [
    "",
    "7f3a",
    "01HF7YAT000000000000000000",
    "81hf7yat000000000000000000",
    "01hf7yat00000000000000000i",
]


@STEADY
@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_run_ids_sort_by_time(first: int, second: int, random: bytes) -> None:
    one, two = runids.new_run_id(first, random), runids.new_run_id(second, random)
    assert (one < two) == (first < second)
    assert runids.is_run_id(one)
    assert len(one) == 26
    assert runids.milliseconds(one) == first
    assert verify.RUN.fullmatch(one)


def test_a_known_run_id() -> None:
    assert runids.new_run_id(1_700_000_000_000, bytes(10)) == "01hf7yat000000000000000000"


@pytest.mark.parametrize("text", NO_RUN_IDS)
def test_what_is_no_run_id(text: str) -> None:
    assert not runids.is_run_id(text)
    with pytest.raises(FormatError) as caught:
        runids.milliseconds(text)
    assert caught.value.code == "runid.syntax"


@pytest.mark.parametrize(("ms", "random"), [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9))])
def test_run_ids_need_their_parts(ms: int, random: bytes) -> None:
    with pytest.raises(FormatError):
        runids.new_run_id(ms, random)


def test_what_a_run_id_is_made_of() -> None:
    text = runids.new_run_id(2**48 - 1, b"\xff" * 10)
    assert text == "7" + "z" * 25
    assert runids.milliseconds(text) == 2**48 - 1
    assert runids.new_run_id(0, bytes(9) + b"\x21") == "0" * 24 + "11"
    assert runids.new_run_id(1, bytes(10)) == "0000000001" + "0" * 16
    for ms, random in ((-1, bytes(10)), (2**48, bytes(10)), (5, bytes(9)), (5, bytes(11))):
        with pytest.raises(FormatError, match=f"10 random bytes: {ms}, {len(random)}") as caught:
            runids.new_run_id(ms, random)
        assert caught.value.code == "runid.syntax"
    with pytest.raises(FormatError, match="'7f3a' is not a run id"):
        runids.milliseconds("7f3a")
