"""Patches methods that subclasses of a framework's base class override, those that are made later too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

__all__ = ["wrap_overrides"]

_MARK = "__agentloom_seam__"


def wrap_overrides(base: type[Any], wrappers: Mapping[str, Callable[[Any], Any]]) -> None:
    """Have ``wrappers[name](method)`` stand in the place of each method of those names in subclasses of ``base``, the
    base itself left as it is. A wrapper keeps its method's signature (``functools.wraps``)."""
    for cls in _below(base):
        _wrap(cls, wrappers)
    inherited: Any = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type[Any], **kwargs: Any) -> None:  # noqa: N807 - the name is Python's
        if inherited is not None:
            inherited.__func__(cls, **kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        _wrap(cls, wrappers)

    setattr(base, "__init_subclass__", classmethod(cast(Any, __init_subclass__)))  # noqa: B010 - of a class of somebody else


def _below(base: type[Any]) -> Iterable[type[Any]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _below(cls)


def _wrap(cls: type[Any], wrappers: Mapping[str, Callable[[Any], Any]]) -> None:
    for name, wrapper in wrappers.items():
        method = cls.__dict__.get(name)
        if callable(method) and not hasattr(method, _MARK):
            made = wrapper(method)
            setattr(made, _MARK, True)
            setattr(cls, name, made)
