"""Programs that are unkind to their process, and people who are unkind to the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from agentloom import Trace
from tests.bad_input.harness import AGENT, SECONDS, Room, environment

# -- scripts ---------------------------------------------------------------------------------------------------------


def test_a_fork_of_the_program_is_not_the_run(room: Room) -> None:
    room.write(
        """
        import os
        if os.fork() == 0:
            print("child", flush=True)
        else:
            os.wait()
            print("parent")
        """
    )
    done = room.call("run", "agent.py")
    assert done.code == 0, done.all
    assert done.out == "child\nparent\n"
    assert "error" not in done.err
    assert "forks a process (agent.py:3 <module>)" in done.err
    trace = Trace.open("last", room.store)
    assert trace.output["stdout"] == "parent\n"
    assert trace.verify().consistent


def test_threads_that_outlive_the_main_part_belong_to_the_run(room: Room) -> None:
    room.write(
        """
        import threading, time
        threading.Thread(target=lambda: (time.sleep(0.2), print("late"))).start()
        print("main")
        """
    )
    assert room.call("run", "agent.py").out == "main\nlate\n"
    assert Trace.open("last", room.store).output["stdout"] == "main\nlate\n"
    assert room.call("replay", "last").code == 0


def test_what_is_flushed_is_seen_at_once(room: Room) -> None:
    room.write("import sys\nprint('ready', flush=True)\nsys.stdin.read()")
    process = subprocess.Popen(
        room.command("run", "agent.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=room.folder, env=environment(),
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"  # while the program still waits for its input
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_odd_output_folders_and_arguments(room: Room) -> None:
    (room.folder / "mein ördner ☃").mkdir()
    room.write("X = 1", "mein ördner ☃/sibling.py")
    path = room.write(
        """
        import os, sibling, sys
        sys.stdout.buffer.write(b"\\xff\\x00\\xfe\\n")
        print(sibling.X, len(sys.argv[1]), ascii(sys.argv[2]))
        os.chdir("/")
        for _ in range(10):
            sys.stdout.write("x" * (1 << 20) + "\\n")
        sys.stdout.close()
        """,
        "mein ördner ☃/my agent.py",
    )
    done = room.call("run", str(path), "--", "é" * 60_000, os.fsdecode(b"a\xff"))
    assert done.code == 0, done.err
    assert done.raw.startswith(b"\xff\x00\xfe\n1 60000 'a\\udcff'\n")
    assert len(done.raw) > 10 << 20
    again = room.call("replay", "last", "-q")
    assert again.code == 0, again.out[-2000:]
    assert again.raw.startswith(done.raw)


def test_a_script_that_is_none_or_goes_away(room: Room) -> None:
    room.write("def f(:\n    pass", "broken.py")
    done = room.call("run", "broken.py", "--json")
    assert done.code == 1
    error = json.loads(done.err)["error"]
    assert "broken.py:1 is not a Python program" in error["message"]
    assert error["next"]
    room.write("import os\nos.unlink(__file__)\nprint('gone')\nraise SystemExit('with text')")
    done = room.call("run", "agent.py")
    assert (done.code, done.out) == (1, "gone\n")
    assert "with text" in done.err
    again = room.call("replay", "last")
    assert again.code == 1
    assert "--at recorded" in again.err
    assert room.call("replay", "last", "--at", "recorded").code == 3  # it would remove its file again


# -- agents that cannot be had -----------------------------------------------------------------------------------------

TARGETS = {
    "syntax.py:work": ("def f(:\n    pass", "syntax.py:1"),
    "missing.py:work": ("import no_such_module_anywhere", "No module named 'no_such_module_anywhere'"),
    "raises.py:work": ("x = 1\n1 / 0", "raises.py:2"),
    "ends.py:work": ("import sys\nsys.exit(4)", "exit code 4"),
    "nothing.py:work": (AGENT + "@agent\ndef other(): return 1", "it has other"),
    "function.py:work": ("def work(): return 1", "is not an agent"),
}


def test_targets_that_cannot_be_had(room: Room) -> None:
    for target, (text, words) in TARGETS.items():
        room.write(text, target.partition(":")[0])
        done = room.call("run", target)
        assert done.code == 1, done.all
        assert words in done.err
        assert "next: " in done.err
        assert "Traceback" not in done.err
    done = room.call("run", "raises.py:work", "--json")
    assert json.loads(done.err)["error"]["type"] == "TargetError"
    for target in (":work", "a-b:work", "work"):
        assert "is neither a file nor module:name" in room.call("run", target).err
    assert not room.store.exists()


def test_arguments_that_an_agent_does_not_take(room: Room) -> None:
    room.write(AGENT + "@agent\ndef work(x, *, y=1): return [x, y]")
    done = room.call("run", "agent.py:work", "--", "1", "2", "3")
    assert done.code == 1
    assert "does not take these arguments: too many positional arguments" in done.err
    assert "(x, *, y=1)" in done.err
    assert not room.store.exists()


def test_what_an_agent_prints_does_not_spoil_the_document(room: Room) -> None:
    room.write(
        AGENT
        + "@agent(guard='virtual')\ndef work():\n"
        + "    print('a')\n    os.write(1, b'b\\n')\n    os.system('echo c')\n    return 1"
    )
    done = room.call("run", "agent.py:work", "--json")
    assert json.loads(done.out)["status"] == "completed"
    assert [effect["what"] for effect in json.loads(done.out)["unrecorded"]] == ["starts process echo c"]
    again = room.call("replay", "last", "--json")
    assert json.loads(again.out)["verdict"] == "diverged"


def test_an_argument_that_cannot_be_recorded_keeps_the_run(room: Room) -> None:
    room.write(AGENT + "@tool\ndef t(x): return 1\n@agent\ndef work(): return t(object())")
    done = room.call("run", "agent.py:work")
    assert done.code == 1
    assert "cannot record the value at args.x: object" in done.err
    assert "what was done before that is in run" in done.err
    assert "Traceback" not in done.err
    assert Trace.open("last", room.store).status == "failed"
    assert room.call("replay", "last").code == 0


# -- disks and readers -------------------------------------------------------------------------------------------------


def test_a_full_disk_stops_the_run_before_its_next_effect(room: Room) -> None:
    room.write(
        AGENT
        + """
