"""The error of a transport that the user made: that very object while it is recorded, as without a run.

What a host call raises is made from what was written of it. A transport of the program's own (a mock, a cache, one
that signs requests) raises errors of the program's own, and code beside it may ask whether it is the one that it knows.
So where both say the same, its own is raised. An error of the network stays what was written: it holds sockets.
"""

from __future__ import annotations

__all__ = ["OwnError"]


class OwnError:
    """Of one request: what its transport raised, if it was performed here."""

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def note(self, error: BaseException) -> None:
        """The transport raised ``error``."""
        if error.__cause__ is None and error.__context__ is None:
            self._raised = error  # with errors behind it a traceback would show what a replay does not have

    def for_(self, written: BaseException) -> BaseException:
        """What to raise for ``written``. Its traceback is that of ``written``, as on replay."""
        own, self._raised = self._raised, None
        if own is None or type(own) is not type(written):
            return written
        if own.args != written.args or vars(own).keys() != vars(written).keys():
            return written
        return own.with_traceback(written.__traceback__)
