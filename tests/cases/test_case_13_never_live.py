"""Case 13: recording missing, mode misspelt, network up: a non-zero exit, no socket, no name look-up, never a live
run."""

from __future__ import annotations

import os

import pytest

from agentloom.testing import FakeProvider
from tests.cases.conftest import ASK, Scenario

# Loaded by every Python of the command, before anything else: it notes each socket and each name looked up.
WATCH = """
import os, sys
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open(os.environ["WATCH_FILE"], "a") as file:
            file.write(f"{event} {args[-1] if event == 'socket.connect' else args[0]}\\n")
if os.environ.get("WATCH_FILE"):
    sys.addaudithook(watch)
"""


def _watched(scenario: Scenario) -> dict[str, str]:
    folder = scenario.folder / "watching"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(WATCH)
    return {"PYTHONPATH": str(folder), "WATCH_FILE": str(scenario.folder / "seen.txt")}


def _seen(scenario: Scenario) -> str:
    path = scenario.folder / "seen.txt"
    return path.read_text() if path.exists() else ""


def test_the_watch_sees_a_live_run(scenario: Scenario) -> None:
    path = scenario.folder / "agent.py"
    path.write_text(ASK + "print(ask(user('hi')))\n")
    with FakeProvider(["fine"]) as provider:
        scenario.call("run", str(path), env=provider.env() | _watched(scenario))
    assert "socket.connect" in _seen(scenario)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["replay", "nothere"], 1),
        (["replay", "absent.loom"], 1),
        (["replay", "last", "--strict"], 2),
        (["replay", "last", "--mode", "live"], 2),
        (["repaly", "last"], 2),
        (["replay", "last", "--at", "nowhere"], 1),
        (["replay", "last", "--target", "absent.py"], 1),
        (["replay"], 2),
        (["replay", "cut.loom"], 5),
        (["run", "--guard", "strickt", "agent.py"], 2),
        (["run", "--gaurd", "strict", "agent.py"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nothing_is_sent_with_the_network_up(scenario: Scenario, args: list[str], code: int) -> None:
    path = scenario.folder / "agent.py"
    path.write_text(ASK + "print(ask(user('hi')))\nopen('ran.txt', 'w')\n")
    with FakeProvider(["fine", "live"]) as provider:
        environ = provider.env()
        if "last" in args or "cut.loom" in args:
            scenario.call("run", str(path), env=environ)
            os.remove(scenario.folder / "ran.txt")
        if "cut.loom" in args:
            scenario.call("export", "last", "-o", str(scenario.folder / "cut.loom"))
            data = (scenario.folder / "cut.loom").read_bytes()
            (scenario.folder / "cut.loom").write_bytes(data.replace(b'"fine"', b'"fins"'))
        count = provider.count
        done = scenario.call(*args, env=environ | _watched(scenario))
        assert done.code != 0, done.all
        assert done.code == code, done.all
        assert provider.count == count
    assert _seen(scenario) == ""
    assert not (scenario.folder / "ran.txt").exists()
    assert done.err.strip()


def test_a_miss_is_never_answered_live(scenario: Scenario) -> None:
    """A changed prompt with the provider up and a good key: the replay stops, in every way of catching it."""
    text = "try: print(ask(user('hi')))\nexcept BaseException: print('caught')\nprint(ask(user('again')))\n"
    path = scenario.folder / "agent.py"
    path.write_text(ASK + text)
    with FakeProvider(lambda _: "fine") as provider:
        scenario.call("run", str(path), env=provider.env())
        count = provider.count
        path.write_text(path.read_text().replace("'hi'", "'ho'"))
        done = scenario.replay(env=provider.env() | _watched(scenario))
        assert done.code == 3, done.all
        assert provider.count == count
    assert _seen(scenario) == ""


def test_no_variable_turns_a_replay_live(scenario: Scenario) -> None:
    path = scenario.folder / "agent.py"
    path.write_text(ASK + "print(ask(user('hi')))\n")
    with FakeProvider(["fine", "live"]) as provider:
        scenario.call("run", str(path), env=provider.env())
        done = scenario.replay(env=provider.env() | {"AGENTLOOM_MODE": "recrod", "AGENTLOOM_LIVE": "1"})
        assert done.code == 0
        assert provider.count == 1


REACHES = {
    "urllib": "__import__('urllib.request').request.urlopen('http://127.0.0.1:PORT/v1/models')",
    "a socket": "__import__('socket').create_connection(('127.0.0.1', PORT))",
    "a process": "__import__('subprocess').run(['curl', 'http://127.0.0.1:PORT/'])",
}


@pytest.mark.parametrize("guard", ["strict", "virtual", "off"])
@pytest.mark.parametrize("how", REACHES)
def test_code_that_reaches_for_the_world_by_itself_on_replay(
    scenario: Scenario, how: str, guard: str
) -> None:
    """A change that goes past every host call, and swallows what refuses it: a verdict, and nothing arrives."""
    agent = (
        "from agentloom import agent, tool\nimport os\n@tool\ndef act(x): return x\n"
        f"@agent(guard='{guard}')\ndef main():\n    act(1)\n    return act(2)\n"
    )
    path = scenario.write("")
    path.write_text(agent)
    with FakeProvider(["live"]) as provider:
        assert scenario.call("run", f"{path}:main", env=provider.env()).code == 0
        port = provider.env()["OPENAI_BASE_URL"].split(":")[2].split("/")[0]
        reach = REACHES[how].replace("PORT", port)
        path.write_text(
            agent.replace("    act(1)\n", f"    act(1)\n    try: {reach}\n    except BaseException: pass\n")
        )
        done = scenario.replay(env=provider.env())
        assert done.code == 3, done.all
        assert "Refused: the code " in done.out or "is not in the recording. R" in done.out
        assert "agent.py:8" in done.out
        assert provider.count == 0
