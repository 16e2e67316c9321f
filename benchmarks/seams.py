"""What a call costs through each seam: recording and replaying, against the same calls bare.

    python -m benchmarks.seams [NAME ...] [--calls N] [--rounds N] [--slower PART] [--json]

Exit code 1 where a ratio is past its bound (``benchmarks/bounds.py``). The same program runs bare, recorded, replayed
in turns in one process; the server is a process of its own and its connections are kept, so the bare call is what an
unmodified agent pays. Ratios are of processor time, which the server's answer and other programs do not count in: the
stricter measure (elapsed time is printed beside it). A ratio is that of the least times, or the median of the rounds'
ratios where that is lower; the range is over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import importlib.util
import inspect
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks import seam_off
from benchmarks.bounds import beside, failed
from benchmarks.seam_programs import NEEDS, PROGRAMS, Program

__all__ = ["Measured", "found", "lines", "main", "measure", "rows", "server", "whole"]

_SETS = 3
_KINDS = ("bare", "record", "replay")


@dataclass(slots=True)
class Measured:
    """Seconds of one seam, one number a round for each kind of run: of the processor, and elapsed."""

    name: str
    calls: int
    slower: float = 0.0
    """A planted slowdown: so much of what recording and replaying take is taken once more."""
    processor: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in _KINDS})
    elapsed: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in _KINDS})

    def time(self, kind: str, work: Callable[[], Any]) -> Any:
        """Run ``work`` once for ``kind``; its result."""
        gc.collect()
        began, since = time.process_time(), time.perf_counter()
        result = work()
        used, taken = time.process_time() - began, time.perf_counter() - since
        if kind != "bare" and self.slower:
            used, taken = used * (1 + self.slower), taken + used * self.slower
        self.processor[kind].append(used)
        self.elapsed[kind].append(taken)
        return result

    def each(self, kind: str, seconds: dict[str, list[float]]) -> list[float]:
        """The ratio of each round."""
        return [one / bare for one, bare in zip(seconds[kind], seconds["bare"], strict=True)]

    def ratio(self, kind: str, *, elapsed: bool = False) -> float:
        """What is printed and, of processor time, bounded."""
        seconds = self.elapsed if elapsed else self.processor
        least = min(seconds[kind]) / min(seconds["bare"])
        return min(least, statistics.median(self.each(kind, seconds)))

    def line(self) -> str:
        """A row of the table."""
        bare = statistics.median(self.processor["bare"]) / self.calls * 1e6
        waited = statistics.median(self.elapsed["bare"]) / self.calls * 1e6
        cells: list[str] = []
        for kind in _KINDS[1:]:
            each = self.each(kind, self.processor)
            past = beside(f"{self.name} {kind}").partition("target")[2].strip(" )")
            cells.append(
                f"{self.ratio(kind):.2f} ({min(each):.2f} - {max(each):.2f}){f', target {past}' if past else ''}"
            )
        slower = " / ".join(f"{self.ratio(kind, elapsed=True):.2f}" for kind in _KINDS[1:])
        return f"| {self.name} | {bare:.0f} | {' | '.join(cells)} | {waited:.0f}, {slower} |"


HEAD = (
    "| seam | bare, us a call | recording | replaying | elapsed: bare, recording / replaying |\n"
    "| --- | --- | --- | --- | --- |"
)


@contextlib.contextmanager
def server() -> Generator[str]:
    """A scripted server in a process of its own; its address."""
    made = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.seams", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if made.stdout is None or made.stdin is None:
        raise RuntimeError("the server has no pipes")
    try:
        yield made.stdout.readline().strip()
    finally:
        made.stdin.close()
        made.wait()
        made.stdout.close()


def _serve() -> None:
    """Answer until standard input ends."""
    from agentloom.testing import FakeProvider, Says

    with FakeProvider(lambda _: Says("It costs forty dollars and arrives on Monday."), others=True) as fake:
        print(fake.url, flush=True)
        sys.stdin.read()


def _serve_mcp() -> None:
    """A shop over stdio."""
    from mcp.server.mcpserver import MCPServer

    shop: MCPServer[Any] = MCPServer("shop", version="1.0")

    @shop.tool()
    def total(order: int) -> int:
        """The total of an order."""
        return order // 20

    logging.disable()
    asyncio.run(shop.run_stdio_async())


def measure(
    name: str, url: str, calls: int, rounds: int, more: Measured | None = None, slower: float = 0.0
) -> Measured:
    """``rounds`` rounds of a seam, or as many more of ``more``. Ends the program where a replay does not match."""
    from agentloom import agent
    from agentloom.store import MemoryStore

    program = PROGRAMS[name]
    run, bare = _of(program, calls)
    measured = Measured(name, calls, slower) if more is None else more
    bare(url)  # imports, caches of the SDK
    for _ in range(rounds):
        measured.time("bare", functools.partial(bare, url))
        trace = measured.time("record", lambda: agent(run).run(url, store=MemoryStore()))
        report = measured.time("replay", functools.partial(trace.replay, check=False))
        if report.verdict != "identical" or len(trace.calls) < calls:
            raise SystemExit(f"{name}: not recorded, or the replay is not identical: {report}")
    return measured


def _of(program: Program, calls: int) -> tuple[Any, Callable[[str], Any]]:
    """The agent that runs ``program``, and what runs it bare."""
    if inspect.iscoroutinefunction(program):

        async def awaited(address: str) -> Any:
            await program(address, calls)

        return awaited, lambda address: asyncio.run(awaited(address))

    def called(address: str) -> Any:
        program(address, calls)

    return called, called


def found(measured: Measured) -> dict[str, float]:
    """The ratios by the names of their bounds."""
    return {f"{measured.name} {kind}": measured.ratio(kind) for kind in _KINDS[1:]}


def chosen(names: list[str]) -> list[str]:
    """The seams whose name has one of ``names`` in it (all without any), of SDKs that are installed."""
    made: list[str] = []
    for name in PROGRAMS:
        library = NEEDS.get(name.split(" ")[0], name.split(" ")[0])
        if names and not any(part in name for part in names):
            continue
        if importlib.util.find_spec(library.split(".")[0]) is None:
            print(f"{name} is not measured: {library} is not installed", file=sys.stderr)
        else:
            made.append(name)
    return made


def rows(options: argparse.Namespace) -> Iterator[Measured]:
    """What was asked for, measured one by one; what is past its bound is measured again, twice at most."""
    from agentloom.adapters import sdks

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logging.getLogger("agentloom").setLevel(logging.ERROR)  # bare calls belong to no run, and that is told
    sdks.watch()
    with server() as url:
        for name in chosen(options.names):
            one: Measured | None = None
            for _ in range(_SETS):
                one = measure(name, url, options.calls, options.rounds, one, options.slower)
                if not failed(found(one)):
                    break
            if one is not None:
                yield one


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.seams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="seams (part of a name); all without any")
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slower", type=float, default=0.0, metavar="PART", help="plant a slowdown")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mcp", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve or options.mcp:
        _serve() if options.serve else _serve_mcp()
        return 0
    ratios: dict[str, float] = {}
    seen: dict[str, Any] = {}

    def show(line: str) -> None:
        if not options.json:
            print(line, flush=True)

    show(HEAD)
    for one in rows(options):
        ratios |= found(one)
        seen[one.name] = {"calls": one.calls, "processor": one.processor, "elapsed": one.elapsed}
        show(one.line())
    if not options.names:
        with server() as url:
            off = seam_off.measure(url)
        ratios |= off
        show("\n" + "\n".join(seam_off.lines(off)))
    past = failed(ratios)
    if options.json:
        print(json.dumps({"seams": seen, "ratios": ratios, "past": past}))
    show("\npast their bounds: " + (", ".join(past) or "none"))
    return 1 if past else 0


def whole() -> dict[str, Any]:
    """All of this, measured in a process of its own: what ``--json`` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.seams", "--json"], stdout=subprocess.PIPE, check=False
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def lines(told: dict[str, Any]) -> list[str]:
    """``whole`` for a person to read."""
    made = [HEAD]
    for name, row in told["seams"].items():
        made.append(Measured(name, row["calls"], processor=row["processor"], elapsed=row["elapsed"]).line())
    off = {name: ratio for name, ratio in told["ratios"].items() if name.startswith("off ")}
    return [*made, "", *seam_off.lines(off)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
