"""Replay: run an agent again from the top, every host call answered from the trace, and report what was found."""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson

from agentloom.errors import Diverged
from agentloom.format.journal import Journal
from agentloom.format.placeholders import PLACEHOLDER, START, numbers_in, placeholder
from agentloom.format.values import Tree, decode, encode
from agentloom.replay.cause import Cause, CodeFacts, drift, find_cause, parse_src
from agentloom.replay.code import ModuleSource, code_changes
from agentloom.replay.derived import derivation, of_unkept
from agentloom.replay.fields import Comparison
from agentloom.replay.given import UNKNOWN_INPUT, by_input, input_notes, unknown_input
from agentloom.replay.leaks import ALL_LEAKS, Leak, past_the_guard
from agentloom.replay.recording import RecordedCall, Recording, facts_of
from agentloom.replay.refusal import Refusing, environment_finding
from agentloom.replay.report import CallRef, Finding, Report, Verdict
from agentloom.replay.search import earlier_holder, holds_placeholder
from agentloom.replay.source import ReplaySource
from agentloom.replay.stock import ReplayInPlace
from agentloom.replay.summaries import recorded_ref
from agentloom.runtime.agents import AgentFunction, execute_blocking
from agentloom.runtime.caches import warm_caches
from agentloom.runtime.collecting import watch_collector
from agentloom.runtime.engine import Engine
from agentloom.runtime.guard_start import guard_for_replay
from agentloom.runtime.guard_wraps import guard_process
from agentloom.runtime.identity import code_identity, environment
from agentloom.runtime.ledger import NoLedger
from agentloom.runtime.outputs_kept import NOT_KEPT
from agentloom.runtime.places import Places
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_rules import in_effect, rules_of_record
from agentloom.runtime.redaction_secrets import Secret
from agentloom.runtime.registry import TYPES
from agentloom.runtime.seams import stand_by
from agentloom.runtime.session import Session
from agentloom.runtime.stock import StockCalls
from agentloom.runtime.tool_use import tools_of_record

__all__ = ["as_kept", "conclude", "current_facts", "replay", "run_agent", "session_for", "watch_over"]

_QUIET = frozenset(("now", "random", "uuid", "env", "sleep", "state"))
_COMPARED = ("request", "state", "value", "child")
_LAST_MARKS = 250  # of which at most 201 say what was not recorded
_SECRET_CHARS = 20_000  # of a source, that one placeholder stands for
_NO_NONCE = bytes(32)
"""Keys made under it are never compared: the recorded nonce was erased, and requests are compared instead."""


def replay(
    journal: Journal,
    agent: AgentFunction,
    *,
    refuse: bool = True,
    given: Mapping[str, object] | None = None,
    until: int | None = None,
) -> Report:
    """Replay a trace with ``agent`` in this process. Nothing is performed; ``refuse`` False leaves effects of plain
    code to the caller's own guard. ``given`` (``args``, ``kwargs``) is used in the place of the recorded input, and
    compared with it. ``until``: the number of the last call to replay; default: all are.

    Raises ``PayloadMissing`` (an erased payload is needed; names call and payload), ``NotSupported`` and
    ``FormatError`` (the trace holds what this version cannot replay); a divergence is not raised but reported.
    """
    recording = Recording.from_journal(journal)
    recording.replayable()
    facts = current_facts(agent, recording)
    source = ReplaySource(recording)
    source.until = until
    session = session_for(recording, source, agent.root)
    now = encode(given, TYPES) if given is not None else recording.payload("input")
    if session.engine.redactor is not None:
        session.engine.redactor.add(agent.secrets)  # what is secret in the input is written as it was
    differs = None if given is None else source.input_differs(now)
    given = decode(now, TYPES)
    notes = tuple(warm_caches(facts.modules))
    began = time.perf_counter()
    if refuse:
        refusing = Refusing(source)
        watch_over(session, refusing)
    run_agent(session, source, agent, cast("dict[str, Tree]", given))
    return conclude(source, facts, seconds=time.perf_counter() - began, notes=notes, differs=differs)


