"""``ls``: finding runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest

from agentloom import agent
from agentloom.cli.ls import since
from agentloom.store import LocalStore
from tests.cli import samples

Call = Callable[..., Any]


@pytest.fixture
def store(cli: Call, tmp_path: Path) -> None:
    failed = samples.Maker(3, agent="triage")
    failed.call(0, "tool", "search", {"args": {}}, {"hits": 0})
    failed.end(
        {"$error": {"type": "builtins:ValueError", "args": [], "attrs": {}, "message": "no", "cause": None}},
        "failed",
    )
    traces = [samples.refund(1, tags={"ticket": "812"}), samples.refund(2, tags={"ticket": "813"}), failed]
    for number, made in enumerate(traces):
        (tmp_path / f"{number}.loom").write_bytes(made.data)
    assert cli("import", "0.loom", "1.loom", "2.loom").code == 0


@pytest.mark.usefixtures("store")
def test_lists_the_newest_first_with_what_tells_them_apart(
    cli: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = cli("ls")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["0003", "0002", "0001"]
    assert "failed     triage   1 call: 1 tool" in lines[0] or "failed  triage   1 call: 1 tool" in lines[0]
    assert "ok" in lines[1]
    assert "support  5 calls: 3 model, 2 tool" in lines[1]
    assert lines[1].endswith("ticket=813")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("--tag", "812"), ["0001"]),
        (("--tag", "ticket=813"), ["0002"]),
        (("--tag", "nothing"), []),
        (("--failed",), ["0003"]),
        (("--tool", "issue_refund"), ["0002", "0001"]),
        (("--agent", "triage"), ["0003"]),
        (("--text", "REFUNDED order"), ["0002", "0001"]),
        (("--since", "2026-11-29T00:00+00:00"), ["0003", "0002", "0001"]),
        (("--since", "2027-01-01"), []),
        (("--limit", "1"), ["0003"]),
        (("--limit", "0"), ["0003", "0002", "0001"]),
    ],
)
def test_filters(cli: Call, args: tuple[str, ...], found: list[str]) -> None:
    result = cli("ls", *args)
    assert [line.split()[0] for line in result.out.splitlines()] == found
    data = cli("ls", *args, "--json").data
    assert [row["run"][-4:] for row in data["runs"]] == found
    assert data["more"] is ("1" in args)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (("one=1", "two=2"), ["both"]),
        (("1", "two=2"), ["both"]),
        (("one=1",), ["first", "both"]),
        (("one=1", "one=1"), ["first", "both"]),
        (("one=1", "three=3"), []),
    ],
)
def test_of_several_tags_all_must_hold(
    cli: Call, tmp_path: Path, tags: tuple[str, ...], found: list[str]
) -> None:
    store = LocalStore(tmp_path / "tagged")
    for name, given in (
        ("first", {"one": "1"}),
        ("second", {"two": "2"}),
        ("both", {"one": "1", "two": "2"}),
    ):
        agent(name=name)(_nothing).run(store=store, tags=given)
    asked = [word for tag in tags for word in ("--tag", tag)]
    result = cli("ls", "--store", str(tmp_path / "tagged"), "--json", *asked)
    assert sorted(row["agent"] for row in json.loads(result.out)["runs"]) == sorted(found)
    if "three=3" in tags:
        said = cli("ls", "--store", str(tmp_path / "tagged"), *asked)
        assert "none has the tag three=3" in said.out + said.err


def _nothing() -> None:
    """An agent that makes no call."""


@pytest.mark.usefixtures("store")
def test_a_partial_list_says_so(cli: Call) -> None:
    assert cli("ls", "--limit", "2").err == "more runs fit: --limit 0 shows all\n"
    assert cli("ls", "--limit", "2", "-q").err == ""


@pytest.mark.usefixtures("store")
def test_json_has_iso_times_and_counts(cli: Call) -> None:
    row = cli("ls", "--json").data["runs"][0]
    assert row["status"] == "failed"
    assert row["calls"] == {"tool": 1}
    assert row["started_at"].startswith("2026-11-30T00:53:23")


def test_an_empty_store_is_no_error(cli: Call, tmp_path: Path) -> None:
    result = cli("ls")
    assert (result.code, result.out) == (0, "")
    assert "no runs yet" in result.err
    assert cli("ls", "--failed").err == "no run fits\n"
    assert cli("ls", "--tool", "x").err == "no run fits; none has the tool x\n"
    assert not (tmp_path / ".agentloom").exists()


@pytest.mark.usefixtures("store")
def test_a_damaged_run_hides_no_other(cli: Call, tmp_path: Path) -> None:
    path = next((tmp_path / ".agentloom").rglob("*0002.loom"))
    path.write_bytes(b"rubbish\n")
    out = cli("ls").out
    assert "damaged" in out
    assert "0001" in out
    assert "0003" in out


NOW = datetime(2026, 11, 28, 9, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("3d", 259200),
        ("1w", 604800),
        (" 2 H ", 7200),
        ("2h ago", 7200),
    ],
)
def test_times_ago(text: str, ago: int) -> None:
    assert since(text, NOW) == int((NOW.timestamp() - ago) * 1e9)


def test_times_with_a_zone() -> None:
    assert since("2026-11-28T10:04+01:00") == int(NOW.timestamp() * 1e9)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_days_begin_at_their_own_midnight(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        after = datetime(2026, 11, 2, 17, 30, tzinfo=UTC)  # New York left summer time on the day before
        for word, day in (("today", 2), ("Yesterday", 1)):
            midnight = datetime(2026, 11, day, tzinfo=ZoneInfo(zone))
            assert since(word, after) == int(midnight.timestamp()) * 10**9
        assert since("2026-11-01") == since("yesterday", after)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2h before", "2026-13-01", "-3d", "99999999999d", "9" * 400 + "w", "\u0663d", "0001-01-01"],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time: give 30m, 2h, 3d, 1w, today, yesterday"):
        since(text)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--tool", "isue_refund"), "none has the tool isue_refund: did you mean issue_refund?"),
        (("--tag", "ticket=814"), "none has the tag ticket=814: did you mean ticket=81"),
        (("--agent", "suport"), "none has the agent suport: did you mean support?"),
        (("--conversation", "c"), "none has the conversation c\n"),
        (("--tag", "812", "--tool", "search"), "no run fits\n"),
        (("--text", "never said"), "no run fits\n"),
    ],
)
def test_a_name_that_no_run_has_is_told_with_what_is_close(
    cli: Call, args: tuple[str, ...], says: str
) -> None:
    result = cli("ls", *args)
    assert (result.code, result.out) == (0, "")
    assert says in result.err


@pytest.mark.usefixtures("store")
def test_questions_add_up(cli: Call) -> None:
    result = cli(
        "ls",
        "--tool",
        "issue_refund",
        "--tag",
        "ticket=812",
        "--since",
        "2026-11-01",
        "--text",
        "refund when",
    )
    assert [line.split()[0] for line in result.out.splitlines()] == ["0001"]


@pytest.mark.usefixtures("store")
def test_the_answers_are_the_same_from_the_index_and_without_it(cli: Call, tmp_path: Path) -> None:
    questions = (("--tag", "812"), ("--failed",), ("--tool", "search"), ("--text", "order 812"), ())
    first = [cli("ls", "--json", *one).data for one in questions]
    (tmp_path / ".agentloom" / "index.sqlite").unlink(missing_ok=True)
    assert [cli("ls", "--json", *one).data for one in questions] == first
    (tmp_path / ".agentloom" / "index.sqlite").write_bytes(b"rubbish")
    assert [cli("ls", "--json", *one).data for one in questions] == first


def test_a_bad_time_names_the_option_and_ends_with_2(cli: Call) -> None:
    result = cli("ls", "--since", "tomorrow-ish")
    assert result.code == 2
    assert "--since" in result.err
    assert "yesterday" in result.err
