"""Loading a program for its agents' sake: its definitions are wanted, its runs are not.

A file that ends with ``trace = graph.run(...)`` at its top level is fine as a program; when it is loaded to replay or
to run one of its agents, that line must not become a live run. Loading then stops there: everything above is defined.
"""

from __future__ import annotations

import contextvars
from collections.abc import Generator
from contextlib import contextmanager

from agentloom.errors import ControlFlow
from agentloom.runtime.contexts import put

__all__ = ["RunWhileLoading", "loading", "refuse_while_loading"]

_loading: contextvars.ContextVar[bool] = contextvars.ContextVar("agentloom.loading", default=False)


class RunWhileLoading(ControlFlow):
    """The program started a run at its top level while it was being loaded."""


@contextmanager
def loading() -> Generator[None]:
    """Load a program in the block: a run that it starts ends the block instead, quietly."""
    token = put(_loading, True)
    try:
        yield
    except RunWhileLoading:
        pass
    finally:
        _loading.reset(token)


def refuse_while_loading(agent: str) -> None:
    """Raise ``RunWhileLoading`` where a program is being loaded."""
    if _loading.get():
        raise RunWhileLoading(f"{agent}.run() at the top level of a program that is being loaded")
