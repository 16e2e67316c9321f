"""Runs that outlive their processes, simulated: one seed owns clock, scheduling, crashes, power cuts, faults of the
store, answers, messages and which processes take a run over.

    python -m tests.simulation.outliving [COUNT] [FIRST_SEED]     (several processes; a failing seed is printed)
    python -m tests.simulation.outliving --seed SEED              (one seed, with all that happened in it)
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import os
import sys
import time
from typing import Any

from agentloom.api.answering import answer, send_signal, waiting
from agentloom.errors import (
    AnswerRefused,
    ControlFlow,
    LeaseHeld,
    LoomError,
    NotSupported,
    RunNotFound,
    StoreFailed,
    Suspend,
)
from agentloom.format.journal import Journal, check
from agentloom.format.values import decode
from agentloom.replay.recording import Recording
from agentloom.replay.replayer import replay
from agentloom.replay.resuming import begin_again
from agentloom.runtime.recorder import RunOptions, begin, record_async
from agentloom.store import LocalStore
from tests.faults.disk import Dead
from tests.simulation import harness
from tests.simulation.outliving_world import WORDS, Life, World, simulated_time

__all__ = ["Wrong", "failures", "main", "simulate"]

CODE: Any = {
    "entry": {"module": "tests", "qualname": "program", "file": None, "kind": "agent"},
    "modules": {},
}
MOST_LIVES = 80
MOST_TROUBLES = 4
MOST_WRONG = 5


class Wrong(AssertionError):
    """What must not happen."""


# -- processes -------------------------------------------------------------------------------------------------------


async def live(life: Life) -> None:
    """The whole life of a process: it starts the run, or goes on with it."""
    world = life.world
    try:
        agent = life.agent()
        if world.run is None:
            recording = begin(
                agent, (), {}, store=life.store, options=RunOptions(guard="off"), outer=world.loop, code=CODE,
                resumes=True, clock=lambda: world.loop.vt,
            )  # fmt: skip
            world.run = recording.run_id
            await record_async(recording, agent)
        else:
            resumption = begin_again(agent, life.store, world.run, outer=world.loop)
            try:
                await record_async(resumption.run, agent)
            except (LoomError, ControlFlow) as error:
                raise resumption.judged(error) from error
        life.end = "ended"
    except (LeaseHeld, StoreFailed, RunNotFound) as error:
        life.end = type(error).__name__
    except Suspend:
        asks = waiting(world.store(world.machine.process()), str(world.run)) if life.alive else [None]
        life.end = "Suspend" if asks else "wrong: suspended, and the trace does not say what it waits for"
    except NotSupported as error:
        life.end = "over" if "has ended" in str(error) else f"wrong: {error!r}"
    except Dead:
        life.end = "dead"
    except BaseException as error:
        life.end = f"wrong: {error!r}"
        if isinstance(error, asyncio.CancelledError):
            raise
    finally:
        if not life.alive:
            life.end = "dead"  # whatever its last instructions were, nobody saw them
        world.tell(f"process {life.number}: {life.end}")
        life.process.die()


def begun(world: World, calm: bool) -> asyncio.Task[None]:
    """A process that begins now. ``calm``: nothing happens to it."""
    life = Life(world, len(world.lives))
    world.lives.append(life)
    how = world.chaos.random()
    if not calm and how < 0.3:
        life.dies = world.chaos.randint(1, 80)
    elif not calm and how < 0.6:
        life.dies_after = world.chaos.randint(1, 8)
    if not calm and world.chaos.random() < 0.2:
        life.fails = world.chaos.randint(1, 60)
    return world.loop.create_task(live(life))


# -- people ----------------------------------------------------------------------------------------------------------


class People:
    """Those who answer, with a machine of their own that nothing happens to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.signals = awaited(world)

    def act(self) -> None:
        """Look at what is asked, and say something; or send a message that somebody will wait for."""
        world, rng = self.world, self.world.people
        if world.run is None:
            return
        store = world.store(world.machine.process())
        if self.signals and rng.random() < 0.5:
            self._send(store, rng.choice(sorted(self.signals)))
        try:
            asks = [ask for ask in waiting(store, world.run) if ask.kind == "answer"]
        except (LoomError, IndexError):
            return  # there is no run, or nothing of it yet
        for ask in asks:
            if rng.random() < 0.6:
                self._answer(store, ask, again=ask.answered is not None)
        if asks and rng.random() < 0.3:  # somebody presses twice
            self._answer(store, rng.choice(asks), again=True)

    def _send(self, store: LocalStore, channel: str) -> None:
        world = self.world
        text = f"{channel}: {len(world.sent.get(channel, []))}"
        try:
            send_signal(str(world.run), channel, text, store=store)
        except LoomError:
            return
        world.tell(f"sent {text}")
        world.sent.setdefault(channel, []).append(text)
        self.signals[channel] -= 1
        if not self.signals[channel]:
            del self.signals[channel]

    def _answer(self, store: LocalStore, ask: Any, *, again: bool) -> None:
        world = self.world
        value: object = f"answer to {ask.question}"
        if ask.in_doubt:
            name = ask.request["args"]["name"]
            value = {"happened": False}
            if world.happened(name):
                value = {"happened": True, "result": f"{ask.question.split()[4]} {name}"}
        try:
            answer(str(world.run), value, ask=ask.ask, store=store)
        except AnswerRefused as refused:
            world.tell(f"refused: {type(refused).__name__} {ask.ask}")
            return
        if again and ask.answered is not None:
            raise Wrong(f"question {ask.ask} was answered twice")
        world.tell(f"answered {ask.ask} {value}")
        if not ask.in_doubt:
            if ask.question in world.answers:
                raise Wrong(f"question {ask.question} was asked again after it was answered")
            world.answers[ask.question] = value


