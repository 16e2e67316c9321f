"""State of the process that a tool of a script may change, and that any code of the script may see: how to
look at it, how to keep what became of it, and how to bring it about again.

Each ``Probe`` stands for one such thing. What it sees is compared before and after a tool; what it keeps is
plain data.
"""

from __future__ import annotations

import atexit
import contextvars
import gc
import locale
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from agentloom.cli.script_exits import EXITS
from agentloom.cli.script_logging import keep_logging, look_at_logging, put_logging, told_of_logging
from agentloom.cli.script_names import Unkept, found_by_name, name_of
from agentloom.runtime.guard_start import REAL_FOLDER

__all__ = ["PROBES", "Probe"]

# As they are before a run is under way, in which the guard sees them.
_chdir, _umask, _setlocale = os.chdir, os.umask, locale.setlocale


@dataclass(frozen=True, slots=True)
class Probe:
    """``look`` gives what there is; ``keep(before, after)`` what is written of it where these are not equal,
    or raises ``Unkept``; ``put`` brings about what was kept, or raises ``Unkept``; ``tell`` says in words
    what of that is not as it was."""

    look: Callable[[], Any]
    keep: Callable[[Any, Any], Any]
    put: Callable[[Any], None]
    tell: Callable[[Any], str | None] | None = None


def _after(_: Any, now: Any) -> Any:
    return now


def _never(_: Any) -> None:
    raise AssertionError("nothing is kept of it")


# -- files ---------------------------------------------------------------------------------------------------------


def _folder() -> str:
    try:
        return REAL_FOLDER()
    except FileNotFoundError:
        return ""


_began = _folder()


def _keep_folder(_: str, now: str) -> str:
    """Below the folder in which the run began: relative to it."""
    if now == _began or now.startswith(os.path.join(_began, "")):
        return os.path.relpath(now, _began)
    return now


def _put_folder(folder: str) -> None:
    try:
        _chdir(os.path.join(_began, folder))
    except OSError as error:
        raise Unkept(f"changed the working folder to {folder}, which is not there now") from error


def _mask() -> int:
    mask = _umask(0o77)
    _umask(mask)
    return mask


def _put_mask(mask: int) -> None:
    _umask(mask)


def _keep_path(before: list[str], now: list[str]) -> list[Any]:
    added = [[at, entry] for at, entry in enumerate(now) if entry not in before]
    return [added, [entry for entry in before if entry not in now]]


def _put_path(kept: list[Any]) -> None:
    added, gone = kept
    sys.path[:] = [entry for entry in sys.path if entry not in gone]
    for at, entry in added:
        sys.path.insert(at, entry)


# -- settings of the interpreter -----------------------------------------------------------------------------------


def _set_collector(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()


def _timeout() -> float | None:
    module: Any = sys.modules.get("socket")
    return None if module is None else cast("float | None", module.getdefaulttimeout())


def _put_timeout(seconds: float | None) -> None:
    import socket

    socket.setdefaulttimeout(seconds)


def _put_locale(name: str) -> None:
    try:
        _setlocale(locale.LC_ALL, name)
    except locale.Error as error:
        raise Unkept(f"set the locale {name}, which is not there now") from error


def _keep_zone(_: Any, __: Any) -> Any:
    raise Unkept("changes the time zone of the process")


def _hooks() -> dict[str, Any]:
    return {f"{module.__name__}.{name}": getattr(module, name) for module, names in _HOOKS for name in names}


_HOOKS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (sys, ("excepthook", "displayhook", "unraisablehook", "stdin", "stdout", "stderr")),
    (threading, ("excepthook",)),
)


