"""``agentloom demo --script FILE``: the demo's questions put to the reader's own agent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentloom.adapters import local
from agentloom.api.trace import Trace
from agentloom.cli.render import Screen, shorten
from agentloom.cli.runs import short
from agentloom.errors import RunNotFound, TargetError
from agentloom.format.checking import check

if TYPE_CHECKING:
    from agentloom.cli.options import Settings
    from agentloom.store import Store

__all__ = ["RUNS", "try_script"]

RUNS = 3
"""How often the script is recorded."""
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_PLACES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One recording: run id, the script's exit code and output, and its replay (filled in later)."""

    run: str
    code: int
    output: str
    seconds: float


def try_script(settings: Settings, target: str, args: Sequence[str]) -> int:
    """Record ``target`` three times, replay each offline, compare two, check one. Returns the exit code: 3 when a
    replay diverged. Without a key or server of the reader's own, the local model answers; that is said."""
    if not Path(target.partition(":")[0]).is_file():
        raise TargetError(
            f"there is no file {target.partition(':')[0]}", hint="name a script.py or file.py:name"
        )
    screen, store = settings.screen(), settings.open_store()
    began = time.monotonic()
    facts: dict[str, Any] = {"target": target, "args": list(args)}
    try:
        environ, said = _environment()
        facts["answers"] = said
        _say(screen, said)
        runs = _record(settings, screen, store, [target, *(["--", *args] if args else [])], environ)
    finally:
        local.stop_shared()
    facts["runs"] = [asdict(run) for run in runs]
    outputs = len({run.output for run in runs})
    _say(screen, f"recorded {len(runs)} times: {outputs} different output{'' if outputs == 1 else 's'}")
    facts["replays"] = replayed = [_replay(settings, screen, run) for run in runs]
    facts["diff"] = _compare(screen, store, runs)
    facts["verify"] = _verify(screen, store, runs[-1].run)
    name = short(runs[-1].run, [row.run for row in store.runs()])
    facts["seconds"] = time.monotonic() - began
    facts["next"] = [f"agentloom show {name}", f"agentloom replay {name}"]
    _say(screen, f"next  agentloom show {name}")
    _say(screen, f"      change a prompt in {target.partition(':')[0]}, then: agentloom replay {name}")
    if screen.json:
        screen.data(facts)
    return 0 if all(item["code"] == 0 for item in replayed) else 3


def _environment() -> tuple[dict[str, str], str]:
    """The script's environment and a line that says who answers it."""
    environ = dict(os.environ)
    if any(environ.get(name) for name in (*_KEYS, *_PLACES)):
        return environ, "models: your own keys and servers answer (these runs may cost money)"
    if problems := local.missing():
        return environ, f"models: no key is set, and the local model is not installed ({problems[0].message})"
    place = local.endpoint("smollm2")
    environ |= {"OPENAI_BASE_URL": place.base_url, "OPENAI_API_KEY": place.api_key, "NO_PROXY": "127.0.0.1"}
    title, size = local.SMOLLM2.title, local.SMOLLM2.parameters
    return (
        environ,
        f"models: no key is set, so {title} ({size} million parameters) answers the OpenAI SDK, whatever it asks for",
    )


def _record(
    settings: Settings, screen: Screen, store: Store, words: Sequence[str], environ: Mapping[str, str]
) -> list[_Recorded]:
    runs: list[_Recorded] = []
    for _ in range(RUNS):
        before = _last(store)
        began = time.monotonic()
        done = _agentloom(settings, ["run", *words], environ)
        run = _last(store)
        if run is None or run == before:
            raise TargetError(
                f"`agentloom run {words[0]}` recorded nothing (exit code {done.returncode})",
                hint=(done.stderr.strip().splitlines() or ["run it by itself to see why"])[-1],
                stderr=done.stderr[-2000:],
            )
        runs.append(_Recorded(run, done.returncode, done.stdout, time.monotonic() - began))
        first = shorten((done.stdout.strip().splitlines() or ["(no output)"])[-1], 80)
        _say(screen, f"  {short(run)}  exit {done.returncode}  {first}")
    return runs


def _replay(settings: Settings, screen: Screen, run: _Recorded) -> dict[str, Any]:
    """Replay one recording in a process without a key."""
    environ = {name: value for name, value in os.environ.items() if name not in (*_KEYS, *_PLACES)}
    done = _agentloom(settings, ["replay", run.run], environ)
    verdict = {0: "IDENTICAL", 3: "DIVERGED"}.get(done.returncode, f"failed (exit {done.returncode})")
    style = "good" if done.returncode == 0 else "bad"
    if not screen.json:
        screen.line(f"  {short(run.run)}  replayed without key or server: ", (style, verdict))
        if done.returncode:
            for line in (done.stdout + done.stderr).splitlines()[:12]:
                screen.line("    ", line)
    return {"run": run.run, "code": done.returncode, "verdict": verdict, "said": done.stderr[-2000:]}


def _compare(screen: Screen, store: Store, runs: Sequence[_Recorded]) -> dict[str, Any] | None:
    """The difference of the first two recordings whose outputs differ; None when all are equal."""
    other = next((run for run in runs[1:] if run.output != runs[0].output), None)
    if other is None:
        return None
    compared = Trace.open(runs[0].run, store).diff(Trace.open(other.run, store))
    if not screen.json:
        screen.lines(compared.render(screen.width))
    return dict(compared.to_json())


def _verify(screen: Screen, store: Store, run: str) -> dict[str, Any]:
    """The trace against its own head, and with the lowest bit of its middle byte changed."""
    data = store.read(run)
    sound = check(data, head=check(data).head)
    middle = len(data) // 2
    broken = check(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    caught = "UNNOTICED" if broken.consistent else f"not consistent: line {broken.line}, {broken.code}"
    _say(
        screen,
        f"verify: unaltered {'yes' if sound.unaltered else 'NO'}; with byte {middle:,} changed: {caught}",
    )
    return {"original": asdict(sound), "byte": asdict(broken) | {"offset_changed": middle}}


def _agentloom(
    settings: Settings, words: Sequence[str], environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    store = ["--store", settings.store] if settings.store else []
    return subprocess.run(
        [sys.executable, "-m", "agentloom", *store, *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=dict(environ),
    )  # fmt: skip


def _last(store: Store) -> str | None:
    try:
        return store.resolve("last")
    except RunNotFound:
        return None


def _say(screen: Screen, text: str) -> None:
    if not screen.json:
        screen.line(text)
