"""The standard streams of a script look like those that Python gives it."""

from __future__ import annotations

from tests.cli.scripts import Scripts


def test_the_streams_have_the_names_and_modes_that_pythons_own_have(scripts: Scripts) -> None:
    text = """
        import sys
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            buffer = stream.buffer
            print(stream.name, stream.mode, buffer.name, buffer.mode, buffer.raw.name)
        sys.stdout.flush()
        sys.stdout.buffer.raw.write(b"written below\\n")
        """
    done = scripts.run(text)
    bare = scripts.bare(env={"PYTHONUNBUFFERED": ""})
    assert bare.code == 0, bare.all
    assert done.out == bare.out, done.all
    again = scripts.replay()
    assert again.code == 0, again.all
