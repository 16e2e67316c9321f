"""Effects of programs that the command line runs: done once, and on replay refused or listed, with their line."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

from agentloom import Trace
from tests.cli.scripts import Done, Scripts


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    """A folder with scripts and a store."""
    return Scripts(tmp_path)


# An undecorated function, and what of the world it touches; the words of the summary and of the refusal.
BEHIND = {
    "a file": ("open('out', 'a').write('x')", "writes out"),
    "a database": (
        "c = sqlite3.connect('out'); c.execute('create table if not exists t (x)'); c.commit(); c.close()",
        "opens database out",
    ),
    "a database attached": (
        "c = sqlite3.connect(':memory:'); c.execute('attach ? as o', ['out']); c.execute('create table o.t (x)')",
        "attaches database (a computed name)",
    ),
    "C": ("libc = ctypes.CDLL(None); libc.close(libc.creat(b'out', 0o600))", "calls C function creat"),
    "a process": ("subprocess.run(['touch', 'out'])", "starts process touch out"),
}  # fmt: skip

SCRIPT = """
import ctypes, os, sqlite3, subprocess
def save(text):
    {code}
try:
    save("x")
except BaseException as error:
    print(type(error).__name__)
print("saved")
"""


@pytest.mark.parametrize("name", BEHIND)
def test_an_undecorated_function_is_run_once_and_never_again(scripts: Scripts, name: str) -> None:
    code, words = BEHIND[name]
    path = scripts.write(SCRIPT.replace("{code}", code))
    done = scripts.call("run", str(path))
    assert done.out == "saved\n"
    assert done.code == 0, done.all
    written = scripts.folder / "out"
    assert written.exists()
    assert f"{words} (agent.py:4 save)" in done.err
    assert "a replay refuses these and stops there: move them into a tool" in done.err
    assert words in [entry["what"] for entry in Trace.open("last", scripts.store).unrecorded]
    written.unlink()
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "DIVERGED  extra" in again.out
    assert f"Refused: the code {words}" in again.out
    assert "agent.py:4" in again.out
    assert "network refused by " in again.out
    assert not written.exists()


ALL_THREE = """
import ctypes, sqlite3
def save(text):
    with open("file.out", "w") as file: file.write(text)
    with sqlite3.connect("base.out") as base: base.execute("create table t (x)")
    libc = ctypes.CDLL(None); libc.close(libc.creat(b"c.out", 0o600))
try:
    save("x")
except BaseException as error:
    print(type(error).__name__)
print("saved")
"""


def test_a_file_a_database_and_c_in_one_function(scripts: Scripts) -> None:
    """Recorded once and listed, each with its line; a replay stops at the first, and does none of the three."""
    done = scripts.call("run", str(scripts.write(ALL_THREE)))
    assert (done.code, done.out) == (0, "saved\n"), done.all
    seen = [(entry["what"], entry["where"]) for entry in Trace.open("last", scripts.store).unrecorded]
    words = ["writes file.out", "opens database base.out", "calls C function creat"]
    told = [(what, f"agent.py:{line} save") for line, what in enumerate(words, 4)]
    assert [entry for entry in seen if not entry[0].startswith("loads the C library")] == told
    for what, where in told:
        assert f"{what} ({where})" in done.err
    made = sorted(path.name for path in scripts.folder.glob("*.out"))
    assert made == ["base.out", "c.out", "file.out"]
    for name in made:
        (scripts.folder / name).unlink()
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "Refused: the code writes file.out" in again.out
    assert "agent.py:4" in again.out
    assert list(scripts.folder.glob("*.out")) == []


TARGETS = {
    "script": ("print('x')\n", ""),
    "agent": (
        "from agentloom import agent, tool\n@tool\ndef act(x): return x\n@agent\ndef main(): return act(1)\n", ":main",
    ),
    "async agent": (
        (
            "from agentloom import agent, tool\n@tool\nasync def act(x): return x\n"
            "@agent\nasync def main(): return await act(1)\n"
        ),
        ":main",
    ),
    "workflow": (
        (
            "from agentloom import Workflow\ndef one(state): return 1\n"
            "graph = Workflow('w')\ngraph.step('one', fn=one)\n"
        ),
        ":graph",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_what_keeps_a_replay_from_acting_is_said(scripts: Scripts, name: str) -> None:
    """In a process of its own, in a network namespace of its own where there can be one, whatever the target is."""
    text, target = TARGETS[name]
    path = scripts.write(text)
    done = scripts.call("run", f"{path}{target}", *(["--", "1"] if name == "workflow" else []))
    assert done.code == 0, done.all
    again = scripts.replay()
    assert again.code == 0, again.all
    facts = json.loads(scripts.replay("--json").out)
    assert facts["network"] in ("os", "python")
    by = "the operating system" if facts["network"] == "os" else "Python alone"
    assert f"0 files written, network refused by {by}" in again.out
    assert facts["guard"] in ("strict", "virtual", "off")


PROBE = """
import ctypes, os, struct, socket
libc = ctypes.CDLL(None, use_errno=True)
def reach():
    "Past Python: no audit event tells of a connection that C makes by address."
    fd = libc.socket(2, 1, 0)
    address = struct.pack("=HH4s8x", 2, socket.htons({port}), bytes([127, 0, 0, 1]))
    ok = libc.connect(fd, address, len(address))
    libc.close(fd)
    return ok
