"""Patches methods that subclasses of a framework's base class override, those that are made later too; and functions
that its instances hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from agentloom.runtime.scope import current

__all__ = ["PLAIN", "held_function", "wrap_methods", "wrap_overrides"]

PLAIN = "__agentloom_plain__"
"""In a function that stands for another one: that one."""

_MARK = "__agentloom_seam__"


def wrap_overrides(base: type[Any], wrappers: Mapping[str, Callable[[Any], Any]]) -> None:
    """Have ``wrappers[name](method)`` stand in the place of each method of those names in subclasses of ``base``, the
    base itself left as it is. A wrapper keeps its method's signature (``functools.wraps``)."""
    for cls in _below(base):
        wrap_methods(cls, wrappers)
    inherited: Any = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type[Any], **kwargs: Any) -> None:  # noqa: N807 - the name is Python's
        if inherited is not None:
            inherited.__func__(cls, **kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        wrap_methods(cls, wrappers)

    setattr(base, "__init_subclass__", classmethod(cast(Any, __init_subclass__)))  # noqa: B010 - of a class of somebody else


def held_function(name: str, given: Callable[[Any, Any], Any]) -> property:
    """For a class whose instances hold a function by ``name``: a run gets ``given(instance, function)`` of it; outside
    of one it is itself. A property of the class comes first, for instances that are there already too. Writing what was
    read (a copy of an instance) keeps the function itself."""

    def get(self: Any) -> Any:
        try:
            plain = self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None
        return plain if current() is None else given(self, plain)

    def put(self: Any, value: Any) -> None:
        self.__dict__[name] = getattr(value, PLAIN, value)

    return property(get, put)


def _below(base: type[Any]) -> Iterable[type[Any]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _below(cls)


def wrap_methods(cls: type[Any], wrappers: Mapping[str, Callable[[Any], Any]]) -> None:
    """As ``wrap_overrides``, of the methods of one class that it defines itself. Idempotent."""
    for name, wrapper in wrappers.items():
        method = cls.__dict__.get(name)
        if callable(method) and not hasattr(method, _MARK):
            made = wrapper(method)
            setattr(made, _MARK, True)
            setattr(cls, name, made)
