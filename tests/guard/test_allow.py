"""``allow``: a declared scope; files read in it are recorded and served, writes recorded and refused on replay."""

from __future__ import annotations

import asyncio
import builtins
import io
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from agentloom import allow
from agentloom.errors import NotSupported, UnrecordedEffect
from tests.guard.agents import Program

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning",
        "ignore::EncodingWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    ),
    pytest.mark.usefixtures("nothing_left"),
]

CONTENT = "caf\u00e9\r\nsecond\nthird".encode()

# Each reads there.bin (or the folder data/) in its own way; the value is what the agent returns.
READS = {
    "text": 'open("there.bin", encoding="utf-8").read()',
    "text in the locale's encoding": 'open("there.bin").read()',
    "newlines kept": 'open("there.bin", encoding="utf-8", newline="").read()',
    "lines": 'list(open("there.bin", encoding="utf-8"))',
    "errors": 'open("there.bin", encoding="ascii", errors="replace").read()',
    "bytes": 'open("there.bin", "rb").read()',
    "unbuffered": 'open("there.bin", "rb", buffering=0).read()',
    "types": '[type(open("there.bin", *more)).__name__ for more in ((), ("rb",), ("rb", 0))]',
    "names": '[(f.name, f.mode, f.readable(), f.writable()) for f in (open("there.bin"), open("there.bin", "rb"))]',
    "seeks": '(lambda f: (f.seek(3), f.read(2), f.tell(), f.fileno() > 2))(open("there.bin", "rb"))',
    "pathlib text": 'pathlib.Path("there.bin").read_text(encoding="utf-8")',
    "pathlib bytes": 'pathlib.Path("there.bin").read_bytes()',
    "io": 'io.open("there.bin", "rb").read()',
    "descriptor": '(lambda n: (os.read(n, 4), os.close(n)))(os.open("there.bin", os.O_RDONLY))',
    "mapped": '(lambda f: mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:])(open("there.bin", "rb"))',
    "json": 'json.load(open("data/a.json"))',
    "csv": 'list(csv.reader(open("there.bin", encoding="utf-8", newline="")))',
    "gzip": 'gzip.open("data/b.gz").read()',
    "lists": 'sorted(os.listdir("data"))',
    "scans": "sorted(entry(e) for e in os.scandir('data'))",
    "walks": "[(a, sorted(b), sorted(c)) for a, b, c in sorted(os.walk('data'))]",
    "globs": "sorted(str(p) for p in pathlib.Path('data').glob('*'))",
    "globs deep": "sorted(glob.glob('data/**', recursive=True))",
    "exists": '[os.path.exists(p) for p in ("there.bin", "absent", "data")]',
    "kinds": '[(os.path.isfile(p), os.path.isdir(p), os.path.islink(p)) for p in ("there.bin", "data", "data/link")]',
    "size": 'os.path.getsize("there.bin")',
    "times": '(os.stat("there.bin").st_mtime_ns, pathlib.Path("there.bin").stat().st_mtime)',
    "missing": "missing()",
    "a folder": "folder()",
}  # fmt: skip

HELPERS = """
import csv, glob, gzip, io, json, mmap, pathlib
def entry(e): return e.name, e.path, e.is_file(), e.is_dir(), e.is_symlink(), e.stat().st_size
def missing():
    try: open("absent")
    except FileNotFoundError as error: return error.errno, error.filename, str(error)
def folder():
    try: open("data")
    except IsADirectoryError as error: return error.errno, str(error)
"""


def _files(folder: Path) -> None:
    import gzip

    (folder / "there.bin").write_bytes(CONTENT)
    data = folder / "data"
    (data / "deep").mkdir(parents=True)
    (data / "a.json").write_text('{"b": 1, "a": [1.5, null]}')
    (data / "b.gz").write_bytes(gzip.compress(b"packed"))
    (data / "deep" / "c.txt").write_text("c")
    (data / "link").symlink_to("a.json")


