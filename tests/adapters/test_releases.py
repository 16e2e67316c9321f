"""Releases outside of the tested range: one warning with the adapter and the range, and no crash."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from agentloom.adapters import releases, sdks
from agentloom.adapters.releases import RANGES, Range, check


def test_what_is_in_a_range() -> None:
    known = Range("x", "1.2.3", "2.4.1")
    held = ["1.2.3", "1.10.0", "2.0.0rc1", "2.4.1", "2.4.99", "2.4.2+local"]
    assert [known.holds(one) for one in held] == [True] * len(held)
    assert [known.holds(one) for one in ("1.2.2", "0.9", "2.5.0", "3.0")] == [False] * 4
    assert str(known) == "x 1.2.3 to 2.4.1"


def test_another_release_is_told_once_with_adapter_and_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "99.1")
    monkeypatch.setattr(releases, "_said", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check("openai")
        check("openai")
        check("unknown")
    (one,) = [str(warning.message) for warning in caught]
    assert one.startswith(
        "openai 99.1 is outside of what the adapter openai was tested with (openai 2.0.0 to "
    )


def test_warnings_as_errors_end_no_import(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "99.1")
    monkeypatch.setattr(releases, "_said", set())
    check("anthropic")
    assert "anthropic 99.1" in caplog.text


def test_a_release_that_is_built_in_another_way_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(releases, "_said", set())
    strange = ModuleType("openai._base_client")
    sdks._patch(strange)
    assert "the adapter openai._base_client does not fit, so its calls are not recorded" in caplog.text
    assert str(RANGES["openai"]) in caplog.text


@pytest.mark.parametrize(
    ("module", "name", "package", "otherwise"),
    [
        (
            "google.genai._extra_utils",
            "invoke_function_from_dict_args",
            "google-genai",
            "functions that it calls itself",
        ),
        ("langgraph.pregel._runner", "run_with_retry", "langgraph", "without the names of nodes"),
        (
            "workflows.runtime.types.step_function",
            "as_step_worker_function",
            "llama-index-workflows",
            "names of steps",
        ),
        ("pydantic_ai._utils", "run_until_complete", "pydantic-ai-slim", "run_sync have no recorded order"),
        ("mcp.client.stdio", "stdio_client", "mcp", "such connections are not recorded"),
        ("mcp.client.client", "_connect_inproc", "mcp", "servers in memory run in the run itself"),
    ],
)
def test_a_function_that_a_framework_has_not_is_told_with_its_package_and_what_follows(
    module: str,
    name: str,
    package: str,
    otherwise: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(releases, "_said", set())
    sdks._patch(ModuleType(module))
    assert f"this release of {package} has no {name}: " in caplog.text
    assert otherwise in caplog.text
    assert f"tested: {RANGES[package_module(module)]}" in caplog.text


def package_module(module: str) -> str:
    return next(name for name in RANGES if module.startswith(f"{name}."))


def test_a_program_goes_on_with_a_library_that_moved(tmp_path: Path) -> None:
    (tmp_path / "httpx2").mkdir()
    (tmp_path / "httpx2" / "__init__.py").write_text("__version__ = '99.0'\nanswer = 42\n")
    code = "from agentloom.adapters import sdks; sdks.watch(); import httpx2; print(httpx2.answer)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2] / 'src'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "42\n"
    assert "the adapter httpx2 does not fit" in done.stderr
