"""The contract of an adapter: what a program sees of an SDK is the same bare, while recording, and on replay.

Write the programs of a seam as `Case`s, one for each aspect, against a `FakeProvider`, and have `prove` run them::

    def whole(url: str) -> Any:
        with openai.OpenAI(base_url=url + "/v1", api_key="unused") as client:
            return seen(client.chat.completions.create(model="m", messages=[...]))

    SEAM = Seam("openai chat", [Case("sync", whole, ["hello"]), ...], lacks={"retry": "the library retries nothing"})
    assert [prove(case).problem for case in SEAM.cases] == [""] * len(SEAM.cases)

`table` shows several seams, and `missing` says which aspects a seam neither covers nor lacks.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from agentloom.api.agent import agent
from agentloom.api.recording import record
from agentloom.api.trace import Trace
from agentloom.format.guards import is_list, is_map
from agentloom.store import MemoryStore
from agentloom.testing.fake_provider import FakeProvider
from agentloom.testing.replies import Reply

__all__ = ["ASPECTS", "Case", "Proof", "Seam", "Server", "compare_runs", "missing", "prove", "table"]

ASPECTS = ("sync", "async", "stream", "left early", "error", "retry", "cancel", "raw")
"""What a seam must keep: whole answers in both kinds of code, streams read to the end and left before it, errors of the
provider and of the network, tries again, cancellation and time limits, the raw response below the SDK's objects."""

_TRIES = 4
_QUICK = 0.5  # seconds within which a replay ends that waited for longer when recorded


@dataclass(frozen=True)
class Case:
    """A program for one aspect. ``program`` (sync or async) gets the URL of the server and returns what it saw, as
    plain data (`agentloom.testing.sdk_seen`); ``script``: replies of the server, in order.

    ``calls``: types of the host calls that are recorded, in order, where that is part of the promise. ``name`` tells
    cases of one aspect apart. ``waits``: the program waits longer than half a second when live; its replay must not.
    ``block``: a program that is not awaited is recorded in a ``with record(...)`` block, where it may run a loop."""

    aspect: str
    program: Callable[[str], Any]
    script: Sequence[Reply | str]
    calls: Sequence[str] | None = None
    name: str = ""
    waits: bool = False
    block: bool = False

    @property
    def title(self) -> str:
        """For people: the aspect, what is special, and the kind of code."""
        kind = "async" if inspect.iscoroutinefunction(self.program) else "sync"
        return " ".join(part for part in (self.aspect, self.name, f"({kind})") if part)


@dataclass(frozen=True)
class Seam:
    """The cases of one seam. ``lacks``: aspects that the SDK itself does not have, and why."""

    name: str
    cases: Sequence[Case]
    lacks: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Proof:
    """How a case came out; ``problem`` is empty when all three are equal."""

    case: Case
    problem: str


def missing(seam: Seam) -> list[str]:
    """The aspects that no case of ``seam`` covers and that it does not lack."""
    covered = {case.aspect for case in seam.cases}
    return [aspect for aspect in ASPECTS if aspect not in covered and aspect not in seam.lacks]


