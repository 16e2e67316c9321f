"""Tools that change their arguments in place: told once, for a run sees that otherwise than plain code.

In a run a tool is given copies of what was written of its arguments, so that what it does to them changes nothing in
the program: a replay, which does not run it, could not do that. Where the code is left alone (``AGENTLOOM=off``) a tool
is just its function, and does. Who goes by it would get something else in a run, so it is named.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from agentloom.errors import ValueRefused
from agentloom.format.values import Tree, encode
from agentloom.runtime.calls import Call
from agentloom.runtime.registry import TYPES

__all__ = ["ArgumentWatch"]

_SIMPLE = frozenset((type(None), bool, int, float, complex, str, bytes))
_CALLS = 50
"""Calls of each tool that are looked at. A tool that changes its arguments does so from the first ones on."""
_log = logging.getLogger("agentloom.recording")


class ArgumentWatch:
    """Of one tool, ``name``."""

    __slots__ = ("_left", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _CALLS

    def wanted(self, call: Call, arguments: Mapping[str, object]) -> bool:
        """Whether to look, after this call, what became of ``arguments``."""
        if not self._left or call.rule is not None or all(type(one) in _SIMPLE for one in arguments.values()):
            return False
        self._left -= 1
        return True

    def look(self, call: Call, arguments: Mapping[str, object]) -> None:
        """The tool has returned: tell the arguments that are not what was written any more."""
        written = call.tree["args"]
        names = [
            name
            for name, value in arguments.items()
            if isinstance(written, dict) and _differs(value, written.get(name))
        ]
        if not names:
            return
        self._left = 0
        _log.warning(
            "tool %s changed its argument %s in place: in a run it is given copies, and the caller does not see it;"
            " under AGENTLOOM=off the caller does. To change it: return what matters",
            self._name, names[0],
        )  # fmt: skip


def _differs(value: object, written: Tree) -> bool:
    try:
        return encode(value, TYPES) != written
    except ValueRefused:
        return True
