"""Files that are no trace, or one no longer: every command names the file and the place, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from agentloom import Trace, agent, tool
from agentloom.cli.main import main
from agentloom.errors import PayloadMissing


@tool
def look(x: int) -> dict[str, int]:
    return {"x": x}


@agent
def work() -> str:
    for number in range(3):
        look(number)
    return "done"


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path / "store"))
    work.run().save("good.loom")
    return Path("good.loom").read_bytes()


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _without_first_blob(data: bytes) -> bytes:
    return b"".join(line for number, line in enumerate(_lines(data)) if number != 1)


def _doubled(data: bytes) -> bytes:
    lines = _lines(data)
    return b"".join([*lines[:-1], lines[-2], lines[-1]])


def _swapped(data: bytes) -> bytes:
    lines = _lines(data)
    entries = [number for number, line in enumerate(lines) if line.startswith(b'{"seq"')]
    a, b = entries[-3], entries[-1]
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "binary": lambda _: bytes(range(256)) * 20,
    "json": lambda _: b"[1, 2]\n",
    "foreign": lambda _: b'{"hello": 1}\n',
    "torn in the first line": lambda data: data[:50],
    "edited": lambda data: data.replace(b'"done"', b'"gone"', 1),
    "doubled": _doubled,
    "swapped": _swapped,
    "twice": lambda data: data + data,
    "carriage returns": lambda data: data.replace(b"\n", b"\r\n"),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "half of a frame": lambda data: zstandard.compress(data)[:-20],
}


@pytest.mark.parametrize("how", list(BROKEN))
@pytest.mark.parametrize("command", ["show", "replay", "import", "export", "diff"])
def test_a_broken_file(how: str, command: str, good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    name = "half.loom.zst" if how == "half of a frame" else "broken.loom"
    Path(name).write_bytes(BROKEN[how](good))
    before = sorted(os.listdir())
    args = {"diff": ["diff", "good.loom", name], "export": ["export", name, "-o", "out.loom"]}
    code = main(args.get(command, [command, name]))
    out, err = capfd.readouterr()
    assert code == 5, out + err
    assert out == "" or command == "show"  # show reads what is sound, and then says where that ends
    assert "error: " in err
    assert name in err
    assert "next: " in err
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before
    assert main([*args.get(command, [command, name]), "--json"]) == 5
    error = json.loads(capfd.readouterr().err)["error"]
    assert name in error["message"]
    assert error["exit"] == 5
    assert error["next"]


@pytest.mark.parametrize("how", [how for how in BROKEN if how != "half of a frame"])
def test_verify_says_where(how: str, good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    Path("broken.loom").write_bytes(BROKEN[how](good))
    assert main(["verify", "broken.loom"]) == 5
    assert "first fault  line " in capfd.readouterr().out
    assert main(["verify", "broken.loom", "--json"]) == 5
    verdict = json.loads(capfd.readouterr().out)
    assert verdict["consistent"] is False
    assert verdict["code"]


@pytest.mark.parametrize("command", ["show", "replay", "import", "verify"])
def test_a_newer_format_is_no_damage(command: str, good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    Path("newer.loom").write_bytes(good.replace(b'"version":"1.0"', b'"version":"2.0"', 1))
    assert main([command, "newer.loom"]) == 1
    said = "".join(capfd.readouterr())
    assert "upgrade agentloom" in said
    assert "NOT CONSISTENT" not in said


@pytest.mark.parametrize("command", ["show", "replay", "import", "export", "verify"])
@pytest.mark.parametrize("name", ["nothing.loom", "folder.loom", "loop.loom"])
def test_a_file_that_cannot_be_read(
    command: str, name: str, good: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("folder.loom").mkdir()
    Path("loop.loom").symlink_to("loop.loom")
    assert main([command, name]) == 1
    err = capfd.readouterr().err
    assert name in err
    assert "next: " in err


def test_a_huge_file_is_refused_before_it_is_read(
    good: bytes, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open("huge.loom", "wb") as file:
        file.write(good)
        file.truncate(1 << 40)  # a hole, on every file system that is in use
    Path("bomb.loom.zst").write_bytes(zstandard.compress(bytes(1 << 26)))
    monkeypatch.setenv("AGENTLOOM_MAX_TRACE_BYTES", str(1 << 24))
    for name in ("huge.loom", "bomb.loom.zst"):
        assert main(["show", name]) == 1
        err = capfd.readouterr().err
        assert name in err
        assert "more than the limit of 16,777,216 bytes" in err


def test_a_payload_that_is_gone_names_its_call(good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    lines = _lines(good)
    entries = [number for number, line in enumerate(lines) if line.startswith(b'{"seq"')]
    del lines[entries[2] - 1]  # the only payload of the first outcome
    Path("gone.loom").write_bytes(b"".join(lines))
    assert main(["verify", "gone.loom"]) == 5
    assert "1 payloads that entries name are not in the file" in capfd.readouterr().out
    assert main(["show", "gone.loom"]) == 0
    assert "(not in the trace)" in capfd.readouterr().out
    with pytest.raises(PayloadMissing, match=r"call 1 \(root/work#1\)"):
        Trace.load("gone.loom").replay(agent=work)


def test_a_store_that_is_a_file(good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("not a folder")
    for command in (["ls"], ["show", "last"], ["replay", "last"], ["verify", "last"], ["export", "last"],
                    ["diff", "last", "last"], ["import", "good.loom"]):  # fmt: skip
        assert main([*command, "--store", "file"]) == 1
        err = capfd.readouterr().err
        assert "a part of the path is a file, not a folder" in err, command
        assert "next: " in err
    assert main(["doctor", "--store", "file"]) == 1
    assert "cannot be written" in capfd.readouterr().out


REFERENCES = ["zzzz", "0", "", "last~1", "☃", "../nothing", "-1"]


@pytest.mark.parametrize("ref", REFERENCES)
@pytest.mark.parametrize("command", ["show", "replay", "verify", "export"])
def test_a_name_of_no_run(ref: str, command: str, good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--json", "--", ref]) == 1
    error = json.loads(capfd.readouterr().err)["error"]
    assert error["type"] == "RunNotFound"
    assert error["next"]


def test_a_name_of_two_runs_lists_both(good: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    first = work.run(tags={"ticket": "ünï ☃"})
    second = work.run(tags={"ticket": "ünï ☃"})
    for ref in ("ticket=ünï ☃", "ünï ☃"):
        assert main(["show", ref]) == 1
        err = capfd.readouterr().err
        assert first.run_id in err
        assert second.run_id in err
    assert main(["ls", "--tag", "ticket=ünï ☃"]) == 0
    assert "ünï ☃" in capfd.readouterr().out
