"""``diff``: exit code, text and JSON; what is compared is tested in tests/replay/test_diff.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import samples

Call = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "good.loom").write_bytes(samples.refund(1).data)
    (tmp_path / "again.loom").write_bytes(samples.refund(2).data)
    other = samples.Maker(3)
    other.call(
        0, "model", "gpt-4o", {"model": "gpt-4o", "messages": samples.HISTORY}, {"content": "No."}, line=22
    )
    (tmp_path / "bad.loom").write_bytes(other.end("No."))


@pytest.mark.usefixtures("files")
def test_the_same_run_twice_is_the_same(cli: Call) -> None:
    result = cli("diff", "good.loom", "again.loom")
    assert result.code == 0, result.out
    assert cli("diff", "good.loom", "again.loom", "--json").data["same"] is True


@pytest.mark.usefixtures("files")
def test_runs_that_part_say_where(cli: Call) -> None:
    result = cli("diff", "good.loom", "bad.loom")
    assert result.code == 3
    assert "call 1" in result.out.splitlines()[0]
    assert "good.loom" in result.out
    assert len(result.out) < 1200
    facts = cli("diff", "good.loom", "bad.loom", "--json").data
    assert (facts["schema"], facts["same"], facts["names"]) == (
        "agentloom/diff/1",
        False,
        ["good.loom", "bad.loom"],
    )


@pytest.mark.usefixtures("files")
def test_runs_of_the_store_by_name(cli: Call) -> None:
    cli("import", "good.loom", "bad.loom")
    assert cli("diff", "0001", "last", "--json").data["names"] == ["0001", "0003"]


@pytest.mark.usefixtures("files")
def test_a_damaged_file_is_an_integrity_error(cli: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.loom").write_bytes(samples.refund().data.replace(b'"paid":true', b'"paid":tru3'))
    assert cli("diff", "good.loom", "bad.loom").code == 5
