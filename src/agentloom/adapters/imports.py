"""Runs a function when a module is imported, so that a program's SDKs are patched without importing any of them."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["when_imported"]

Hook = Callable[[ModuleType], None]


class _Loader(importlib.abc.Loader):
    """The module's own loader, and then the hooks."""

    def __init__(self, inner: importlib.abc.Loader, hook: Hook) -> None:
        self._inner = inner
        self._hook = hook

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module keeps its own loader: code that asks for sources or resources must find what it always finds.
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._hook(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.hooks: dict[str, Hook] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        hook = self.hooks.pop(fullname, None)  # popped first: the search below comes through here again
        if hook is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            self.hooks[fullname] = hook
            return None
        spec.loader = _Loader(spec.loader, hook)
        return spec


_finder = _Finder()


def when_imported(name: str, hook: Hook) -> None:
    """Call ``hook`` with module ``name``: now when it is imported already, else right after its code has run."""
    module = sys.modules.get(name)
    if module is not None:
        hook(module)
        return
    _finder.hooks[name] = hook
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
