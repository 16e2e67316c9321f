"""Objects of Python's library, and of numpy, that a tool of a script may change in place: what of them is
data, and how to give them other data. Of some it can only be seen that they were changed."""

from __future__ import annotations

import array
import asyncio
import contextvars
import io
import itertools
import json
import operator
import queue
import random
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import AsyncGeneratorType, FunctionType, GeneratorType
from typing import Any, cast

from agentloom.cli.script_caches import fill_cache, held_in_cache
from agentloom.format.guards import class_of

__all__ = ["LibraryKind", "kind_of", "packed", "unpacked"]

Parts = Iterator[tuple[Any, Any]]

_STEPS = 1_000_000
"""So many items at most an iterator is taken further on replay."""
_ARRAY_BYTES = 4_000_000
"""Larger arrays of numpy are not looked at."""
_STANDARD = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class LibraryKind:
    """``parts``: what an object holds, each with the step that leads to it. ``put``: give it other parts;
    ``LookupError`` where that cannot be. ``seen``: it can only be seen that it is another; in words that
    stand before its name."""

    parts: Callable[[Any], Parts]
    put: Callable[[Any, dict[Any, Any]], None]
    seen: str | None = None


def kind_of(value: Any) -> LibraryKind | None:
    """The kind of an object; None where it is none of these."""
    kind = class_of(value)
    found = _KNOWN.get(kind, _NONE)
    if found is not _NONE:
        return cast("LibraryKind | None", found)
    made = _found(kind)
    _KNOWN[kind] = made
    return made


_NONE: Any = object()
_KNOWN: dict[type[Any], Any] = {}


def _found(kind: type[Any]) -> LibraryKind | None:
    for base, made in _KINDS:
        if issubclass(kind, base):
            return made
    if kind.__module__.partition(".")[0] == "numpy":
        return _of_numpy(kind)
    if kind.__name__ == "_lru_cache_wrapper":
        return LibraryKind(held_in_cache, fill_cache)
    if (
        hasattr(kind, "__next__")
        and hasattr(kind, "__iter__")
        and kind.__module__ in ("builtins", "itertools")
    ):
        if hasattr(kind, "__length_hint__"):
            return LibraryKind(_left, _put_left)
        return LibraryKind(_unseen, _never, "may advance")
    return None


def _never(_: Any, __: dict[Any, Any]) -> None:
    raise LookupError("nothing is kept of it")


def _attributes(*names: str) -> Callable[[Any], Parts]:
    def parts(value: Any) -> Parts:
        for name in names:
            yield name, getattr(value, name)

    return parts


def _put_attributes(value: Any, new: dict[Any, Any]) -> None:
    for name, part in new.items():
        setattr(value, name, part)


# -- containers ------------------------------------------------------------------------------------------------------


def _of_variable(value: contextvars.ContextVar[Any]) -> Parts:
    held = value.get(_NONE)
    if held is not _NONE:
        yield "value", held


def _put_variable(value: contextvars.ContextVar[Any], new: dict[Any, Any]) -> None:
    value.set(new["value"])


def _of_function(value: FunctionType) -> Parts:
    """Its attributes, but for those that tell how it stands for another one."""
    for name, part in list(vars(value).items()):
        if not name.startswith("__"):
            yield name, part


def _of_array(value: array.array[Any]) -> Parts:
    yield "data", value.tobytes()


def _put_array(value: array.array[Any], new: dict[Any, Any]) -> None:
    del value[:]
    value.frombytes(new["data"])


def _put_queue(value: queue.Queue[Any], new: dict[Any, Any]) -> None:
    with value.mutex:
        _put_attributes(value, new)
        value.not_empty.notify_all()
        value.not_full.notify_all()


def _put_async_queue(value: Any, new: dict[Any, Any]) -> None:
    _put_attributes(value, new)
    value._wakeup_next(value._getters)
    value._wakeup_next(value._putters)


def _put_event(value: Any, new: dict[Any, Any]) -> None:
    (value.set if next(iter(new.values())) else value.clear)()


def _of_local(value: threading.local) -> Parts:
    yield from list(vars(value).items())


def _put_local(value: threading.local, new: dict[Any, Any]) -> None:
    vars(value).update(new)


def _of_text(value: io.StringIO | io.BytesIO) -> Parts:
    if not value.closed:
        yield "held", value.getvalue()
        yield "at", value.tell()


def _put_text(value: Any, new: dict[Any, Any]) -> None:
    if not new:
        value.close()
        return
    if "held" in new:
        value.seek(0)
        value.truncate()
        value.write(new["held"])
    if "at" in new:
        value.seek(new["at"])


def _of_file(value: Any) -> Parts:
    """Where a file is that is read. Others are written to, which a replay refuses."""
    try:
        if not value.closed and value.readable() and not value.writable() and value.fileno() not in _STANDARD:
            yield "at", value.tell()
    except (OSError, ValueError):
        return  # a pipe; or a text whose lines are being read


def _put_file(value: Any, new: dict[Any, Any]) -> None:
    if "at" in new:
        value.seek(new["at"])


# -- generators of random numbers -------------------------------------------------------------------------------------


def packed(state: Any) -> list[Any]:
    """The state of a generator as plain data that is short: the words of it as bytes."""
    version, words, gauss = state
    return [version, struct.pack(f"<{len(words)}I", *words), gauss]


