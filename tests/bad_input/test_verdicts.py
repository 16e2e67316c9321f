"""A verdict reaches the shell whatever the program does with the exception that carries it."""

from __future__ import annotations

import json

import pytest

from tests.bad_input.harness import AGENT, Room

SWALLOWERS = {
    "catches all and goes on": """
def work():
    while True:
        try:
            return look(MODE)
        except BaseException:
            continue
""",
    "returns in finally": """
def work():
    try:
        look(MODE)
    finally:
        return "fine"
""",
    "suppresses": """
def work():
    with contextlib.suppress(BaseException):
        look(MODE)
    return "fine"
""",
    "ends the process": """
def work():
    try:
        look(MODE)
    except BaseException:
        os._exit(0)
    return "fine"
""",
    "exits with 0": """
def work():
    try:
        look(MODE)
    except BaseException:
        sys.exit(0)
    return "fine"
""",
    "kills itself": """
def work():
    try:
        look(MODE)
    except BaseException:
        os.abort()
    return "fine"
""",
    "a generator's finally": """
def work():
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
""",
    "gather": """
async def work():
    async def ask():
        return look(MODE)
    await asyncio.gather(ask(), ask(), return_exceptions=True)
    return "fine"
""",
    "a signal handler": """
def work():
    import signal
    def handler(*_):
        try:
            look(MODE)
        except BaseException:
            pass
    signal.signal(signal.SIGUSR1, handler)
    signal.raise_signal(signal.SIGUSR1)
    return "fine"
""",
    "turns it into another": """
def work():
    try:
        look(MODE)
    except BaseException as error:
        raise ConnectionError("failed to connect") from None
    return "fine"
""",
}


@pytest.mark.parametrize("way", list(SWALLOWERS))
def test_no_program_swallows_a_verdict(room: Room, way: str) -> None:
    text = f"{AGENT}MODE = open('mode.txt').read()\n@tool\ndef look(x):\n    return 'fine'\n@agent"
    room.write(text + SWALLOWERS[way])
    room.write("one", "mode.txt")
    assert room.call("run", "agent.py:work").code == 0
    room.write("two", "mode.txt")
    again = room.call("replay", "last", "--json")
    assert again.code == 3, again.all
    report = json.loads(again.out)
    assert report["verdict"] == "diverged"
    assert "look" in again.out
    assert "Traceback" not in again.err


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
    room.write(AGENT + "@agent\ndef work():\n    if os.path.exists('die'): os.abort()\n    return 1\n")
    assert room.call("run", "agent.py:work").code == 0
    room.write("", "die")
    again = room.call("replay", "last", "--json")
    assert again.code == 1
    error = json.loads(again.err)["error"]
    assert "before there was a verdict" in error["message"]
    assert error["next"]
