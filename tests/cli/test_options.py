"""Common options."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from agentloom.cli.group import cli
from agentloom.cli.options import Settings, common


@click.command()
@click.argument("word")
@common
def probe(settings: Settings, word: str) -> tuple[Settings, str]:
    """Say what was given."""
    return settings, word


def run(*args: str) -> Settings:
    with probe.make_context("probe", list(args)) as context:
        settings, word = probe.invoke(context)
    assert word == "w"
    assert isinstance(settings, Settings)
    return settings


@pytest.mark.parametrize(
    ("args", "settings"),
    [
        ((), Settings()),
        (("--store", "x"), Settings(store="x")),
        (("--json",), Settings(json=True)),
        (("-q",), Settings(quiet=True)),
        (("-vv",), Settings(verbosity=2)),
        (("--no-color",), Settings(color=False)),
    ],
)
def test_options_fill_the_settings(args: tuple[str, ...], settings: Settings) -> None:
    assert run("w", *args) == settings


def test_an_option_before_the_command_holds_after_it() -> None:
    settings = Settings()
    with cli.make_context("agentloom", ["--json", "-v", "completion", "bash"], obj=settings):
        pass
    assert settings == Settings(json=True, verbosity=1)


def test_the_store_is_the_option_then_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path / "variable"))
    assert "variable" in repr(Settings().open_store())
    assert "option" in repr(Settings(store="option").open_store())


def test_a_command_keeps_its_name_and_text() -> None:
    assert probe.help == "Say what was given."