def unpacked(kept: list[Any]) -> tuple[Any, ...]:
    """The state again."""
    version, data, gauss = kept
    return version, struct.unpack(f"<{len(data) // 4}I", data), gauss


def _of_random(value: random.Random) -> Parts:
    if not isinstance(value, random.SystemRandom):
        yield from zip(("version", "words", "gauss"), packed(value.getstate()), strict=True)


def _put_random(value: random.Random, new: dict[Any, Any]) -> None:
    whole = dict(_of_random(value)) | new
    value.setstate(unpacked(list(whole.values())))


def _of_numpy(kind: type[Any]) -> LibraryKind | None:
    if kind.__name__ == "ndarray":
        return LibraryKind(_of_ndarray, _put_ndarray)
    if kind.__name__ in ("Generator", "RandomState"):
        return LibraryKind(_of_numpy_random, _put_numpy_random)
    return None


def _of_ndarray(value: Any) -> Parts:
    if not value.dtype.hasobject and value.nbytes <= _ARRAY_BYTES:
        yield "data", value.tobytes()
        yield "shape", repr(value.shape)


def _put_ndarray(value: Any, new: dict[Any, Any]) -> None:
    if "shape" in new:
        raise LookupError("shape")
    made: Any = sys.modules["numpy"]
    value[...] = made.frombuffer(new["data"], dtype=value.dtype).reshape(value.shape)


def _source(value: Any) -> Any:
    return value.bit_generator if hasattr(value, "bit_generator") else value._bit_generator


def _of_numpy_random(value: Any) -> Parts:
    yield "state", json.dumps(_source(value).state, default=lambda held: held.tolist())


def _put_numpy_random(value: Any, new: dict[Any, Any]) -> None:
    _source(value).state = json.loads(new["state"])


# -- iterators --------------------------------------------------------------------------------------------------------


def _of_list_iterator(value: Any) -> Parts:
    """The index at which it is: how many items are left depends on the list, too."""
    made = value.__reduce__()
    yield "at", made[2] if len(made) > 2 else -1


def _put_list_iterator(value: Any, new: dict[Any, Any]) -> None:
    if new["at"] >= 0:
        value.__setstate__(new["at"])
    else:
        for _ in value:
            pass


def _left(value: Any) -> Parts:
    yield "left", operator.length_hint(value)


def _put_left(value: Any, new: dict[Any, Any]) -> None:
    for _ in range(min(operator.length_hint(value) - new["left"], _STEPS)):
        next(value, None)


def _of_count(value: Any) -> Parts:
    yield "shown", repr(value)


def _put_count(value: Any, new: dict[Any, Any]) -> None:
    for _ in range(_STEPS):
        if repr(value) == new["shown"]:
            return
        next(value)
    raise LookupError(new["shown"])


def _of_enumerate(value: Any) -> Parts:
    yield "at", value.__reduce__()[1][1]


def _put_enumerate(value: Any, new: dict[Any, Any]) -> None:
    while value.__reduce__()[1][1] < new["at"]:
        if next(value, None) is None:
            raise LookupError(new["at"])


def _of_generator(value: Any) -> Parts:
    frame = getattr(value, "gi_frame", None) or getattr(value, "ag_frame", None)
    if frame is None:
        yield "state", "at its end"
        return
    held = {name: part if type(part) in (int, str) else id(part) for name, part in frame.f_locals.items()}
    yield "state", repr((frame.f_lasti, held))


def _unseen(_: Any) -> Parts:
    yield "state", repr(next(_looks))


_looks = itertools.count()

_KINDS: tuple[tuple[Any, LibraryKind], ...] = (
    (contextvars.ContextVar, LibraryKind(_of_variable, _put_variable)),
    (FunctionType, LibraryKind(_of_function, _put_attributes)),
    (array.array, LibraryKind(_of_array, _put_array)),
    (random.Random, LibraryKind(_of_random, _put_random)),
    (queue.Queue, LibraryKind(_attributes("queue", "unfinished_tasks"), _put_queue)),
    (asyncio.Queue, LibraryKind(_attributes("_queue", "_unfinished_tasks"), _put_async_queue)),
    (threading.Event, LibraryKind(_attributes("_flag"), _put_event)),
    (asyncio.Event, LibraryKind(_attributes("_value"), _put_event)),
    (threading.Semaphore, LibraryKind(_attributes("_value"), _put_attributes)),
    (asyncio.Semaphore, LibraryKind(_attributes("_value"), _put_attributes)),
    (threading.local, LibraryKind(_of_local, _put_local)),
    ((io.StringIO, io.BytesIO), LibraryKind(_of_text, _put_text)),
    (io.IOBase, LibraryKind(_of_file, _put_file)),
    (type(iter([])), LibraryKind(_of_list_iterator, _put_list_iterator)),
    (itertools.count, LibraryKind(_of_count, _put_count)),
    (enumerate, LibraryKind(_of_enumerate, _put_enumerate)),
    ((GeneratorType, AsyncGeneratorType), LibraryKind(_of_generator, _never, "advances the generator")),
    (
        queue.SimpleQueue,
        LibraryKind(lambda value: iter([("state", value.qsize())]), _never, "puts into or takes from"),
    ),
)
