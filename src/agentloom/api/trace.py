"""``Trace``: one recorded run, to look at, replay, compare, verify and carry about."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import DivergenceError, NotSupported, TargetError
from agentloom.format.failures import RECORDED_AS
from agentloom.format.journal import Journal, Verdict, check
from agentloom.format.values import decode
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.registry import TYPES
from agentloom.store import Store, open_store, read_file, write_file

if TYPE_CHECKING:
    from agentloom.replay.diff import Diff
    from agentloom.replay.recording import RecordedCall, Recording
    from agentloom.replay.report import Report
    from agentloom.runtime.asks import OpenAsk
    from agentloom.store import Mail

__all__ = ["RunNote", "Trace", "TraceCall", "agent_function", "known_by", "run_of", "trace_of"]


class TraceCall:
    """One recorded host call. Payloads are decoded when asked for, fresh each time (``PayloadMissing`` when erased)."""

    __slots__ = ("_call", "_recording")

    def __init__(self, recording: Recording, call: RecordedCall) -> None:
        self._recording = recording
        self._call = call

    @property
    def number(self) -> int:
        """Its number in the run, from 1: how commands address it."""
        return self._call.index

    @property
    def id(self) -> str:
        """Its structural id, such as ``root/support/parallel[1]#3``."""
        return self._call.id

    @property
    def path(self) -> str:
        """The id without its counter."""
        return self._call.id.partition("#")[0]

    @property
    def kind(self) -> str:
        """``model``, ``tool``, ``http``, ``now`` ..."""
        return self._call.type

    @property
    def name(self) -> str:
        """The model, tool or function."""
        return self._call.name

    @property
    def effect(self) -> str | None:
        """What a tool does to the world: ``pure``, ``read`` or ``write``."""
        return self._call.effect

    @property
    def src(self) -> str:
        """The place in the code: ``file:line function``."""
        return self._call.src

    @property
    def status(self) -> str | None:
        """``ok``, ``error``, ``cancelled``, ``closed`` (a stream left early); None where the run died in the call."""
        return self._call.status

    @property
    def request(self) -> dict[str, Any]:
        """The request as recorded."""
        return cast("dict[str, Any]", decode(self._recording.request(self._call), TYPES))

    @property
    def result(self) -> Any:
        """What the call returned; None when it did not end well."""
        return decode(self._recording.outcome(self._call), TYPES) if self.status == "ok" else None

    @property
    def error(self) -> BaseException | None:
        """What the call raised."""
        if self.status != "error":
            return None
        return cast(BaseException, decode(self._recording.outcome(self._call), TYPES))

    @property
    def chunks(self) -> list[Any]:
        """The chunks of a streamed call, as far as it was read."""
        return [decode(chunk, TYPES) for chunk in self._recording.chunks_of(self._call)]

    @property
    def usage(self) -> dict[str, Any] | None:
        """Token counts by class, as the provider gave them."""
        return cast("dict[str, Any] | None", self._call.usage)

    @property
    def duration(self) -> int | None:
        """Nanoseconds from request to outcome."""
        return self._call.dur

    def __repr__(self) -> str:
        return f"<call {self.number} {self.kind} {self.name} {self.status}>"