def watch_over(session: Session, refusing: Refusing) -> None:
    """Have effects of the session's run refused."""
    guard_process()
    refusing.session = session
    session.effects = refusing


def session_for(recording: Recording, source: ReplaySource, root: str, *, goes_on: bool = False) -> Session:
    """A session that replays ``recording``; ``root`` is the folder that places in the code are relative to.
    ``goes_on``: it is to go on behind the recording."""
    stand_by()
    watch_collector()
    nonce = recording.nonce if recording.nonce is not None else _NO_NONCE
    policy = recording.payload("policy")
    redactor = Redactor(rules_of_record(policy), recording.secrets())
    engine = Engine(NoLedger(), source, nonce=nonce, types=TYPES, places=Places(root), redactor=redactor)
    source.redactor, source.redact = redactor, weakref.WeakMethod(engine.redact)

    def unknown(what: str, where: str) -> BaseException:
        failure = source.refuse(environment_finding(what, where))
        if engine.failure is None:
            engine.failure = failure
        return failure

    guard = guard_for_replay(
        policy,
        recording.start.get("clock"),
        lambda: recording.payload("env"),
        recording.variables,
        unknown,
        goes_on=goes_on,
    )
    session = Session(
        engine, source, run_id=recording.run, agent=recording.agent, seed=recording.seed, guard=guard
    )
    facts = policy if isinstance(policy, dict) else {}
    session.adopts = guard.virtual and facts.get("threads") == "adopted"
    session.yields = session.adopts and facts.get("yields") == "sleep"
    session.passes = facts.get("sockets") == "passed"
    session.tools = tools_of_record(policy)
    if _runs_in_place(recording):
        session.stock = StockCalls(ReplayInPlace(source))
    return session


def _runs_in_place(recording: Recording) -> bool:
    """Whether the run had no loop of its own: a block of code, a plain function where it stood."""
    code = recording.payload("code")
    entry = code.get("entry") if isinstance(code, dict) else None
    return isinstance(entry, dict) and (entry.get("stock") is True or entry.get("kind") == "block")


def run_agent(
    session: Session, source: ReplaySource, agent: AgentFunction, given: Mapping[str, Tree]
) -> None:
    """Run the agent with its recorded input under a replaying session. What was found is in ``source`` afterwards.

    Raises what ``source`` cannot serve (``PayloadMissing``), and what the agent raised where no verdict explains it.
    """
    args = tuple(cast("list[object]", given["args"]))
    kwargs = cast("dict[str, object]", given["kwargs"])
    try:
        execute_blocking(session, agent, args, kwargs)
    except BaseException as error:
        judged = source.complete or source.finding is not None or source.unusable is not None
        if isinstance(error, KeyboardInterrupt | SystemExit) and not source.complete:
            raise
        if not judged:  # neither the agent's own recorded failure nor a verdict: a fault that must be seen
            raise
    finally:
        session.release()
    if source.unusable is not None:
        raise source.unusable


