"""The command line as a process: exit codes, errors, interruption, a closed pipe, speed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from agentloom import errors
from agentloom._version import __version__
from agentloom.cli import group
from agentloom.cli.main import main
from agentloom.cli.options import common_options

Call = Callable[..., Any]


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let ``agentloom doctor`` raise a given error instead of doing its work."""

    def install(error: BaseException) -> None:
        @click.command()
        @common_options
        def command() -> None:
            raise error

        monkeypatch.setitem(group.cli.commands, "doctor", command)

    return install


def test_version_needs_no_click(process: Call) -> None:
    assert process("--version").out == f"agentloom {__version__}\n"
    code = "import sys, agentloom.cli.main as m; m.main(['--version']); sys.exit('click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_version_costs_little_more_than_the_package(process: Call) -> None:
    def cost(*args: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *args], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pairs = [(cost("-c", "import agentloom"), cost("-m", "agentloom", "--version")) for _ in range(5)]
    ratio = min(pair[1] for pair in pairs) / min(pair[0] for pair in pairs)
    assert ratio < 1.7, f"{ratio:.2f}"


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "Usage: agentloom"),
        (("shwo",), 2, "error: No such command 'shwo'. Did you mean 'show'?\nnext: agentloom --help\n"),
        (
            ("ls", "--lmit", "3"),
            2,
            "\nnext: agentloom ls --help\n",
        ),
        (("ls", "--lmit", "3"), 2, "No such option '--lmit'. (Did you mean one of: '--limit',"),
        (
            ("run", "a.py", "--loud"),
            2,
            "what is meant for the program goes after --: agentloom run ... -- --loud",
        ),
        (("completion",), 2, "Choose from: bash, fish, zsh\n"),
        (("ls", "--limit", "many"), 2, "'many' is not a valid integer"),
        (("ls", "--since", "soon"), 2, "'soon' is no time"),
    ],
)
def test_usage_errors_say_what_to_do(cli: Call, args: tuple[str, ...], code: int, text: str) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (code, "")
    assert text in result.err


def test_usage_errors_in_json(cli: Call) -> None:
    result = cli("ls", "--lmit", "3", "--json")
    assert result.code == 2
    assert result.error["type"] == "NoSuchOption"
    assert result.error["next"] == "agentloom ls --help"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RunNotFound("no run 'x'", hint="agentloom ls"), 1),
        (errors.IntegrityError("chain", "altered", line=3), 5),
        (errors.FormatError("json", "no JSON", line=3), 5),
        (errors.UnsupportedVersion("version", "version 2.0"), 1),
        (errors.DivergenceError("DIVERGED"), 3),
        (errors.Diverged(), 3),
        (errors.Suspend(), 75),
        (KeyboardInterrupt(), 130),
        (ValueError("odd"), 1),
    ],
)
def test_exit_codes(
    cli: Call, raising: Callable[[BaseException], None], error: BaseException, code: int
) -> None:
    raising(error)
    assert cli("doctor").code == code


def test_an_error_is_two_lines(cli: Call, raising: Callable[[BaseException], None]) -> None:
    raising(errors.RunNotFound("no run 'x' in .agentloom", hint="agentloom ls", ref="x"))
    assert cli("doctor").err == "error: no run 'x' in .agentloom\nnext: agentloom ls\n"
    assert cli("--json", "doctor").error == {
        "type": "RunNotFound", "message": "no run 'x' in .agentloom", "next": "agentloom ls", "fields": {"ref": "x"},
        "exit": 1,
    }  # fmt: skip


def test_a_defect_shows_its_traceback(cli: Call, raising: Callable[[BaseException], None]) -> None:
    raising(ZeroDivisionError("by nothing"))
    result = cli("doctor")
    assert result.code == 1
    assert "Traceback" in result.err
    assert "test_main.py" in result.err
    assert "error: agentloom failed with an unexpected ZeroDivisionError: by nothing" in result.err
    assert any("test_main.py" in line for line in cli("doctor", "--json").error["traceback"])


def test_a_closed_pipe_is_quiet(process: Call) -> None:
    code = "import sys; from agentloom.cli.main import main; sys.exit(main(['--help']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = (
        "import sys, threading, pathlib, click\n"
        "from agentloom.cli import group\n"
        "@click.command()\n"
        "def wait():\n"
        f"    pathlib.Path({str(ready)!r}).touch()\n"
        "    threading.Event().wait(60)\n"
        "group.cli.commands['wait'] = wait\n"
        "from agentloom.cli.main import main\n"
        "sys.exit(main(['wait']))\n"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not ready.exists():
        assert time.monotonic() < deadline
        os.sched_yield()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (130, "error: interrupted\n")


def test_common_options_stand_before_or_after_the_command(cli: Call, tmp_path: Path) -> None:
    for args in (("--store", str(tmp_path), "--json", "ls"), ("ls", "--json", "--store", str(tmp_path))):
        assert cli(*args).data == {"runs": [], "more": False}


def test_an_encoding_without_the_character_does_not_fail(process: Call, tmp_path: Path) -> None:
    result = process("show", "näin", PYTHONIOENCODING="ascii", AGENTLOOM_STORE=str(tmp_path))
    assert result.code == 1
    assert "n\\xe4in" in result.err


def test_main_reads_the_process_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["agentloom", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"agentloom {__version__}\n"
