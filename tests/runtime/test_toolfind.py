"""Functions replaced in place: what can be seen of them, and what calls them."""

from __future__ import annotations

import asyncio
import functools
import inspect
from types import FunctionType
from typing import Any

import pytest

from agentloom.errors import NotSupported
from agentloom.runtime.toolfind import is_stub, swap, tool_names


def counted(calls: list[Any]) -> Any:
    def make(plain: Any) -> Any:
        def target(*args: Any, **kwargs: Any) -> Any:
            calls.append((args, kwargs))
            return plain(*args, **kwargs)

        return target

    return make


def add(a: int, b: int = 2, *more: int, scale: int = 1, **rest: int) -> int:
    """Adds."""
    return (a + b + sum(more) + sum(rest.values())) * scale


def replaced(function: Any) -> list[Any]:
    assert isinstance(function, FunctionType)
    calls: list[Any] = []
    swap(function, counted(calls))
    return calls


def test_every_reference_reaches_the_stub() -> None:
    def work(n: int) -> int:
        return n + 1

    table, partial, bound = {"work": work}, functools.partial(work, 1), work
    calls = replaced(work)
    assert (table["work"](1), partial(), bound(n=1), list(map(work, [1]))) == (2, 2, 2, [2])
    assert len(calls) == 4


@pytest.mark.parametrize("name", ["call", "plain", "work", "mend", "error", "args", "kwargs", "self", "stub"])
def test_a_decorated_function_whose_decorator_calls_it_anyhow(name: str) -> None:
    lines = [
        f"def decorator({name}):",
        f"    def wrapper(n):\n        return {name}(n)",
        "    return wrapper",
    ]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    function = names["decorator"](lambda n: n + 1)
    calls = replaced(function)
    assert function(1) == 2
    assert calls == [((1,), {})]


def test_what_can_be_seen_of_the_function_stays() -> None:
    signature, source, line = inspect.signature(add), inspect.getsource(add), add.__code__.co_firstlineno
    before = (
        add.__name__,
        add.__qualname__,
        add.__doc__,
        add.__annotations__,
        add.__defaults__,
        add.__kwdefaults__,
    )
    calls = replaced(add)
    assert inspect.signature(add) == signature
    assert inspect.getsource(add) == source
    assert add.__code__.co_firstlineno == line
    assert before == (
        add.__name__, add.__qualname__, add.__doc__, add.__annotations__, add.__defaults__, add.__kwdefaults__,
    )  # fmt: skip
    assert add(1) == 3
    assert add(1, 1, 1, scale=2, x=1) == 8
    assert calls == [((1,), {}), ((1, 1, 1), {"scale": 2, "x": 1})]
    assert is_stub(add.__code__)


def test_closures_keep_their_cells() -> None:
    factor, offset = 3, 1

    def work(n: int) -> int:
        return n * factor + offset

    replaced(work)
    assert work(2) == 7
    factor = 10
    assert work(2) == 21


def test_coroutine_functions_stay_coroutine_functions() -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    calls: list[Any] = []

    def make(plain: Any) -> Any:
        async def target(*args: Any) -> Any:
            calls.append(args)
            return await plain(*args)

        return target

    assert isinstance(work, FunctionType)
    swap(work, make)
    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work(1)) == 2
    assert calls == [(1,)]


def test_a_recursive_function_calls_itself_through_the_stub() -> None:
    def fact(n: int) -> int:
        return 1 if n == 0 else n * fact(n - 1)

    calls = replaced(fact)
    assert fact(3) == 6
    assert len(calls) == 4


def test_generators_are_refused_and_stay_as_they_are() -> None:
    def work() -> Any:
        yield 1

    assert isinstance(work, FunctionType)
    with pytest.raises(NotSupported):
        swap(work, counted([]))
    assert list(work()) == [1]


def test_names_in_every_form_of_tools() -> None:
    chat = {"type": "function", "function": {"name": "a", "parameters": {}}}
    body = {
        "tools": [
            chat,
            {"type": "function", "name": "b"},
            {"name": "c", "input_schema": {}},
            chat,
            "odd",
            {},
        ],
        "functions": [{"name": "d"}],
    }
    assert tool_names(body) == ["a", "b", "c", "d"]
    assert tool_names({}) == []
    assert tool_names({"tools": "none"}) == []