@pytest.mark.parametrize("name", READS)
def test_what_is_read_is_as_without_a_run_and_comes_back(
    program: Program, name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files(program.folder)
    agent = program.load(
        f"{HELPERS}\n@agent(guard='strict')\ndef main():\n"
        f"    with allow('file.read', reason='it is the input'):\n        return repr({READS[name]})\n"
    )
    bare = agent.function.function()
    trace = program.record(agent)
    assert trace.output == bare
    assert trace.unrecorded == []
    assert {call.kind for call in trace.calls} == {"file"}
    assert all(call.effect == "read" for call in trace.calls)
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    report = program.replay(agent)
    assert report.verdict == "identical", report


def test_the_scope_and_its_reason_are_in_the_trace_once_a_place(program: Program) -> None:
    _files(program.folder)
    agent = program.agent(
        "for name in ('there.bin', 'there.bin'):\n    with allow('file.read', 'network', reason='why not'):\n"
        "        open(name, 'rb').close()\nreturn 1"
    )
    trace = program.record(agent)
    notes = [trace.journal.tree(entry["val"]) for entry in trace.journal.entries if entry["kind"] == "note"]
    assert notes == [{"allow": ["file.read", "network"], "reason": "why not", "where": "program.py:15 main"}]
    first, second = trace.calls
    assert first.request == {"path": "there.bin"}
    assert first.result == {"data": CONTENT}
    assert (first.name, second.name) == ("read", "read")


def test_a_path_in_the_programs_folder_is_the_same_in_another(program: Program, tmp_path: Path) -> None:
    _files(program.folder)
    body = (
        "path = os.path.join(os.path.dirname(__file__), 'there.bin')\n"
        "with allow('file.read', reason='x'):\n    return open(path, 'rb').read()"
    )
    trace = program.record(program.agent(body))
    assert trace.calls[0].request == {"path": "there.bin", "base": "program"}
    elsewhere = Program(tmp_path / "elsewhere")
    elsewhere.folder.mkdir()
    assert elsewhere.replay(elsewhere.agent(body), trace).verdict == "identical"


def test_a_large_file_is_kept_once_in_parts(program: Program) -> None:
    data = os.urandom(1 << 20) * 3 + b"end"
    (program.folder / "large.bin").write_bytes(data)
    agent = program.agent(
        "with allow('file.read', reason='x'):\n"
        "    a = open('large.bin', 'rb').read()\n    b = open('large.bin', 'rb').read()\n"
        "return a == b, len(a), a[-3:]"
    )
    trace = program.record(agent)
    assert trace.output == (True, len(data), b"end")
    assert max(map(len, program.store.read(trace.run_id).splitlines())) < 1.5 * (1 << 20)
    assert len(program.store.read(trace.run_id)) < 1.5 * len(data)
    (program.folder / "large.bin").unlink()
    assert program.replay(agent).verdict == "identical"


def test_a_device_is_not_recorded(program: Program) -> None:
    agent = program.agent("with allow('file.read', reason='x'):\n    open('/dev/zero', 'rb').read()")
    with pytest.raises(NotSupported, match="/dev/zero is a device or a pipe"):
        program.record(agent)
    assert program.replay(agent).verdict == "identical"


def test_another_path_on_replay_is_a_changed_call(program: Program) -> None:
    _files(program.folder)
    body = "with allow('file.read', reason='x'):\n    return open('there.bin', 'rb').read()"
    trace = program.record(program.agent(body))
    report = program.replay(program.agent(body.replace("there.bin", "data/a.json")), trace)
    assert report.verdict == "diverged"
    assert report.finding is not None
    assert report.finding.cls == "changed"
    assert "data/a.json" in str(report)


WRITES = {
    "open": ("open('out.txt', 'w').write('1')", "writes out.txt"),
    "pathlib": ("__import__('pathlib').Path('out.txt').write_text('1')", "writes out.txt"),
    "mkdir": ("os.mkdir('out.txt')", "makes folder out.txt"),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_allowed_write_is_a_call_without_a_gap_and_refused_on_replay(program: Program, name: str) -> None:
    code, words = WRITES[name]
    agent = program.agent(f"with allow('file.write', reason='the report'):\n    {code}\nreturn act(1)")
    trace = program.record(agent)
    out = program.folder / "out.txt"
    assert out.exists()
    assert trace.unrecorded == []
    assert not any(entry["kind"] == "gap" for entry in trace.journal.entries)
    call = trace.calls[0]
    assert (call.kind, call.name, call.effect, call.request) == ("file", "write", "write", {"what": words})
    assert call.src == "program.py:15 main"
    out.rmdir() if out.is_dir() else out.unlink()
    report = program.replay(agent)
    assert report.verdict == "diverged"
    assert "program.py:15" in str(report)
    assert "which was allowed when recorded (the report)" in str(report)
    assert not out.exists()


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("process", "__import__('subprocess').run(['true'])", "starts process true"),
        ("database", "__import__('sqlite3').connect('out.db').close()", "opens database out.db"),
        (
            "network",
            "__import__('socket').socket(type=2).connect(('127.0.0.1', 9))",
            "connects to 127.0.0.1:9",
        ),
    ],
)
def test_what_cannot_be_recorded_passes_with_a_gap_and_is_refused_on_replay(
    program: Program, kind: str, code: str, words: str
) -> None:
    agent = program.agent(f"with allow('{kind}', reason='because'):\n    {code}\nreturn act(1)")
    trace = program.record(agent)
    assert trace.unrecorded == [
        {"kind": kind, "what": words, "where": "program.py:15 main", "allowed": "because"}
    ]
    assert trace.verify().complete is False
    report = program.replay(agent)
    assert report.verdict == "diverged"
    assert words in str(report)
    assert any("not replayable past it" in note for note in report.notes)