"""


@pytest.mark.parametrize("target", ["", ":main"], ids=["script", "agent"])
def test_the_operating_system_refuses_what_python_does_not_see(scripts: Scripts, target: str) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        text = PROBE.replace("{port}", str(server.getsockname()[1]))
        # Looked up before the run, so that no event is left at the call.
        text += "libc.socket, libc.connect, libc.close\n"
        if target:
            text = f"from agentloom import agent\n{text}\n@agent\ndef main(): return reach()\n"
        else:
            text += "import sys\nprint(reach())\n"
        path = scripts.write(text)
        recorded = scripts.call("run", f"{path}{target}")
        assert recorded.code == 0, recorded.all
        assert recorded.out.strip() == "0"
        server.settimeout(5)
        server.accept()[0].close()
        facts = json.loads(scripts.replay("--json").out)
        assert facts["verdict"] == "diverged"
        if facts["network"] != "os":
            pytest.skip("this system allows no namespace")
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


STRICT = """
from agentloom import agent, tool
import os
@tool
def act(x):
    return x
@agent(guard="strict")
def main(where):
    act(1)
    try:
        text = open(where).read()
    except Exception:
        text = "swallowed"
    return act(text)
"""


def test_a_strict_agent_fails_at_the_line_and_replays_alike(scripts: Scripts) -> None:
    path = scripts.write(STRICT)
    (scripts.folder / "x.txt").write_text("x")
    done = scripts.call("run", f"{path}:main", "--", "x.txt")
    assert done.code == 1, done.all
    assert "agent.py:11 in main reads x.txt" in done.err
    assert 'allow("file.read", reason="...")' in done.err
    trace = Trace.open("last", scripts.store)
    assert trace.status == "failed"
    assert len(trace.calls) == 1
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL  1/1 calls" in again.out


def test_a_strict_script_fails_at_the_line_and_replays_alike(scripts: Scripts) -> None:
    path = scripts.write(
        "def load():\n    return open('x.txt').read()\ntry: load()\nexcept Exception: pass\nprint('on')\n"
    )
    (scripts.folder / "x.txt").write_text("x")
    done = scripts.call("run", "--guard", "strict", str(path))
    assert done.code == 1, done.all
    assert "agent.py:2 in load reads x.txt" in done.err
    assert Trace.open("last", scripts.store).status == "failed"
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL" in again.out


VIRTUAL = STRICT.replace('"strict"', '"virtual"').replace("open(where).read()", "open(where, 'a').write('y')")


def test_a_virtual_agent_lists_what_it_did_and_replay_refuses_the_write(scripts: Scripts) -> None:
    path = scripts.write(VIRTUAL)
    done = scripts.call("run", f"{path}:main", "--", "x.txt")
    assert done.code == 0, done.all
    assert done.err.count("writes x.txt") == 1
    assert "writes x.txt (agent.py:11 main)" in done.err
    shown = scripts.call("show", "last", "--json")
    assert json.loads(shown.out)["guard"] == "virtual"
    assert json.loads(shown.out)["gaps"]
    (scripts.folder / "x.txt").unlink()
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "writes x.txt" in again.out
    assert not (scripts.folder / "x.txt").exists()


def test_off_is_said_in_every_report(scripts: Scripts) -> None:
    path = scripts.write("print('x')\n")
    done = scripts.call("run", "--guard", "off", str(path))
    assert "guard off" in done.err
    assert "guard off" in scripts.replay().out
    assert json.loads(scripts.replay("--json").out)["guard"] == "off"
    assert "guard off" in scripts.call("show", "last").out
    assert json.loads(scripts.call("show", "last", "--json").out)["guard"] == "off"
    path.write_text("print('y')\n")
    assert "guard off" in scripts.replay().out


def _on_a_terminal(scripts: Scripts, typed: str, *args: str) -> Done:
    """Run a command whose standard input is a terminal at which somebody types."""
    here, there = pty.openpty()
    try:
        os.write(here, typed.encode())
        return scripts.call(*args, terminal=there)
    finally:
        os.close(here)
        os.close(there)


ASKING = {
    "script": ("print('got', input('Refund? '))\n", ""),
    "agent": (
        "from agentloom import agent\n@agent\ndef main(): return 'got ' + input('Refund? ')\n",
        ":main",
    ),
}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("guard", ["strict", "virtual"])
def test_input_on_a_terminal_is_a_recorded_question(scripts: Scripts, name: str, guard: str) -> None:
    text, target = ASKING[name]
    path = scripts.write(text)
    done = _on_a_terminal(scripts, "yes\n", "run", "--guard", guard, f"{path}{target}")
    assert done.code == 0, done.all
    assert done.out == "Refund? got yes\n"
    calls = Trace.open("last", scripts.store).calls
    assert [(call.kind, call.request, call.result) for call in calls] == [
        ("ask", {"question": "Refund? "}, "yes")
    ]
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL  1/1 calls" in again.out


def test_input_of_a_script_from_a_pipe_is_recorded_as_it_is_read(scripts: Scripts) -> None:
    path = scripts.write("import sys\nprint(input('a? '), sys.stdin.readline(), end='')\n")
    for guard in ("strict", "virtual"):
        done = scripts.call("run", "--guard", guard, str(path), given="one\ntwo\n")
        assert done.out == "a? one two\n", done.all
        assert [call.kind for call in Trace.open("last", scripts.store).calls] == ["stdin"]
        assert scripts.replay().code == 0