def awaited(world: World) -> dict[str, int]:
    """How many messages the program waits for, by name."""
    found: dict[str, int] = {}
    for branch in world.program:
        for kind, name in branch:
            if kind == "signal":
                channel = f"of {name.partition('.')[0]}"
                found[channel] = found.get(channel, 0) + 1
    return found


# -- the world -------------------------------------------------------------------------------------------------------


async def history(world: World) -> None:
    """All that happens, until the run has ended."""
    people = People(world)
    troubles = world.chaos.randint(0, MOST_TROUBLES)
    tasks: list[asyncio.Task[None]] = []
    while len(world.lives) < MOST_LIVES:
        calm = len(world.lives) > 12
        running = [life for life in world.lives if life.alive and not life.end]
        chance = world.chaos.random()
        if troubles and world.power and world.run is not None and world.chaos.random() < 0.25:
            troubles -= 1
            world.tell("power cut")
            for life in running:
                life.kill("power cut")
            world.machine.power_cut(world.chaos)
        elif not running or (len(running) < 2 and chance < 0.3 and world.run is not None):
            tasks.append(begun(world, calm))
        elif troubles and chance < 0.6:
            troubles -= 1
            world.chaos.choice(running).kill("from outside")
        await asyncio.sleep(world.chaos.choice((0.002, 0.005, 0.02, 0.02, 100.0, 4000.0)))
        gone_if_empty(world)
        people.act()
        wrong = next((life for life in world.lives if life.end.startswith("wrong")), None)
        if wrong is not None:
            raise Wrong(f"process {wrong.number}: {wrong.end}")
        if any(life.end in ("ended", "over") for life in world.lives):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return
    raise Wrong(f"never ended in {MOST_LIVES} processes: {[life.end for life in world.lives[-5:]]}")


def gone_if_empty(world: World) -> None:
    """A run whose process died before its first entry does not exist."""
    if world.run is None or (world.acknowledged and not world.power):
        return
    if any(life.alive and not life.end for life in world.lives):
        return
    try:
        world.store(world.machine.process()).reopen(world.run).close()
    except (RunNotFound, StoreFailed, LoomError) as error:
        if world.acknowledged:
            raise Wrong(f"a run that was acknowledged is gone: {error!r}") from error
        world.run = None


def simulate(seed: int) -> World:
    """The history of ``seed``, checked. ``Wrong`` where something is lost, done twice or guessed."""
    world = World(seed)
    with simulated_time(world), harness.quiet():
        try:
            world.loop.run_until_complete(history(world))
            judge(world)
        except Exception as error:
            error.add_note(f"seed {seed}: python -m tests.simulation.outliving --seed {seed}")
            error.told = world.told  # type: ignore[attr-defined]
            raise
        finally:
            world.loop.close()
    return world


# -- what must be ----------------------------------------------------------------------------------------------------