class Trace:
    """The record of one run. It reads its bytes once; nothing here changes them."""

    def __init__(self, data: bytes, agent: AgentFunction | None = None) -> None:
        self._data = data
        self._agent = agent

    # -- where it comes from and goes to ---------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a ``.loom`` or ``.loom.zst`` file. Raises ``FormatError`` or ``IntegrityError`` naming the place."""
        trace = cls(read_file(path))
        _ = trace.journal
        return trace

    @classmethod
    def open(cls, run: str = "last", store: Store | str | os.PathLike[str] | None = None) -> Trace:
        """A run of a store: by id, unique prefix, tag value, or ``last``."""
        chosen = open_store(store)
        return cls.of_run(chosen.resolve(run), chosen, None)

    @classmethod
    def of_run(cls, run: str, store: Store, agent: AgentFunction | None) -> Trace:
        """A run of a store whose full id is known."""
        return cls(store.read(run), agent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, compressed when it ends in ``.zst``; never a half-written one."""
        write_file(path, self._data)

    # -- what it says ------------------------------------------------------------------------------------------------

    @cached_property
    def journal(self) -> Journal:
        """The entries and payloads, checked."""
        return Journal.parse(self._data)

    @cached_property
    def _recording(self) -> Recording:
        from agentloom.replay.recording import Recording

        return Recording.from_journal(self.journal)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.journal.entries[0]["run"])

    @property
    def name(self) -> str:
        """What the run is listed under: the name of the agent, the workflow, or what was recorded."""
        return str(self.journal.entries[0]["agent"])

    @property
    def head(self) -> str:
        """The digest of the last entry. Kept elsewhere, it proves later that nothing was altered."""
        return self.journal.head

    @cached_property
    def calls(self) -> Sequence[TraceCall]:
        """The host calls, in the order in which they were made."""
        return [TraceCall(self._recording, call) for call in self._recording.calls]

    @property
    def status(self) -> str:
        """``completed``, ``failed``, ``cancelled``; ``suspended`` when it was left waiting for somebody; ``unfinished``
        when the run has no end for another reason."""
        end = self._end
        if end is not None:
            return cast(str, end["status"])
        return "suspended" if self._recording.open_asks() else "unfinished"

    @property
    def input(self) -> dict[str, Any]:
        """What the agent was given: ``{"args": [...], "kwargs": {...}}``."""
        return cast("dict[str, Any]", self._payload(self.journal.entries[0], "input"))

    @property
    def output(self) -> Any:
        """What the agent returned; None when it did not complete."""
        return None if self._end is None else self._payload(self._end, "val")

    @property
    def error(self) -> BaseException | None:
        """What a failed agent raised."""
        return None if self._end is None else cast("BaseException | None", self._payload(self._end, "err"))

    @property
    def guard(self) -> str:
        """The policy of the run's guard: ``strict``, ``virtual`` or ``off``."""
        policy = self._payload(self.journal.entries[0], "policy")
        return str(cast("dict[str, Any]", policy).get("guard", "off")) if isinstance(policy, dict) else "off"

    @property
    def unrecorded(self) -> list[dict[str, str]]:
        """What the run did outside every host call: ``kind``, ``what``, ``where`` (``file:line function``) and, in a
        scope that allowed it, ``allowed``, the reason. A replay refuses all but reads."""
        found: list[dict[str, str]] = []
        for entry in self.journal.entries:
            if entry["kind"] == "gap" and entry.get("why") == "unrecorded-effect":
                found.append(cast("dict[str, str]", self._payload(entry, "val")))
            elif entry["kind"] == "note":
                note = self._payload(entry, "val")
                facts = cast("dict[str, Any]", note).get("unrecorded") if isinstance(note, dict) else None
                if isinstance(facts, dict) and "what" in facts:
                    found.append(cast("dict[str, str]", facts))
        return found

    @property
    def tags(self) -> dict[str, str]:
        """The run's tags."""
        return cast("dict[str, str]", self._payload(self.journal.entries[0], "tags") or {})

    @property
    def notes(self) -> list[Any]:
        """The notes in the trace, in their order; those whose payload was erased are left out."""
        found = [entry["val"] for entry in self.journal.entries if entry["kind"] == "note" and "val" in entry]
        return [decode(self.journal.tree(blob), TYPES) for blob in found if self.journal.has(blob)]

    @property
    def _end(self) -> Mapping[str, Any] | None:
        void = None
        for entry in reversed(self.journal.entries):
            if entry["kind"] == "retract":
                void = entry["from"] if void is None else min(void, entry["from"])
            if entry["kind"] == "end":
                return entry if void is None or entry["seq"] < void else None
        return None

    def _payload(self, entry: Mapping[str, Any], name: str) -> object:
        blob = entry.get(name)
        return None if blob is None else decode(self.journal.tree(blob), TYPES)

    def __repr__(self) -> str:
        return f"<Trace {self.run_id} {self.status}, {len(self.calls)} calls>"

    # -- what can be done with it ------------------------------------------------------------------------------------

    def replay(
        self,
        *,
        check: bool = True,
        agent: object = None,
        call: Callable[[], object] | None = None,
        until: int | None = None,
    ) -> Report:
        """Run the agent's code again, every host call answered from the trace; nothing live can happen.

        ``agent`` is the agent or workflow to run; default: the one that made this trace in this process. ``call`` is a
        function without arguments that makes the recorded call again, for runs whose arguments are not in the trace
        (``record(...)`` of a method). ``until``: the number of the last call to replay. Raises ``DivergenceError`` with
        the report unless ``check`` is False; then the report is returned whatever it says.
        """
        from agentloom.replay.replayer import replay

        if until is not None and not 0 < until <= len(self.calls):
            raise TargetError(
                f"run {self.run_id} has no call {until}", hint=f"give a number from 1 to {len(self.calls)}"
            )
        if call is not None and self._entry().get("kind") == "block":
            if until is not None:
                raise NotSupported(
                    "until= does not go with a block: its code is not agentloom's to stop",
                    hint="replay all of it",
                )
            from agentloom.api.recording_block import replay_block

            report = replay_block(self, call)
        else:
            report = replay(self.journal, self._agent_to_replay(agent, call), until=until)
        if check and report.verdict == "diverged":
            raise DivergenceError(report)
        return report

    def _entry(self) -> dict[str, Any]:
        """Where the run begins: what the program is, and what of it."""
        code = self._payload(self.journal.entries[0], "code")
        entry = cast("dict[str, Any]", code).get("entry") if isinstance(code, dict) else None
        return cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}

    def _agent_to_replay(self, agent: object, call: Callable[[], object] | None) -> AgentFunction:
        if agent is not None and call is not None:
            raise TargetError("replay() was given agent= and call=", hint="give one of them")
        if call is None and agent is None and self._agent is not None:
            return self._agent
        entry = self._entry()
        from agentloom.api.recording_target import as_recorded, found_again, of_call

        if call is not None:
            return of_call(call, self.name, entry)
        if agent is not None:
            return as_recorded(agent_function(agent), entry)
        found = found_again(entry, sys.modules.get(str(entry.get("module"))))
        if found is not None:
            return found
        if entry.get("kind") in ("call", "block"):
            raise TargetError(
                f"trace {self.run_id} does not say how {self.name} was called: {entry.get('missing')}",
                hint="trace.replay(call=lambda: ...) with that call, or the same program under AGENTLOOM=replay",
            )
        name, entered = self.journal.entries[0]["agent"], self.journal.entries[0]["entry"]
        raise TargetError(
            f"trace {self.run_id} was read from a file or a store, and does not know the agent that made it"
            f" ({name}, {entered})",
            hint=f"trace.replay(agent=...) with the agent or workflow; or: agentloom replay FILE, or {self.run_id}",
        )

    def resume(
        self, *, agent: object = None, store: Store | None = None, retry_failed: bool = False
    ) -> Trace:
        """Go on with the run where it was left, in this process and in the same trace (see ``agentloom.resume``); the
        trace as it is then. ``store``: the one that the run lies in (default: that of this process)."""
        from agentloom.api.resuming import resume

        chosen = self._agent if agent is None else agent
        return resume(self.run_id, chosen, store=store, retry_failed=retry_failed)

    @cached_property
    def asks(self) -> list[OpenAsk]:
        """What the run waited for when the trace was read: questions, messages, times."""
        from agentloom.runtime.asks import open_asks

        return open_asks(self.journal)

    def answer(self, value: object, *, store: Store | None = None, **more: Any) -> Mail:
        """Answer a question of the run (``agentloom.answer``); ``resume`` delivers it. ``store`` as of ``resume``."""
        from agentloom.api.answering import answer

        return answer(self.run_id, value, store=store, **more)

    def signal(self, name: str, value: object = None, *, store: Store | None = None, **more: Any) -> Mail:
        """Send a message to the run (see ``agentloom.send_signal``); ``store`` as of ``resume``."""
        from agentloom.api.answering import send_signal

        return send_signal(self.run_id, name, value, store=store, **more)

    def verify(self, *, head: str | None = None) -> Verdict:
        """Recompute every digest. ``head`` is one kept elsewhere: with it the verdict can be ``unaltered``."""
        return check(self._data, head=head)

    def diff(self, other: Trace) -> Diff:
        """Where this run and ``other`` part, and why."""
        from agentloom.replay.diff import diff

        return diff(self.journal, other.journal)


