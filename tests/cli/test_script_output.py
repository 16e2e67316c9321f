"""The standard streams of a script look like those that Python gives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.scripts import Scripts, clean


def test_the_streams_have_the_names_and_modes_that_pythons_own_have(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    text = """
        import sys
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            buffer = stream.buffer
            print(stream.name, stream.mode, buffer.name, buffer.mode, buffer.raw.name)
        sys.stdout.flush()
        sys.stdout.buffer.raw.write(b"written below\\n")
        """
    done = scripts.run(text)
    bare = subprocess.run(
        [sys.executable, "agent.py"],
        cwd=scripts.folder, input="", capture_output=True, text=True, check=True,
        env=clean() | {"PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    assert done.out == bare.stdout, done.all
    again = scripts.replay()
    assert again.code == 0, again.all