def prove(case: Case) -> Proof:
    """Run a case bare, record it, replay it with the server gone, and compare what was seen each time. What the program
    raises is a problem too: it should say what it saw."""
    try:
        return _prove(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result of this case, and the others go on
        return Proof(case, f"raised {type(error).__qualname__}: {error}")


def _prove(case: Case) -> Proof:
    def serve() -> FakeProvider:
        return FakeProvider(case.script, others=True)

    problem = compare_runs(case.program, serve, calls=case.calls, waits=case.waits, block=case.block)
    return Proof(case, problem)


class Server(Protocol):
    """What a program talks to: a `FakeProvider`, a `Player`, or another server that notes the requests it has seen."""

    seen: list[Any]

    @property
    def url(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


def compare_runs(
    program: Callable[[str], Any],
    serve: Callable[[], Server],
    *,
    calls: Sequence[str] | None = None,
    waits: bool = False,
    block: bool = False,
) -> str:
    """Run ``program`` bare, record it (as an agent, or in a ``block``), and replay it, each time with a new server, on
    replay with none. "" when the program saw the same each time, else in words what was different and where. Raises
    what the program raises."""
    with serve() as server:
        bare = _plain(_run(program, server.url), server.url)
        asked = len(server.seen)
    with serve() as server:
        url = server.url
        trace = _in_block(program, url) if block else agent(program).run(url, store=MemoryStore())
        sent = len(server.seen)
    problem = _difference("recording", bare, _plain(trace.output, url))
    if problem:
        return problem
    if sent != asked and not waits:  # whether a request was out before its time was up is up to the machine
        return f"recording: {sent} requests were sent, bare {asked}"
    types = [call.kind for call in trace.calls]
    if calls is not None and list(calls) != types:
        return f"recorded calls are {types}, not {list(calls)}"
    took = _QUICK
    for _ in range(_TRIES if waits else 1):  # a busy machine makes one of them slow, a wait all
        began = time.monotonic()
        report = trace.replay(call=(lambda: program(url)) if block else None, check=False)
        took = time.monotonic() - began
        if report.verdict != "identical":
            return f"replaying: {str(report)[:600]}"
        if took < _QUICK:
            return ""
    return f"replaying took {took:.1f} s: waits are virtual there" if waits else ""


def _in_block(program: Callable[[str], Any], url: str) -> Trace:
    with record("program", store=MemoryStore()) as run:
        run.output = program(url)
    return run.trace


def _run(program: Callable[[str], Any], url: str) -> Any:
    if inspect.iscoroutinefunction(program):
        return asyncio.run(program(url))
    return program(url)


def _plain(value: object, url: str) -> Any:
    """As JSON, with the address of the server out of it."""
    host = url.removeprefix("http://")
    text = json.dumps(value)
    for one in (host, host.replace(":", "%3A")):
        text = text.replace(one, "SERVER")
    return json.loads(text.replace(host.partition(":")[2], "PORT"))


def _difference(what: str, bare: Any, now: Any, path: str = "") -> str:
    parts = _parts(bare, now, path)
    if parts is not None:
        return next((one for one in (_difference(what, *part) for part in parts) if one), "")
    if type(bare) is type(now) and bare == now:
        return ""
    return f"{what}: {path.lstrip('.') or 'the value'} was {str(bare)[:300]}, is {str(now)[:300]}"


def _parts(bare: Any, now: Any, path: str) -> Iterator[tuple[Any, Any, str]] | None:
    """The parts of two values of one shape, with their paths; None where they are to be compared as they are."""
    if is_map(bare) and is_map(now):
        return ((bare[key], now[key], f"{path}.{key}") for key in bare) if bare.keys() == now.keys() else None
    if is_list(bare) and is_list(now):
        pairs = enumerate(zip(bare, now, strict=False))
        return ((*pair, f"{path}[{index}]") for index, pair in pairs) if len(bare) == len(now) else None
    return None


def table(seams: Iterable[Seam], proofs: Callable[[Case], Proof] = prove) -> Iterator[str]:
    """The table as lines of Markdown: cases equal of cases run, for each seam and aspect; then what is wrong."""
    yield "| seam | " + " | ".join(ASPECTS) + " |"
    yield "| --- |" + " --- |" * len(ASPECTS)
    bad: list[str] = []
    for seam in seams:
        cells: list[str] = []
        for aspect in ASPECTS:
            done = [proofs(case) for case in seam.cases if case.aspect == aspect]
            bad += [f"{seam.name}, {one.case.title}: {one.problem}" for one in done if one.problem]
            equal = sum(not one.problem for one in done)
            none = "n/a" if aspect in seam.lacks else "missing"
            cells.append(f"{equal}/{len(done)}" if done else none)
            if not done and aspect not in seam.lacks:
                bad.append(f"{seam.name}: {aspect} is not covered")
        yield f"| {seam.name} | " + " | ".join(cells) + " |"
    yield ""
    yield f"wrong: {len(bad)}"
    yield from (f"  {line}" for line in bad)
