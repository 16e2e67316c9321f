"""The double run: a trace replayed in several worlds, in a child process each; what differs, and which facet is why.

No model is called and no tool runs: these are replays. A replay within one world cannot see what depends on that world
alone (the order of a set under one hash seed, the working folder, the time zone of the process).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agentloom.cli.checks.worlds import FACETS, World, worlds
from agentloom.cli.script_parent import Child, Surroundings, start

__all__ = ["EVERY", "Difference", "Doubled", "double_run", "part"]

EVERY = "every replay"
"""The facet of what differs in the recorded world too."""
_LIKELY: dict[str, tuple[str, ...]] = {
    "set order": ("hash seed",),
    "key order": ("hash seed",),
    "float": ("hash seed",),
    "folder": ("working folder", "environment"),
    "temp path": ("working folder", "environment"),
}
"""Which facet is tried first for what a differing value looks like."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differed. ``facets``: the part of the world that is why, or ``EVERY``; ``report``: the replay's report, or
    ``error``: why the program did not get as far as a verdict."""

    facets: tuple[str, ...]
    world: int
    report: dict[str, Any] | None
    lines: list[list[tuple[str, str]]] = field(default_factory=list[list[tuple[str, str]]])
    error: dict[str, Any] | None = None

    @property
    def by_code(self) -> bool:
        """Whether the code is another than when the run was recorded: that is no finding."""
        return self.facets == (EVERY,) and part(self.report, "cause").get("kind") in ("code", "packages")


def part(report: dict[str, Any] | None, *names: str) -> dict[str, Any]:
    """The object under ``names`` in a report; empty where there is none."""
    found: Any = report
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


@dataclass(slots=True)
class Doubled:
    """``replays``: how many were made; ``differences``: one for each facet that matters, the first found first."""

    worlds: list[World]
    replays: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])


def double_run(
    job: Mapping[str, Any],
    environ: Mapping[str, str],
    trace: bytes,
    *,
    count: int,
    read: Iterable[str] = (),
    first: Sequence[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Doubled:
    """Replay ``trace`` in ``count`` worlds. ``job`` and ``environ``: of a replay in the recorded world; ``read``: names
    of variables that the program reads; ``first``: the facets that are likely causes; ``told``: hears what is being
    done."""
    with tempfile.TemporaryDirectory(prefix="agentloom-check-") as root:
        run = _Run(job, environ, trace, worlds(count, root, read, environ), first, told)
        return run.all()


class _Run:
    def __init__(
        self,
        job: Mapping[str, Any],
        environ: Mapping[str, str],
        trace: bytes,
        chosen: Sequence[World],
        first: Sequence[str],
        told: Callable[[str], None],
    ) -> None:
        self._job = {**job, "json": True, "strict_noted": False, "width": 100}
        self._environ = environ
        self._trace = trace
        self._first = first
        self._told = told
        self._baseline: Difference | None = None
        self._known = False
        self.done = Doubled(list(chosen))

    def all(self) -> Doubled:
        """Every world; a facet that was found to matter is left as recorded from then on."""
        left: list[str] = [*FACETS]
        for world in self.done.worlds:
            while left:
                self._told(f"world {world.number} of {len(self.done.worlds)}: another {', '.join(left)}")
                found = self._replay(world, left)
                if found is None:
                    break
                if (always := self._recorded_world()) is not None:
                    self.done.differences.append(always)
                    return self.done
                reason = self._reason(world, left, found)
                self.done.differences.append(reason)
                left = [facet for facet in left if facet not in reason.facets]
        return self.done

    def _recorded_world(self) -> Difference | None:
        """What differs in the recorded world already: then no world is the reason."""
        if not self._known:
            self._known = True
            self._told("the recorded world")
            self._baseline = self._difference(
                self._start(self._environ, Surroundings(quiet=True)), (EVERY,), 0
            )
        return self._baseline

    def _reason(self, world: World, facets: Sequence[str], found: Difference) -> Difference:
        """The one facet that makes a difference by itself, with what differs then; all of them where none does."""
        looks = str(part(found.report, "cause", "leak").get("kind"))
        likely = [facet for facet in (*self._first, *_LIKELY.get(looks, ())) if facet in facets]
        for facet in likely:
            if (alone := self._alone(world, [facet])) is not None:
                return alone
        left = [facet for facet in facets if facet not in likely]
        last: Difference | None = None
        while len(left) > 1:
            half = left[: len(left) // 2]
            last = self._alone(world, half)
            left = half if last is not None else left[len(half) :]
        if left and last is None:  # the other half did not matter: that this one does is still to be seen
            last = self._alone(world, left)
        return last or found

    def _alone(self, world: World, facets: Sequence[str]) -> Difference | None:
        self._told(f"world {world.number}: another {', '.join(facets)} alone")
        return self._replay(world, facets)

    def _replay(self, world: World, facets: Collection[str]) -> Difference | None:
        child = self._start(world.environ(self._environ, facets), world.surroundings(facets))
        return self._difference(child, tuple(facets), world.number)

    def _start(self, environ: Mapping[str, str], around: Surroundings) -> Child:
        self.done.replays += 1
        return start(self._job, environ, self._trace, around)

    @staticmethod
    def _difference(child: Child, facets: tuple[str, ...], world: int) -> Difference | None:
        if child.done is None:
            error = child.error or {
                "type": "NoVerdict",
                "message": f"the process ended with exit code {child.code} before there was a verdict",
                "exit": 1,
            }
            return Difference(facets, world, None, error=error)
        if child.done["exit"] == 0:
            return None
        lines = [[(str(style), str(text)) for style, text in line] for line in child.done["lines"]]
        return Difference(facets, world, child.done["report"], lines)
