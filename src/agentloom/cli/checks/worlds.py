"""Worlds: what differs between two machines that run the same program, as settings of a child process.

The facets follow what the reproducible-builds project varies (environment, time zone, locale, umask, paths), and what
Python adds: the hash seed.
"""

from __future__ import annotations

import locale
import os
import site
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from agentloom.cli.script_parent import Surroundings
from agentloom.runtime.redaction_names import is_secret_variable

__all__ = ["FACETS", "World", "worlds"]

T = TypeVar("T")

FACETS = ("hash seed", "time zone", "locale", "working folder", "environment", "arguments", "umask")
"""What differs between worlds, in the order in which causes are looked for."""

_SEEDS = ("1", "2026", "77", "4000000000", "13", "5", "104729", "31")
# In the notation of POSIX: they need no database, and nobody lives in them.
_ZONES = ("LOOM-13:45", "MOOL+9:30", "UTC0", "WEFT-5:45WARP", "WARP+3:30")
_LOCALES = ("de_DE.UTF-8", "tr_TR.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8", "en_US.UTF-8", "C.UTF-8", "C")
_UMASKS = (0o077, 0o002, 0o027)
_KEPT = frozenset(
    ["PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "PYTHONHOME", "TZ"]
)
"""Variables without which the program itself would not start, and those that another facet sets."""


@dataclass(frozen=True, slots=True)
class World:
    """One world. ``locale``: variables of it; ``variables``: those of the environment; ``folder``: to work in."""

    number: int
    seed: str
    zone: str
    folder: str
    locale: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()
    umask: int = -1

    def environ(self, environ: Mapping[str, str], facets: Collection[str]) -> dict[str, str]:
        """``environ`` as it is in this world, as far as ``facets`` go."""
        made = dict(environ)
        if "locale" in facets:
            made = {name: value for name, value in made.items() if not name.startswith("LC_")}
            made.update(self.locale)
        if "environment" in facets:
            made.update(self.variables)
        if "time zone" in facets:
            made["TZ"] = self.zone
        if "hash seed" in facets:
            made["PYTHONHASHSEED"] = self.seed
        paths = made.get("PYTHONPATH", "").split(os.pathsep)
        made["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
        return made

    def surroundings(self, facets: Collection[str]) -> Surroundings:
        """The surroundings of the child process, as far as ``facets`` go."""
        return Surroundings(
            folder=self.folder if "working folder" in facets else None,
            umask=self.umask if "umask" in facets else -1,
            arguments=self.arguments if "arguments" in facets else (),
            quiet=True,
        )

    def to_json(self) -> dict[str, object]:
        """What it is, without its temporary folder."""
        return {
            "hash_seed": self.seed,
            "time_zone": self.zone,
            "locale": self.locale["LC_ALL"],
            "umask": f"{self.umask:03o}",
            "variables": sorted(self.variables),
        }


def worlds(
    count: int, root: str, read: Iterable[str] = (), environ: Mapping[str, str] = os.environ
) -> list[World]:
    """``count`` worlds with folders below ``root``, which exists. ``read``: variables that the program reads by name.

    The same ``count`` gives the same worlds, so that a check that failed fails again.
    """
    now = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "C.UTF-8"
    names = _other_first(_locales(), now)
    seeds = _other_first([_seed(number) for number in range(count)], environ.get("PYTHONHASHSEED", "0"))
    umasks = _other_first(_UMASKS, _umask())
    made: list[World] = []
    for number in range(count):
        home = os.path.join(root, f"world {number + 1}", "home")
        folder = os.path.join(root, f"world {number + 1}", *["work"] * (1 + number % 3))
        temporary = os.path.join(root, f"t{number + 1}")
        for path in (home, folder, temporary):
            os.makedirs(path, exist_ok=True)
        made.append(
            World(
                number + 1,
                seeds[number],
                _ZONES[number % len(_ZONES)],
                folder,
                _locale(names[number % len(names)]),
                _variables(number, home, temporary, read, environ),
                tuple(f"--world={number + 1}" for _ in range(1 + number % 2)),
                umasks[number % len(umasks)],
            )
        )
    return made


def _other_first(values: Sequence[T], now: T) -> list[T]:
    """``values`` with the one that holds now at the end: the first worlds are other ones."""
    return sorted(values, key=lambda value: value == now)


def _umask() -> int:
    """The umask of this process; it can only be asked for by setting it."""
    now = os.umask(0o022)
    os.umask(now)
    return now


def _seed(number: int) -> str:
    return _SEEDS[number] if number < len(_SEEDS) else str(100_000 + 7919 * number)


def _locale(name: str) -> dict[str, str]:
    """The variables of a locale. ``C`` is kept from being taken for UTF-8, but files and streams stay UTF-8."""
    plain = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "1"} if name == "C" else {}
    return {"LC_ALL": name, "LANG": name, **plain}


def _locales() -> list[str]:
    """The locales of the list that this machine has; ``C`` is everywhere."""
    before = locale.setlocale(locale.LC_ALL)
    found: list[str] = []
    for name in _LOCALES:
        with suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            found.append(name)
    locale.setlocale(locale.LC_ALL, before)
    return found or ["C"]


def _variables(
    number: int, home: str, temporary: str, read: Iterable[str], environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of another person on another machine; variables that the program reads have another value."""
    made = {
        "HOME": home,
        "USER": f"loom{number}",
        "LOGNAME": f"loom{number}",
        "USERNAME": f"loom{number}",
        "HOSTNAME": f"world-{number}",
        "SHELL": "/bin/false",
        "TMPDIR": temporary,
        "COLUMNS": str(43 + 50 * number),
        "LINES": str(11 + 20 * number),
        # Packages that a person installed for themselves are found below the home folder.
        "PYTHONUSERBASE": environ.get("PYTHONUSERBASE") or site.getuserbase(),
    }
    for name in read:
        if (
            name in made
            or name in _KEPT
            or is_secret_variable(name)
            or name.startswith(("AGENTLOOM", "LC_", "LANG"))
        ):
            continue
        made[name] = _other(environ.get(name), number)
    return made


def _other(value: str | None, number: int) -> str:
    """Another value of the same form: a number for a number."""
    if value is None:
        return f"world-{number}"
    return str(int(value) + 1 + number) if value.isdecimal() and len(value) < 9 else f"{value}-world-{number}"
