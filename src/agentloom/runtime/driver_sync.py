"""The sync driver: a sync agent runs in the caller's thread, its host calls are answered inline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agentloom.runtime.scope import entered
from agentloom.runtime.session import Session

__all__ = ["run_sync"]

T = TypeVar("T")


def run_sync(session: Session, main: Callable[[], T]) -> T:
    """Call ``main`` with the session's root scope current."""
    session.blocking = session.stock is None
    session.engine.take()
    try:
        with entered(session.root):
            try:
                return main()
            finally:
                if session.baton is not None:
                    session.baton.drain()
    finally:
        session.source.close()
