"""Where in a run the current code stands: which run, which structural path, which counters.

The scope lives in one context variable. The inner loop gives each task its own (``enter_task``), so that call ids
come from the order in which code created its tasks and never from timing.
"""

# ``Attempts`` sets the counters of a scope back: the two are one thing.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import TYPE_CHECKING, TypeVar

from agentloom.errors import NoActiveRun, NotSupported
from agentloom.format.callids import segment
from agentloom.format.limits import PATH_BYTES
from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.contexts import put
from agentloom.runtime.work import Work, doing, mark

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = [
    "Attempts",
    "Scope",
    "current",
    "enter_scope",
    "enter_task",
    "entered",
    "here",
    "in_context",
    "leave",
    "outside",
    "require",
    "run_outside",
    "set_variables",
    "stays",
]

T = TypeVar("T")

_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("agentloom.scope", default=None)

_overlay: contextvars.ContextVar[dict[str, str | None] | None] = contextvars.ContextVar(
    "agentloom.overlay", default=None
)

_stays: contextvars.ContextVar[bool] = contextvars.ContextVar("agentloom.stays", default=False)

in_context = _scope.get
"""As ``here``, for those who must be quick and look at ``COLLECTING`` themselves."""

set_variables = _overlay.get
"""In host work: the environment variables that the run had set or deleted (None) when it asked for the work.
For those who look at ``COLLECTING`` themselves."""

enter_scope = _scope.set
"""Make a scope that of the current context, for good: of a thread's own."""

_HOST_WORK = Work("host call")


class Scope:
    """One position in a run. ``parent`` is the id of the call whose work this scope is (a child agent), if any;
    ``src`` the place in the code that started it, for calls with no code of the agent's around them. ``depth`` counts
    the child runs that it is inside of."""

    __slots__ = ("_calls", "_children", "_made", "depth", "fresh", "parent", "path", "session", "src")

    def __init__(self, session: Session, path: str, parent: str | None = None) -> None:
        self.session = session
        self.path = path
        self.parent = parent
        self.src = "?"
        self.depth = 0
        self.fresh = False
        self._calls = 0
        self._children: dict[str, int] = {}
        self._made: dict[str, int] | None = None  # inside attempts: how often each logical call was made

    def next_call(self) -> str:
        """The id of the next host call made here: ``path#n``, n from 1; of one made again, ``path#n~attempt``."""
        self._calls += 1
        logical = f"{self.path}#{self._calls}"
        if self._made is None:
            return logical
        attempt = self._made[logical] = self._made.get(logical, 0) + 1
        return logical if attempt == 1 else f"{logical}~{attempt}"

    def peek(self) -> str:
        """The id that the next host call made here will have."""
        logical = f"{self.path}#{self._calls + 1}"
        made = self._made.get(logical, 0) if self._made is not None else 0
        return f"{logical}~{made + 1}" if made else logical

    def child(self, name: str, parent: str | None = None) -> Scope:
        """A scope below this one, ``path/name[i]``, i counted per name from 0."""
        index = self._children.get(name, 0)
        self._children[name] = index + 1
        path = f"{self.path}/{segment(name, index)}"
        if len(path) > PATH_BYTES:
            raise NotSupported(
                f"{name} would run too far down in the run: its path would be over {PATH_BYTES} characters",
                hint="nest agents and tasks less deep, or give them shorter names",
            )
        if not index and (redactor := self.session.engine.redactor) is not None:
            redactor.check_name("the name of an agent, a step or a branch", name)
        made = Scope(self.session, path, parent or self.parent)
        made.src = self.src
        made.depth = self.depth
        made._made = self._made
        return made

    def started(self, name: str) -> Scope:
        """As ``child``, for a task or strand that the running code starts: it remembers where."""
        made = self.child(name)
        src = self.session.engine.places.caller()
        if src != "?":
            made.src = src
        return made