@tool
def save(x):
    with open("effects.txt", "a") as file:
        file.write("x")
    return x
@agent
def work():
    for _ in range(100):
        try:
            save("y" * 2000)
        except Exception:
            continue
    return 1
"""
    )
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)); "
    limited = [sys.executable, "-c", limit + "os.execv(sys.argv[1], sys.argv[1:])"]
    done = subprocess.run(
        [*limited, *room.command("run", "agent.py:work")],
        capture_output=True, text=True, timeout=SECONDS, check=False, cwd=room.folder, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "next: " in done.stderr
    assert "Traceback" not in done.stderr
    trace = Trace.open("last", room.store)
    assert trace.verify().consistent
    performed = len((room.folder / "effects.txt").read_text())
    assert 1 <= performed <= len(trace.calls) < 100
    assert room.call("ls").out.split()[3] == "crashed"


def test_a_reader_that_goes_away(room: Room) -> None:
    room.write("for n in range(20000): print('line', n)")
    process = room.start("run", "agent.py")
    assert process.stdout is not None
    assert process.stdout.readline() == b"line 0\n"
    process.stdout.close()
    assert process.wait(SECONDS) == 0
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert len(Trace.open("last", room.store).output["stdout"].splitlines()) == 20000
    for command in (["show", "last"], ["ls"], ["replay", "last"], ["export", "last", "-o", "-"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            room.command(*command), stdout=write, stderr=subprocess.PIPE, timeout=SECONDS, check=False,
            cwd=room.folder, env=environment(),
        )  # fmt: skip
        os.close(write)
        assert done.returncode == 141, (command, done.stderr)
        assert b"Traceback" not in done.stderr


# -- interrupts and deaths ---------------------------------------------------------------------------------------------


def _interrupted(room: Room, *command: str, presses: int = 1, group: bool = False) -> tuple[int, str, str]:
    """Start, wait for the line ``ready``, press Ctrl-C (``group``: as a terminal does, for the whole group)."""
    process = room.start(*command)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    for _ in range(presses):
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.decode(), err.decode()


WAITING = {
    "sync tool": "@tool\ndef wait():\n    print('ready', flush=True); time.sleep(60)\n@agent\ndef work():\n    wait()",
    "async tool": "@tool\nasync def wait():\n    print('ready', flush=True); await asyncio.sleep(60)\n"
    "@agent\nasync def work():\n    await wait()",
    "own code": "@agent\ndef work():\n    sync.now(); print('ready', flush=True); threading.Event().wait(60)",
}


@pytest.mark.parametrize(
    ("where", "group"), [("sync tool", False), ("sync tool", True), ("async tool", True), ("own code", False)]
)
def test_ctrl_c_while_recording(room: Room, where: str, group: bool) -> None:
    room.write(AGENT + "import time\n" + WAITING[where])
    code, _, err = _interrupted(room, "run", "agent.py:work", group=group)
    assert code == 130, err
    assert "cancelled" in err
    assert "Traceback" not in err
    trace = Trace.open("last", room.store)
    assert trace.status == "cancelled"
    assert trace.verify().complete


def test_a_script_that_answers_ctrl_c_ends_as_it_wants(room: Room) -> None:
    room.write(
        "import time\ntry:\n    print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: print('bye')"
    )
    code, out, err = _interrupted(room, "run", "agent.py", group=True)
    assert (code, out) == (0, "bye\n"), err
    assert Trace.open("last", room.store).verify().complete


@pytest.mark.parametrize("kind", ["script", "stubborn agent"])
def test_ctrl_c_ends_a_replay_at_once(room: Room, kind: str) -> None:
    wait = "import time\nwhile not os.path.exists('fast'):\n    try: print('ready', flush=True); time.sleep(60)\n"
    wait += "    except BaseException: pass\n"
    body = wait.replace("\n", "\n    ")
    text = (
        f"import os\n{wait}"
        if kind == "script"
        else f"{AGENT}@agent(guard='off')\ndef work():\n    {body}\n    return 1\n"
    )
    target = room.write(text).name + ("" if kind == "script" else ":work")
    room.write("", "fast")
    assert room.call("run", target).code == 0
    (room.folder / "fast").unlink()
    before = [path.read_bytes() for path in (room.store / "runs").iterdir()]
    code, out, err = _interrupted(room, "replay", "last")
    assert code == 130, out + err
    assert "interrupted" in err
    assert [path.read_bytes() for path in (room.store / "runs").iterdir()] == before


def test_a_run_that_goes_on_and_one_that_was_killed(room: Room) -> None:
    room.write(
        AGENT + "@agent\ndef work():\n    sync.now(); print('ready', flush=True); threading.Event().wait(60)"
    )
    process = room.start("run", "agent.py:work")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n"
    assert "running" in room.call("ls").out
    again = room.call("replay", "last", "--target", "other.py")
    assert again.code == 1
    run = Trace.open("last", room.store).run_id
    from agentloom.errors import LeaseHeld
    from agentloom.store import open_store

    with pytest.raises(LeaseHeld):
        open_store(room.store).reopen(run)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    assert "crashed" in room.call("ls").out
    assert Trace.open("last", room.store).verify().consistent
    room.write(AGENT + "@agent\ndef work():\n    sync.now(); sync.now()")
    again = room.call("replay", "last")
    assert again.code == 3
    assert "The recording ends here: its process died after call 1" in again.out


def test_the_program_ends_when_only_the_parent_is_killed(room: Room) -> None:
    room.write(
        AGENT
        + "import time\n@agent(guard='off')\ndef work():\n    print('ready', flush=True)\n"
        + "    while True: time.sleep(0.01)\n"
    )
    process = room.start("run", "agent.py:work")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    err = process.communicate(timeout=SECONDS)[1]  # ends when the child has closed the pipes too
    assert b"Traceback" not in err
    assert Trace.open("last", room.store).status == "unfinished"


def test_narrow_and_colourless(room: Room) -> None:
    room.write("print('x' * 300)")
    assert room.call("run", "agent.py").code == 0
    for name, value in (("COLUMNS", "1"), ("COLUMNS", "x"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        for command in (["replay", "last"] if value == "x" else ["show", "last"],):
            done = room.call(*command, given=b"", **{name: value})
            assert done.code == 0, done.all
            assert "\x1b" not in done.all
