"""The guard of one run: by which policy it runs, and what its virtual values are made from.

A run under a guard sees no clock, no randomness and no environment but its own. What it sees follows from the start
entry of its trace and from the recorded deliveries, so that a replay sees the same without anything being written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from agentloom.errors import ValueRefused

__all__ = ["DEFAULT_POLICY", "OFF", "Guard", "GuardPolicy", "chosen_policy"]

GuardPolicy = Literal["strict", "virtual", "off"]
"""``strict``: values are virtual, and effects of the agent's own code outside host calls are refused. ``virtual``: such
effects pass when recording and are listed. ``off``: nothing is virtual, and nothing refused when recording."""

DEFAULT_POLICY: GuardPolicy = "off"

_POLICIES: tuple[str, ...] = get_args(GuardPolicy)
ENTROPY_BYTES = 32


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


class Guard:
    """``entropy``: 32 random bytes of the run, from which its identifiers and unseeded draws are made; None where
    nothing is virtual. Written in the trace's policy."""

    __slots__ = ("entropy", "policy")

    def __init__(self, policy: GuardPolicy = "off", entropy: bytes | None = None) -> None:
        self.policy: GuardPolicy = policy
        self.entropy = entropy

    @classmethod
    def of_record(cls, policy: object) -> Guard:
        """The guard that a trace was recorded under, from its ``policy``. Traces from before the guard are ``off``."""
        recorded: Mapping[str, Any] = cast("dict[str, Any]", policy) if isinstance(policy, dict) else {}
        entropy = recorded.get("entropy")
        return cls(
            chosen_policy(recorded.get("guard", "off")),
            bytes.fromhex(entropy) if isinstance(entropy, str) else None,
        )

    def facts(self) -> dict[str, str]:
        """What the policy of the trace says of it."""
        facts: dict[str, str] = {"guard": self.policy}
        if self.entropy is not None:
            facts["entropy"] = self.entropy.hex()
        return facts

    @property
    def virtual(self) -> bool:
        """Whether clocks, randomness and environment are the run's own."""
        return self.policy != "off"


OFF = Guard()
