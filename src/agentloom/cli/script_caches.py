"""Caches of ``functools.lru_cache``: what a tool of a script has filled one with is there on replay too, so
that a function which the script calls later is not run where it was not run when recorded."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, cast

__all__ = ["fill_cache", "held_in_cache"]


def held_in_cache(cache: Any) -> Iterator[tuple[Any, Any]]:
    """The results in a cache, each with its arguments: ``(args, ((name, value), ...))``. Python shows them to
    its garbage collector alone: of a cache without bounds a mapping, of any other each key and result, and
    then how they are linked."""
    found = gc.get_referents(cache)
    typed = bool(cache.cache_parameters()["typed"])
    mark = next((one for one in found if type(one) is object), None)
    if cache.cache_parameters()["maxsize"] is None:
        mappings: list[Any] = [one for one in found if type(one) is dict and one is not vars(cache)]
        held: dict[Any, Any] = mappings[0] if mappings else {}
        for key, result in list(held.items()):
            yield _arguments(key, mark, typed=typed), result
        return
    for at in range(2, len(found)):
        link = found[at]
        if isinstance(link, type) and link.__name__ == "_lru_list_elem":
            if found[at - 1] is mark:
                return  # past the last result: how the cache is made
            yield _arguments(found[at - 2], mark, typed=typed), found[at - 1]


def _arguments(key: Any, mark: object, *, typed: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The arguments that a key is made of, as ``lru_cache`` makes it."""
    if type(key) is not tuple:
        return (key,), ()
    parts = cast("tuple[Any, ...]", cast(object, key))
    at = next((number for number, part in enumerate(parts) if part is mark), None)
    if at is None:
        return (parts[: len(parts) // 2] if typed else parts), ()
    named = parts[at + 1 :]
    if (
        typed
    ):  # the types come last: one for each of the ``at`` arguments and of the values of those with names
        named = named[: (len(named) - at) // 3 * 2]
    return parts[:at], tuple(zip(named[::2], named[1::2], strict=True))


def fill_cache(cache: Any, held: dict[Any, Any]) -> None:
    """Let a cache hold ``held`` too. ``LookupError`` where what is behind it is no plain function."""
    function: Any = cache.__wrapped__
    if not isinstance(function, FunctionType):
        raise LookupError(type(function).__qualname__)  # noqa: TRY004 - as of what cannot be brought about
    code = function.__code__
    try:
        for (args, named), result in held.items():
            function.__code__ = _giving(code, functools.partial(_same, result))
            cache(*args, **dict(named))
    finally:
        function.__code__ = code


def _same(value: Any) -> Any:
    return value


_MARK = "agentloom: the result"


def _giving(code: CodeType, result: Callable[[], Any]) -> CodeType:
    """Code in the place of ``code`` that returns what ``result`` gives, whatever it is called with."""
    free = code.co_freevars
    unused = [f"        if False: {name}" for name in free]
    lines = [
        f"def outer({', '.join(free)}):",
        "    def made(*args, **kwargs):",
        *unused,
        f"        give = {_MARK!r}",
        "        return give()",
    ]
    outer = cast(CodeType, compile("\n".join(lines), "<agentloom>", "exec", dont_inherit=True).co_consts[0])
    made = next(const for const in outer.co_consts if isinstance(const, CodeType))
    return made.replace(co_consts=tuple(result if const == _MARK else const for const in made.co_consts))
