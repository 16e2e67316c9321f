"""``python -m tests.guard.twins``: where in the standard library functions are still to be had that the guard replaces.

Prints ``{module: [name, ...]}`` as JSON: names that hold the function from before, once a run was made in a process in
which the whole standard library is loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import warnings

NOT_LOADED = frozenset(
    ("antigravity", "this", "idlelib", "turtledemo", "turtle", "tkinter", "lib2to3", "test", "__main__")
)
"""Opens a browser or a window, or prints."""


def load() -> None:
    """Import every module of the standard library that can be."""
    for name in sorted(sys.stdlib_module_names - NOT_LOADED):
        if not name.startswith(("_test", "_xx")):
            with contextlib.suppress(ImportError, OSError, AttributeError, KeyError):
                importlib.import_module(name)


def holders() -> dict[str, list[str]]:
    """Who holds a function from before."""
    from agentloom import agent
    from agentloom.runtime.guard_names import NAMES
    from agentloom.store import MemoryStore

    @agent
    def nothing() -> None:
        pass

    nothing.run(store=MemoryStore())
    found: dict[str, list[str]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
            held = [key for key, value in list(vars(module).items()) if NAMES.replacement(value) is not value]
            if held:
                found[name] = sorted(held)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):
        load()
    print(json.dumps(holders()))
