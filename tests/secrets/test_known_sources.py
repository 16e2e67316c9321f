"""Sources that runs of this process have written before are searched again where other values are secret now."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentloom

NOT_SECRET_YET = "zq81mmKxPPw0notyetsecretvalue77"


@agentloom.agent
def answered(number: int) -> int:
    return number


def written(folder: Path) -> bytes:
    answered.run(1, store=folder)
    return b"".join(path.read_bytes() for path in folder.rglob("*.loom"))


def test_a_text_of_the_source_that_becomes_secret_is_hidden_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = NOT_SECRET_YET.encode()
    assert text in written(tmp_path / "0")
    assert text in written(tmp_path / "1"), "the source is written from what is known of it"
    monkeypatch.setenv("SERVICE_TOKEN", NOT_SECRET_YET)
    for name in "23":
        assert text not in written(tmp_path / name)
    monkeypatch.delenv("SERVICE_TOKEN")
    assert text in written(tmp_path / "4")


def test_rules_of_a_run_hold_for_sources_that_were_written_without_them(tmp_path: Path) -> None:
    text = NOT_SECRET_YET.encode()
    assert text in written(tmp_path / "0")
    answered.run(1, store=tmp_path / "1", secrets=agentloom.secrets(values=[NOT_SECRET_YET]))
    assert text not in b"".join(path.read_bytes() for path in (tmp_path / "1").rglob("*.loom"))
    assert text in written(tmp_path / "2")
