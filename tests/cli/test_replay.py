"""Replays of scripts: what is refused, what differs, and which code is run."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.scripts import Scripts

REFUSED = {
    "file": ('open("out.txt", "w").write("x")', "writes out.txt"),
    "process": ('__import__("subprocess").run(["true"])', "starts process true"),
    "network": ('__import__("socket").socket(type=2).connect(("127.0.0.1", 9))', "connects to 127.0.0.1:9"),
}


@pytest.mark.parametrize("effect", list(REFUSED))
def test_an_effect_of_plain_code_is_noted_and_on_replay_refused(scripts: Scripts, effect: str) -> None:
    code, words = REFUSED[effect]
    text = f"""
import os
def save():
    {code}
try:
    save()
except:
    print("swallowed")
print("done")
"""
    done = scripts.run(text)
    assert done.code == 0
    assert done.out.startswith("done\n"), done.all
    assert f"{words} (agent.py:4 save)" in done.err
    (scripts.folder / "out.txt").unlink(missing_ok=True)
    before = sorted(path.name for path in scripts.folder.iterdir())
    again = scripts.replay()
    assert again.code == 3, again.all
    assert "agent.py:4" in again.out
    assert words in again.out
    assert sorted(path.name for path in scripts.folder.iterdir()) == before


def test_harmless_things_are_not_refused(scripts: Scripts) -> None:
    (scripts.folder / "policy.txt").write_text("be kind")
    done = scripts.run(
        """
        import os, sqlite3, socket, json, tempfile
        connection = sqlite3.connect(":memory:")
        print(connection.execute("select 1").fetchone(), open("policy.txt").read())
        open(os.devnull, "w").close()
        connection.close()
        """
    )
    assert "reads policy.txt (agent.py:4 <module>)" in done.err
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "not recorded, read as it is now: reads policy.txt (agent.py:4 <module>)" in again.out


def test_a_program_that_swallows_everything_is_stopped_with_its_verdict(scripts: Scripts) -> None:
    text = """
        import itertools, sys
        def work():
            if "FILE" in open("mode.txt").read():
                open("out.txt", "w").close()
        for n in itertools.count():
            try:
                work()
            except BaseException:
                continue
            break
        """
    (scripts.folder / "mode.txt").write_text("plain")
    assert scripts.run(text).code == 0
    (scripts.folder / "mode.txt").write_text("FILE")
    again = scripts.replay("--json")
    assert again.code == 3, again.all
    assert json.loads(again.out)["verdict"] == "diverged"


def test_changed_output_is_a_divergence_with_the_change_named(scripts: Scripts) -> None:
    scripts.run("GREETING = 'hello'\nprint(GREETING)")
    scripts.write("GREETING = 'goodbye'\nprint(GREETING)")
    again = scripts.replay()
    assert again.code == 3
    assert "DIVERGED  output" in again.out
    assert "GREETING" in again.out
    kept = scripts.replay("--at", "recorded")
    assert kept.code == 0, kept.all
    assert kept.out.startswith("hello\n")


def test_at_a_revision(scripts: Scripts) -> None:
    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        subprocess.run(command, cwd=scripts.folder, check=True, capture_output=True)

    scripts.write("print('hello')")
    git("init", "-q")
    git("add", "agent.py")
    git("commit", "-qm", "first")
    scripts.run("print('hello')")
    scripts.write("print('goodbye')")
    assert scripts.replay().code == 3
    again = scripts.replay("--at", "HEAD")
    assert again.code == 0, again.all
    assert scripts.replay("--at", "nonsense").code == 1


def test_an_agent_in_a_git_repository_is_replayed(scripts: Scripts) -> None:
    # What agentloom itself asks git for is no effect of the program.
    def git(*words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        subprocess.run(["git", "-C", str(scripts.folder), *who, *words], check=True, capture_output=True)

    path = scripts.write("from agentloom import agent\n\n\n@agent\ndef bot(word):\n    return word * 2\n")
    git("init", "-q")
    git("add", "agent.py")
    git("commit", "-q", "-m", "one")
    assert scripts.call("run", f"{path}:bot", "--", "ho").code == 0
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith("-- IDENTICAL")


def test_another_name_of_the_agent_can_be_given(scripts: Scripts) -> None:
    text = "from agentloom import agent\n\n\n@agent\ndef {}(word):\n    return word * 2\n"
    path = scripts.write(text.format("bot"))
    assert scripts.call("run", f"{path}:bot", "--", "ho").code == 0
    scripts.write(text.format("robot"))
    lost = scripts.replay()
    assert lost.code == 1
    assert "next: it has robot; to replay with another: --target agent.py:robot" in lost.err
    again = scripts.replay("--target", "agent.py:robot")
    assert again.code == 0, again.all


def test_what_a_decorated_tool_does_and_prints_is_neither_noted_nor_missed(scripts: Scripts) -> None:
    text = """
    from agentloom import agent, tool


    @tool
    def save(text: str) -> str:
        print("saving")
        with open("out.txt", "a") as file:
            file.write(text)
        return text


    @agent
    async def bot(word: str) -> str:
        return save(word)
    """
    path = scripts.write(text)
    done = scripts.call("run", f"{path}:bot", "--", "ho")
    assert done.code == 0, done.all
    assert "refuses" not in done.err
    assert scripts.replay().code == 0
    assert (scripts.folder / "out.txt").read_text() == "ho"
