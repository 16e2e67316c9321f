"""What is kept of the result of a stranger's code: plain data, the same on every run, whatever types are declared."""

from __future__ import annotations

from typing import Any

from agentloom.errors import ValueRefused
from agentloom.format.declared import How, how_of
from agentloom.format.values import Types, decode, encode_apart

__all__ = ["NOT_KEPT", "kept_output"]

NOT_KEPT = "output not recorded"
"""The member of a note that says why a run's output is not in its trace."""


class _Every(Types):
    """All types that have a form in a trace, declared or not."""

    def how(self, cls: type[Any]) -> How | None:
        """How instances of ``cls`` are written."""
        return how_of(cls)


_EVERY = _Every()


def kept_output(value: object) -> tuple[object, str | None]:
    """``value`` as plain data (fields of dataclasses, models, named tuples; names of enum members), and None; or None
    and why it cannot be kept."""
    try:
        tree, plain, _ = encode_apart(value, _EVERY)
    except ValueRefused as refused:
        return None, f"{refused.path}: {refused.type_name}, {refused.reason}"
    return (tree if plain else decode(tree, None)), None
