"""Who performs model calls: set by the program, named by a variable, or found by entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from types import ModuleType

import pytest

from agentloom.adapters.models import backend as shipped
from agentloom.errors import ProviderError
from agentloom.runtime import models


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    before = models.set_backend(None)
    yield
    models.set_backend(before)


def test_the_one_that_was_set() -> None:
    mine = object()
    assert models.set_backend(mine) is None  # type: ignore[arg-type]
    assert models.backend() is mine


def test_by_default_the_one_that_is_installed() -> None:
    assert models.backend() is shipped


def test_the_one_that_the_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_models")
    module.backend = module.other = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_models", module)
    for named in ("my_models", "my_models:other"):
        models.set_backend(None)
        monkeypatch.setenv("AGENTLOOM_MODEL_BACKEND", named)
        assert models.backend() is module.backend


@pytest.mark.parametrize("named", ["no_such_module:backend", "json:nothing"])
def test_a_variable_that_names_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("AGENTLOOM_MODEL_BACKEND", named)
    with pytest.raises(ProviderError, match=named):
        models.backend()


def test_none_installed_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    with pytest.raises(ProviderError) as caught:
        models.backend()
    assert "agentloom-runtime[models]" in (caught.value.hint or "")