def conclude(
    source: ReplaySource,
    facts: CodeFacts,
    *,
    compared: tuple[str, ...] = ("output",),
    seconds: float | None = None,
    notes: tuple[str, ...] = (),
    name: str | None = None,
    differs: Comparison | None = None,
) -> Report:
    """The report of a replay that has ended: verdict, cause, the calls before, what to do next.

    ``facts`` describe the code that ran now, taken before it ran; ``compared`` names what was compared besides calls.
    ``name`` is what commands call the run (a file, an id); default: the end of its id, which commands take for it.
    ``differs``: how its input differs from the recorded one.
    Raises ``Diverged`` where the source neither completed nor found anything: the agent never ended.
    """
    recording, finding = source.recording, source.finding
    notes = (*notes, *source.remarks, *_gap_notes(recording))
    unkept = _output_not_kept(recording)
    if unkept is not None:
        notes = (*notes, f"the output is not in the trace, so it was not compared ({unkept})")
        compared = tuple(name for name in compared if name != "output")
    if finding is None:
        if not source.complete:
            raise Diverged("the replay stopped before the agent ended")
        verdict: Verdict = "identical except noted" if source.noted else "identical"
        if source.until is not None and source.position < len(recording.steps):
            compared = tuple(name for name in compared if name != "output")
            notes = (
                *notes,
                f"up to call {source.until} of {len(recording.calls)}: the rest was not replayed",
            )
        if source.waits:
            compared = tuple(name for name in compared if name != "output")
            notes = (*notes, _waits(recording))
        notes = (*notes, *input_notes(differs), *_harmless(recording, facts))
        return Report(
            recording.run, recording.agent, verdict, source.counts,
            noted=tuple(source.noted), compared=compared, seconds=seconds, notes=notes, guard=recording.guard,
        )  # fmt: skip
    cause = _cause(source, finding, facts)
    finding = _classified(finding, cause, recording.secrets(), source.lacks)
    if source.lacks and finding.cls == "redacted" and cause is not None and cause.kind != "code":
        cause = None  # what the value looks like says nothing of one that was not given
    unknown = unknown_input(recording, finding)
    if unknown and finding.cls == "leak" and not (cause and cause.leak and not cause.leak.guess):
        finding = replace(finding, cls="changed")
    if differs is not None and finding.reason != "effect":
        finding, cause = by_input(finding, differs), None
    elif unknown:
        notes = (*notes, UNKNOWN_INPUT)
    if source.lacks and finding.cls != "redacted":
        notes = (*notes, f"the trace does not hold all of the request: {', '.join(source.lacks)}")
    steps = _next(recording, finding, name or recording.run[-4:])
    return Report(
        recording.run, recording.agent, "diverged", source.counts, finding, cause,
        _leading(source), tuple(source.noted), compared, seconds, steps, notes, recording.guard,
    )  # fmt: skip


# -- the cause ------------------------------------------------------------------------------------------------------


def current_facts(agent: AgentFunction, recording: Recording) -> CodeFacts:
    """What the code is now, for the modules that were recorded: loaded modules by name, else files by place.

    Modules that only this process has loaded are left out: loading them is seen as a changed import.
    """
    now = facts_of(cast(Tree, code_identity(agent)), cast(Tree, environment()))
    by_file = {source.file: source for source in now.modules.values()}
    modules: dict[str, ModuleSource] = {}
    for name, source in recording.code_facts().modules.items():
        found = now.modules.get(name) or by_file.get(source.file) or _read(agent.root, source.file)
        if found is not None:
            modules[name] = found
    return as_kept(recording, replace(now, modules=modules))


def as_kept(recording: Recording, now: CodeFacts) -> CodeFacts:
    """What the code is now, with its sources as they would be kept in the trace."""
    recorded = recording.code_facts().modules
    modules = {
        name: _as_kept(recorded[name], source) if name in recorded else source
        for name, source in now.modules.items()
    }
    return replace(now, modules=modules)


def _as_kept(recorded: ModuleSource, now: ModuleSource) -> ModuleSource:
    """A source as it is kept in a trace: with placeholders for the secrets in it, numbered as in the recorded one."""
    if START not in recorded.text or now.text == recorded.text:
        return now
    fixed = PLACEHOLDER.split(recorded.text)[::2]
    if _fits(now.text, fixed):
        return recorded  # equal but for what is secret, which nobody can compare
    text = Redactor(in_effect()).text(now.text)
    numbers = iter(numbers_in(recorded.text))
    return replace(now, text=PLACEHOLDER.sub(lambda match: placeholder(next(numbers, int(match[1]))), text))


def _fits(text: str, fixed: list[str]) -> bool:
    """Whether ``text`` is the parts ``fixed`` in order, with something of one line between them, or a block of keys."""
    at, end = len(fixed[0]), len(text) - len(fixed[-1])
    if len(fixed) < 2 or not (text.startswith(fixed[0]) and text.endswith(fixed[-1])):
        return False
    for part in fixed[1:-1]:
        found = text.find(part, at)
        if found < 0 or found - at > _SECRET_CHARS:
            return False
        at = found + len(part)
    return 0 <= end - at <= _SECRET_CHARS


