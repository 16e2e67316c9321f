"""``agentloom signal``: a named message is kept until the run takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import agentloom
from agentloom.store import LocalStore
from tests.cli.conftest import Result
from tests.cli.suspending import paid, waits

Call = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.mark.parametrize(
    ("given", "value"), [((), None), (("7",), 7), (("seven",), "seven"), (('{"a": 1}',), {"a": 1})]
)
def test_a_message_with_a_value(cli: Call, folder: str, given: tuple[str, ...], value: object) -> None:
    run = waits(paid, folder)
    done = cli("signal", run, "payment", *given, "--by", "shop", "--store", folder)
    assert (done.code, done.out) == (0, f"sent payment to {run[-4:]}\n")
    assert agentloom.resume(run, paid, store=folder).output == value


def test_a_message_with_a_key_is_sent_once(cli: Call, folder: str) -> None:
    run = waits(paid, folder)
    first = cli("signal", run, "payment", "1", "--key", "k1", "--store", folder, "--json").data
    second = cli("signal", run, "payment", "2", "--key", "k1", "--store", folder, "--json").data
    assert (first["sent"], second["sent"], second["value"]) == (True, False, 1)
    assert "was sent before" in cli("signal", run, "payment", "--key", "k1", "--store", folder).out
    assert len(LocalStore(folder).mail(run)) == 1


def test_a_run_that_has_ended_takes_none(cli: Call, folder: str) -> None:
    run = waits(paid, folder)
    cli("signal", run, "payment", "--store", folder)
    agentloom.resume(run, paid, store=folder)
    done = cli("signal", run, "payment", "--store", folder, "--json")
    assert (done.code, done.error["type"]) == (1, "StaleAnswer")
