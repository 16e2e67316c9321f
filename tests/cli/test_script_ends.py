"""How a recorded script ends that is ended from outside: as it would by itself, and its trace says so."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import pytest

from tests.cli.scripts import Scripts, clean

LISTENS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Becomes another command, which hears SIGHUP also where the tests were started with ``nohup``."""


@contextlib.contextmanager
def running(scripts: Scripts, text: str, *before: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A script that is being recorded and has said ``ready PID``: the command, and the process of the script."""
    path = scripts.write(text)
    command = [*before, sys.executable, "-m", "agentloom", "--store", str(scripts.store), "run", path.name]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENS, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=scripts.folder,
        env=clean(),
    )
    assert process.stdout is not None
    try:
        word, number = process.stdout.readline().split()
        assert word == "ready"
        yield process, int(number)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def gone(pid: int) -> bool:
    """Whether a process comes to its end within some seconds."""
    for _ in range(400):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


WAITS = "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(60)\n"
COMPUTES = "import os\nprint('ready', os.getpid(), flush=True)\nwhile True: pass\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("text", [WAITS, COMPUTES], ids=["waits", "computes"])
def test_a_script_ends_with_the_command_that_records_it(scripts: Scripts, text: str) -> None:
    with running(scripts, text) as (process, pid):
        process.kill()
        assert gone(pid)
    assert scripts.recording().status is None
    if text is WAITS:  # the other one computes on, on replay as well
        again = scripts.replay()
        assert again.code == 3, again.all
        assert "its process died" in again.out


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("text", [WAITS, COMPUTES], ids=["waits", "computes"])
def test_a_signal_ends_it_as_ever_and_the_run_is_cancelled(scripts: Scripts, text: str, name: str) -> None:
    number = getattr(signal, name)
    with running(scripts, "import atexit; atexit.register(print, 'not said')\n" + text) as (process, _):
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == -number, err
    assert out == ""
    assert "cancelled" in err, err
    recording = scripts.recording()
    assert recording.status == "cancelled"
    output = recording.output()
    assert isinstance(output, dict)
    assert str(output["stdout"]).startswith("ready ")
    assert output["exit"] == 128 + number


def test_a_signal_that_the_script_handles_is_its_own(scripts: Scripts) -> None:
    text = """
        import os, signal, sys
        came = []
        signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
        signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
        print('ready', os.getpid(), flush=True)
        while len(came) < 3: pass
        print([int(number) for number in came])
        """
    with running(scripts, text) as (process, _):
        for count, number in enumerate((signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)):
            if count:
                time.sleep(
                    0.1
                )  # one after the other: signals that wait together come in the order of their numbers
            process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == f"[{int(signal.SIGTERM)}, {int(signal.SIGUSR1)}, {int(signal.SIGINT)}]\n"
    assert scripts.recording().status == "completed"


def test_what_the_shell_has_ignored_stays_ignored(scripts: Scripts) -> None:
    text = "import os, signal\nprint('ready', os.getpid(), flush=True)\nsignal.sigtimedwait([], 1)\nprint('went on')\n"
    before = ["sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh"]
    with running(scripts, text, *before) as (process, _):
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert out == "went on\n", err
    assert process.returncode == 0


def test_one_press_at_a_terminal_is_one(scripts: Scripts) -> None:
    """Ctrl-C at a terminal reaches both processes: the script hears of it once, whoever handles it."""
    text = """
        import os, signal, time
        came = []
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
        print('ready', flush=True)
        began = time.monotonic_ns()
        signal.sigtimedwait([], 2)
        signal.sigtimedwait([], 1)
        print('came', len(came))
        """
    path = scripts.write(text)
    pid, terminal = os.forkpty()
    if pid == 0:
        os.chdir(scripts.folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "agentloom", "--store", str(scripts.store), "run", path.name],
            clean(),
        )
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 1000):
            shown += data
    os.waitpid(pid, 0)
    os.close(terminal)
    assert b"came 1" in shown, shown.decode()
