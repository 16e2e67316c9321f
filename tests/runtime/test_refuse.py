"""Effects outside host calls: each is seen, named with its place, and does not happen when it is refused."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from agentloom.errors import ControlFlow
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Effect, Watch
from agentloom.runtime.work import Work, doing


class Refused(ControlFlow):
    pass


class Refusing:
    def __init__(self) -> None:
        self.seen: list[Effect] = []

    def attempt(self, effect: Effect) -> None:
        self.seen.append(effect)
        if effect.kind != "file read":
            raise Refused(effect.what)


def execute(code: str, folder: Path, *, everything: bool = False) -> list[Effect]:
    """Run ``code`` as line 3 of a program in ``folder``, in a function ``save``, while effects are refused."""
    effects = Refusing()
    text = f"import os\ndef save():\n    {code}\nsave()\n"
    program = compile(text, str(folder / "program.py"), "exec")
    with Watch(effects, Places(str(folder)), everything=everything).armed(), contextlib.suppress(Refused):
        exec(program, {})
    return effects.seen


REFUSED = {
    "open": ('open("out.txt", "w").write("x")', "writes out.txt"),
    "pathlib": ('__import__("pathlib").Path("out.txt").write_text("x")', "writes out.txt"),
    "os.open": ('os.close(os.open("out.txt", os.O_CREAT | os.O_WRONLY))', "writes out.txt"),
    "mkdir": ('os.mkdir("out")', "makes folder out"),
    "rename": ('os.rename("there.txt", "out.txt")', "renames there.txt to out.txt"),
    "remove": ('os.remove("there.txt")', "removes there.txt"),
    "sqlite": ('__import__("sqlite3").connect("out.db").close()', "opens database out.db"),
    "process": ('__import__("subprocess").run(["true"])', "starts process true"),
    "system": ('os.system("true")', "starts process true"),
    "fork": ("os.fork() or os._exit(0)", "forks a process"),
    "name": ('__import__("socket").getaddrinfo("localhost", 80)', "looks up localhost"),
    "socket": ('__import__("socket").socket(type=2).connect(("127.0.0.1", 9))', "connects to 127.0.0.1:9"),
    "datagram": (
        '__import__("socket").socket(type=2).sendto(b"x", ("127.0.0.1", 9))',
        "sends to 127.0.0.1:9",
    ),
    "symlink": ('os.symlink("there.txt", "out")', "links there.txt"),
    "truncate": ('os.truncate("there.txt", 0)', "truncates there.txt"),
    "chmod": ('os.chmod("there.txt", 0)', "changes mode of there.txt"),
    "append": ('open("there.txt", "a")', "writes there.txt"),
    "update": ('open("there.txt", "r+b")', "writes there.txt"),
    "copy": ('__import__("shutil").copy("there.txt", "out.txt")', "writes out.txt"),
    "temporary": ('__import__("tempfile").mkdtemp(dir=".", prefix="out", suffix="x")', None),
    "signal": ("os.kill(os.getpid(), 0)", f"sends signal 0 to process {os.getpid()}"),
    "pickled process": (
        '__import__("multiprocessing").get_context("spawn").Process(target=print).start()',
        None,
    ),
    "fifo": ('os.mkfifo("out")', "makes a pipe"),
}


@pytest.mark.parametrize("name", list(REFUSED))
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_effect_is_named_and_does_not_happen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, words = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there.txt"
    there.write_text("there")
    before = there.stat()
    effects = [effect for effect in execute(code, tmp_path) if effect.kind != "file read"]
    assert effects
    assert effects[0].where == "program.py:3 save"
    assert words is None or effects[0].what == words
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"]
    after = there.stat()
    assert (after.st_mode, after.st_size, after.st_mtime_ns) == (
        before.st_mode,
        before.st_size,
        before.st_mtime_ns,
    )


def test_reads_are_reported_only_where_the_programs_own_code_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.txt").write_text("be kind")
    (tmp_path / "fresh_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = execute(
        'open("policy.txt").close(); __import__("pathlib").Path("policy.txt").read_text()', tmp_path
    )
    assert [effect.what for effect in seen] == ["reads policy.txt"] * 2
    assert execute("import fresh_module", tmp_path) == []
    assert "fresh_module" in sys.modules
    assert [effect.what for effect in execute("os.listdir()", tmp_path)] == ["lists ."]


def test_what_changes_nothing_is_let_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute('open(os.devnull, "w").close()', tmp_path) == []
    assert execute('__import__("sqlite3").connect(":memory:").close()', tmp_path) == []
    assert execute('r, w = os.pipe(); os.write(w, b"x"); os.close(r); os.close(w)', tmp_path) == []


def test_host_work_is_not_the_programs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with doing(Work("tool save")):
        assert execute('open("out.txt", "w").close()', tmp_path) == []
    assert (tmp_path / "out.txt").exists()


def test_after_the_watch_everything_is_as_before(tmp_path: Path) -> None:
    execute("pass", tmp_path)
    (tmp_path / "out.txt").write_text("x")
    assert (tmp_path / "out.txt").read_text() == "x"


def test_libraries_alone_are_seen_only_when_everything_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    library = compile("open('out.txt', 'w').close()", "<string>", "exec")
    for everything, expected in ((False, []), (True, ["?"])):
        effects = Refusing()
        with Watch(effects, Places(str(tmp_path / "elsewhere")), everything=everything).armed():
            monkeypatch.setattr(Places, "name", lambda *_: None)
            with contextlib.suppress(Refused):
                exec(library, {})
        assert [effect.where for effect in effects.seen] == expected


def test_asking_for_the_folder_of_temporary_files_is_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert execute('__import__("tempfile").gettempdir()', tmp_path, everything=True) == []
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert [effect.kind for effect in execute('__import__("tempfile").mkdtemp()', tmp_path)] == ["file write"]


def test_what_is_set_aside_is_not_seen(tmp_path: Path) -> None:
    effects = Refusing()
    watch = Watch(effects, Places(str(tmp_path)), everything=True)
    with watch.armed():
        with watch.aside():
            (tmp_path / "own.txt").write_text("x")
        with contextlib.suppress(Refused):
            (tmp_path / "theirs.txt").write_text("x")
    assert [effect.what for effect in effects.seen] == [f"writes {tmp_path / 'theirs.txt'}"]