def judge(world: World) -> None:
    """The run has ended: what was done, what the agent got, and what the trace says."""
    data = world.store(world.machine.process()).read(str(world.run))
    at = 0
    for part in world.acknowledged:
        at = data.find(part, at)
        if at < 0:
            raise Wrong("an acknowledged entry is lost, or stands out of order")
        at += len(part)
    verdict = check(data)
    if not (verdict.ok and verdict.complete):
        raise Wrong(f"the trace does not verify: {verdict}")
    recording = Recording.from_journal(Journal.parse(data))
    _deliveries(recording)
    _clock(recording)
    _said_once(recording)
    if recording.status != "completed":
        raise Wrong(f"it ended {recording.status}: {decode(recording.output(), None)}")
    output: Any = decode(recording.output(), None)
    for branch, got in zip(world.program, output, strict=True):
        channels: dict[str, int] = {}
        for (kind, name), value in zip(branch, got, strict=True):
            _step(world, kind, name, value, channels)
    report = replay(Journal.parse(data), Life(world, -1).agent())
    if report.verdict != "identical":
        raise Wrong(f"the replay: {report}")


def _clock(recording: Recording) -> None:
    """The run's own time is that of the world, whoever writes it."""
    clock: Any = recording.start["clock"]
    for entry in recording.journal.entries:
        at, vt = entry["at"], entry.get("vt")
        if "d" in entry and isinstance(vt, int) and isinstance(at, int):
            late = at - clock["start"] - vt
            if not -(10**7) < late < 10**9:
                raise Wrong(
                    f"at entry {entry['seq']} the clock of the run is {late / 1e9} s behind that of the world"
                )


def _said_once(recording: Recording) -> None:
    """Nothing that was said is taken twice."""
    said = [str(entry.get("mail", entry.get("ask"))) for entry in recording.said]
    if len(set(said)) != len(said):
        raise Wrong(f"taken twice: {said}")


def _deliveries(recording: Recording) -> None:
    last = 0
    for step in recording.steps:
        if step.d is not None:
            if step.d <= last:
                raise Wrong(f"delivery {step.d} stands behind {last}")
            last = step.d


def _step(world: World, kind: str, name: str, value: object, channels: dict[str, int]) -> None:
    allowed: list[object] = []
    if kind in ("charge", "book", "look"):
        allowed = [f"{kind} {name}"]
    elif kind in ("ask", "asks till"):
        allowed = [world.answers.get(name, "nobody" if kind == "asks till" else "(never answered)")]
    elif kind == "signal":
        channel = f"of {name.partition('.')[0]}"
        number = channels[channel] = channels.get(channel, -1) + 1
        allowed = [f"{channel}: {number}"]
    elif kind == "stream":
        allowed = [" ".join(f"{word} {name}" for word in WORDS)]
    elif kind == "hurry":
        allowed = ["late", f"look {name}"]
    else:
        allowed = [None]
    if value not in allowed:
        raise Wrong(f"{kind} {name} gave {value!r}, not {allowed}")
    if kind == "charge" and world.effects[name] != 1:
        raise Wrong(f"{name} was charged {world.effects[name]} times")
    if kind == "book" and len(world.bookings[name]) != 1:
        raise Wrong(f"{name} was booked with {len(world.bookings[name])} keys")


# -- many seeds ------------------------------------------------------------------------------------------------------


def failure(seed: int) -> str | None:
    """What is wrong with the history of ``seed``; None: nothing."""
    try:
        simulate(seed)
    except Exception as error:  # noqa: BLE001 - told, with the seed
        return f"seed {seed}: {type(error).__name__}: {str(error)[:600]}"
    return None


def _quiet() -> None:
    """Processes of histories leave tasks behind when they die, which asyncio would tell."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def failures(first: int, count: int, processes: int | None = None) -> list[str]:
    """What is wrong in ``count`` histories, from seed ``first`` on, the first few; on all cores."""
    seeds = range(first, first + count)
    workers = min(processes or os.cpu_count() or 1, count)
    with multiprocessing.get_context("forkserver").Pool(workers, _quiet) as pool:
        found = (text for text in pool.imap_unordered(failure, seeds, chunksize=10) if text is not None)
        return list(itertools.islice(found, MOST_WRONG))


def main(words: list[str]) -> int:
    """The command; 1 where something is wrong."""
    if words[:1] == ["--seed"]:
        _quiet()
        try:
            world = simulate(int(words[1]))
        except Exception as error:
            print("\n".join(getattr(error, "told", [])))
            raise
        print("\n".join(world.told))
        return 0
    count = int(words[0]) if words else 2000
    first = int(words[1]) if len(words) > 1 else 0
    began = time.monotonic()
    found = failures(first, count)
    print("\n".join(sorted(found)[:20]))
    print(f"{count} seeds from {first}, {len(found)} wrong, {time.monotonic() - began:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
