"""Everything that does I/O is refused by name, or goes to the bridge."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import pytest

from agentloom.errors import NotSupported
from agentloom.runtime.loop import InnerLoop, LoopNotSupported
from agentloom.runtime.loop_io import RefusedIO

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Methods of asyncio's loops that the inner loop takes from asyncio as they are: they do no I/O.
_INHERITED = {
    "call_exception_handler",
    "call_later",
    "default_exception_handler",
    "get_debug",
    "get_exception_handler",
    "get_task_factory",
    "is_closed",
    "is_running",
    "run_until_complete",
    "set_debug",
    "set_default_executor",
    "set_exception_handler",
    "set_task_factory",
    "shutdown_asyncgens",
    "stop",
}
_REFUSED = sorted(
    name for name, value in vars(RefusedIO).items() if inspect.isfunction(value) and not name.startswith("_")
)


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    made.close()


@pytest.mark.parametrize("name", _REFUSED)
def test_it_is_refused_by_name_and_says_what_to_do(loop: InnerLoop, name: str) -> None:
    with pytest.raises(NotSupported, match=rf"loop\.{name}\(\) is not supported inside a run") as caught:
        getattr(loop, name)(1, 2, 3, option=4)
    assert caught.value.hint
    assert caught.value.fields == {"what": name}
    assert isinstance(caught.value, NotImplementedError)  # what programs expect of a loop without the method


def test_no_method_of_any_asyncio_loop_slips_through() -> None:
    """A public method is the inner loop's own, refused, or known to do no I/O."""
    public = {
        name
        for base in (asyncio.AbstractEventLoop, asyncio.SelectorEventLoop)
        for name, value in inspect.getmembers(base, callable)
        if not name.startswith("_")
    }
    assert public - set(vars(InnerLoop)) - set(_REFUSED) == _INHERITED & public
    assert len(_REFUSED) >= 29


def test_high_level_functions_fail_at_once_instead_of_hanging(loop: InnerLoop) -> None:
    async def main() -> None:
        with pytest.raises(LoopNotSupported, match="create_connection"):
            await asyncio.open_connection("127.0.0.1", 1)
        with pytest.raises(LoopNotSupported, match="subprocess_exec"):
            await asyncio.create_subprocess_exec("true")

    loop.run_until_complete(main())


def test_a_bridge_takes_over_what_it_has() -> None:
    class Bridge:
        async def create_connection(
            self, factory: object, host: str, *, port: int
        ) -> tuple[object, str, int]:
            return factory, host, port

    loop = InnerLoop()
    loop.bridge = Bridge()
    connected = loop.run_until_complete(loop.create_connection("protocol", "host", port=1))
    assert connected == ("protocol", "host", 1)
    with pytest.raises(LoopNotSupported):
        loop.create_server("protocol")
    loop.close()


def test_a_closed_loop_says_that_it_is_closed(loop: InnerLoop) -> None:
    loop.close()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.add_reader(0, print)
