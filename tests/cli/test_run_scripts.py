"""Scripts without any SDK: exit codes, output, input, tracebacks, refusals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.scripts import Scripts, clean


def test_a_script_sees_what_python_shows_it_and_its_exit_code_goes_through(scripts: Scripts) -> None:
    scripts.write("NUMBER = 4", "beside.py")
    done = scripts.run(
        """
        import sys, os
        import beside
        assert __name__ == "__main__" and sys.modules["__main__"].__file__ == __file__
        assert sys.path[0] == os.path.dirname(os.path.abspath(__file__))
        print(sys.argv[1:], beside.NUMBER)
        sys.stdout.buffer.write(b"bytes\\n")
        os.write(1, b"written\\n")
        print("problem", file=sys.stderr)
        sys.exit(7)
        """,
        "a b",
        "--flag",
    )
    assert done.code == 7
    assert done.out == "['a b', '--flag'] 4\nbytes\nwritten\n"
    assert "problem\n" in done.err
    assert scripts.recording().output() == {"stdout": done.out, "stderr": "problem\n", "exit": 7}
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith(done.out + "-- IDENTICAL  0/0 calls, stdout, stderr, exit code 7")


def test_an_uncaught_exception_looks_as_ever_and_the_run_is_kept(scripts: Scripts) -> None:
    text = """
        def inner():
            raise ValueError("no such order")
        try:
            inner()
        except ValueError as error:
            raise LookupError("gone") from error
        """
    done = scripts.run(text)
    bare = scripts.bare()
    assert done.code == bare.code == 1
    shown = done.err.partition("-- recorded")[0]
    assert shown == bare.err
    assert "agentloom" not in shown
    assert scripts.recording().status == "failed"
    moved = scripts.folder / "elsewhere"
    moved.mkdir()
    (scripts.folder / "agent.py").rename(moved / "agent.py")
    again = scripts.replay("--target", str(moved / "agent.py"), cwd=moved)
    assert again.code == 0, again.all


def test_a_message_given_to_sys_exit_goes_to_stderr(scripts: Scripts) -> None:
    done = scripts.run("import sys; sys.exit('no order given')")
    assert done.code == 1
    assert done.err.startswith("no order given\n")
    assert scripts.replay().code == 0


def test_what_is_typed_is_recorded(scripts: Scripts) -> None:
    done = scripts.run(
        """
        import sys
        name = input("name? ")
        print("hello", name)
        print([line for line in sys.stdin])
        """,
        given="Ada\nx\ny",
    )
    assert done.out == "name? hello Ada\n['x\\n', 'y']\n"
    again = scripts.replay()
    assert again.code == 0, again.all
    assert again.out.startswith(done.out)


def test_the_hash_seed_is_pinned_and_comes_back(scripts: Scripts) -> None:
    done = scripts.run("print({str(n) for n in range(50)})", env={"PYTHONHASHSEED": "17"})
    again = scripts.replay(env={"PYTHONHASHSEED": "4"})
    assert again.code == 0, again.all
    assert again.out.startswith(done.out)
    assert (scripts.recording().payload("env") or {})["hash_seed"] == "17"  # type: ignore[index, call-overload]


def test_exit_handlers_belong_to_the_run(scripts: Scripts) -> None:
    done = scripts.run("import atexit; atexit.register(print, 'bye'); print('hi')")
    assert done.out == "hi\nbye\n"
    assert scripts.replay().code == 0


def test_credentials_are_placeholders_on_replay_and_never_written(scripts: Scripts) -> None:
    secret = "-".join(("sk", "never", "to", "disk"))  # noqa: FLY002 - the trace holds sources
    text = """
        import os
        key = os.environ["OPENAI_API_KEY"]
        print(bool(key), os.environ["OPENAI_BASE_URL"], "EXTRA_TOKEN" in os.environ)
        """
    done = scripts.run(text, env={"OPENAI_API_KEY": secret, "OPENAI_BASE_URL": "http://me:pw@localhost:1/v1"})
    assert done.out == "True http://me:pw@localhost:1/v1 False\n"
    data = b"".join(path.read_bytes() for path in scripts.store.rglob("*") if path.is_file())
    assert secret.encode() not in data
    again = scripts.replay(env={"EXTRA_TOKEN": "new", "OPENAI_BASE_URL": "http://other/v1"})
    # The password of the address is the one thing that is not kept, there and in what was printed.
    assert re.search(r"True http://me:__redacted_\d+__@localhost:1/v1 False\n", again.out)
    assert again.code == 0, again.out


def test_a_script_that_only_defines_an_agent_is_told_how_to_run_it(scripts: Scripts) -> None:
    text = "from agentloom import agent\n\n\n@agent\ndef bot(word: str) -> str:\n    return word\n"
    done = scripts.run(text)
    assert done.code == 0
    assert "bot is defined there and was not run: agentloom run" in done.err
    assert "agent.py:bot -- ARGS" in done.err
    wrong = scripts.call("run", "agent.py:bot")
    assert "next: it takes (word: str); give them after --" in wrong.err


@pytest.mark.parametrize("given", ["It is broken", "input=It is broken"])
def test_a_workflow_takes_its_input_by_place_or_by_name(scripts: Scripts, given: str) -> None:
    scripts.write(
        """
        from agentloom import Workflow

        graph = Workflow("loud").step("shout", fn=lambda state: state.input.upper())
        """,
        "flow.py",
    )
    assert scripts.call("run", "flow.py:graph", "--", given).out == "IT IS BROKEN\n"


def test_a_failed_script_is_shown_with_its_error(scripts: Scripts) -> None:
    scripts.run("raise KeyError('x')")
    assert "error  KeyError: 'x'" in scripts.call("show", "last").out
    assert "the run has none" in scripts.call("show", "last", "1").err


def test_json(scripts: Scripts) -> None:
    path = scripts.write("print('hello')")
    done = scripts.call("run", "--json", str(path))
    facts = json.loads(done.out)
    assert (facts["status"], facts["exit"], facts["calls"]) == ("completed", 0, {})
    assert "hello" in done.err
    again = scripts.replay("--json")
    report = json.loads(again.out)
    assert report["verdict"] == "identical"
    assert report["network"] in ("os", "python")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "nothing.py"), 1, "does not exist"),
        (("run", "."), 1, "is a folder"),
        (("run", "nothing"), 1, "neither a file nor module:name"),
        (("run", "agent.py", "--tool", "x=delete"), 2, "an effect is read, pure, write or agent"),
        (("run", "agent.py", "--sede", "1"), 2, "No such option"),
        (("run", "broken.py"), 1, "broken.py:1 is not a Python program"),
        (("run", "agent.py:missing"), 1, "missing does not exist"),
        (("replay", "last"), 1, "no run"),
        (("replay", "there.loom"), 5, "first line is not a start entry"),
        (("replay", "last", "--at", "recorded", "--target", "agent.py"), 1, "no run"),
    ],
)
def test_a_wrong_command_line_runs_nothing(
    scripts: Scripts, arguments: tuple[str, ...], code: int, words: str
) -> None:
    scripts.write("open('ran.txt', 'w').close()\nif __name__ == '__main__': print('ran')")
    scripts.write("def (", "broken.py")
    scripts.write("not a trace", "there.loom")
    done = scripts.call(*arguments)
    if "missing" not in arguments[-1]:
        assert not (scripts.folder / "ran.txt").exists()
    assert words in done.err
    assert done.code == code, done.all


def test_ctrl_c_ends_the_run_as_cancelled_and_keeps_the_trace(scripts: Scripts) -> None:
    path = scripts.write(
        """
        import time
        try:
            print("ready", flush=True)
            time.sleep(30)
        finally:
            print("cleaned up", flush=True)
        """
    )
    command = [sys.executable, "-m", "agentloom", "--store", str(scripts.store), "run", str(path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scripts.folder, env=clean()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 25
    assert out == "cleaned up\n"
    assert process.returncode == -signal.SIGINT, err
    assert "KeyboardInterrupt" in err
    assert scripts.recording().status == "cancelled"


KEYED = """
import sys
KEY = "{key}"
SYSTEM = "You are kind"
API_KEY = KEY
def headers():
    return {{"x-api-key": "{key}"}}