def _read(root: str, file: str) -> ModuleSource | None:
    """A recorded module's file as it stands under ``root`` now, or None. Files outside the root are not looked for."""
    path = os.path.normpath(os.path.join(root, file))
    if not path.startswith(os.path.join(os.path.normpath(root), "")):
        return None
    try:
        with open(path, encoding="utf-8") as handle:
            return ModuleSource(handle.read(), file)
    except (OSError, UnicodeDecodeError):
        return None


def _cause(source: ReplaySource, finding: Finding, facts: CodeFacts) -> Cause | None:
    if finding.reason in ("recording ends", "effect"):
        return None
    recording = source.recording
    items = finding.comparison.items if finding.comparison else ()
    site = parse_src(finding.call.src) if finding.call else None
    if site is None and finding.call is not None:
        site = parse_src(finding.call.src_recorded)
    cause = find_cause(recording.code_facts(), facts, items, site, earlier_holder(source, items))
    if cause.leak is not None and recording.guard != "off":
        cause = replace(cause, leak=past_the_guard(cause.leak))
    noted = _way_to_note(source, finding, cause)
    if cause.leak is not None and noted:
        cause = replace(
            cause, leak=replace(cause.leak, fix=f"{cause.leak.fix}, or {noted} if it does not matter")
        )
    if finding.cls == "reordered" and cause.kind == "unknown":
        return replace(cause, kind="leak", leak=_order_leak(recording))
    return cause


def _way_to_note(source: ReplaySource, finding: Finding, cause: Cause) -> str:
    """How a user says that the field which leaks does not count; empty where it is no field of its own."""
    call, path = finding.call, cause.leak_path
    recorded = source.recording.by_id.get(call.id) if call is not None else None
    if recorded is None or not path or not _FIELD.fullmatch(path):
        return ""
    if recorded.type == "tool" and path.startswith("args."):
        return f'@tool(noted=["{path.removeprefix("args.")}"])'
    family = recorded.profile.partition("+")[0]
    return (
        f'profile("{family}", noted=["{path}"])' if recorded.type in ("model", "http") and "." in path else ""
    )


_FIELD = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*")


def _order_leak(recording: Recording) -> Leak:
    env = recording.payload("env")
    then = env.get("hash_seed", "random") if isinstance(env, dict) else "random"
    now = os.environ.get("PYTHONHASHSEED", "random")
    return Leak(
        "set order",
        f"an order taken from a set (hash seed {then} when recorded, {now} now)",
        "iteration over a set where the calls are started",
        "iterate over sorted(...); completion order is replayed and is never a divergence",
        guess=True,
    )


def _marks(tree: Tree) -> list[int]:
    """The placeholders in a value, in order."""
    return [*numbers_in(orjson.dumps(tree))] if holds_placeholder(tree) else []


def _classified(
    finding: Finding,
    cause: Cause | None,
    secrets: Mapping[int, Secret] | None = None,
    lacks: Sequence[str] = (),
) -> Finding:
    """``changed`` becomes ``redacted`` where the value comes from a placeholder, ``leak`` where code and packages are
    as they were."""
    if finding.comparison is None or not finding.comparison.items or finding.reason not in _COMPARED:
        return finding
    items = finding.comparison.items
    how = derivation(items, secrets) if secrets else None
    beside = any(_marks(item.recorded) != _marks(item.now) for item in items)
    if how is not None or (beside and finding.cls == "changed"):
        message = "A value that was redacted when recorded was sliced, measured or hashed by the code"
        return replace(finding, cls="redacted", message=f"{message}: {how}." if how else f"{message}.")
    name = of_unkept(items, lacks)
    if name is not None:
        message = f"The trace does not hold {name} of the request, and this value comes of it."
        return replace(finding, cls="redacted", message=message)
    if finding.cls != "changed":
        return finding
    if (
        lacks
        and cause is not None
        and cause.kind in ("leak", "unknown")
        and not (cause.leak and not cause.leak.guess)
    ):
        names = ", ".join(lacks)
        message = f"The trace does not hold all of the request ({names}), and this value may come of that."
        return replace(finding, cls="redacted", message=message)
    if cause is not None and cause.kind in ("leak", "unknown") and finding.reason in ("request", "state"):
        return replace(finding, cls="leak")
    return finding


