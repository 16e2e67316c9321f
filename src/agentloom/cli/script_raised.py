"""Where an exception of a tool came from: its traceback, what it was raised beside (``__context__``), theirs in turn.

A replay runs no tool, and the script sees the same traceback all the same: its frames are made anew from what
was kept of them, with the names, lines and columns that Python shows.
"""

from __future__ import annotations

import ast
import itertools
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, cast

from agentloom.runtime.homes import below_home, from_home
from agentloom.runtime.places import PACKAGE
from agentloom.runtime.toolfind import is_stub

__all__ = ["kept_of_raised", "put_raised", "raised_beside", "set_context", "without_ours"]

_MOST = 50
"""So many exceptions of one chain are kept."""
_NAMES = 100
"""So many names at most from which Python may choose one to suggest."""
_ROOT = "./"
"""Before the path of a file of the program."""


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of agentloom."""
    kept = [one for one in _entries(traceback) if not _is_ours(one.tb_frame.f_code)]
    rest: TracebackType | None = None
    for one in reversed(kept):
        rest = one if one.tb_next is rest else TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rest


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE) or is_stub(code)


def raised_beside(error: BaseException, handled: BaseException | None) -> None:
    """What the script handles just now is what a tool's first exception was raised beside: the end of the chain."""
    if handled is None:
        return
    seen: list[BaseException] = []
    last: BaseException = error
    while last is not handled and all(last is not one for one in seen):
        seen.append(last)
        if last.__context__ is None:
            set_context(last, handled)
            return
        last = last.__context__


def set_context(error: BaseException, context: BaseException | None) -> None:
    """Set ``__context__``, past what the class of ``error`` makes of setting attributes."""
    BaseException.__setattr__(error, "__context__", context)


# -- when recording ---------------------------------------------------------------------------------------------------