ADDRESS = "https://app:{key}@localhost/"
try:
    TOKEN = "{key}x"
except ValueError:
    pass
if len(sys.argv) > 9:
    print(dict(password="{key}y"))
print("hello")
"""


def test_a_key_in_the_source_is_not_told_as_a_change(scripts: Scripts) -> None:
    key = "eq-" + "1234abcd5678efgh"
    text = KEYED.format(key=key).replace("KEY = KEY", f'KEY = "{key}z"')
    assert scripts.run(text).code == 0
    same = scripts.replay()
    assert same.code == 0, same.all
    assert "code changed" not in same.all
    scripts.write(text.replace("are kind", "are rude"))
    edited = scripts.replay()
    assert "code changed: SYSTEM; it makes no difference to this run" in edited.all


WHERE = """
import os, sys, traceback
print(sys.argv, os.path.basename(__file__), os.path.basename(os.getcwd()))
def inner():
    raise ValueError("no")
try:
    inner()
except ValueError:
    traceback.print_exc()
inner()
"""


@pytest.mark.parametrize("name", ["agent.py", "./agent.py", "{folder}/agent.py"])
def test_the_script_has_the_name_that_python_shows_it(scripts: Scripts, name: str) -> None:
    shown = name.format(folder=scripts.folder)
    scripts.write(WHERE)
    bare = scripts.bare(shown, "a")
    done = scripts.call("run", shown, "--", "a")
    assert done.out == bare.out
    assert done.err.startswith(bare.err.replace("/./", "/"))
    assert scripts.replay().code == 0


def test_a_replay_in_another_folder_is_the_same_where_the_folder_was_asked_for(scripts: Scripts) -> None:
    scripts.run(WHERE, "a")
    other = scripts.folder / "other"
    other.mkdir()
    again = scripts.replay("--target", str(scripts.folder / "agent.py"), cwd=other)
    assert again.code == 0, again.all
    assert "raise ValueError" in again.err
    checked = scripts.call("check", "agent.py")
    assert "nothing found" in checked.out, checked.all


def test_one_variable_flips_what_is_done(scripts: Scripts) -> None:
    text = "import sys\nprint(sys.argv, len(sys.stdin.read()))\nsys.exit(4)\n"
    path = scripts.write(text)
    off = scripts.call("run", "agent.py", "--", "a", env={"AGENTLOOM": "off"}, given="typed")
    assert off.out == "['agent.py', 'a'] 5\n"
    assert off.code == 4
    assert off.err == "-- not recorded: AGENTLOOM=off\n"
    assert not scripts.store.exists()
    nothing = scripts.call("run", "agent.py", env={"AGENTLOOM": "replay"})
    assert nothing.code == 1
    assert "there is no run of agent.py" in nothing.err

    done = scripts.call("run", "agent.py", "--", "a", env={"AGENTLOOM": "record"}, given="typed")
    assert done.code == 4
    assert "-- recorded" in done.err
    again = scripts.call("run", "agent.py", "--", "a", env={"AGENTLOOM": "replay"})
    assert again.code == 0, again.all
    assert "-- IDENTICAL" in again.out
    kept = scripts.folder / "kept.loom"
    assert scripts.call("export", "last", "-o", str(kept)).code == 0
    named = scripts.call(
        "run", "agent.py", "--", "a", env={"AGENTLOOM": "replay", "AGENTLOOM_TRACE": str(kept)}
    )
    assert named.code == 0, named.all
    other = scripts.call("run", "agent.py", "--", "b", env={"AGENTLOOM": "replay"})
    assert other.code == 1
    assert 'was recorded with other arguments: "a"' in other.err
    path.rename(scripts.folder / "more.py")
    wrong = scripts.call("run", "more.py", env={"AGENTLOOM": "replay", "AGENTLOOM_TRACE": str(kept)})
    assert "holds no trace of more.py; it has traces of: agent.py" in wrong.err


def test_another_word_runs_nothing(scripts: Scripts) -> None:
    scripts.write("open('ran.txt', 'w')")
    done = scripts.call("run", "agent.py", env={"AGENTLOOM": "reply"})
    assert done.code == 2
    assert "AGENTLOOM='reply' is no mode: it is one of record, replay, off" in done.err
    assert not (scripts.folder / "ran.txt").exists()


def test_the_variable_goes_for_agents_too(scripts: Scripts) -> None:
    text = "from agentloom import agent\n\n\n@agent\ndef bot(word: str, n: int = 1) -> str:\n    return word * n\n"
    scripts.write(text)
    command = ("run", "agent.py:bot", "--", "ab", "n=2")
    off = scripts.call(*command, env={"AGENTLOOM": "off"})
    assert (off.code, off.out) == (0, "abab\n"), off.all
    assert not scripts.store.exists()
    assert scripts.call(*command).code == 0
    again = scripts.call(*command, env={"AGENTLOOM": "replay"})
    assert again.code == 0, again.all
    other = scripts.call("run", "agent.py:bot", "--", "ab", "n=3", env={"AGENTLOOM": "replay"})
    assert 'was recorded with other arguments: "ab" n=2' in other.err, other.all


def test_arguments_are_the_same_with_their_types(scripts: Scripts) -> None:
    text = "from agentloom import agent\n\n\n@agent\ndef bot(value: object) -> str:\n    return repr(value)\n"
    scripts.write(text)
    replaying = {"AGENTLOOM": "replay"}
    for word, others in (
        ("1.5", ("1", "1.25")),
        ('{"$x": 1}', ('{"x": 1}',)),
        ("true", ("1", "1.0")),
        ("1", ("true", "1.0")),
        ("[1, {}]", ("[1.0, {}]", "[1]")),
        ("NaN", ("0",)),
        ("-Infinity", ("Infinity",)),
    ):
        command = ("run", "agent.py:bot", "--")
        assert scripts.call(*command, word).code == 0
        again = scripts.call(*command, word, env=replaying)
        assert again.code == 0, again.all
        for other in others:
            refused = scripts.call(*command, other, env=replaying)
            assert refused.code == 1, (word, other, refused.all)
            assert "was recorded with other arguments: " in refused.err


def test_effects_of_tools_are_for_scripts(scripts: Scripts) -> None:
    scripts.write("from agentloom import agent\n\n\n@agent\ndef bot() -> str:\n    return 'ran'\n")
    done = scripts.call("run", "--tool", "look=read", "agent.py:bot")
    assert (done.code, done.out) == (2, ""), done.all
    assert "the tools of bot say it themselves, by @tool(effect=...)" in done.err


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGUSR1"])
def test_a_script_that_dies_by_a_signal(scripts: Scripts, name: str) -> None:
    scripts.write(f"import os, signal\nprint('here', flush=True)\nos.kill(os.getpid(), signal.{name})\n")
    alone = scripts.bare()
    done = scripts.call("run", "agent.py")
    assert (done.code, done.out) == (alone.code, alone.out) == (-getattr(signal, name), "here\n")


def test_a_script_that_ends_with_the_number_of_an_interrupt(scripts: Scripts) -> None:
    scripts.write("raise SystemExit(130)")
    assert scripts.call("run", "agent.py").code == scripts.bare().code == 130
    scripts.write("raise KeyboardInterrupt")
    assert scripts.call("run", "agent.py").code == scripts.bare().code == -signal.SIGINT


def test_the_verdict_of_a_process_that_ends_itself_says_how_long_it_took(scripts: Scripts) -> None:
    assert scripts.run("import os\nprint('x', flush=True)\nos._exit(3)").code == 3
    again = scripts.replay()
    assert "exit code 3" in again.out
    found = re.search(r"  (-?[0-9.]+) s  ", again.out)
    assert found is not None, again.out
    assert 0 <= float(found[1]) < 30


def test_a_process_with_its_output_is_named_once(scripts: Scripts) -> None:
    done = scripts.run("import subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True).stdout)")
    assert done.out == "b'hi\\n'\n"
    assert "starts process echo hi (agent.py:2 <module>)" in done.err
    assert "descriptor" not in done.err
