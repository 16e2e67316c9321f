"""Values of LangChain and LangGraph that tools give back and take: messages, commands, interrupts.

Nothing of them is imported before the program does.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from agentloom.adapters.framework_values import can_be_kept, declare_named
from agentloom.format.guards import is_list
from agentloom.runtime.registry import TYPES

__all__ = [
    "SentTo",
    "Stored",
    "declare_messages",
    "declare_types",
    "pack",
    "pack_state",
    "plain_messages",
    "unpack",
    "unpack_state",
]


@dataclass(frozen=True, slots=True)
class SentTo:
    """A ``Send`` of LangGraph in a form that can be kept."""

    node: str
    arg: Any


@dataclass(frozen=True, slots=True)
class Serialized:
    """A value as a saver's serializer writes it: the name of its encoding, and the bytes."""

    encoding: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """A ``CheckpointTuple`` by its fields."""

    fields: dict[str, Any]


for _one in (SentTo, Serialized, Stored):
    TYPES.register(_one)


def pack_state(serde: Any, value: Any) -> Any:
    """``value`` where it has an exact form; else as ``serde`` writes it. Of a mapping each field by itself: what can be
    read stays so."""
    if can_be_kept(value):
        return value
    fields = plain_fields(value)
    if fields is not None:
        return {key: pack_state(serde, item) for key, item in fields.items()}
    return Serialized(*serde.dumps_typed(value))


def unpack_state(serde: Any, value: Any) -> Any:
    """The opposite of ``pack_state``."""
    if isinstance(value, Serialized):
        return serde.loads_typed((value.encoding, value.data))
    fields = plain_fields(value)
    if fields is not None:
        return {key: unpack_state(serde, item) for key, item in fields.items()}
    return value


def plain_messages(value: Any) -> Any:
    """A list of messages as plain mappings, to be read; any other value as it is."""
    messages = sys.modules.get("langchain_core.messages.base")
    if messages is None or not is_list(value) or not value:
        return value
    base: Any = cast(Any, messages).BaseMessage
    if not all(isinstance(one, base) for one in value):
        return value
    return [{"kind": type(one).__name__, **cast("dict[str, Any]", one.model_dump())} for one in value]


def plain_fields(value: Any) -> dict[str, Any] | None:
    """``value`` where it is a mapping with texts as keys."""
    if type(value) is not dict:
        return None
    whole = cast("dict[object, Any]", value)
    return cast("dict[str, Any]", value) if all(type(key) is str for key in whole) else None


_MESSAGES = (
    "AIMessage", "AIMessageChunk", "ChatMessage", "FunctionMessage", "HumanMessage", "RemoveMessage", "SystemMessage",
    "ToolMessage",
)  # fmt: skip


def declare_messages(module: Any) -> None:
    """Declare the message types of ``langchain_core.messages``, so that they come back as what they are."""
    declare_named(module, _MESSAGES)


def declare_types(module: Any) -> None:
    """Declare the types of ``langgraph.types`` that tools return and raise."""
    declare_named(module, ("Command", "Interrupt"))


def _types() -> Any:
    return sys.modules.get("langgraph.types")


def pack(value: Any) -> Any:
    """``value`` with each ``Send`` in a command replaced by a ``SentTo``."""
    types = _types()
    if types is None:
        return value
    return _changed(value, types, types.Send, _sent_to)


def unpack(value: Any) -> Any:
    """The opposite of ``pack``."""
    types = _types()
    if types is None:
        return value
    return _changed(value, types, SentTo, _send)


def _sent_to(send: Any) -> SentTo:
    return SentTo(send.node, send.arg)


def _send(sent: Any) -> Any:
    return _types().Send(sent.node, sent.arg)


def _changed(value: Any, types: Any, cls: Any, make: Callable[[Any], Any]) -> Any:
    """``value`` with ``make`` of each ``cls`` where a command goes to."""
    if is_list(value):
        return [_changed(item, types, cls, make) for item in value]
    if isinstance(value, types.Command):
        command: Any = value
        goto = _each(command.goto, cls, make)
        return command if goto is command.goto else dataclasses.replace(command, goto=goto)
    return value


def _each(goto: Any, cls: Any, make: Callable[[Any], Any]) -> Any:
    if isinstance(goto, cls):
        return make(goto)
    if type(goto) in (list, tuple):
        items: list[Any] = list(goto)
        if any(isinstance(one, cls) for one in items):
            made = [make(one) if isinstance(one, cls) else one for one in items]
            return tuple(made) if isinstance(goto, tuple) else made
    return goto
