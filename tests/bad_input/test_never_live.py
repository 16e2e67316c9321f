"""A replay performs nothing, wherever in its process the program tries: at import, in threads, at exit, past Python."""

from __future__ import annotations

import pytest

from tests.bad_input.harness import AGENT, Room

SAVE = "open('x', 'a').write('x')"
LATE = """
import atexit, builtins, time
atexit.register(lambda: open('x', 'a').write('x'))
class Late:
    opener = open
    def __del__(self):
        self.opener('x', 'a').write('x')
builtins.late = Late()
@tool
def save():
    open('x', 'a').write('x')
"""
EVERYTHING = """
    for attempt in (
        lambda: ctypes.CDLL(None).system(b"echo x >> x"),
        lambda: sqlite3.connect(":memory:").execute("attach database 'x' as d").execute("create table d.t(a)"),
        lambda: sqlite3.connect(":memory:").execute("vacuum into 'y'"),
        lambda: sqlite3.connect("z").execute("create table t(a)"),
        lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "echo x >> x"], {}),
        lambda: subprocess.run("echo x >> x", shell=True),
        lambda: os.system("echo x >> x"),
        lambda: os.mkdir("made"),
        lambda: os.fork() or os._exit(0),
        lambda: __import__("multiprocessing").get_context("spawn").Process(target=print).start(),
        lambda: create_connection(("127.0.0.1", 9), 1).sendall(b"x"),
        lambda: urllib.request.urlopen("http://127.0.0.1:9/").read(),
        lambda: asyncio.run(asyncio.create_subprocess_shell("echo x >> x")),
    ):
        with contextlib.suppress(BaseException):
            attempt()
"""
TRIES: dict[str, tuple[str, str]] = {
    "import, swallowed": (f"try: {SAVE}\nexcept BaseException: pass", "pass"),
    "thread": ("", f"t = threading.Thread(target=lambda: {SAVE}); t.start(); t.join()"),
    "everything": (
        "import ctypes, sqlite3, socket, subprocess, urllib.request\nfrom socket import create_connection",
        EVERYTHING,
    ),
    # What comes too late for a verdict does not come at all.
    "late": (
        LATE,
        f"""t = threading.Thread(target=save); t.start(); t.join()
    threading.Thread(target=lambda: (time.sleep(0.5), {SAVE})).start()""",
    ),
}


@pytest.mark.parametrize("way", list(TRIES))
def test_nothing_is_performed(room: Room, way: str) -> None:
    before, inside = TRIES[way]
    room.write(f"{AGENT}{before}\n@agent(guard='virtual')\ndef work():\n    {inside}\n    return 1\n")
    recorded = room.call("run", "agent.py:work")
    assert "recorded" in recorded.err, recorded.all
    for name in ("x", "y", "z"):
        (room.folder / name).unlink(missing_ok=True)
    if (room.folder / "made").exists():
        (room.folder / "made").rmdir()
    before_replay = room.files()
    again = room.call("replay", "last")
    assert room.files() == before_replay
    assert not (room.folder / "made").exists()
    assert again.code == 3, again.all
    assert "Refused: the code " in again.out


def test_a_script_too_performs_nothing(room: Room) -> None:
    room.write(
        """
        import atexit, threading, time, weakref
        class Thing: pass
        thing = Thing()
        weakref.finalize(thing, lambda: open("x", "a").write("x"))
        atexit.register(lambda: open("x", "a").write("x"))
        threading.Thread(target=lambda: (time.sleep(0.3), open("x", "a").write("x"))).start()
        print("main is done")
        """
    )
    assert room.call("run", "agent.py").code == 0
    assert room.files()["x"] == b"xxx"
    (room.folder / "x").unlink()
    again = room.call("replay", "last")
    assert again.code == 3, again.all
    assert "Refused: the code writes x" in again.out
    assert "x" not in room.files()


def test_a_tool_in_a_thread_of_a_pool_runs_once_when_recorded(room: Room) -> None:
    room.write(
        AGENT
        + """
from concurrent.futures import ThreadPoolExecutor
@tool
def look(x):
    print("RAN")
    return x
@agent
def work():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(look, 1).result()
"""
    )
    done = room.call("run", "agent.py:work")
    assert done.out == "RAN\n1\n"
    again = room.call("replay", "last")
    assert again.code == 0, again.all
    assert "RAN" not in again.all


def test_without_the_trace_nothing_of_the_program_runs(room: Room) -> None:
    room.write("open('x', 'a').write('x')")
    done = room.call("replay", "last")
    assert done.code == 1
    assert "no run 'last'" in done.err
    assert "x" not in room.files()


def test_a_replay_from_the_recorded_sources_writes_no_caches_elsewhere(room: Room) -> None:
    room.write("X = 1", "beside.py")
    room.write("import beside\nprint(beside.X)")
    assert room.call("run", "agent.py", PYTHONDONTWRITEBYTECODE="").code == 0
    again = room.call("replay", "last", "--at", "recorded", PYTHONDONTWRITEBYTECODE="")
    assert again.code == 0, again.all
