"""What reads traces, each as one function of the path of a file. An error that says what is wrong is a good answer."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentloom.cli.main import main
from agentloom.errors import LoomError, PayloadMissing
from agentloom.format.fields import references
from agentloom.format.journal import Journal, check
from agentloom.format.values import decode
from agentloom.replay.recording import Recording
from agentloom.store import LocalStore, read_file

__all__ = ["VICTIMS"]

_ROOT = Path(__file__).resolve().parents[2]
_CODES = frozenset((0, 1, 2, 3, 5))


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def parse(path: str) -> str:
    """Every line, every payload that an entry names, as plain data; what is damaged as far as it is sound."""
    data = _bytes(path)
    said = "whole"
    try:
        Journal.parse(data)
    except LoomError as error:
        said = error.fields["code"]
    try:
        journal = Journal.parse(data, strict=False)
    except LoomError as error:
        return str(error.fields["code"])
    for blob in dict.fromkeys(name for entry in journal.entries for name in references(entry)):
        try:
            decode(journal.tree(blob), None)
        except LoomError as error:
            said = f"{said} {type(error).__name__}"
            if not isinstance(error, PayloadMissing) and "code" not in error.fields:
                raise
    return said[:200]


def verdicts(path: str) -> str:
    """The three verdicts."""
    return str(check(_bytes(path)).code)


def recording(path: str) -> str:
    """What a replay reads before it runs anything, and every payload that it could be asked for."""
    try:
        found = Recording.from_journal(Journal.parse(_bytes(path)))
        found.replayable()
        found.payload("input")
        found.code_facts()
    except LoomError as error:
        return type(error).__name__
    said = ""
    for step in found.steps:
        call = step.call
        try:
            if step.kind == "request" and call is not None:
                found.request(call)
                decode(found.outcome(call), None)
            elif step.kind == "chunk":
                found.chunk(step)
        except LoomError as error:
            said = type(error).__name__
    return said


def store(path: str) -> str:
    """An import into a store, which lists and finds it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        kept = LocalStore(folder)
        try:
            run = kept.add(read_file(path))
        except LoomError as error:
            return type(error).__name__
        kept.runs()
        kept.resolve(run)
        return "kept"


def own_checker(path: str) -> str:
    """The checker that ships beside the product."""
    spec = importlib.util.spec_from_file_location("loom_verify", _ROOT / "spec" / "verify.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.check(_bytes(path))["message"])[:60]


class _Sink(io.StringIO):
    """Keeps the first of what is written, and refuses an endless amount."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def write(self, text: str) -> int:
        self.size += len(text)
        assert self.size < 50_000_000, "endless output"
        assert not any(char in text for char in "\x1b\x07\u202e"), (
            f"control characters reach the terminal: {text[:80]!r}"
        )
        return super().write(text) if self.size < 100_000 else len(text)


def _command(*args: str) -> str:
    out, err = _Sink(), _Sink()
    os.environ["NO_COLOR"] = "1"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(args))
    said = err.getvalue()
    assert code in _CODES, f"exit code {code}: {said[-500:]}"
    assert "a defect of agentloom" not in said, said[-3000:]
    return f"{code} {said[-60:]!r}"


def show(path: str) -> str:
    return _command("show", path)


def show_call(path: str) -> str:
    return _command("show", path, "1")


def show_json(path: str) -> str:
    return _command("--json", "show", path)


def diff(path: str) -> str:
    return _command("diff", path, str(_ROOT / "tests" / "golden" / "v1" / "replay-sync.loom"))


def diff_itself(path: str) -> str:
    """Against the same file, cut a little."""
    other = path + ".other"
    data = _bytes(path)
    with open(other, "wb") as file:
        file.write(data[: data.rfind(b"\n", 0, len(data) - 1) + 1])
    return _command("diff", path, other)


def verify(path: str) -> str:
    return _command("verify", path)


def ls(path: str) -> str:
    """A store into which somebody put the file."""
    folder = path + ".store"
    LocalStore(folder)
    runs = os.path.join(folder, "runs")
    os.makedirs(runs, exist_ok=True)
    name = os.path.join(runs, "01hf7yat00260syt5szda5kqfb.loom")
    if not os.path.exists(name):
        os.link(path, name)
    said = _command("--store", folder, "ls")
    _command("--store", folder, "ls", "--text", "nothing like it", "--tool", "lookup")
    return said


def replay(path: str) -> str:
    """A replay up to the point where the agent would be loaded: there is none."""
    return _command("replay", path)


VICTIMS: dict[str, Callable[[str], str]] = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and not name.startswith("_") and getattr(made, "__module__", "") == __name__
}
"""Name -> function of a path; returns a few words, raises when something else than a clear error came out."""


if __name__ == "__main__":
    print(VICTIMS[sys.argv[1]](sys.argv[2]))