def test_what_is_not_declared_is_still_refused(program: Program) -> None:
    for body in (
        "with allow('file.read', reason='x'): open('out.txt', 'w')",
        "with allow('file.write', reason='x'): open('there.txt')",
        "with allow('file.read', reason='x'): pass\nopen('there.txt')",
    ):
        with pytest.raises(UnrecordedEffect):
            program.record(program.agent(body))


def test_allowed_addresses_pass_and_are_noted(program: Program) -> None:
    agent = program.agent("with allow('id', reason='a memo'):\n    id(act), os.getpid()\nreturn act(1)")
    trace = program.record(agent)
    assert [entry["allowed"] for entry in trace.unrecorded] == ["a memo", "a memo"]
    assert program.replay(agent).verdict == "identical"


def test_decorators_and_async_scopes(program: Program) -> None:
    _files(program.folder)
    agent = program.load(
        """
        @allow("file.read", reason="sync")
        def load(): return len(open("there.bin", "rb").read())
        @allow("file.read", reason="async")
        async def aload():
            import asyncio
            await asyncio.sleep(0)
            return len(open("there.bin", "rb").read())
        @agent(guard="strict")
        async def main():
            async with allow("file.read", reason="with"):
                a = len(open("there.bin", "rb").read())
            return a, load(), await aload()
        """
    )
    trace = program.record(agent)
    assert trace.output == (len(CONTENT),) * 3
    (program.folder / "there.bin").unlink()
    assert program.replay(agent).verdict == "identical"


def test_one_scope_object_in_two_tasks(program: Program) -> None:
    _files(program.folder)
    agent = program.load(
        """
        import asyncio
        scope = allow("file.read", reason="shared")
        async def one(n):
            with scope:
                await asyncio.sleep(n / 1000)
                data = open("there.bin", "rb").read()
            try: open("there.bin")
            except Exception as error: return type(error).__name__, len(data)
        @agent(guard="strict")
        async def main():
            with scope:
                with scope: pass
                return len(open("there.bin", "rb").read())
        """
    )
    assert program.record(agent).output == len(CONTENT)


def test_a_scope_is_recorded_under_a_virtual_guard_too(program: Program) -> None:
    _files(program.folder)
    agent = program.agent(
        "with allow('file.read', reason='x'):\n    return open('there.bin', 'rb').read()", "virtual"
    )
    assert len(program.record(agent).calls) == 1
    (program.folder / "there.bin").unlink()
    assert program.replay(agent).verdict == "identical"


def test_where_the_guard_is_off_a_scope_does_nothing(program: Program) -> None:
    _files(program.folder)
    agent = program.agent(
        "with allow('file.read', reason='x'):\n    return open('there.bin', 'rb').read()", "off"
    )
    trace = program.record(agent)
    assert len(trace.calls) == 0
    assert not any(entry["kind"] == "note" for entry in trace.journal.entries)
    assert program.replay(agent).verdict == "identical"
    (program.folder / "there.bin").write_bytes(b"other")
    assert program.replay(agent).verdict == "diverged"


def test_open_is_pythons_own_outside_of_scopes(program: Program) -> None:
    _files(program.folder)
    own = (builtins.open, io.open, os.open, os.listdir, os.scandir)
    agent = program.agent(
        "with allow('file.read', reason='x'):\n    go.set(); done.wait(); return len(open('there.bin', 'rb').read())"
    )
    assert program.module is not None
    go, done = threading.Event(), threading.Event()
    program.module.__dict__.update(go=go, done=done)
    seen: list[Any] = []

    def beside() -> None:
        go.wait()
        with open("there.bin", "rb") as file:
            seen.extend([file.read(), os.listdir("data") != [], stat.S_ISREG(os.stat("there.bin").st_mode)])
        done.set()

    thread = threading.Thread(target=beside)
    thread.start()
    trace = program.record(agent)
    thread.join()
    assert len(trace.calls) == 1
    assert seen == [CONTENT, True, True]
    assert (builtins.open, io.open, os.open, os.listdir, os.scandir) == own


def test_outside_a_run_it_does_nothing(tmp_path: Path) -> None:
    own = builtins.open
    with allow("file.read", "file.write", reason="no run"):
        assert builtins.open is own
        (tmp_path / "x").write_text("x")

    async def main() -> str:
        async with allow("file.read", reason="no run"):
            return (tmp_path / "x").read_text()

    assert asyncio.run(main()) == "x"


def test_what_it_takes() -> None:
    with pytest.raises(ValueError, match="file.read, file.write, network, process, database, native, id"):
        allow(reason="x")
    with pytest.raises(ValueError, match="'files'"):
        allow("files", reason="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="says why"):
        allow("file.read", reason=" ")
    with pytest.raises(NotSupported, match="generator"):

        @allow("file.read", reason="x")
        def _items() -> Any:
            yield 1
