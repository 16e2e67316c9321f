"""``show``: runs, calls and fields, also of long, unfinished, damaged and erased traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom.cli.show import LIMIT
from agentloom.format import journal
from agentloom.format.values import Tree
from agentloom.store import MemoryStore, files
from tests.cli import samples

Call = Callable[..., Any]


@pytest.fixture
def refund(tmp_path: Path) -> str:
    path = tmp_path / "refund.loom"
    path.write_bytes(samples.refund().data)
    return str(path)


def test_a_run_is_one_line_a_call(cli: Call, refund: str) -> None:
    result = cli("show", refund)
    assert result.code == 0
    assert result.out == (
        '0001  support("refund order 812")  ok  5 calls  11 ms  1836+54 tok  guard off\n'
        " 1 model  gpt-4o        -> lookup_order(812)             612+18 tok  :22\n"
        ' 2 tool   lookup_order  -> {"total": 40, "paid": true}        31 ms  :9\n'
        " 3 model  gpt-4o        -> issue_refund(812, 40)         612+18 tok  :22\n"
        ' 4 tool   issue_refund  WRITE -> "ok"                         31 ms  :14\n'
        ' 5 model  gpt-4o        -> "Refunded order 812: $40.00"  612+18 tok  :22\n'
        'output  "Refunded order 812: $40.00"\n'
    )


@pytest.mark.parametrize("calls", [1, 20, 30, 1200])
def test_the_short_form_is_short_whatever_the_size(cli: Call, tmp_path: Path, calls: int) -> None:
    path = tmp_path / "long.loom"
    path.write_bytes(samples.long(calls))
    short, whole = cli("show", str(path)).out, cli("show", str(path), "--all").out
    assert len(short) < LIMIT
    assert whole.count("lookup") == calls
    if calls > 30:
        hidden = calls - short.count("lookup")
        assert f"... {hidden:,} calls more, " in short
        assert f' {calls} tool  lookup  -> "found {calls - 1}"' in short


def test_a_call_shows_place_key_timing_request_and_outcome(cli: Call, refund: str) -> None:
    for word in ("1", "root/support#0", "support#0"):
        out = cli("show", refund, word).out
        assert out.startswith("call 1 of 5  model gpt-4o  root/support#0  ok\n")
        assert "made at  agent.py:22 support" in out
        assert 'messages[0]  {"role": "system", "content": "Refund when paid."}' in out
        assert "usage    input 612, output 18" in out


def test_a_call_in_full(cli: Call, refund: str) -> None:
    assert '      "content": "refund order 812"\n' in cli("show", refund, "1", "--all").out


@pytest.mark.parametrize(
    ("address", "out"),
    [
        ("1:messages[0].content", "Refund when paid.\n"),
        ("1:messages[-1].role", "user\n"),
        ("1:tool_calls[0].function.name", "lookup_order\n"),
        ("2:outcome.total", "40\n"),
        ("2:request.args", '{\n  "order": 812\n}\n'),
        ("4:outcome", "ok\n"),
        ("output", "Refunded order 812: $40.00\n"),
        ("input:args[0]", "refund order 812\n"),
        ("env:python", "3.11.7\n"),
        ("tags", "null\n"),
    ],
)
def test_a_field_is_printed_whole(cli: Call, refund: str, address: str, out: str) -> None:
    assert cli("show", refund, address).out == out


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("6", "error: no call 6: the run has 5\nnext: give 1 to 5\n"),
        ("0", "error: no call 0: the run has 5\nnext: give 1 to 5\n"),
        ("root/suport#1", "error: no call 'root/suport#1' in this run\nnext: did you mean root/support#1"),
        ("1:nosuch", "error: call 1 has no field 'nosuch', neither in its request nor in its outcome\n"),
        ("1:messages[7]", "error: call 1 has no field 'messages[7]'"),
        ("input:args[0", "error: 'args[0' is no field"),
        ("input:argh", "error: no field 'argh': the value has no 'argh'\nnext: it has: args, kwargs\n"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(cli: Call, refund: str, address: str, error: str) -> None:
    result = cli("show", refund, address)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)


def test_json_has_the_same_facts(cli: Call, refund: str) -> None:
    run = cli("show", refund, "--json").data
    assert (run["agent"], run["status"], run["seed"], len(run["calls"])) == ("support", "completed", 42, 5)
    assert run["output"] == "Refunded order 812: $40.00"
    assert run["calls"][3]["effect"] == "write"
    call = cli("--json", "show", refund, "2").data
    assert (call["request"], call["outcome"]) == ({"args": {"order": 812}}, {"total": 40, "paid": True})
    assert cli("show", refund, "2:outcome.total", "--json").data == 40


def test_json_has_what_was_changed_of_a_profile(cli: Call, tmp_path: Path) -> None:
    @agentloom.tool(noted=["trace"])
    def look(order: int, trace: str) -> int:
        return order

    @agentloom.tool
    def plain(order: int) -> int:
        return order

    @agentloom.agent
    def asks() -> int:
        return look(1, "t") + plain(2)

    asks.run(store=MemoryStore()).save(tmp_path / "a.loom")
    calls = cli("show", str(tmp_path / "a.loom"), "--json").data["calls"]
    assert calls[0]["profile"].startswith("tool/1+")
    assert calls[0]["rule"] == {"base": "tool/1", "noted": ["args.trace"]}
    assert (calls[1]["profile"], calls[1]["rule"]) == ("tool/1", None)
    assert cli("show", str(tmp_path / "a.loom"), "1", "--json").data["rule"] == calls[0]["rule"]


def test_an_unfinished_run_says_so(cli: Call, tmp_path: Path) -> None:
    run = samples.refund(end=False)
    run.call(5, "tool", "issue_refund", {"args": {}}, None, status="none", effect="write")
    run.call(6, "tool", "notify", {"args": {}}, None, status="cancelled")
    (tmp_path / "open.loom").write_bytes(run.data)
    out = cli("show", "open.loom").out
    assert "  no end  " in out
    assert "no outcome: the process ended in this call" in out
    assert "-> cancelled" in out
    assert "the run is going on, or its process died" in out
    assert cli("show", "open.loom", "6").code == 0


def test_notes_flags_and_gaps_are_shown(cli: Call, tmp_path: Path) -> None:
    run = samples.refund(end=False)
    run.entry("flag", val=run.blobs.put("looks wrong"))
    run.entry("gap", why="unrecorded-effect")
    what: Tree = {"kind": "file write", "what": "writes a.txt", "where": "a.py:4 save"}
    run.entry("gap", why="unrecorded-effect", val=run.blobs.put(what))
    (tmp_path / "a.loom").write_bytes(run.end())
    out = cli("show", "a.loom").out
    assert 'flag  "looks wrong"' in out
    assert "gap  not replayable past entry 12: unrecorded-effect" in out
    assert "gap  not replayable past entry 13: writes a.txt (a.py:4 save)" in out


def test_a_damaged_file_is_read_up_to_the_damage(cli: Call, tmp_path: Path) -> None:
    data = samples.refund().data.replace(b'"paid":true', b'"paid":tru3')
    line = data[: data.index(b"tru3")].count(b"\n") + 1
    (tmp_path / "a.loom").write_bytes(data)
    result = cli("show", "a.loom")
    assert result.code == 5
    assert "lookup_order(812)" in result.out
    assert "a.loom: the data is not that of blob" in result.err
    assert f"(line {line}, byte" in result.err


def test_a_torn_tail_is_a_note_and_no_error(cli: Call, tmp_path: Path) -> None:
    (tmp_path / "a.loom").write_bytes(samples.refund().data[:-20])
    result = cli("show", "a.loom")
    assert result.code == 0
    assert "torn: " in result.err


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n\x00", b'{"a":1}\n', b"[" * 5000])
def test_foreign_files_are_refused_with_the_place(cli: Call, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.loom").write_bytes(data)
    result = cli("show", "a.loom")
    assert result.code in (1, 5)
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err


def test_text_in_a_trace_cannot_steer_the_terminal(cli: Call, tmp_path: Path) -> None:
    run = samples.Maker(agent="evil\x1b[2J")
    run.call(0, "tool", "x\x1b]0;owned\x07", {"args": {}}, "\x1b[31mred\u202e")
    (tmp_path / "a.loom").write_bytes(run.end("\x1b[0m"))
    for args in (
        ("show", "a.loom"),
        ("show", "a.loom", "1"),
        ("show", "a.loom", "output"),
        ("show", "a.loom", "1", "--all"),
    ):
        out = cli(*args).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\x07" not in out


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace that counts as large, with an index every 40 entries."""
    monkeypatch.setattr(journal, "INDEX_EVERY", 40)
    monkeypatch.setattr(files, "LARGE", 10_000)
    made = samples.Maker()
    for number in range(1, 201):
        made.call(number, "tool", "lookup", {"args": {"n": number}}, {"row": number, "text": "x" * 40})
    made.end("done")
    path = tmp_path / "large.loom"
    path.write_bytes(made.data)
    return path


def test_a_large_trace_is_read_in_parts_and_the_view_says_so(cli: Call, large: Path) -> None:
    result = cli("show", str(large))
    assert (result.code, len(result.out) <= LIMIT) == (0, True)
    assert "200 calls" in result.out
    assert "calls more" in result.out
    assert result.err.startswith("partial view: ")
    assert "of 200 calls were read" in result.err
    one = cli("show", str(large), "123")
    assert "call 123 of 200" in one.out
    assert "row  123" in one.out
    assert cli("show", str(large), "lookup#9999").code == 1
    everything = cli("show", str(large), "--all")
    assert (everything.err, everything.out.count(" lookup ")) == ("", 200)


def test_damage_in_the_part_that_is_read_is_an_error_that_names_the_file(cli: Call, large: Path) -> None:
    data = large.read_bytes()
    at = data.rindex(b'"kind":"outcome"')
    large.write_bytes(data[:at] + data[at:].replace(b'"status":"ok"', b'"status":"error"', 1))
    result = cli("show", str(large))
    assert result.code == 5
    assert "large.loom" in result.err
    assert "chain.prev" in result.err
