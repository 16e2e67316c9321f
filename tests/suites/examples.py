"""Run public example agents under ``agentloom run``, replay them, and print a table.

    python -m tests.suites.examples [--bare] [WORDS OF A NAME ...]

The examples are files of source distributions and blocks of the pages that packages are published with, as they are
(`public`). A scripted model answers on loopback; they are sent there by environment variables alone. The replay runs in
a process of its own, under another hash seed, with the server stopped. Exit code 1 when one replays otherwise than
`EXPECTED` says.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentloom.testing import FakeProvider
from tests.suites.public import EXAMPLES, OVERLAYS, Example
from tests.suites.scripted import reply
from tests.suites.sources import NotHere, blocks, cache, installed, overlay, source

LIMIT_S = 120
PORT = 8000  # what the examples of MCP say themselves
_BARE = "the example itself fails here, without agentloom too"


@dataclass(frozen=True)
class Outcome:
    """What came of one example. ``verdict``: of the replay; empty when it was not recorded."""

    example: Example
    version: str
    recorded: str
    calls: int
    verdict: str
    why: str


def _clean() -> dict[str, str]:
    drop = ("AGENTLOOM", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "PYTHON", "COV_")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


def _environment(provider: FakeProvider, paths: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
    return {
        **_clean(),
        **provider.env(),
        "OPENAI_API_BASE": provider.openai_url,
        "ANTHROPIC_API_URL": provider.anthropic_url,
        "GOOGLE_API_KEY": "unused",
        "GOOGLE_GEMINI_BASE_URL": provider.google_url,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "EXAMPLES_INTERACTIVE_MODE": "auto",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONPATH": os.pathsep.join(paths),
        **more,
    }


def place(example: Example, folder: Path, *, download: bool = True) -> tuple[Path, list[str], str]:
    """The file to run, the folders that it imports from, and the version of its package."""
    over = None
    if example.overlay:
        packages, deep = OVERLAYS[example.overlay]
        over = overlay(example.overlay, packages, download=download, deep=deep)
    paths = [str(over)] if over else []
    if example.file is None:
        parts: list[str] = []
        every = blocks(example.package, over)
        for words in example.page:
            found = next((one for one in every if words in one), None)
            if found is None:
                raise NotHere(f"the page of {example.package} has no block with {words!r}")
            parts.append(found)
        path = folder / "example.py"
        path.write_text("\n".join(parts), encoding="utf-8")
        return path, paths, _version(example.package, over)
    version = example.version or installed(example.package) or ""
    root = source(example.package, version, download=download)
    path = root / example.file
    if not path.exists():
        raise NotHere(f"{example.package} {version} has no {example.file}")
    return path, [*paths, str(root)], version


def _version(package: str, over: Path | None) -> str:
    from importlib import metadata

    found = metadata.distributions(name=package, path=[str(over)]) if over else ()
    return next((one.version for one in found), None) or metadata.version(package)


@contextmanager
def _served(example: Example, root: Path, env: Mapping[str, str]) -> Iterator[None]:
    """The server that an example of MCP speaks to, on the port that it names."""
    if not example.serve:
        yield
        return
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", PORT)) == 0:
            raise NotHere(f"something else listens on port {PORT}")
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['mcp'].run('streamable-http')"
    command = [sys.executable, "-c", code, str(root / example.serve[0])]
    with subprocess.Popen(
        command, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _listening(server)
            yield
        finally:
            server.terminate()
            server.wait(10)


def _listening(server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                return
        time.sleep(0.05)
    raise NotHere("the server of the example does not come up")


def _call(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], given: str
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=dict(env),
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end within {LIMIT_S} s")


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-- ")]
    return lines[-1][:160] if lines else ""


def one(example: Example, folder: Path, *, bare: bool = False, download: bool = True) -> Outcome:
    """Record and replay an example in an empty folder. `NotHere` when it cannot be had."""
    path, paths, version = place(example, folder, download=download)
    root = Path(paths[-1]) if paths else folder
    loom = [sys.executable, "-m", "agentloom", "--store", str(folder / "store")]
    work = folder / "work"
    work.mkdir()
    with FakeProvider(reply, others=True) as provider:
        env = _environment(provider, paths, example.env)
        command = [*loom, "run", *example.options, str(path), "--", *example.arguments]
        with _served(example, root, env):
            done = _call(command, work, env, example.given)
    plain = _bare(example, path, paths, work) if bare or done.returncode else None
    if plain is not None and plain.returncode:
        return Outcome(example, version, f"exit {done.returncode}", 0, "", f"{_BARE}: {_last(plain.stderr)}")
    if done.returncode:
        return Outcome(example, version, f"exit {done.returncode}", 0, "", _last(done.stderr))
    if bare and plain is not None and plain.stdout != done.stdout:
        second = _bare(example, path, paths, work)
        if second.stdout == plain.stdout:  # otherwise it prints times, or ids, that are others each time
            why = _differs(plain.stdout, done.stdout)
            return Outcome(example, version, "prints otherwise than bare", 0, "", why)
    again = _call([*loom, "replay", "last", "--json"], work, env | {"PYTHONHASHSEED": "77"}, example.given)
    return _judged(example, version, done, again)


def _bare(example: Example, path: Path, paths: Sequence[str], work: Path) -> subprocess.CompletedProcess[str]:
    with FakeProvider(reply, others=True) as provider:
        env = _environment(provider, paths, example.env)
        with _served(example, Path(paths[-1]) if paths else work, env):
            return _call([sys.executable, str(path), *example.arguments], work, env, example.given)


def _differs(before: str, now: str) -> str:
    for old, new in zip(before.splitlines(), now.splitlines(), strict=False):
        if old != new:
            return f"{old[:70]!r}, recorded {new[:70]!r}"
    return "more lines in one than in the other"


def _judged(
    example: Example,
    version: str,
    done: subprocess.CompletedProcess[str],
    again: subprocess.CompletedProcess[str],
) -> Outcome:
    told = "; ".join(
        line.strip() for line in done.stderr.splitlines() if line.startswith("     ") and line.strip()
    )
    start = again.stdout.find("{\n") if "{\n" in again.stdout else again.stdout.find("{")
    try:
        report = json.loads(again.stdout[start:]) if start >= 0 else {}
    except json.JSONDecodeError:
        report = {}
    verdict = str(report.get("verdict") or f"exit {again.returncode}")
    calls = int((report.get("counts") or {}).get("calls") or 0)
    if verdict.startswith("identical"):
        return Outcome(example, version, "as bare", calls, verdict, told)
    at = report.get("call") or {}
    parts = [report.get("class"), report.get("reason"), "at", at.get("kind"), at.get("name"), at.get("src")]
    why = " ".join(str(part) for part in parts if part)
    return Outcome(example, version, "as bare", calls, verdict, f"{why}; {told or _last(again.stderr)}")


def table(rows: Sequence[Outcome]) -> str:
    """Markdown."""
    heads = ("framework", "example", "version", "calls", "replay", "why, what is not recorded")
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    for row in rows:
        replay = row.verdict or row.recorded
        why = row.why.replace("|", "/").replace(str(cache()), "...")
        cells = (row.example.framework, row.example.name, row.version, str(row.calls), replay, why)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines).replace("\\n", " ")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only examples whose names hold one of these")
    parser.add_argument(
        "--bare", action="store_true", help="run each without agentloom first, and compare what it prints"
    )
    given = parser.parse_args(arguments)
    rows: list[Outcome] = []
    for example in EXAMPLES:
        if given.words and not any(word in f"{example.framework} {example.name}" for word in given.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = one(example, Path(folder), bare=given.bare)
            except NotHere as reason:
                row = Outcome(example, example.version or "", "not here", 0, "", str(reason))
        rows.append(row)
        print(f"{row.verdict or row.recorded:<12} {example.name}: {row.why}"[:300], flush=True)
    print("\n" + table(rows))
    same = sum(row.verdict.startswith("identical") for row in rows)
    print(f"\n{same} of {len(rows)} replay identically")
    return 0 if same >= len(rows) // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
