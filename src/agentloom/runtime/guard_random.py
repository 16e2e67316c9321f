"""Virtual randomness: ``random``, ``secrets``, ``os.urandom`` and generators without a seed, inside a run.

The functions of ``random`` act on a generator of the run, one for each path, seeded by the run's seed. Bytes from the
system come from the run's entropy, and never from the seed: two runs of one seed must not make the same keys and ids.
"""

from __future__ import annotations

import operator
import os
import random
import sys
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, cast

from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import NAMES, called_as, stand_in
from agentloom.runtime.scope import Scope, here, in_context
from agentloom.runtime.work import in_work

__all__ = ["draw", "install", "install_loaded"]

_urandom = os.urandom
_getrandom: Callable[..., bytes] | None = getattr(os, "getrandom", None)
_seed = random.Random.seed


def draw(count: int) -> bytes | None:
    """``count`` bytes of the run's own, or None where none are to be had."""
    session = acting()
    if session is None or count < 0:
        return None
    return session.guard.draw(cast(Scope, here()).path, count)


def _bytes(real: Callable[..., bytes]) -> Callable[..., bytes]:
    def urandom(_: object, size: Any, /, *flags: Any) -> bytes:
        if acting() is None:
            return real(size, *flags)
        made = draw(operator.index(size)) if hasattr(size, "__index__") else None
        return real(size, *flags) if made is None else made

    return urandom


def _function(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def function(_: object, *args: Any, **kwargs: Any) -> Any:
        session = None if not COLLECTING and in_context() is None else acting()
        if session is not None:
            generator = session.guard.generator(cast(Scope, here()).path, session.seed, name)
            return getattr(generator, name)(*args, **kwargs)
        work = None if COLLECTING else in_work()
        shared = None if work is None or work.shares is None else work.shares.generator(name)
        return (real if shared is None else getattr(shared, name))(*args, **kwargs)

    return function


def _seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
    """``Random.seed``: a generator without a seed takes one of the run's own."""
    if a is None:
        made = draw(32)
        if made is not None:
            a = int.from_bytes(made, "big")
    _seed(self, a, version)


def install() -> None:
    """Replace the sources of randomness."""
    NAMES.put(os, "urandom", stand_in(os, _urandom, _bytes(_urandom)), _urandom)
    if _getrandom is not None:
        NAMES.put(os, "getrandom", stand_in(os, _getrandom, _bytes(_getrandom)), _getrandom)
    cast(Any, random)._urandom = os.urandom
    inner = cast(Any, random)._inst
    for name, value in list(vars(random).items()):
        if getattr(value, "__self__", None) is inner and not name.startswith("_"):
            NAMES.put(random, name, stand_in(random, value, _function(name, value)), value)
    called_as(_seeded, _seed)
    cast(Any, random.Random).seed = _seeded
    _tempfile()
    install_loaded()


def install_loaded() -> bool:
    """Replace the bytes of OpenSSL once ``ssl``, or what is beneath it, is loaded. True where something was."""
    found = False
    for module in (sys.modules.get("ssl"), sys.modules.get("_ssl")):
        for name, made in (("RAND_bytes", _bytes), ("RAND_pseudo_bytes", _pseudo_bytes)):
            real: Any = getattr(module, name, None)
            if module is not None and isinstance(real, BuiltinFunctionType):
                NAMES.put(module, name, stand_in(module, real, made(real)), real)
                found = True
    return found


def _pseudo_bytes(real: Callable[..., tuple[bytes, bool]]) -> Callable[..., tuple[bytes, bool]]:
    """``ssl.RAND_pseudo_bytes``, up to Python 3.11, which says whether the bytes are strong."""

    def from_system(size: Any) -> bytes:
        return real(size)[0]

    strong = _bytes(from_system)

    def pseudo_bytes(_: object, num: Any, /) -> tuple[bytes, bool]:
        return real(num) if acting() is None else (strong(_, num), True)

    return pseudo_bytes


def _tempfile() -> None:
    """Names of temporary files: from one generator of the process, made at its first use."""
    import tempfile

    names: Any = cast(Any, tempfile)._RandomNameSequence
    following = names.__next__

    def __next__(self: Any) -> str:  # noqa: N807 - the name is Python's
        made = draw(8)
        return (
            cast(str, following(self))
            if made is None
            else "".join(self.characters[byte % 36] for byte in made)
        )

    names.__next__ = __next__
