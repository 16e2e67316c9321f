"""Effects of the agent's own code: refused by a strict guard, listed by a virtual one, refused on replay."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

import agentloom
from agentloom.errors import UnrecordedEffect
from tests.guard.agents import Program

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("nothing_left"),
]

# What is attempted; the words of the refusal; what allow() calls it; whether only a strict guard minds.
EFFECTS = {
    "reads a file": ('open("there.txt").read()', "reads there.txt", "file.read", True),
    "reads by pathlib": ('__import__("pathlib").Path("there.txt").read_bytes()', "reads there.txt", "file.read", True),
    "reads by number": ('os.open("there.txt", os.O_RDONLY)', "reads there.txt", "file.read", True),
    "lists": ("os.listdir()", "lists .", "file.read", True),
    "scans": ("list(os.scandir())", "lists .", "file.read", True),
    "globs": ('list(__import__("pathlib").Path(".").glob("*.txt"))', "l", "file.read", True),
    "looks": ('os.path.exists("there.txt")', "looks at there.txt", "file.read", True),
    "measures": ('os.stat("there.txt").st_size', "looks at there.txt", "file.read", True),
    "follows": ('os.path.islink("there.txt")', "looks at there.txt", "file.read", True),
    "writes a file": ('open("out.txt", "w").close()', "writes out.txt", "file.write", False),
    "appends": ('open("there.txt", "a").close()', "writes there.txt", "file.write", False),
    "makes a folder": ('os.mkdir("out")', "makes folder out", "file.write", False),
    "removes": ('os.remove("there.txt")', "removes there.txt", "file.write", False),
    "copies": ('__import__("shutil").copyfile("there.txt", "out.txt")', "", "file.", False),
    "makes a pipe": ('os.mkfifo("out")', "makes a pipe", "file.write", False),
    "opens a database": ('__import__("sqlite3").connect("out.db").close()', "opens database out.db", "database", False),
    "attaches a database": (
        '__import__("sqlite3").connect(":memory:").execute("attach \'out.db\' as o")',
        "attaches database", "database", False,
    ),
    "connects": (
        '__import__("socket").socket(type=2).connect(("127.0.0.1", 9))', "connects to 127.0.0.1:9", "network", False,
    ),
    "listens": ('__import__("socket").socket().bind(("127.0.0.1", 0))', "listens on 127.0.0.1:0", "network", False),
    "looks a name up": ('__import__("socket").getaddrinfo("localhost", 80)', "looks up localhost", "network", False),
    "starts a process": ('__import__("subprocess").run(["true"])', "starts process true", "process", False),
    "runs a shell": ('os.system("true")', "starts process true", "process", False),
    "forks": ("os.fork() or os._exit(0)", "forks a process", "process", False),
    "loads C": ('__import__("ctypes").CDLL(None)', "loads the C library", "native", True),
    "asks for an address": ("id(os)", "address of an object, id()", "id", True),
    "asks for its number": ("os.getpid()", "os.getpid()", "id", True),
    "reads standard input": ("sys.stdin.readline()", "reads standard input", "", True),
    "reads all of standard input": ("sys.stdin.read()", "reads standard input", "", True),
}  # fmt: skip


def _text(name: str) -> str:
    with open(name) as file:
        return file.read()


def _folder(program: Program) -> Path:
    (program.folder / "there.txt").write_text("there")
    return program.folder


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", EFFECTS)
def test_a_strict_guard_refuses_it_alike_when_recording_and_on_replay(
    program: Program, name: str, *, is_async: bool
) -> None:
    code, words, kind, _ = EFFECTS[name]
    folder = _folder(program)
    before = sorted(path.name for path in folder.iterdir() if path.suffix != ".py")
    agent = program.agent(f"act(1)\n{code}\nreturn act(2)", is_async=is_async)
    with pytest.raises(UnrecordedEffect) as refused:
        program.record(agent)
    error = refused.value
    assert (error.fields["file"], error.fields["line"], error.fields["function"]) == (
        "program.py",
        15,
        "main",
    )
    assert f"program.py:15 in main {error.fields['what']}; agent code may not" in error.message
    assert words in error.fields["what"]
    assert f'allow("{kind}' in str(error) or not kind
    assert error.hint
    trace = program.last()
    assert trace.status == "failed"
    assert str(trace.error) == str(error)
    assert [call.name for call in trace.calls] == ["act"]
    report = program.replay(agent)
    assert report.verdict == "identical", report
    assert sorted(path.name for path in folder.iterdir() if path.suffix not in (".py", "")) == before


@pytest.mark.parametrize("name", EFFECTS)
def test_a_virtual_guard_lists_it_and_refuses_what_is_no_read_on_replay(
    program: Program, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    code, words, _, read = EFFECTS[name]
    if "stdin" in code or "fork" in code:
        pytest.skip("would read the tests' own input, or fork them")
    _folder(program)
    agent = program.agent(f"act(1)\ntry:\n    {code}\nexcept OSError: pass\nreturn act(2)", guard="virtual")
    with caplog.at_level(logging.WARNING, "agentloom.guard"):
        trace = program.record(agent)
    assert trace.status == "completed"
    if name != "copies":
        assert words in trace.unrecorded[0]["what"]
        assert {entry["where"] for entry in trace.unrecorded} == {"program.py:16 main"}
    assert "not recorded: " in caplog.text
    assert trace.guard == "virtual"
    kinds = [entry["kind"] for entry in trace.journal.entries[-4:]]
    assert ("gap" in kinds) is not read
    assert kinds[-1] == "end"
    (program.folder / "there.txt").write_text("there")
    report = program.replay(agent)
    if read:
        assert report.verdict == "identical"
    else:
        assert report.verdict == "diverged"
        assert report.finding is not None
        assert report.finding.reason == "effect"
        assert "program.py:16" in str(report)


@pytest.mark.parametrize(
    "how", ["except Exception: pass", "except BaseException: pass", "finally: return act(3)"]
)
def test_a_refusal_cannot_be_swallowed(program: Program, how: str) -> None:
    """The run stops before its next effect, and fails with the refusal; a replay does the same."""
    agent = program.agent(f"act(1)\ntry:\n    open('there.txt')\n{how}\nact(2)\nreturn act(3)")
    with pytest.raises(UnrecordedEffect, match="reads there.txt"):
        program.record(agent)
    assert program.module is not None
    assert program.module.acted == [1]
    trace = program.last()
    assert trace.status == "failed"
    assert isinstance(trace.error, UnrecordedEffect)
    assert [call.name for call in trace.calls] == ["act"]
    assert trace.verify().complete is True
    assert program.replay(agent).verdict == "identical"


def test_a_run_that_swallows_it_and_does_nothing_more_fails_all_the_same(program: Program) -> None:
    agent = program.agent("try: open('there.txt')\nexcept Exception: pass\nreturn 5")
    with pytest.raises(UnrecordedEffect):
        program.record(agent)
    assert program.last().status == "failed"
    assert program.replay(agent).verdict == "identical"


def test_an_effect_that_the_recorded_run_did_not_attempt_is_a_verdict(program: Program) -> None:
    trace = program.record(program.agent("return act(1)"))
    for swallowed in ("open('there.txt')", "try: open('there.txt')\nexcept BaseException: pass"):
        report = program.replay(program.agent(f"{swallowed}\nreturn act(1)"), trace)
        assert report.verdict == "diverged"
        assert report.finding is not None
        assert (report.finding.cls, report.finding.reason) == ("extra", "effect")
        assert "reads there.txt" in str(report)


def test_another_effect_than_the_refused_one_diverges(program: Program) -> None:
    agent = program.agent("open('there.txt')")
    with pytest.raises(UnrecordedEffect):
        program.record(agent)
    report = program.replay(program.agent("open('other.txt')"))
    assert report.verdict == "diverged"
    assert "other.txt" in str(report)


def test_tools_and_steps_are_outside(program: Program) -> None:
    _folder(program)
    text = """
    @tool(effect="read")
    def load(name):
        os.path.exists(name), os.getpid(), id(name)
        return open(name).read()
    @agent(guard="strict")
    async def main():
        return load("there.txt") + await agentloom.step(lambda: open("there.txt").read())
    """
    agent = program.load(text)
    assert program.record(agent).output == "therethere"
    (program.folder / "there.txt").unlink()
    assert program.replay(agent).verdict == "identical"


HARMLESS = {
    "prints": "print('x', file=sys.stderr)",
    "logs": "import logging; logging.getLogger('x').warning('seen %s', 1)",
    "imports": "import wave, json.tool, http.server",
    "imports a package": "import yaml, click.testing",
    "formats a traceback": "import traceback\ntry: 1/0\nexcept ZeroDivisionError: traceback.format_exc()",
    "reads its source": "import inspect; inspect.getsource(act)",
    "warns": "import warnings\nwith warnings.catch_warnings(action='ignore'): warnings.warn('x')",
    "knows time zones": "import zoneinfo; zoneinfo.ZoneInfo.no_cache('Europe/Paris')",
    "knows packages": "import importlib.metadata; importlib.metadata.version('click')",
    "reads its resources": "import importlib.resources as r; r.files('click').joinpath('core.py').read_text()",
    "sets the locale": "import locale; locale.setlocale(locale.LC_ALL)",
    "asks for temporary files": "import tempfile; tempfile.tempdir = None; tempfile.gettempdir()",
    "resolves its folder": "import pathlib; pathlib.Path(__file__).resolve().parent; os.path.realpath('.')",
    "deep copies": "import copy, pprint; pprint.pformat(copy.deepcopy({'a': [1]}))",
    "certificates": "import certifi; certifi.where()",
    "databases in memory": "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('select 1'); c.close()",
    "host facts": "import platform; platform.python_version(); platform.system()",
    "regular expressions": "import re; re.compile('x' + 'y*').match('xy')",
    "asserts": "assert act is not None",
    "uses asyncio": "import asyncio; asyncio.iscoroutinefunction(act)",
    "models": "import pydantic\nclass M(pydantic.BaseModel): x: int = 1\nM(x=2).model_dump_json()",
    "gathers garbage": "import gc; gc.collect()",
}


@pytest.mark.parametrize("guard", ["strict", "virtual"])
@pytest.mark.parametrize("name", HARMLESS)
def test_no_false_alarm(program: Program, name: str, guard: str) -> None:
    agent = program.agent(f"{HARMLESS[name]}\nreturn act(1)", guard=guard)
    trace = program.record(agent)
    assert trace.unrecorded == []
    assert program.replay(agent).verdict == "identical"


def test_a_module_that_reads_while_it_is_imported_is_let_through(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(program.folder))
    _folder(program)
    (program.folder / "lazily_loaded.py").write_text('text = open("there.txt").read()\n')
    agent = program.agent("import lazily_loaded\nreturn act(lazily_loaded.text)")
    trace = program.record(agent)
    assert trace.output == "there"
    assert [entry["what"] for entry in trace.unrecorded] == ["reads there.txt"]


def test_outside_a_run_nothing_is_refused(program: Program) -> None:
    """Before, after and beside a run: other threads of the process see no difference."""
    _folder(program)
    agent = program.agent("go.set(); done.wait(); return act(1)")
    assert program.module is not None
    go, done = threading.Event(), threading.Event()
    program.module.__dict__.update(go=go, done=done)
    seen: list[object] = []

    def beside() -> None:
        go.wait()
        seen.extend([_text("there.txt"), len(agentloom.__name__), id(seen) > 0, Path("there.txt").exists()])
        done.set()

    thread = threading.Thread(target=beside)
    thread.start()
    program.record(agent)
    thread.join()
    assert seen == ["there", 9, True, True]
    assert _text("there.txt") == "there"


def test_threads_that_a_run_starts_are_watched_too(program: Program) -> None:
    text = """
    import threading
    failed = []
    def work():
        try: open("out.txt", "w")
        except BaseException as error: failed.append(type(error).__name__)
    @agent(guard="strict")
    def main():
        thread = threading.Thread(target=work); thread.start(); thread.join()
        return act(1)
    """
    agent = program.load(text)
    with pytest.raises(UnrecordedEffect, match="program.py:16 in work writes out.txt"):
        program.record(agent)
    assert not (program.folder / "out.txt").exists()


def test_off_refuses_nothing_when_recording_and_says_so(program: Program) -> None:
    _folder(program)
    agent = program.agent(
        "text = open('there.txt').read(); id(text); open('out.txt', 'w').close(); return act(text)", "off"
    )
    trace = program.record(agent)
    assert trace.guard == "off"
    assert trace.unrecorded == []
    report = program.replay(agent)
    assert report.verdict == "diverged"
    assert "writes out.txt" in str(report)
    assert "guard off" in str(report)
    assert report.to_json()["guard"] == "off"


def test_a_library_may_read_its_files_and_what_it_writes_is_listed(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = program.folder / "lib" / "python3" / "site-packages"  # as `pip install --user` has one
    packages.mkdir(parents=True)
    (packages / "somelib.py").write_text(
        "import os\ndef load(): return open(__file__).read(4), id(os), os.path.exists('x')\n"
        "def save(): open('lib.txt', 'w').close()\n"
    )
    monkeypatch.syspath_prepend(str(packages))
    agent = program.agent("import somelib\nsomelib.load()\nsomelib.save()\nreturn act(1)")
    trace = program.record(agent)
    assert [entry["what"] for entry in trace.unrecorded] == ["writes lib.txt"]
    report = program.replay(agent)
    assert report.verdict == "diverged"
    assert "writes lib.txt" in str(report)


def test_a_store_of_ones_own_is_no_part_of_the_run(program: Program) -> None:
    """It writes while the agent waits, and may be written by whoever wrote the agent."""
    text = """
    from agentloom.store import MemoryStore
    class Appender:
        def __init__(self, inner): self.inner, self.cut = inner, 0
        def append(self, data):
            with open("journal.bin", "ab") as file: file.write(data)
            self.inner.append(data)
        def close(self): self.inner.close()
    class OwnStore(MemoryStore):
        def create(self, run): return Appender(super().create(run))
    store = OwnStore()
    @agent(guard="strict")
    def main(): return act(1)
    """
    agent = program.load(text)
    assert program.module is not None
    trace = agent.run(store=program.module.store)
    assert trace.unrecorded == []
    assert (program.folder / "journal.bin").read_bytes() == program.module.store.read(trace.run_id)


def test_locks_of_a_run_and_waits_for_nothing_but_time_are_no_matter(program: Program) -> None:
    body = """
    import queue, select, threading, time
    lock, again, line = threading.Lock(), threading.RLock(), queue.Queue()
    taken = [lock.acquire(blocking=False), again.acquire(blocking=False), again.acquire(timeout=1)]
    condition = threading.Condition(threading.Lock())
    with condition: condition.notify_all()
    line.put(1)
    before = time.monotonic()
    select.select([], [], [], 1.5)
    return taken + [line.get_nowait(), threading.Lock().locked(), 1.5 <= time.monotonic() - before < 1.6]
    """
    agent = program.agent(body)
    assert program.record(agent).output == [True, True, True, 1, False, True]
    assert program.replay(agent).verdict == "identical"


@pytest.mark.parametrize(
    "how", ["HELD.acquire(blocking=False)", "HELD.acquire(timeout=0.01)", "HELD.locked()"]
)
def test_a_lock_that_another_thread_holds_is_told(program: Program, how: str) -> None:
    agent = program.load(f"import threading\nHELD = threading.Lock()\n@agent\ndef main(): return {how}\n")
    assert program.module is not None
    holder = threading.Thread(target=program.module.HELD.acquire)
    holder.start()
    holder.join()
    with pytest.raises(UnrecordedEffect, match="tries a lock that another thread holds"):
        program.record(agent)


def test_a_loop_of_asyncio_in_code_that_is_recorded_where_it_stands_waits_for_descriptors(
    program: Program,
) -> None:
    """``record`` around a program with a loop of its own: the loop is the program's, and what it waits for its work."""
    text = """
    import asyncio
    async def turns():
        reading, writing = os.pipe()
        ready = asyncio.Event()
        asyncio.get_running_loop().add_reader(reading, ready.set)
        os.write(writing, b"x")
        await ready.wait()
        asyncio.get_running_loop().remove_reader(reading)
        os.close(reading)
        os.close(writing)
        await asyncio.sleep(0.001)
        return 1
    def main(store):
        with agentloom.record("block", store=store):
            return asyncio.run(turns())
    """
    assert program.load(text)(program.store) == 1
    assert program.last().unrecorded == []