def kept_of_raised(error: BaseException, root: str, handled: BaseException | None) -> list[Any]:
    """A list of ``[how, of, frames, exception, context, names]``, one for each exception of the chain, itself first.
    ``how`` and ``of`` say where it is to be found: the ``cause`` of an earlier one, by its number; a number:
    an exception of that group; ``context``, which is ``exception``. ``context`` is the number of what it was
    raised beside, -1: nothing, but for what the script ``handled`` then. ``names``: from which Python chooses
    one to suggest."""
    nodes: list[list[Any]] = []
    todo: list[tuple[BaseException, Any, int]] = [(error, "", -1)]
    numbers: dict[int, int] = {}
    while todo and len(nodes) < _MOST:
        one, how, of = todo.pop(0)
        if one is handled:
            continue
        met = id(one) in numbers
        number = numbers.setdefault(id(one), len(nodes))
        if how == "context":
            nodes[of][4] = number
        if met:
            continue
        frames = [_frame_of(entry, root) for entry in _entries(without_ours(one.__traceback__))]
        nodes.append([how, of, _counted(frames), one if how == "context" else None, -1, _names_of(one)])
        if one.__cause__ is not None:
            todo.append((one.__cause__, "cause", number))
        if isinstance(one, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", one).exceptions
            todo += [(part, at, number) for at, part in enumerate(inner)]
        if one.__context__ is not None:
            todo.append((one.__context__, "context", number))
    return nodes


def _frame_of(entry: TracebackType, root: str) -> list[Any]:
    """``[file, name, line, end line, column, end column]`` as Python shows them."""
    code = entry.tb_frame.f_code
    at = next(itertools.islice(code.co_positions(), max(entry.tb_lasti, 0) // 2, None), (None,) * 4)
    line = entry.tb_lineno
    end, column, end_column = (at[1] or line, at[2] or 0, at[3] or 0) if at[0] == line else (line, 0, 0)
    path = code.co_filename
    inside = path.startswith(os.path.join(root, ""))
    file = _ROOT + os.path.relpath(path, root) if inside else below_home(path)
    return [file, code.co_name, line, end, column, end_column]


def _counted(frames: list[list[Any]]) -> list[list[Any]]:
    """Frames with how often each stands there in turn, last."""
    return [[*frame, len(list(same))] for frame, same in itertools.groupby(frames)]


def _names_of(error: BaseException) -> list[str]:
    name = getattr(error, "name", None)
    if isinstance(error, NameError):
        last = list(_entries(error.__traceback__))[-1:]
        return list(last[0].tb_frame.f_locals)[:_NAMES] if last else []
    if (
        isinstance(error, AttributeError)
        and isinstance(name, str)
        and getattr(error, "obj", None) is not None
    ):
        held = [one for one in dir(error.obj) if isinstance(cast(Any, one), str)]
        return [one for one in held if abs(len(one) - len(name)) <= len(name) // 3 + 1][:_NAMES]
    return []


# -- on replay --------------------------------------------------------------------------------------------------------


def put_raised(error: BaseException, kept: list[list[Any]], root: str) -> None:
    """Give ``error``, and what belongs to it, their tracebacks and contexts."""
    chain: list[BaseException | None] = []
    for how, of, _, exception, *_ in kept:
        chain.append(
            _found(how, cast(Any, chain[of] if of >= 0 else None), exception) if how != "" else error
        )
    for one, (_, _, frames, _, context, names) in zip(chain, kept, strict=True):
        if one is None:
            continue
        one.__traceback__ = _made(frames, root, names if isinstance(one, NameError) else [])
        if context >= 0:
            set_context(one, cast("BaseException | None", chain[context]))
        if isinstance(one, AttributeError) and names and one.obj is None:
            one.obj = _Names(names)


def _found(how: Any, parent: BaseException | None, exception: BaseException | None) -> BaseException | None:
    if how == "context":
        return exception
    if how == "cause":
        return None if parent is None else parent.__cause__
    inner: Any = getattr(parent, "exceptions", ())
    return inner[how] if how < len(inner) else None


class _Names:
    """In the place of an object that an attribute was missing of."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __dir__(self) -> list[str]:
        return self._names


def _made(frames: list[list[Any]], root: str, names: list[str]) -> TracebackType | None:
    traceback: TracebackType | None = None
    for file, name, line, end, column, end_column, count in reversed(frames):
        path = os.path.join(root, file[len(_ROOT) :]) if file.startswith(_ROOT) else from_home(file)
        frame, at = _frame(path, name, (line, end, column, end_column), names if traceback is None else [])
        for _ in range(count):
            traceback = TracebackType(traceback, frame, at, line)
    return traceback


def _frame(path: str, name: str, at: tuple[int, int, int, int], names: list[str]) -> tuple[FrameType, int]:
    """A frame of a function called ``name`` that has stopped at a place of a file, and the instruction there."""
    line, end, column, end_column = at
    places = {"lineno": line, "end_lineno": end, "col_offset": column, "end_col_offset": end_column}
    held = [one for one in names if one.isidentifier() and not one.startswith("__")]
    tree = ast.parse(
        "def made():\n" + "".join(f"    {one} = None\n" for one in held) + "    raise GeneratorExit"
    )
    for node in ast.walk(tree):
        for part, value in places.items():
            if hasattr(node, part):
                setattr(node, part, value)
    whole = compile(tree, path, "exec", dont_inherit=True)
    code = next(one for one in whole.co_consts if isinstance(one, CodeType))
    try:
        FunctionType(code.replace(co_name=name, co_qualname=name), _globals(path))()
    except GeneratorExit as stopped:
        entry = None if stopped.__traceback__ is None else stopped.__traceback__.tb_next
    else:
        entry = None
    if entry is None:
        raise RuntimeError("a frame that was made has not stopped")
    return entry.tb_frame, entry.tb_lasti


def _globals(path: str) -> dict[str, Any]:
    """The variables of the module of a file, where it is loaded."""
    for module in list(sys.modules.values()):
        names: Any = getattr(module, "__dict__", None)
        held = cast("dict[str, Any]", names) if type(names) is dict else {}
        if held.get("__file__") == path:
            return held
    return {}
