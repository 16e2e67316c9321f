"""Recording: from an agent and its input to a session that writes a trace into a store."""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from agentloom.errors import NotSupported, ValueRefused
from agentloom.format import runids
from agentloom.format.digests import SALT_BYTES
from agentloom.format.values import Tree, decode, encode
from agentloom.runtime.agents import AgentFunction, execute, execute_blocking
from agentloom.runtime.caches import warm_caches
from agentloom.runtime.collecting import watch_collector
from agentloom.runtime.engine import Engine
from agentloom.runtime.guard import Guard, chosen_policy
from agentloom.runtime.guard_effects import tell_unrecorded, watch_run
from agentloom.runtime.guard_start import REAL_CLOCKS, begins, guard_for_recording
from agentloom.runtime.guard_wraps import guard_process
from agentloom.runtime.identity import code_identity, environment
from agentloom.runtime.interrupts import held_back
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.live import LiveSource
from agentloom.runtime.places import Places
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_rules import NO_RULES, Rules, in_effect
from agentloom.runtime.registry import TYPES
from agentloom.runtime.seams import stand_by
from agentloom.runtime.session import Session
from agentloom.runtime.tool_use import ToolEffect, ToolUse, checked_tools
from agentloom.store.base import Appender, Store, durability_of

if TYPE_CHECKING:
    from agentloom.runtime.live_waits import Answerer

__all__ = ["Recording", "RunOptions", "begin", "record_async", "record_blocking"]