def _keep_hooks(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in now.items():
        if value is not before[name]:
            found = name_of(value)
            if found is None:
                raise Unkept(f"replaces {name}")
            kept[name] = found
    return kept


def _put_hooks(kept: dict[str, str]) -> None:
    for name, found in kept.items():
        try:
            module, _, attribute = name.partition(".")
            setattr(sys.modules[module], attribute, found_by_name(found))
        except LookupError as error:
            raise Unkept(f"replaced {name} by {found}, which is not there now") from error


def _handlers() -> dict[int, Any]:
    return {number: _handler(number) for number in _SIGNALS}


_handler: Callable[[int], Any] = cast(
    Any, sys.modules["_signal"]
).getsignal  # quicker than that of ``signal``
_SIGNALS = sorted(
    int(one)
    for one in signal.valid_signals() - {getattr(signal, "SIGKILL", 9), getattr(signal, "SIGSTOP", 19)}
)


def _keep_handlers(before: dict[int, Any], now: dict[int, Any]) -> list[list[Any]]:
    kept: list[list[Any]] = []
    for number, handler in now.items():
        if handler is before[number]:
            continue
        found = int(handler) if isinstance(handler, int) else name_of(handler)
        if found is None:
            raise Unkept(
                f"sets a handler of {signal.Signals(number).name}, which a replay does not find by a name"
            )
        kept.append([number, found])
    return kept


def _put_handlers(kept: list[list[Any]]) -> None:
    for number, found in kept:
        try:
            signal.signal(number, signal.Handlers(found) if isinstance(found, int) else found_by_name(found))
        except (LookupError, ValueError) as error:
            raise Unkept(f"set a handler of signal {number}, {found}, which is not there now") from error


def _timer() -> bool:
    get: Any = getattr(signal, "getitimer", None)
    return get is not None and get(cast(Any, signal).ITIMER_REAL) != (0.0, 0.0)


def _keep_timer(_: bool, now: bool) -> Any:
    raise Unkept("sets a timer of the process" if now else "stops the timer of the process")


def _keep_exits(before: list[Any], now: list[Any]) -> list[list[Any]]:
    kept: list[list[Any]] = []
    if now[: len(before)] != before:
        raise Unkept("takes back an exit handler")
    for function, args, kwargs in now[len(before) :]:
        found = name_of(function)
        if found is None:
            raise Unkept("registers an exit handler, which a replay does not find by a name")
        kept.append([found, list(args), kwargs])
    return kept


def _put_exits(kept: list[list[Any]]) -> None:
    for found, args, kwargs in kept:
        try:
            atexit.register(found_by_name(found), *args, **kwargs)
        except LookupError as error:
            raise Unkept(f"registered the exit handler {found}, which is not there now") from error


# -- warnings ------------------------------------------------------------------------------------------------------


def _filters() -> list[Any]:
    return list(warnings.filters)


def _keep_filters(_: list[Any], now: list[Any]) -> list[list[Any]]:
    kept: list[list[Any]] = []
    for action, message, category, module, line in now:
        found = name_of(category)
        if found is None:
            raise Unkept("sets a filter of warnings of a class that a replay does not find by a name")
        kept.append([action, _pattern(message), found, _pattern(module), line])
    return kept


def _pattern(pattern: Any) -> Any:
    # Python's own first filters have a text there.
    return pattern if pattern is None or isinstance(pattern, str) else [pattern.pattern, pattern.flags]


def _put_filters(kept: list[list[Any]]) -> None:
    made: list[Any] = []
    for action, message, found, module, line in kept:
        try:
            category = found_by_name(found)
        except LookupError as error:
            raise Unkept(f"set a filter of warnings of {found}, which is not there now") from error
        made.append((action, _compiled(message), category, _compiled(module), line))
    cast(Any, warnings).filters[:] = made
    told: Callable[[], None] | None = getattr(warnings, "_filters_mutated", None) or getattr(
        warnings, "_filters_mutated_lock_held", None
    )
    if told is not None:
        told()


def _compiled(kept: list[Any] | str | None) -> Any:
    return kept if kept is None or isinstance(kept, str) else re.compile(kept[0], kept[1])


# -- arithmetic and randomness of libraries ------------------------------------------------------------------------

_OF_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _decimal() -> list[Any] | None:
    """The context of ``decimal``, where there is one: asking for it makes one."""
    if "decimal" not in sys.modules or not any(
        var.name == "decimal_context" for var in contextvars.copy_context()
    ):
        return None
    module = sys.modules["decimal"]
    context: Any = module.getcontext()
    return [
        *(getattr(context, name) for name in _OF_DECIMAL),
        *(sorted(one.__name__ for one, on in held.items() if on) for held in (context.flags, context.traps)),
    ]


def _put_decimal(kept: list[Any] | None) -> None:
    if kept is None:
        return
    import decimal

    context: Any = decimal.getcontext()
    *plain, flags, traps = kept
    for name, value in zip(_OF_DECIMAL, plain, strict=True):
        setattr(context, name, value)
    for held, on in ((context.flags, flags), (context.traps, traps)):
        for one in held:
            held[one] = one.__name__ in on


def _numpy() -> Any:
    """The state of numpy's one global generator, where numpy is loaded and it is of the usual kind."""
    module: Any = sys.modules.get("numpy.random")
    state = None if module is None else module.get_state(legacy=False)
    if state is None or state["bit_generator"] != "MT19937":
        return None
    inner = state["state"]
    return [inner["key"].tobytes(), int(inner["pos"]), int(state["has_gauss"]), float(state["gauss"])]


def _put_numpy(kept: Any) -> None:
    if kept is None:
        return
    import numpy as np  # pyright: ignore[reportMissingImports]  # what the tool used

    key, *rest = kept
    module: Any = np
    module.random.set_state(("MT19937", module.frombuffer(key, dtype=module.uint32), *rest))


PROBES: dict[str, Probe] = {
    "folder": Probe(_folder, _keep_folder, _put_folder),
    "umask": Probe(_mask, _after, _put_mask),
    "path": Probe(lambda: list(sys.path), _keep_path, _put_path),
    "zone": Probe(lambda: (time.tzname, time.timezone), _keep_zone, _never),
    "recursion": Probe(sys.getrecursionlimit, _after, sys.setrecursionlimit),
    "collector": Probe(gc.isenabled, _after, _set_collector),
    "timeout": Probe(_timeout, _after, _put_timeout),
    "locale": Probe(lambda: _setlocale(locale.LC_ALL), _after, _put_locale),
    "hooks": Probe(_hooks, _keep_hooks, _put_hooks),
    "signals": Probe(_handlers, _keep_handlers, _put_handlers),
    "timer": Probe(_timer, _keep_timer, _never),
    "exits": Probe(lambda: list(EXITS), _keep_exits, _put_exits),
    "warnings": Probe(_filters, _keep_filters, _put_filters),
    "logging": Probe(look_at_logging, keep_logging, put_logging, told_of_logging),
    "decimal": Probe(_decimal, _after, _put_decimal),
    "numpy": Probe(_numpy, _after, _put_numpy),
}
"""By the names under which a trace keeps them."""
