"""A verdict reaches the shell whatever the program does with the exception that carries it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests.bad_input.harness import AGENT, Done, Room

PROGRAM = (
    AGENT
    + """
import signal
MODE = open('mode.txt').read()
@tool
def look(x):
    return 'fine'

def goes_on():
    while True:
        try:
            return look(MODE)
        except BaseException:
            continue

def returns_in_finally():
    try:
        look(MODE)
    finally:
        return "fine"

def suppresses():
    with contextlib.suppress(BaseException):
        look(MODE)
    return "fine"

def ends_the_process():
    try:
        look(MODE)
    except BaseException:
        os._exit(0)
    return "fine"

def exits_with_0():
    try:
        look(MODE)
    except BaseException:
        sys.exit(0)
    return "fine"

def kills_itself():
    try:
        look(MODE)
    except BaseException:
        os.abort()
    return "fine"

def yields_in_finally():
    def items():
        try:
            yield look(MODE)
        finally:
            yield "fine"
    for item in items():
        try:
            return item
        except BaseException:
            pass
    return "fine"

def asks_in_a_signal_handler():
    def handler(*_):
        try:
            look(MODE)
        except BaseException:
            pass
    signal.signal(signal.SIGUSR1, handler)
    signal.raise_signal(signal.SIGUSR1)
    return "fine"

def turns_it_into_another():
    try:
        look(MODE)
    except BaseException:
        raise ConnectionError("failed to connect") from None
    return "fine"

@agent(guard="virtual")
def work():
    return globals()[open("way.txt").read()]()

@agent(guard="virtual")
async def gathers():
    async def ask():
        return look(MODE)
    await asyncio.gather(ask(), ask(), return_exceptions=True)
    return "fine"
"""
)
WAYS = [
    "goes_on", "returns_in_finally", "suppresses", "ends_the_process", "exits_with_0", "kills_itself",
    "yields_in_finally", "asks_in_a_signal_handler", "turns_it_into_another",
]  # fmt: skip


def test_no_program_swallows_a_verdict(room: Room) -> None:
    # The ways differ only in what they do after the verdict, so that one recording stands for all.
    room.write(PROGRAM)
    room.write("one", "mode.txt")
    room.write("suppresses", "way.txt")
    assert room.call("run", "agent.py:work").code == 0
    room.call("export", "last", "-o", "work.loom")
    assert room.call("run", "agent.py:gathers").code == 0

    def replayed(way: str) -> tuple[str, Done]:
        folder = Room(room.folder / way)
        folder.store = room.store
        for name, text in (("agent.py", PROGRAM), ("mode.txt", "two"), ("way.txt", way)):
            folder.write(text, name)
        run = "last" if way == "gathers" else str(room.folder / "work.loom")
        return way, folder.call("replay", run, "--target", "agent.py", "--json")

    with ThreadPoolExecutor(3) as pool:
        for way, again in pool.map(replayed, (*WAYS, "gathers")):
            assert again.code == 3, (way, again.all)
            report = json.loads(again.out)
            assert report["verdict"] == "diverged"
            assert "look" in again.out
            assert "Traceback" not in again.err, way


def test_a_script_that_ends_its_process_is_recorded_and_replayed_so(room: Room) -> None:
    room.write("import os\nprint('out', flush=True)\nos._exit(7)")
    done = room.call("run", "agent.py")
    assert (done.code, done.out) == (7, "out\n")
    assert "failed, exit code 7" in done.err
    again = room.call("replay", "last")
    assert again.code == 0, again.all
    assert "exit code 7" in again.out
    room.write("import os\nprint('other', flush=True)\nos._exit(7)")
    assert room.call("replay", "last").code == 3


def test_a_process_that_is_killed_has_no_verdict_and_that_is_an_error(room: Room) -> None:
    room.write(
        AGENT
        + "@agent(guard='virtual')\ndef work():\n    if os.path.exists('die'): os.abort()\n    return 1\n"
    )
    assert room.call("run", "agent.py:work").code == 0
    room.write("", "die")
    again = room.call("replay", "last", "--json")
    assert again.code == 1
    error = json.loads(again.err)["error"]
    assert "before there was a verdict" in error["message"]
    assert error["next"]