_urandom = os.urandom  # in the run's own context there is another one
_POOL_BYTES = 1024  # 64 salts


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run may carry besides its input: seed, tags (name to value), the conversation that it belongs to, and the
    policy of its guard (None: the agent's), what is secret in it beside the agent's own rules, and what tools of
    frameworks do to the world, by name. ``draws``: as of ``Guard``."""

    seed: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    conversation: str | None = None
    guard: str | None = None
    secrets: Rules = NO_RULES
    tools: Mapping[str, ToolEffect] = field(default_factory=dict[str, ToolEffect])
    draws: str | None = None


class Recording:
    """A run being recorded: its session, its ledger and the open end of its file."""

    def __init__(
        self, session: Session, ledger: TraceLedger, store: Store, appender: Appender, arguments: Tree
    ) -> None:
        self.session = session
        self.ledger = ledger
        self.store = store
        self._appender = appender
        self._arguments = arguments

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.session.run_id

    def arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """The input as the agent gets it: decoded from what was written."""
        given = cast("dict[str, object]", decode(self._arguments, TYPES))
        return tuple(cast("list[object]", given["args"])), cast("dict[str, object]", given["kwargs"])

    def close(self) -> None:
        """Give up the lease. The trace stays as it is."""
        self.session.over = True
        self._appender.close()
        try:
            self.session.engine.check_lent()
        except NotSupported as changed:
            held = f"run {self.run_id} holds the requests as the agent made them, and others were sent"
            warnings.warn(f"{held}: {changed}", RuntimeWarning, stacklevel=3)
        self.session.release()
        self.ledger.release()


def begin(
    agent: AgentFunction,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    *,
    store: Store,
    options: RunOptions,
    outer: asyncio.AbstractEventLoop | None,
    code: Mapping[str, Tree] | None = None,
    resumes: bool = False,
    answerer: Answerer | None = None,
    clock: Callable[[], int] = REAL_CLOCKS["monotonic_ns"],
) -> Recording:
    """Open a run in ``store`` and write its start entry. Raises ``ValueRefused`` (input, seed, labels) or
    ``StoreFailed`` before any code of the agent runs. ``code`` replaces the code identity taken from the agent;
    ``resumes``: another process can find the agent and go on with the run, so that it may wait for somebody;
    ``answerer`` asks who is there at once (``WaitingSource``). ``clock`` gives the nanoseconds behind virtual time (a
    simulation has its own)."""
    arguments = encode({"args": list(args), "kwargs": dict(kwargs)}, TYPES)
    _check(options)
    stand_by()
    watch_collector()
    policy = chosen_policy(options.guard, agent.guard)
    identity = dict(code) if code is not None else code_identity(agent)
    for sentence in warm_caches(cast("dict[str, Tree]", identity["modules"])):
        warnings.warn(sentence, RuntimeWarning, stacklevel=4)
    run_id = runids.new_run_id(time.time_ns() // 1_000_000, os.urandom(10))
    nonce = os.urandom(32)
    guard = guard_for_recording(policy)
    if guard.virtual:
        guard.draws = options.draws
    rules = in_effect(agent.secrets, options.secrets)
    redactor = Redactor(rules)
    redactor.check_name("the name of the agent", agent.name)
    kept: dict[str, Tree] = {"secrets": facts} if (facts := rules.facts()) else {}
    if options.tools:
        kept["tools"] = cast(Tree, checked_tools(options.tools))
    payloads: dict[str, Tree] = {
        "code": identity,
        "env": cast(Tree, environment()),
        "input": arguments,
        "policy": {**guard.facts(), "durability": durability_of(store), "on_store_failure": "closed", **kept},
    }
    if options.tags:
        payloads["tags"] = encode(dict(options.tags), TYPES)
    if options.conversation is not None:
        payloads["conversation"] = encode(options.conversation, TYPES)
    with held_back():
        appender = store.create(run_id)
        ledger = TraceLedger(appender.append, _pooled(_urandom), reads=guard.pending, redactor=redactor)
        source = (
            _waiting_source(store, run_id, outer, clock, answerer) if resumes else LiveSource(outer, clock)
        )
        engine = Engine(
            ledger, source, nonce=nonce, types=TYPES, places=Places(agent.root), redactor=redactor
        )
        engine.suspends = resumes
        session = Session(engine, source, run_id=run_id, agent=agent.name, seed=options.seed, guard=guard)
        if options.tools:
            session.tools = ToolUse(options.tools)
        if guard.virtual:
            session.adopts = session.yields = True
            session.passes = guard.policy == "virtual"
            guard_process()
            watch_run(session)
        begins(guard)
        source.began(guard.start)
        try:
            ledger.start(_facts(agent, run_id, options, guard), payloads, nonce)
        except BaseException:
            appender.close()
            raise
        return Recording(session, ledger, store, appender, arguments)


def _waiting_source(
    store: Store,
    run: str,
    outer: asyncio.AbstractEventLoop | None,
    clock: Callable[[], int],
    answerer: Answerer | None,
) -> LiveSource:
    from agentloom.runtime.live_waits import (
        WaitingSource,  # what waits for somebody is no part of every program
    )
    from agentloom.runtime.waits import Waits

    return WaitingSource(outer, clock, Waits(partial(store.mail, run), TYPES), answerer)


def _pooled(source: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Random bytes for salts, asked for many at a time: one question to the system costs as much as a salt's hash."""
    salts: list[bytes] = []

    def take(count: int) -> bytes:
        if count != SALT_BYTES:
            return source(count)
        if not salts:
            pool = source(_POOL_BYTES)
            salts.extend(pool[at : at + count] for at in range(_POOL_BYTES - count, -1, -count))
        return salts.pop()

    return take


def _check(options: RunOptions) -> None:
    """``ValueRefused`` for a seed or a label of another type than the trace holds."""
    seed = options.seed
    if seed is not None and (type(seed) is not int or not -(2**63) <= seed < 2**64):
        reason = f"a seed is an integer from -2^63 to 2^64-1, not {str(seed)[:40]}"
        raise ValueRefused("seed", type(seed).__name__, reason, hint="give seed=42, or none")
    if not isinstance(cast("object", options.tags), Mapping):
        reason = "tags are a mapping of names to texts"
        raise ValueRefused("tags", type(options.tags).__name__, reason, hint='give tags={"ticket": "T-17"}')
    for name in cast("Mapping[object, str]", options.tags):
        if not isinstance(name, str):
            raise ValueRefused(f"tags[{name!r}]", type(name).__name__, "names of tags are texts")
    labels: dict[str, object] = {f"tags.{name}": value for name, value in options.tags.items()}
    if options.conversation is not None:
        labels["conversation"] = options.conversation
    for path, value in labels.items():
        if not isinstance(value, str):
            raise ValueRefused(path, type(value).__name__, "labels are texts", hint="give str(...) of it")


def _facts(agent: AgentFunction, run_id: str, options: RunOptions, guard: Guard) -> dict[str, Tree]:
    resolution = int(time.get_clock_info("monotonic").resolution * 1e9) or 1
    return {
        "format": "loom",
        "version": "1.0",
        "run": run_id,
        "digest": "sha256",
        "flags": [],
        "keys": 1,
        "agent": agent.name,
        "entry": f"{agent.module}:{agent.qualname}",
        "seed": options.seed,
        "clock": {**guard.clock_facts(), "resolution": resolution},
        "epoch": 1,
    }


async def record_async(recording: Recording, agent: AgentFunction) -> object:
    """Run an async agent to its end, recording; returns its output. Raises what the agent raised."""
    with held_back():
        args, kwargs = recording.arguments()
        try:
            return await execute(recording.session, agent, args, kwargs)
        finally:
            tell_unrecorded(recording.session.engine.unrecorded)
            recording.close()


def record_blocking(recording: Recording, agent: AgentFunction) -> object:
    """Run a sync agent to its end, recording; returns its output. Raises what the agent raised."""
    with held_back():
        args, kwargs = recording.arguments()
        try:
            return execute_blocking(recording.session, agent, args, kwargs)
        finally:
            tell_unrecorded(recording.session.engine.unrecorded)
            recording.close()
