"""Facts of the process and the machine in a run: where it runs, as whom, on what. Recorded when they are read.

They differ from one machine to another and say nothing that the agent could compute, so they are served on replay, by
name, like variables of the environment. Only to the agent's own code, and to what the standard library does for it:
a library that looks where it is (to find its files, to choose a system call) is right about that now.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from agentloom.runtime.finding import done_for_own
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import NAMES, stand_in

__all__ = ["install_loaded"]

_FACTS: Mapping[str, tuple[str, ...]] = {
    "os": (
        "getcwd", "getcwdb", "getlogin", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid",
        "getresgid", "cpu_count", "process_cpu_count", "sched_getaffinity", "getloadavg", "isatty", "ctermid",
        "ttyname", "getpriority", "sysconf", "confstr",
    ),
    "locale": ("setlocale", "getlocale", "getpreferredencoding", "getencoding", "localeconv", "nl_langinfo"),
    "_locale": ("setlocale", "localeconv"),
    "mimetypes": ("guess_type", "guess_extension", "guess_all_extensions"),
    "platform": (
        "architecture", "freedesktop_os_release", "libc_ver", "mac_ver", "machine", "node", "platform", "processor",
        "python_build", "python_compiler", "python_implementation", "python_version", "python_version_tuple",
        "release", "system", "version", "win32_ver",
    ),
    "resource": ("getrlimit", "getpagesize"),
    "socket": ("gethostname", "if_nameindex"),
}  # fmt: skip
"""Functions whose results are plain values, by module."""

_STRUCTURES: Mapping[str, Mapping[str, str]] = {
    "os": {"uname": "uname_result", "get_terminal_size": "terminal_size"},
    "platform": {"uname": "uname_result"},
    "pwd": {"getpwuid": "struct_passwd", "getpwnam": "struct_passwd"},
    "grp": {"getgrgid": "struct_group", "getgrnam": "struct_group"},
}
"""Functions whose results are tuples with names, and the class of that module that they are of."""

_ASKING: Mapping[str, int] = {"locale.setlocale": 1, "_locale.setlocale": 1}
"""Functions that only ask where they get no more arguments than this, and else change something."""
_ANY = 100

_ERRORS: Mapping[str, type[Exception]] = {"KeyError": KeyError, "OSError": OSError, "ValueError": ValueError}


def _key(module: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """The call as its name in the trace; None where an argument is no short value that reads alike everywhere."""
    given = [*args, *kwargs.values()]
    if not all(
        item is None or type(item) in (int, bool) or (type(item) is str and len(item) < 200) for item in given
    ):
        return None
    words = [repr(item) for item in args] + [f"{word}={item!r}" for word, item in kwargs.items()]
    return f"{module}.{name}({', '.join(words)})"


def _performed(real: Callable[[], Any], pack: Callable[[Any], Any]) -> dict[str, Any]:
    """What is recorded of a fact: what was returned or raised."""
    try:
        return {"is": pack(real())}
    except tuple(_ERRORS.values()) as error:
        known = next(name for name, kind in _ERRORS.items() if isinstance(error, kind))
        number = error.errno if isinstance(error, OSError) else None
        return {
            "error": known,
            "errno": number,
            "text": os.strerror(number) if number else str(error.args[0]),
        }


def _raised(found: Mapping[str, Any]) -> Exception:
    if found.get("errno"):
        return OSError(found["errno"], found["text"])
    return _ERRORS.get(str(found["error"]), OSError)(found["text"])


def _fact(
    module: Any,
    name: str,
    pack: Callable[[Any], Any] = lambda value: value,
    unpack: Callable[[Any], Any] | None = None,
) -> None:
    """From now on ``module.name`` is a fact of the run where the run's own code asks for it."""
    most = _ASKING.get(f"{module.__name__}.{name}", _ANY)
    real: Any = getattr(module, name, None)
    if real is None:
        return  # not on this system

    def function(_: object, *args: Any, **kwargs: Any) -> Any:
        session = acting() if len(args) + len(kwargs) <= most else None
        environment = None if session is None else session.guard.environment
        key = None if environment is None else _key(module.__name__, name, args, kwargs)
        if session is None or environment is None or key is None:
            return real(*args, **kwargs)
        if not done_for_own(sys._getframe(1), session.engine.places):  # pyright: ignore[reportPrivateUsage]
            return real(*args, **kwargs)
        found = environment.fact(key, lambda: _performed(lambda: real(*args, **kwargs), pack))
        if "is" not in found:
            raise _raised(found) from None
        return copy.deepcopy(found["is"]) if unpack is None else unpack(found["is"])

    NAMES.put(module, name, stand_in(module, real, function), real)


def _rebuilt(module: Any, name: str) -> Callable[[Any], Any]:
    """Makes what an instance of the class ``name`` was recorded as into one."""
    kind: Any = getattr(module, name, None)  # not on every system

    def rebuild(fields: list[Any]) -> Any:
        if module.__name__ != "platform":
            return kind(fields)
        made = kind(*fields[:5])
        made.__dict__["processor"] = fields[5]  # else it would be asked of this system
        return made

    return rebuild


_done: set[str] = set()


def install_loaded() -> bool:
    """Replace what tells of the process and the machine, in the modules that are loaded and in which it was not
    replaced yet. True where there was one."""
    found = False
    for name in (*_FACTS, *_STRUCTURES):
        module = sys.modules.get(name)
        if (
            module is None
            or name in _done
            or getattr(getattr(module, "__spec__", None), "_initializing", False)
        ):
            continue
        _done.add(name)
        found = True
        for function, kind in _STRUCTURES.get(name, {}).items():
            _fact(module, function, list, _rebuilt(module, kind))
        for function in _FACTS.get(name, ()):
            _fact(module, function)
    return found
