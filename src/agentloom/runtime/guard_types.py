"""Built-in types, changed where they stand: their dictionaries can be reached, and the type cache told."""

from __future__ import annotations

import ctypes
import gc
from typing import Any, cast

__all__ = ["changed", "names_of"]


def names_of(owner: type) -> dict[str, Any]:
    """The dictionary of a built-in type itself, which ``vars`` only shows. Whoever changes it calls ``changed``."""
    (names,) = gc.get_referents(owner.__dict__)
    return cast("dict[str, Any]", names)


def changed(owner: type) -> None:
    """Tell the type cache that attributes of ``owner`` are others now."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