class Attempts:
    """Several attempts at one piece of work in ``scope``: what it does again has the same call ids and paths, told
    apart by ``~attempt``. So a tool keeps its idempotency key, and a call after the work its id, however
    often the work was tried. Attempts may lie inside attempts. Call ``again`` before each attempt but the
    first, ``end`` at the end."""

    __slots__ = ("_calls", "_children", "_highest", "_outer", "_paths", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._calls = self._highest = scope._calls
        self._children = dict(scope._children)
        self._paths = dict(scope._children)
        self._outer = scope._made
        if scope._made is None:
            scope._made = {}

    def again(self) -> None:
        """The next attempt begins."""
        self._look()
        self._scope._calls = self._calls
        self._scope._children = dict(self._children)

    def end(self) -> None:
        """There is no further attempt; what comes now has ids of its own."""
        self._look()
        self._scope._calls = self._highest
        self._scope._children = self._paths
        self._scope._made = self._outer

    def _look(self) -> None:
        scope = self._scope
        self._highest = max(self._highest, scope._calls)
        for name, count in scope._children.items():
            self._paths[name] = max(self._paths.get(name, 0), count)


def here() -> Scope | None:
    """The scope that the running context holds, over or not; None in finalisers that the garbage collector calls, for
    whom no context is asked."""
    if COLLECTING and get_ident() in COLLECTING:
        return None
    return _scope.get()


def current() -> Scope | None:
    """The scope of the running code, or None outside a run, and in finalisers that the garbage collector calls. One
    that an exception out of a signal handler left behind is none: its run is over."""
    if COLLECTING and get_ident() in COLLECTING:
        return None
    scope = _scope.get()
    if scope is None or scope.session.over:
        return None
    baton = scope.session.baton
    return scope if baton is None else baton.scope_of(scope)


def require(what: str) -> Scope:
    """The scope of the running code; ``NoActiveRun`` naming ``what`` outside a run."""
    scope = current()
    if scope is None:
        raise NoActiveRun(
            f"{what}() was called outside a run",
            hint="call it from a function decorated with @agentloom.agent, and start that with .run(...) or .arun(...)",
            what=what,
        )
    return scope


@contextmanager
def entered(scope: Scope | None) -> Generator[None]:
    """Make ``scope`` current for the block."""
    token = put(_scope, scope)
    try:
        yield
    finally:
        _scope.reset(token)


def outside() -> contextvars.Context:
    """A copy of the current context in which no run is active: where host work (tools, transports) happens, and is
    known as such."""
    context = contextvars.copy_context()
    context.run(leave)
    return context


def run_outside(work: Callable[[], T]) -> T:
    """``outside().run(work)``, in one step. Where the context ``stays``, it is this very one: context
    variables that the work sets are set here."""
    if _stays.get():
        return _run_here(work)
    return contextvars.copy_context().run(_left, work)


@contextmanager
def stays() -> Generator[None]:
    """A block in which host work that its caller waits for is done in the caller's context, and not in a copy."""
    token = put(_stays, True)
    try:
        yield
    finally:
        _stays.reset(token)


def _run_here(work: Callable[[], T]) -> T:
    scope = _scope.get()
    overlay = None if scope is None else scope.session.guard.overlay
    tokens = (put(_stays, False), put(_overlay, overlay))
    try:
        with entered(None), doing(_HOST_WORK):
            return work()
    finally:
        _stays.reset(tokens[0])
        _overlay.reset(tokens[1])


def leave() -> None:
    """From now on the current context is that of host work, as ``outside`` gives one."""
    scope = _scope.get()
    if scope is not None and scope.session.guard.overlay is not None:
        # Host work sees the environment variables that the run has set.
        _overlay.set(scope.session.guard.overlay)
    _scope.set(None)
    mark(_HOST_WORK)


def _left(work: Callable[[], T]) -> T:
    leave()
    return work()


def enter_task(context: contextvars.Context) -> None:
    """Give a new task's context a scope of its own below its creator's. Does nothing outside a run."""
    scope = context.get(_scope)
    if scope is None:
        return
    if scope.fresh:
        scope.fresh = False  # made for this very task (see ``parallel``): it is its own scope already
    else:
        context.run(_scope.set, scope.started("task"))
