"""The guard of one run: by which policy it runs, and what its virtual values are made from.

A run under a guard sees no clock, no randomness and no environment but its own. What it sees follows from the start
entry of its trace and from the recorded deliveries, so that a replay sees the same without anything being written down.
Why it is built so: ``docs/adr/0014-guard.md``; what it covers: ``docs/guard.md``.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from agentloom.errors import Stopped, ValueRefused
from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.scope import in_context

if TYPE_CHECKING:
    from agentloom.runtime.guard_env import Environment
    from agentloom.runtime.guard_zone import Zone
    from agentloom.runtime.scope import Scope
    from agentloom.runtime.session import Session

__all__ = [
    "DEFAULT_POLICY",
    "ENTROPY_BYTES",
    "OFF",
    "Guard",
    "GuardPolicy",
    "acting",
    "chosen_policy",
    "policy_facts",
]

GuardPolicy = Literal["strict", "virtual", "off"]
"""``strict``: values are virtual, and effects of the agent's own code outside host calls are refused. ``virtual``: such
effects pass when recording and are listed. ``off``: nothing is virtual, and nothing refused when recording."""

DEFAULT_POLICY: GuardPolicy = "strict"

ENTROPY_BYTES = 32
_POLICIES: tuple[str, ...] = get_args(GuardPolicy)
_READING = 1_000
"""Nanoseconds that reading a clock takes: no two readings are the same, and a rate is never divided by zero."""


def chosen_policy(*given: str | None) -> GuardPolicy:
    """The first policy that is given; else the default. ``ValueRefused`` for another word."""
    for policy in given:
        if policy is not None:
            if policy not in _POLICIES:
                reason = f"a guard is one of {', '.join(_POLICIES)}, not {policy!r:.40}"
                raise ValueRefused(
                    "guard", type(policy).__name__, reason, hint='give guard="strict", or none'
                )
            return cast(GuardPolicy, policy)
    return DEFAULT_POLICY


def policy_facts(policy: object) -> tuple[GuardPolicy, bytes | None]:
    """Policy and entropy from the ``policy`` of a trace. Traces from before the guard are ``off``."""
    recorded: Mapping[str, Any] = cast("dict[str, Any]", policy) if isinstance(policy, dict) else {}
    entropy = recorded.get("entropy")
    chosen = chosen_policy(str(recorded.get("guard", "off")))
    return chosen, bytes.fromhex(entropy) if isinstance(entropy, str) else None


class Guard:
    """``entropy``: 32 random bytes of the run, from which its identifiers and unseeded draws are made; None where
    nothing is virtual. ``start`` is what the wall clock shows at virtual time 0 (nanoseconds since 1970), ``monotonic``
    what the monotonic clocks show; ``zone`` the time zone where it is not this process's own.
    """

    __slots__ = (
        "_counts",
        "_randoms",
        "_seeded",
        "_shown",
        "draws",
        "entropy",
        "environment",
        "last_stamp",
        "monotonic",
        "overlay",
        "policy",
        "start",
        "states",
        "suspended",
        "zone",
    )

    def __init__(
        self,
        policy: GuardPolicy = "off",
        entropy: bytes | None = None,
        *,
        start: int = 0,
        monotonic: int = 0,
        zone: Zone | None = None,
        environment: Environment | None = None,
    ) -> None:
        self.policy: GuardPolicy = policy
        self.entropy = entropy
        self.start = start
        self.monotonic = monotonic
        self.zone = zone
        self.environment = environment
        self.suspended = 0
        """How many imports are under way in the run: modules that are being loaded see the real world."""
        self.overlay: dict[str, str | None] | None = None
        """Variables that the run has set or deleted (None), once it has."""
        self.draws: str | None = None
        """``shared``: once the program has seeded the functions of ``random``, they are one generator in all of it."""
        self.last_stamp = 0
        """The last time stamp that an identifier of the run holds."""
        self.states: dict[tuple[str, str], object] = {}
        """What modules keep for the whole process between the identifiers that they make, as this run left it."""
        self._shown = 0
        self._counts: dict[str, int] = {}
        self._randoms: dict[str, random.Random] = {}
        self._seeded: random.Random | None = None

    @property
    def virtual(self) -> bool:
        """Whether clocks, randomness and environment are the run's own."""
        return self.policy != "off"

    def facts(self) -> dict[str, str]:
        """What the policy of the trace says of it."""
        facts: dict[str, str] = {"guard": self.policy}
        if self.virtual:
            facts["threads"] = "adopted"
            facts["yields"] = "sleep"
        if self.policy == "virtual":
            facts["sockets"] = "passed"
        if self.draws is not None:
            facts["draws"] = self.draws
        if self.entropy is not None:
            facts["entropy"] = self.entropy.hex()
        return facts

    def clock_facts(self) -> dict[str, int]:
        """What the start entry says of the run's clocks at virtual time 0."""
        return {"start": self.start} | ({"monotonic": self.monotonic} if self.virtual else {})

    @property
    def pending(self) -> dict[str, Any] | None:
        """Reads of the environment that no entry holds yet; the next one that is written takes them."""
        return self.environment.pending if self.environment is not None else None

    # -- the clock ---------------------------------------------------------------------------------------------------

    def elapsed(self, session: Session) -> int:
        """Read the run's clock: nanoseconds since its start. Each reading takes a microsecond of it; a delivery brings
        it to where that stands in the recording, and a reading that finds it behind the real one writes a delivery of
        its own, a tick. Raises what a delivery raises that cannot be written."""
        engine, stock = session.engine, session.stock
        if stock is not None and stock.elsewhere(engine):
            return self.glance(session)
        shown = self._shown + _READING
        vt = engine.vt
        if vt > shown:  # noqa: PLR1730 - quicker than max()
            shown = vt
        engine.reads = reads = engine.reads + 1
        passed = session.source.tick(shown, reads)
        if passed is not None:
            shown = self._tick(session, passed, shown)
        if shown > self._shown:  # noqa: PLR1730 - else another thread of a shared run was quicker, in between
            self._shown = shown
        return shown

    def look(self, session: Session) -> None:
        """The run's loop is asked for the time: as ``elapsed``, but it takes none, and raises nothing: asyncio would be
        left in the middle of something. The run stops where it comes to rest."""
        engine, loop, thread = session.engine, session.loop, get_ident()
        if loop is None or engine.thread != thread or self.suspended or (COLLECTING and thread in COLLECTING):
            return
        engine.reads = reads = engine.reads + 1
        passed = session.source.tick(loop.vt, reads)
        if passed is not None and not (session.over or engine.writing):
            with suppress(Stopped):
                self._tick(session, passed, loop.vt)

    def _tick(self, session: Session, passed: int, shown: int) -> int:
        """Bring the run's clock from ``shown`` to ``passed``; what it shows then. After the end, and after a failure,
        it goes on by itself: nothing more is written, and whoever still waits for it must come to an end."""
        engine, stock, loop = session.engine, session.stock, session.loop
        if not engine.over:
            if stock is None:
                engine.tick(passed)
            elif not stock.tick(session, passed):
                return shown
        now = max(shown, passed, engine.vt)
        if loop is not None:
            loop.advance(max(passed, engine.vt))
        return now

    def glance(self, session: Session) -> int:
        """What ``elapsed`` would show, without taking time: for stamps whose number nobody can count on."""
        return max(self._shown, session.engine.vt)

    # -- randomness --------------------------------------------------------------------------------------------------

    def draw(self, path: str, count: int) -> bytes:
        """``count`` bytes that are the run's own: the next ones of ``path``. Never made from the seed, for two runs of
        one seed must not make the same identifiers."""
        number = self._counts[path] = self._counts.get(path, 0) + 1
        material = b"agentloom bytes/1\n" + (self.entropy or b"") + number.to_bytes(8, "big") + path.encode()
        return hashlib.shake_256(material).digest(count)

    def fixed(self, what: str, count: int) -> bytes:
        """``count`` bytes that stay the same through the run."""
        return hashlib.shake_256(b"agentloom fixed/1\n" + (self.entropy or b"") + what.encode()).digest(count)

    def generator(self, path: str, seed: int | None, function: str = "") -> random.Random:
        """The generator on which ``function`` of ``random`` acts at ``path``; from the run's seed where it has one. Not
        that of the ``random`` host call: a replay does not draw from that. Where draws are ``shared``, the generator
        that the program has seeded itself is that of all paths from then on, as it is that of the whole process."""
        if self._seeded is not None:
            return self._seeded
        generator = self._of_path(path, seed)
        if self.draws == "shared" and function in ("seed", "setstate"):
            self._seeded = generator
        return generator

    def _of_path(self, path: str, seed: int | None) -> random.Random:
        generator = self._randoms.get(path)
        if generator is None:
            origin = (self.entropy or b"").hex() if seed is None else str(seed)
            digest = hashlib.sha256(f"agentloom random module/1\n{origin}\n{path}".encode()).digest()
            generator = self._randoms[path] = random.Random(int.from_bytes(digest, "big"))
        return generator


OFF = Guard()


def acting(scope: Scope | None = None) -> Session | None:
    """The session whose guard makes values virtual for the running code, or None: outside a run, under ``off``, after
    the run, while modules are being loaded, in finalisers that the garbage collector calls, in a store that writes an
    entry, and in a thread that carries the run's context but has no place in its order: what these took of the run's
    values would move those that the run itself sees."""
    if COLLECTING and get_ident() in COLLECTING:
        return None
    found = in_context() if scope is None else scope
    if found is None:
        return None
    session = found.session
    guard = session.guard
    if guard.policy == "off" or guard.suspended or session.over:
        return None
    engine = session.engine
    thread = engine.thread
    if thread == get_ident():
        return None if engine.writing else session
    stock = session.stock
    return session if thread is None or (stock is not None and stock.shared) else None
