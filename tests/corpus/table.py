"""The table of the corpus: every recorded exchange through `model`, or the reason why it does not apply.

``python -m tests.corpus.table [--json] [--all] [--part I/N]``

For each exchange of an API that `model` speaks: its request is said as a `model` call inside a recorded run, a player
gives the recorded answer, and the run is replayed offline. Four runs: to the end; a stream left after its first event;
the connection cut in the middle; and the end is compared with the answer read apart (``tests.corpus.oracle``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from agentloom import agent, model
from agentloom.errors import ModelError
from agentloom.format.values import encode
from agentloom.replay.fields import compare
from agentloom.store import MemoryStore
from agentloom.testing import Exchange, Faults, Player
from tests.corpus import oracle
from tests.corpus.files import api_of, exchanges, unreadable
from tests.corpus.rebuild import Call, Unsaid, call_of, normal

LIMIT = 30.0
"""Seconds that one exchange may take in all its runs."""
# A stream asks for its token counts, and a deployment of Azure is named in the body too (docs/models.md).
ADDED = {"stream_options", "model"}
BY_ADDRESS = {"generateContent", "converse", "invoke"}
"""Without its address a request of these cannot be said again: somebody else asks, and only the answer counts."""


@dataclass
class Line:
    """What came of one exchange. ``applies``: "" or why not. The rest: "ok", or in words what is wrong; "-": not tried.

    ``arrives``: "exact", "same" (another way to say it), "added ..." or "differs ...".
    """

    name: str
    api: str
    streamed: bool
    status: int
    applies: str = ""
    arrives: str = "-"
    reads: str = "-"
    replays: str = "-"
    leaves: str = "-"
    cut: str = "-"
    seconds: float = field(default=0.0, compare=False)


_saw: list[dict[str, Any]] = []
"""What the program had, run by run. The output in a trace may differ: a `password` in an answer is hidden there."""


@agent(name="asks")
async def asks(name: str, messages: Any, params: dict[str, Any], how: str) -> dict[str, Any]:
    """One model call; what came of it, or how it failed."""
    _saw.append(result := await _asked(name, messages, params, how))
    return result


async def _asked(name: str, messages: Any, params: dict[str, Any], how: str) -> dict[str, Any]:
    try:
        if how == "whole":
            answer = await model(name, messages, **params)
            return {"answer": dict(answer.raw)}
        stream = await model(name, messages, stream=True, **params)
        seen = 0
        async with stream:
            async for _ in stream.aevents():
                seen += 1
                if how == "leave" and seen == 2:
                    return {"left": dict(stream.partial.raw)}
        return {"answer": dict(stream.answer.raw), "events": seen}
    except ModelError as error:
        return {"error": error.kind, "status": error.status, "message": error.message}


def examine(one: Exchange) -> Line:
    """All runs of one exchange, within the time limit."""
    line = Line(one.name, api_of(one), one.streamed, one.status)
    start = time.monotonic()
    try:
        call = call_of(one, line.api)
    except Unsaid as unsaid:
        line.applies = str(unsaid)
        return line
    worker = threading.Thread(target=_examined, args=[one, call, line], daemon=True)
    worker.start()
    worker.join(LIMIT)
    if worker.is_alive():
        line.replays = f"no end after {LIMIT:g} s"
    line.seconds = time.monotonic() - start
    return line


def _examined(one: Exchange, call: Call, line: Line) -> None:
    streamed = _asks_stream(one)
    try:
        with Player(one, compare="path", repeat=True) as player, _sent_to(player, call) as params:
            output, line.replays = _recorded(player, call, params, "stream" if streamed else "whole")
            line.arrives = _arrived(one, player, line.api)
            line.reads = _read(one, line.api, output)
            if streamed and one.status < 300:
                left, replays = _recorded(player, call, params, "leave")
                line.leaves = replays if "left" in left or left == output else f"gave {_told(left)}"
            if len(one.body) > 1:
                player.faults = Faults(cut=len(one.body) // 2)
                cut, replays = _recorded(player, call, params, "stream" if streamed else "whole")
                line.cut = replays if _fits_a_cut(cut, output) else f"gave {_told(cut)}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what the table shows
        line.replays = f"crash: {type(error).__name__}: {str(error)[:200]}"


def _asks_stream(one: Exchange) -> bool:
    asked = one.request()
    if isinstance(asked, dict) and "stream" in asked:
        return bool(asked["stream"])
    return one.streamed or bool(re.search(r"(:streamGenerateContent|-stream)$", one.path or ""))


@contextmanager
def _sent_to(player: Player, call: Call) -> Iterator[dict[str, Any]]:
    """The parameters that send the call to the player, and the environment in which they do."""
    url = player.base_url(call.tail)
    if not call.environ:
        yield call.params | {"base_url": url}
        return
    before = {name: os.environ.get(name) for name in call.environ}
    os.environ.update({name: value.format(url=url) for name, value in call.environ.items()})
    try:
        yield dict(call.params)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _recorded(player: Player, call: Call, params: dict[str, Any], how: str) -> tuple[dict[str, Any], str]:
    """What the program had in a run, and whether the replay is identical without a single request."""
    _saw.clear()
    trace = asks.run(call.name, call.messages, params, how, store=MemoryStore())
    saw, asked = _saw[0], len(player.seen)
    report = trace.replay(check=False)
    if len(player.seen) != asked:
        return saw, "the replay sent a request"
    return saw, "ok" if report.verdict == "identical" else f"{report.verdict}: {str(report)[:200]}"


def _arrived(one: Exchange, player: Player, api: str) -> str:
    if not player.seen:
        return "differs: nothing was sent"
    if one.request_body is None or (not one.url and api in BY_ADDRESS):
        return "-"
    sent, recorded = player.seen[0].json(), one.request()
    if "/deployments/" in (one.path or ""):  # Azure goes by the deployment in the address
        for body in (sent, recorded):
            body.pop("model", None)
    if sent == recorded:
        return "exact"
    sent, recorded = normal(sent, api), normal(recorded, api)
    found = compare(encode(recorded), encode(sent), limit=4)
    if not found.total:
        return "same"
    added = {item.path.partition(".")[0] for item in found.items if item.kind == "added"}
    if added <= ADDED and all(item.kind == "added" for item in found.items):
        return f"added {', '.join(sorted(added))}"
    return "differs " + "; ".join(f"{item.kind} {item.path}" for item in found.items)


def _read(one: Exchange, api: str, output: Mapping[str, Any]) -> str:
    if one.status >= 400:
        fits = "error" in output and output["status"] == one.status
        return "ok" if fits else f"status {one.status} gave {_told(output)}"
    try:
        said = oracle.read(one, api)
    except (ValueError, KeyError, TypeError):
        return (
            "ok" if output.get("error") == "malformed" else f"bytes that are no answer gave {_told(output)}"
        )
    if said.failed or not _is_answer(one, said):
        return "ok" if "error" in output else f"a failure in the answer gave {_told(output)}"
    answer = output.get("answer")
    if answer is None:
        return f"gave {_told(output)}"
    calls = [
        (call["function"]["name"], _parsed(call["function"].get("arguments") or ""))
        for call in _functions(answer)
    ]
    if (answer["content"] or "") != said.text:
        return f"text {answer['content']!r:.60} is not {said.text!r:.60}"
    if calls != said.calls:
        return f"calls {calls!r:.80} are not {said.calls!r:.80}"
    return "ok" if said.model in (None, answer["model"]) else f"model {answer['model']} is not {said.model}"


def _is_answer(one: Exchange, said: oracle.Said) -> bool:
    return bool(said.text or said.calls or said.finished or said.model)


def _functions(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [call for call in answer["tool_calls"] if "function" in call]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _fits_a_cut(cut: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Half of an answer is an error. What had ended, or failed, before the cut may be the same."""
    return "error" in cut or cut == whole


