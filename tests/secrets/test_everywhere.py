"""A secret in every place of a program run from the command line: none of it is in the store, nor in what commands
show of the run; and the run replays identically in an empty home, where it is not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.cli.main import main
from tests.secrets.shapes import SHAPES, core, holds, make, unfolded

SEED = 20261128
SCRIPT = Path(__file__).parent / "script_everywhere.py"
SHOWING = (
    ("show", "last"), ("show", "--json", "last"), ("show", "last", "3"), ("ls",), ("ls", "--json"),
    ("verify", "last"), ("verify", "--json", "last"), ("scan", "--json", "last"),
)  # fmt: skip


def _agentloom(*arguments: str, home: Path, store: Path, given: str = "", **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "AGENTLOOM_STORE": str(store), **env},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_is_nowhere(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print(f"seed {SEED}")
    secret = make(shape, random.Random(f"{SEED} {shape}"))
    wanted = core(shape, secret)
    home, empty, store = tmp_path / "home", tmp_path / "empty", tmp_path / "store"
    home.mkdir()
    empty.mkdir()
    (home / "kept").write_text(secret)
    code, said = _agentloom(
        "run",
        str(SCRIPT),
        "--",
        str(home / "kept"),
        f"--key={secret}",
        home=home,
        store=store,
        PLAIN_SETTING=secret,
    )
    assert code == 1, said
    assert "the end of" in said
    assert holds(store, wanted) == []
    assert not any(wanted in path.name for path in store.rglob("*"))
    (home / "kept").unlink()
    code, said = _agentloom("replay", "last", home=empty, store=store)
    assert code == 0, said
    assert "IDENTICAL" in said
    assert wanted not in said
    for command in SHOWING:
        main([*command, "--store", str(store)])
        shown = capsys.readouterr()
        said = shown.out + shown.err
        assert said, command
        assert wanted not in said, command
        assert not any(wanted.encode() in data for data in unfolded(said.encode(), 1)), command


def test_errors_of_the_commands_themselves_name_no_secret(tmp_path: Path) -> None:
    secret = make("openai", random.Random(SEED))
    home = tmp_path / "home"
    home.mkdir()
    broken = home / "broken.py"
    broken.write_text(f'KEY = "{secret}"\ndef f(:\n')
    for arguments in (("run", str(broken)), ("check", str(broken)), ("show", "none"), ("scan", "none.loom")):
        code, said = _agentloom(*arguments, home=home, store=tmp_path / "store", OPENAI_API_KEY=secret)
        assert code != 0
        assert secret not in said, arguments
    assert holds(tmp_path, secret) == ["home/broken.py"]
