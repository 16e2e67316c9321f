"""What a run waits for that no process does, read from its trace: the open questions, and what became of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, cast

from agentloom.errors import PayloadMissing
from agentloom.format.journal import Journal
from agentloom.format.values import decode
from agentloom.runtime.calls import Call
from agentloom.store.mail import Mail

__all__ = ["AskKind", "Asked", "OpenAsk", "asked_by", "asks_of", "open_asks", "with_mail"]

AskKind = Literal["answer", "signal", "time"]
_KINDS: dict[str, AskKind] = {"signal": "signal", "sleep": "time"}
ERASED = "(the question was erased)"


class _HasJournal(Protocol):
    @property
    def journal(self) -> Journal: ...


@dataclass(frozen=True, slots=True)
class OpenAsk:
    """A question (or a message, or a time) that a run waits for. Values are plain data, as in the trace.

    ``ask`` is its id: the number of its call (``7``; asked again after a retry: ``7.2``). ``due``: when the run goes on
    without an answer (nanoseconds since 1970), with ``default`` where ``has_default``, else with ``Expired``.
    ``approver``: names and roles that may answer; empty: anybody. ``approval``: the call that is to be approved
    (``tool``, ``args``, ``schema``), good until ``expires``. ``in_doubt``: the question is whether the call
    ``request`` happened. ``answered``: mail that the run has not taken yet.
    """

    ask: str
    run: str
    agent: str
    kind: AskKind
    question: str = ""
    name: str = ""
    choices: tuple[object, ...] | None = None
    schema: Mapping[str, Any] | None = None
    evidence: object = None
    approver: tuple[str, ...] = ()
    due: int | None = None
    has_default: bool = False
    default: object = None
    asked_at: int = 0
    call: str = ""
    src: str = ""
    approval: Mapping[str, Any] | None = None
    expires: int | None = None
    in_doubt: bool = False
    request: object = None
    erased: bool = False
    answered: Mail | None = None

    @property
    def number(self) -> int | None:
        """The number of its call in the run."""
        number = self.ask.partition(".")[0]
        return int(number) if number.isdecimal() else None

    @property
    def path(self) -> str:
        """Where in the run it is asked: the id of its call without the counter."""
        return self.call.partition("#")[0]

    def __str__(self) -> str:
        what = {"answer": self.question, "signal": f"signal {self.name}", "time": "a time"}[self.kind]
        return f"{self.ask}: {what}"

    def is_due(self, now: int) -> bool:
        """Whether the run goes on by itself at ``now`` (nanoseconds since 1970)."""
        return self.due is not None and self.due <= now

    def ready(self, now: int) -> bool:
        """Whether a run that waits for this can go on at ``now``."""
        return self.answered is not None or self.is_due(now)

    def facts(self) -> dict[str, Any]:
        """The same as a mapping, without what is not set."""
        members = {name: getattr(self, name) for name in self.__slots__ if name != "answered"}
        kept = {name: value for name, value in members.items() if value not in (None, "", (), False)}
        if self.has_default:
            kept["default"] = self.default
        kept["number"] = self.number
        if self.answered is not None:
            mail = self.answered
            kept["answered"] = {
                "value": decode(mail.value, None),
                "who": mail.who,
                "at": mail.at,
                "via": mail.via,
            }
        return kept


@dataclass(slots=True)
class Asked:
    """What a run asked so far: ``open`` questions in their order; how the ``closed`` ones were, by id (``answered``,
    ``expired``, ``retracted``, ``gone``), with who and when; keys of the messages that it ``taken``; how it
    ``ended``."""

    run: str
    agent: str
    open: list[OpenAsk] = field(default_factory=list[OpenAsk])
    closed: dict[str, tuple[str, str | None, int]] = field(
        default_factory=dict[str, "tuple[str, str | None, int]"]
    )
    taken: set[str] = field(default_factory=set[str])
    ended: str | None = None
    ended_at: int = 0


def asks_of(source: Journal | _HasJournal) -> Asked:
    """Read a trace (a ``Journal``, a ``Trace``, a ``Recording``) for what it asked."""
    return _Reader(source if isinstance(source, Journal) else source.journal).read()


def open_asks(source: Journal | _HasJournal) -> list[OpenAsk]:
    """The open questions of a trace, in the order in which they were asked; none where the run has ended."""
    return asks_of(source).open


def asked_by(call: Call, *, run: str, agent: str, asked_at: int = 0) -> OpenAsk:
    """The question of a call that is being made: for whoever can answer it at once."""
    outside = call.spec.outside
    facts = {} if outside is None else dict(outside.facts)
    made = _made(facts, call.type, ask=call.ask or str(call.index), run=run, agent=agent)
    due = None if outside is None else outside.due
    has_default = outside is not None and outside.default is not None
    return replace(
        made, due=due, has_default=has_default, default=facts.get("default"), asked_at=asked_at, call=call.id,
        src=call.src, kind=made.kind if outside is None else outside.kind,
    )  # fmt: skip


def with_mail(asked: Asked, mail: Iterable[Mail]) -> list[OpenAsk]:
    """The open questions, each with the mail that answers it: its answer, or the oldest message of its name that
    neither the run has taken nor an earlier question takes."""
    mail = list(mail)
    answers = {one.key: one for one in mail if one.kind == "answer"}
    waiting = [one for one in mail if one.kind == "signal" and one.key not in asked.taken]
    found: list[OpenAsk] = []
    for ask in asked.open:
        if ask.kind == "signal":
            letter = next((one for one in waiting if one.name == ask.name), None)
            if letter is not None:
                waiting.remove(letter)
        else:
            letter = answers.get(ask.ask) if ask.kind == "answer" else None
        found.append(replace(ask, answered=letter))
    return found


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(one) for one in cast("list[object]", value)) if isinstance(value, list | tuple) else ()


def _mapping(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _made(facts: Mapping[str, object], call_type: str, *, ask: str, run: str, agent: str) -> OpenAsk:
    """What the facts of a question say."""
    choices = facts.get("choices")
    in_doubt = facts.get("in_doubt") is True
    expires = facts.get("expires")
    return OpenAsk(
        ask,
        run,
        agent,
        "answer" if in_doubt else _KINDS.get(call_type, "answer"),
        question=str(facts.get("question") or ""),
        name=str(facts.get("name") or ""),
        choices=tuple(cast("list[object]", choices)) if isinstance(choices, list | tuple) else None,
        schema=_mapping(facts.get("schema")),
        evidence=facts.get("evidence"),
        approver=_texts(facts.get("approver")),
        approval=_mapping(facts.get("approval")),
        expires=expires if isinstance(expires, int) else None,
        in_doubt=in_doubt,
        request=facts.get("request"),
    )


class _Reader:
    """One pass over the entries. What a retract entry takes back is forgotten, but that it was there."""

    def __init__(self, journal: Journal) -> None:
        start = journal.entries[0]
        self._journal = journal
        self.out = Asked(str(start.get("run", "")), str(start.get("agent", "")))
        self._requests: dict[str, dict[str, Any]] = {}
        self._suspends: dict[str, dict[str, Any]] = {}  # by the call
        self._answers: dict[str, dict[str, Any]] = {}  # by the question
        self._messages: dict[str, dict[str, Any]] = {}  # by the call that took them
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._taken: list[tuple[int, str]] = []

    def read(self) -> Asked:
        out, entries = self.out, self._journal.entries
        for before, entry in pairwise(entries):
            kind = entry["kind"]
            if kind == "request":
                self._requests[entry["call"]] = entry
            elif kind == "suspend":
                self._suspends[entry["call"]] = entry
                out.closed.pop(entry["ask"], None)
            elif kind == "outcome":
                self._outcomes[entry["call"]] = entry
                if before["kind"] == "signal":  # the outcome is made of it
                    self._messages[entry["call"]] = before
            elif kind == "answer":
                self._answers[entry["ask"]] = entry
            elif kind == "signal" and isinstance(entry.get("mail"), str):
                self._taken.append((entry["seq"], entry["mail"]))
            elif kind == "retract":
                self._retract(entry["from"])
            elif kind == "end":
                out.ended, out.ended_at = str(entry["status"]), entry["at"]
        for call, entry in self._suspends.items():
            self._sort(call, entry)
        # The process may have died between a message and the outcome: whoever resumes the run takes it again.
        alone = entries[-1]["seq"] if entries[-1]["kind"] == "signal" else None
        out.taken = {key for seq, key in self._taken if seq != alone}
        return out

    def _retract(self, first: int) -> None:
        if self.out.ended is not None:  # the end is what is retracted at the least
            self.out.ended, self.out.ended_at = None, 0
        for call, entry in list(self._suspends.items()):
            if entry["seq"] >= first:
                self.out.closed[entry["ask"]] = ("retracted", None, entry["at"])
                del self._suspends[call]
        for table in (self._requests, self._answers, self._messages, self._outcomes):
            for key in [key for key, entry in table.items() if entry["seq"] >= first]:
                del table[key]
        self._taken = [one for one in self._taken if one[0] < first]

    def _sort(self, call: str, entry: dict[str, Any]) -> None:
        out, ask = self.out, str(entry["ask"])
        answer, outcome = self._answers.get(ask) or self._messages.get(call), self._outcomes.get(call)
        if answer is not None:
            out.closed[ask] = ("answered", *self._who(answer))
        elif outcome is not None:
            due = entry.get("deadline")
            if isinstance(due, int) and outcome["status"] in ("ok", "error"):
                out.closed[ask] = ("expired", None, due)
            else:
                out.closed[ask] = ("gone", None, outcome["at"])
        elif out.ended is not None:
            out.closed[ask] = ("gone", None, out.ended_at)
        else:
            out.open.append(self._open(call, entry, ask))

    def _open(self, call: str, entry: dict[str, Any], ask: str) -> OpenAsk:
        request = self._requests.get(call, {})
        facts = _mapping(self._value(entry["val"]))
        made = _made(
            {"question": ERASED} if facts is None else facts, str(request.get("type", "")), ask=ask, run=self.out.run,
            agent=self.out.agent,
        )  # fmt: skip
        has_default = "default" in entry
        return replace(
            made,
            due=entry.get("deadline"),
            has_default=has_default,
            default=self._value(entry["default"]) if has_default else None,
            asked_at=entry["at"],
            call=call,
            src=str(request.get("src", "")),
            erased=facts is None,
        )

    def _value(self, blob: str) -> object:
        try:
            return decode(self._journal.tree(blob), None)
        except PayloadMissing:
            return None

    def _who(self, answer: dict[str, Any]) -> tuple[str | None, int]:
        """Who gave it, and when."""
        blob = answer.get("who")
        value = self._value(blob) if isinstance(blob, str) else None
        if not isinstance(value, dict):
            return (None if value is None else str(value)), answer["at"]
        facts = cast("dict[str, object]", value)
        name, at = facts.get("name"), facts.get("at")
        return (None if name is None else str(name)), at if isinstance(at, int) and at else answer["at"]
