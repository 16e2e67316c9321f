"""Who says it, where nobody says who; the rest of ``answer`` is in tests/cli/test_inbox.py."""

from __future__ import annotations

import getpass

import pytest

from agentloom.cli.answer import login_name


def test_the_name_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    assert login_name() == getpass.getuser()

    def nobody() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert login_name() is None