def _told(output: Mapping[str, Any]) -> str:
    return str(output.get("message") or output)[:160]


COLUMNS = (
    "exchanges",
    "apply",
    "exact",
    "same",
    "added",
    "no request",
    "read",
    "replayed",
    "left early",
    "cut",
)


def totals(lines: list[Line]) -> dict[str, dict[str, int]]:
    """Counts by API, and of all; those that do not apply count as exchanges alone."""
    made: dict[str, dict[str, int]] = {}
    for line in lines:
        for key in (line.api, "all"):
            row = made.setdefault(key, dict.fromkeys([*COLUMNS, "tried to leave", "tried to cut"], 0))
            row["exchanges"] += 1
            if line.applies:
                continue
            word = line.arrives.split(" ")[0]
            for column, counts in {
                "apply": True,
                "exact": word == "exact",
                "same": word == "same",
                "added": word == "added",
                "no request": word == "-",
                "read": line.reads == "ok",
                "replayed": line.replays == "ok",
                "left early": line.leaves == "ok",
                "cut": line.cut == "ok",
                "tried to leave": line.leaves != "-",
                "tried to cut": line.cut != "-",
            }.items():
                row[column] += counts
    return made


def wrong(line: Line) -> list[str]:
    """What is wrong with an exchange that applies; empty when nothing is."""
    if line.applies:
        return []
    found = [
        f"{what}: {said}"
        for what, said in asdict(line).items()
        if what in ("reads", "replays") and said != "ok"
    ]
    found += [
        f"{what}: {said}"
        for what, said in asdict(line).items()
        if what in ("leaves", "cut") and said not in ("ok", "-")
    ]
    return found + ([f"arrives: {line.arrives}"] if line.arrives.startswith("differs") else [])