def known_by(trace: Trace, agent: AgentFunction) -> Trace:
    """``trace`` as one that ``agent`` made in this process."""
    return Trace(trace._data, agent)  # pyright: ignore[reportPrivateUsage]


def holds_call(trace: Trace) -> bool:
    """Whether ``trace`` says what was called with which arguments."""
    return trace._entry().get("kind") == "function"  # pyright: ignore[reportPrivateUsage]


class RunNote(str):
    """The note on an error that says which run it ended; it knows the run, for ``trace_of``. Copies are plain text."""

    __slots__ = ("agent", "run", "store")

    run: str
    store: Store
    agent: AgentFunction | None

    @classmethod
    def of(cls, run: str, store: Store, agent: AgentFunction | None) -> RunNote:
        """The note for a run of ``agent`` in ``store``."""
        note = cls(f"{RECORDED_AS}{run}: agentloom show {run}")
        note.run, note.store, note.agent = run, store, agent
        return note

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def run_of(error: BaseException) -> RunNote | None:
    """The note of the last run that ``error`` ended in this process."""
    notes: list[object] = getattr(error, "__notes__", [])
    return next((note for note in reversed(notes) if isinstance(note, RunNote)), None)


def trace_of(error: BaseException) -> Trace:
    """The trace of the run that raised ``error``, or its cause: what came out of ``run()``, ``arun()`` or a stream.
    ``TargetError`` for any other error."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        note = run_of(found)
        if note is not None:
            return Trace.of_run(note.run, note.store, note.agent)
        seen.add(id(found))
        found = found.__cause__
    raise TargetError(
        f"{type(error).__name__} was raised by no recorded run of this process",
        hint="give the error that run() or arun() raised; Trace.open() has the run that was recorded last",
    )


def agent_function(agent: object) -> AgentFunction:
    """The function behind an agent, a workflow or a plain function. Raises ``TargetError``."""
    if isinstance(agent, AgentFunction):
        return agent
    function = getattr(agent, "function", None)
    if isinstance(function, AgentFunction):
        return function
    maker = getattr(agent, "agent", None)
    if callable(maker):
        return agent_function(maker())
    if callable(agent):
        return AgentFunction.of(agent)
    raise TargetError(
        f"{agent!r} is not an agent", hint="give a function decorated with @agentloom.agent, or a Workflow"
    )
