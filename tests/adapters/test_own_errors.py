"""Which error of a transport is raised in place of the one that was written."""

from __future__ import annotations

from agentloom.adapters.own_errors import OwnError


class Odd(Exception):
    pass


def written(*args: object) -> Exception:
    def fails() -> None:
        raise Odd(*args)

    try:
        fails()
    except Odd as error:
        return error
    raise AssertionError


def test_one_that_says_the_same_is_raised_with_the_other_ones_traceback() -> None:
    own, raised = OwnError(), Odd("x")
    own.note(raised)
    other = written("x")
    assert own.for_(other) is raised
    assert raised.__traceback__ is other.__traceback__ is not None
    assert own.for_(other) is other  # once


def test_others_are_not() -> None:
    own = OwnError()
    other = written("x")
    assert own.for_(other) is other  # on replay nothing is noted
    more, chained, behind = Odd("x"), Odd("x"), Odd("x")
    more.__dict__["response"] = object()  # it was lost in what was written
    chained.__cause__ = behind.__context__ = ValueError()
    for raised in (Odd("y"), ValueError("x"), more, chained, behind):
        own.note(raised)
        assert own.for_(other) is other