# -- words ----------------------------------------------------------------------------------------------------------


def _leading(source: ReplaySource) -> tuple[CallRef, ...]:
    """The last three matched calls before the divergence, ambient values left out."""
    recording = source.recording
    steps = recording.steps[: source.position]
    calls = [cast(RecordedCall, step.call) for step in steps if step.kind == "request"]
    telling = [call for call in calls if call.type not in _QUIET] or calls
    at = source.finding.call.id if source.finding and source.finding.call else ""
    chosen = [call for call in telling if call.id != at][-3:]
    return tuple(recorded_ref(recording, call) for call in chosen)


def _next(recording: Recording, finding: Finding, run: str) -> tuple[tuple[str, str], ...]:
    call = finding.call
    if finding.reason == "effect":
        return ()
    steps: list[tuple[str, str]] = []
    if call is not None and call.id in recording.by_id:
        steps.append(
            (f"agentloom show {run} {recording.by_id[call.id].index}", "the recorded request and answer")
        )
    else:
        steps.append((f"agentloom show {run}", "the recorded calls"))
    target = _target(recording) if finding.cls == "leak" else None
    if target is not None:
        steps.insert(0, (f"agentloom check {target}", ALL_LEAKS))
    return tuple(steps)


def _target(recording: Recording) -> str | None:
    """How a command names the program of the run: ``file.py``, ``file.py:agent`` or ``module:agent``."""
    code = recording.payload("code")
    entry = code.get("entry") if isinstance(code, dict) else None
    if not isinstance(entry, dict):
        return None
    file, name, module = entry.get("file"), entry.get("qualname"), entry.get("module")
    if entry.get("kind") == "script":
        return file if isinstance(file, str) else None
    where = file if isinstance(file, str) else module
    return f"{where}:{name}" if isinstance(name, str) and "<" not in name else None


def _harmless(recording: Recording, facts: CodeFacts) -> Iterator[str]:
    """Says of an identical replay that code or packages are other ones all the same, and which tools did not run."""
    moved = [str(item) for item in drift(recording.code_facts(), facts)]
    if moved:
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        yield f"packages changed: {', '.join(moved[:3])}{more}; it makes no difference to this run"
    changes = code_changes(recording.code_facts().modules, facts.modules)
    changes = [change for change in changes if change.kind != "docstring"]
    tools = {call.name for call in recording.calls if call.type == "tool"}
    idle = [change for change in changes if change.name.rpartition(".")[2] in tools]
    for found, what in (
        (idle, "no tool runs on replay, so this is untried"),
        ([change for change in changes if change not in idle], "it makes no difference to this run"),
    ):
        titles = list(dict.fromkeys(change.title for change in found))
        if titles:
            more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
            yield f"code changed: {', '.join(titles[:3])}{more}; {what}"


def _waits(recording: Recording) -> str:
    """What a run waits for that was left waiting."""
    waiting = [f"call {call.index} ({call.type} {call.name})" for call in recording.open_asks()]
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    return f"so far: the run is suspended and waits in {', '.join(waiting[:3])}{more}"


def _output_not_kept(recording: Recording) -> str | None:
    """Why the trace does not hold the output, where it says so."""
    for mark in reversed(recording.marks[-_LAST_MARKS:]):
        blob = mark.get("val")
        if mark["kind"] == "note" and type(blob) is str and recording.journal.has(blob):
            note = recording.journal.tree(blob)
            if isinstance(note, dict) and NOT_KEPT in note:
                return str(note[NOT_KEPT])
    return None


def _gap_notes(recording: Recording) -> Iterator[str]:
    for gap in recording.gaps[:3]:
        yield f"the trace has a gap at entry {gap.get('seq')} ({gap.get('why')}): not replayable past it"