def run(part: int = 0, parts: int = 1) -> list[Line]:
    """The lines of the exchanges whose number, counted within their API, falls into ``part`` of ``parts``."""
    numbers: Counter[str] = Counter()
    lines: list[Line] = []
    for _, one in exchanges():
        api = api_of(one)
        numbers[api] += 1
        if numbers[api] % parts == part:
            lines.append(examine(one))
    return lines


def show(lines: list[Line], *, every: bool) -> Iterator[str]:
    """The table as lines of text."""
    rows = totals(lines)
    order = sorted(
        (key for key in rows if key != "all"),
        key=lambda key: (not rows[key]["apply"], -rows[key]["exchanges"]),
    )
    yield f"{'API':18}" + "".join(f"{column:>12}" for column in COLUMNS)
    for key in [*order, "all"]:
        row = rows[key]
        cells = {column: str(row[column]) for column in COLUMNS}
        cells["left early"] += f"/{row['tried to leave']}"
        cells["cut"] += f"/{row['tried to cut']}"
        yield f"{key:18}" + "".join(f"{cells[column]:>12}" for column in COLUMNS)
    yield ""
    yield "does not apply:"
    for reason, count in Counter(line.applies for line in lines if line.applies).most_common():
        yield f"  {count:4} {reason}"
    bad = [line for line in lines if wrong(line)]
    yield f"wrong: {len(bad)} of {rows['all']['apply']}"
    for line in lines if every else bad:
        said = "; ".join(wrong(line)) or line.applies or f"{line.arrives}, {line.seconds:.1f} s"
        yield f"  {line.api} {line.name}: {said}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.table")
    parser.add_argument("--json", action="store_true", help="lines and totals as JSON")
    parser.add_argument("--all", action="store_true", help="every exchange, not only those that are wrong")
    parser.add_argument(
        "--part", default="0/1", metavar="I/N", help="every N-th exchange of each API, from the I-th"
    )
    options = parser.parse_args(arguments)
    part, parts = map(int, options.part.split("/"))
    lines = run(part, parts)
    if not lines:
        print("no exchange: is the folder of recorded traffic there?", file=sys.stderr)
        return 2
    bad = [f"{row.file}: {why}" for row, why in unreadable()]
    if options.json:
        told = {"lines": [asdict(line) for line in lines], "totals": totals(lines), "unreadable": bad}
        print(json.dumps(told, indent=1))
    else:
        print("\n".join([*show(lines, every=options.all), *(f"cannot be read: {said}" for said in bad)]))
    return 1 if bad or any(map(wrong, lines)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
