"""``doctor``: each finding, made to happen."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from agentloom.cli import doctor
from agentloom.cli.options import Settings

Call = Callable[..., Any]


def test_a_sound_installation_is_all_right(cli: Call) -> None:
    result = cli("doctor", "--json")
    assert result.code == 0
    assert result.data["ok"] is True
    names = [check["name"] for check in result.data["checks"]]
    assert names == [
        "python",
        "packages",
        "name",
        "store",
        "index",
        "runs",
        "local model",
        "network",
        "sdks",
        "clients",
    ]
    assert {check["state"] for check in result.data["checks"]} <= {"ok", "info", "warn"}
    assert "click" in result.data["checks"][1]["detail"]


def test_the_other_distribution_of_the_name_is_noticed(tmp_path: Path) -> None:
    """A real installed distribution: its metadata folder on the path of a fresh process."""
    info = tmp_path / "site" / "agentloom-9.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentloom\nVersion: 9.9\n")
    code = f"import sys; sys.path.append({str(tmp_path / 'site')!r})\nfrom agentloom.cli.main import main\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main(['doctor', '--json']))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    check = next(item for item in json.loads(done.stdout)["checks"] if item["name"] == "name")
    assert check["state"] == "fail"
    assert "agentloom (9.9)" in check["detail"]
    assert check["next"] == "pip uninstall -y agentloom agentloom-runtime && pip install agentloom-runtime"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: ["no-such-package>=1", 'extra; extra == "dev"'])
    check = doctor.packages(Settings())
    assert (check.state, check.detail, check.next) == (
        "fail", "missing: no-such-package>=1", "pip install no-such-package>=1",
    )  # fmt: skip


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = doctor.store(Settings(store=str(tmp_path / "file" / "store")))
    assert check.state == "fail"
    assert "cannot be written" in check.detail


def test_looking_makes_no_store(cli: Call, tmp_path: Path) -> None:
    cli("doctor")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_index_is_no_loss(tmp_path: Path) -> None:
    store = tmp_path / "s"
    store.mkdir()
    (store / "index.sqlite").write_bytes(b"no database at all" * 100)
    check = doctor.index(Settings(store=str(store)))
    assert (check.state, check.next) == ("warn", "nothing to do: the next `agentloom ls` makes it anew")
    (store / "index.sqlite").unlink()
    sqlite3.connect(store / "index.sqlite").close()
    assert doctor.index(Settings(store=str(store))).state == "ok"


def test_damaged_runs_are_counted(cli: Call, tmp_path: Path) -> None:
    (tmp_path / ".agentloom" / "runs").mkdir(parents=True)
    (tmp_path / ".agentloom" / "runs" / "broken.loom").write_bytes(b"rubbish\n")
    check = doctor.runs(Settings())
    assert check.state == "warn"
    assert "1 runs, 1 damaged: broken" in check.detail


@pytest.mark.parametrize(("version", "state"), [((3, 11, 7), "ok"), ((3, 14, 0), "warn")])
def test_pythons_that_were_not_tested_are_named(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], state: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert doctor.python(Settings()).state == state


def test_the_text_shows_what_to_do(cli: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda _: doctor.Check("store", "fail", "is full", "make room"),))
    result = cli("doctor")
    assert (result.code, result.out) == (1, "fail store  is full\n            next: make room\n")


def test_clients_without_an_adapter_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "WITHOUT_ADAPTER", ("click", "no-such-package"))
    check = doctor.clients(Settings())
    assert (check.state, check.detail) == ("info", f"not recorded: click {metadata.version('click')}")
    assert check.next is not None
    assert "use them in a tool" in check.next
    monkeypatch.setattr(doctor, "WITHOUT_ADAPTER", ("no-such-package",))
    assert doctor.clients(Settings()).state == "ok"
