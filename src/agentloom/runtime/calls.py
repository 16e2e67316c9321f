"""What crosses the boundary between an agent and the world: the call asked for, the call made, what came back.

These are the only types that the engine, the drivers and the outcome sources exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentloom.format.captures import Grown
from agentloom.format.values import Tree, Types
from agentloom.runtime.changes import Change
from agentloom.runtime.outside import Outside
from agentloom.runtime.profiles import Profile
from agentloom.store.mail import Mail

__all__ = ["Arrival", "Call", "CallSpec", "Kept", "Status", "Whole"]

_NOTHING: Mapping[str, Grown] = {}

Status = Literal["ok", "error", "cancelled", "closed"]
"""How a call ended: with a value, with an exception, cancelled by the agent, or a stream that the agent left early."""


@dataclass(slots=True)
class CallSpec:
    """What a host function asks for.

    ``request`` is captured (encoded) when the call begins; ``profile`` names the rule that sorts its fields into
    key, noted and secret, and ``change`` is what a tool changes of it; ``series`` names a growing history whose lists
    share prefixes in the file. ``outside``: no process performs it, it waits for somebody.
    ``idempotent``: performing it twice is as good as once.
    """

    type: str
    name: str
    request: Mapping[str, object]
    profile: str = "plain/1"
    effect: str | None = None
    series: str | None = None
    types: Types | None = None
    src: str | None = None
    stream: bool = False
    change: Change | None = None
    outside: Outside | None = None
    idempotent: bool = False


@dataclass(slots=True)
class Kept:
    """A request as it is written, where that is not as it was made: with placeholders for the secrets in it."""

    name: str
    tree: dict[str, Tree]
    grown: Mapping[str, Grown]


@dataclass(init=False, eq=False)  # with an __init__ of its own: of its many members most are seldom set
class Call:
    """One host call of a run, as its request entry says.

    ``tree`` is the whole request as written (secret fields already gone); ``key_tree`` and ``noted`` are its
    load-bearing and its merely noted fields. ``index`` counts requests from 1 in the order they were made. ``grown``
    are those of its lists that were captured as histories: their items are shared with later calls. ``usage``: what
    the chunks of a live stream said of tokens so far. ``rule`` is the
    changed profile that sorted it, None for one as it is built in. ``kept``: what is written of it, where that is not
    ``tree``; then ``key`` is that of what is written. ``ask``: what it waits for is known by this id.
    """

    spec: CallSpec
    id: str
    path: str
    index: int
    key: str
    tree: dict[str, Tree]
    key_tree: dict[str, Tree]
    noted: dict[str, Tree]
    parent: str | None = None
    attempt: int = 1
    ended: bool = False
    chunks: int = 0
    usage: dict[str, Tree] | None = None
    waiting: bool = False
    ask: str | None = None
    sink: object = field(default=None, repr=False)
    grown: Mapping[str, Grown] = field(repr=False, kw_only=True)
    rule: Profile | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)

    def __init__(
        self,
        spec: CallSpec,
        id: str,  # noqa: A002 - the member's name
        path: str,
        index: int,
        src: str | Callable[[], str],
        key: str,
        tree: dict[str, Tree],
        key_tree: dict[str, Tree],
        noted: dict[str, Tree],
        grown: Mapping[str, Grown] = _NOTHING,
    ) -> None:
        self.spec = spec
        self.id = id
        self.path = path
        self.index = index
        self._src = src
        self.key = key
        self.tree = tree
        self.key_tree = key_tree
        self.noted = noted
        self.grown = grown

    @property
    def src(self) -> str:
        """The place in the code that made the call. Where it was not asked for yet it is looked for now, while the code
        that made the call is still waiting (``Engine.begin``)."""
        if not isinstance(self._src, str):
            self._src = self._src()
        return self._src

    @property
    def type(self) -> str:
        """The call's kind, such as ``model`` or ``tool``."""
        return self.spec.type

    @property
    def name(self) -> str:
        """The model, tool or function asked for."""
        return self.spec.name if self.kept is None else self.kept.name

    @property
    def profile(self) -> str:
        """The name of the profile that sorted the request; ``rule`` is that profile where a user changed it."""
        return self.spec.profile if self.rule is None else self.rule.name


@dataclass(frozen=True, slots=True)
class Whole:
    """What the host work of an awaited stream gives in place of chunks where all came in one piece: the call ends with
    this value, as one that is no stream does."""

    value: object


@dataclass(init=False)
class Arrival:
    """One event that an outcome source hands to the engine, to be written and delivered to the agent.

    ``outcome``: ``call`` ended with ``status``; ``chunk``: one chunk of a stream; ``timer``: the first timer of the
    run is due; ``cancel``: somebody outside cancelled the run; ``turn``: nothing happened, and a program that polls
    the loop is let go on (``call`` is None in all three).

    A live source gives ``value`` (any object, still to be encoded) or ``error``; a replay source gives ``tree``, the
    recorded one, and sets ``recorded``. With ``plain`` the tree is its own value, for the agent to have; ``text`` is
    its JSON, where that is at hand. ``vt`` is the virtual time of the delivery, ``dur`` the duration of the call and
    ``offset`` the arrival of a chunk since its call began, all in nanoseconds. ``mail``: what was said to the run from
    outside, of which the outcome was made.
    """

    kind: Literal["outcome", "chunk", "timer", "cancel", "turn"]
    call: Call | None = None
    status: Status = "ok"
    value: object = None
    error: BaseException | None = None
    tree: Tree = None
    recorded: bool = False
    plain: bool = False
    text: bytes | None = None
    usage: dict[str, Tree] | None = None
    vt: int = 0
    dur: int | None = None
    offset: int = 0
    mail: Mail | None = None

    def __init__(
        self,
        kind: Literal["outcome", "chunk", "timer", "cancel", "turn"],
        call: Call | None = None,
        status: Status = "ok",
        *,
        value: object = None,
        error: BaseException | None = None,
        vt: int = 0,
        dur: int | None = None,
        offset: int = 0,
    ) -> None:
        self.kind = kind
        self.call = call
        self.status = status
        self.value = value
        self.error = error
        self.vt = vt
        self.dur = dur
        self.offset = offset

    @classmethod
    def of_record(
        cls,
        kind: Literal["outcome", "chunk", "timer", "cancel", "turn"],
        call: Call | None = None,
        status: Status = "ok",
        *,
        tree: Tree = None,
        plain: bool = False,
        vt: int,
        usage: dict[str, Tree] | None = None,
        dur: int | None = None,
        offset: int = 0,
    ) -> Arrival:
        """What a replay source hands over: an event as it was recorded."""
        arrival = cls(kind, call, status, vt=vt, dur=dur, offset=offset)
        arrival.recorded = True
        arrival.tree = tree
        arrival.plain = plain
        arrival.usage = usage
        return arrival
