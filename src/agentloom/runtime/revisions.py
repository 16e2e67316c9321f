"""``changed(name)``: code that is not as it was when older runs were recorded asks which of the two holds."""

from __future__ import annotations

from typing import cast

from agentloom.errors import ControlFlow, ValueRefused
from agentloom.format.callids import segment
from agentloom.runtime import plainly
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.scope import Scope

__all__ = ["changed"]


def changed(name: str) -> bool:
    """Whether the change called ``name`` holds in this run: True in every run that comes here for the first time under
    the changed code, False in one that had come past here before the change was made (it is resumed, or replayed).

    ::

        if changed("ask twice above 1000"):
            await ask(...)          # the new code
        else:
            ...                     # the old one, until the last old run has ended

    The answer is recorded once in a run, and is the same wherever the run asks again. Not awaited, in sync and in async
    code. ``NoActiveRun`` outside of a run; ``ValueRefused`` for what is no name.
    """
    if not isinstance(cast("object", name), str) or not name:
        raise ValueRefused(
            "name", type(name).__name__, "a change has a name: a text", hint='changed("ask twice above 1000")'
        )
    spec = CallSpec("changed", name, {})
    found = taking_part("changed")
    if found is None:
        return cast(bool, plainly.call(spec, _yes))
    session = found.session
    known = session.changes.get(name)
    if known is not None:
        return known
    # A path of its own: whether the change is asked about moves no other call's id.
    scope = Scope(session, f"{session.root.path}/changed/{segment(name)}")
    if session.source.never_made(scope.peek()):
        session.changes[name] = False
        return False
    if session.stock is not None:
        answer = session.stock.call(spec, scope, _yes)
    else:
        engine = session.engine
        call = engine.begin(spec, scope, waits=True)
        try:
            arrival = session.source.inline(call, _performed)
        except ControlFlow as failure:
            engine.fail(failure)
        answer = engine.deliver(arrival).unwrap()
    session.changes[name] = holds = cast(bool, answer)
    return holds


def _performed() -> object:
    return True


def _yes(_: Call) -> object:
    return True
