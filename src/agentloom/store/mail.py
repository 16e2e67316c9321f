"""Mail: what was said to a run from outside, kept beside its trace until the run takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentloom.format.values import Tree

__all__ = ["Mail"]


@dataclass(frozen=True, slots=True)
class Mail:
    """``key``: of an answer the question; of a cancellation ``cancel``; of a signal an id of its own. Mail of one kind
    and key is posted once, for ever. ``name``: of a signal. ``value``: an encoded value. ``who`` said it, ``at`` when
    (nanoseconds since 1970), ``via`` what (``cli``, ``api``, ``terminal``)."""

    kind: Literal["answer", "signal", "cancel"]
    key: str
    name: str = ""
    value: Tree = None
    who: str | None = None
    at: int = 0
    via: str = ""
