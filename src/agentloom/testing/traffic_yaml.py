"""YAML of cassettes, as plain data whatever it says: a tag of Python or Ruby never makes an object.

Cassettes were written by loaders that trust their files, so their tags stand on header names and bodies; here a tagged
value is the plain value below the tag. Needs PyYAML (``pip install 'agentloom-runtime[testing]'``).
"""

from __future__ import annotations

import base64
import binascii
import functools
import importlib
import importlib.util
from typing import Any

from agentloom.errors import TrafficError

__all__ = ["load_yaml"]

_TIME = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"


def load_yaml(data: bytes, name: str) -> Any:
    """The one document in ``data``; binary scalars are bytes, times are text. TrafficError names file, line, reason."""
    if importlib.util.find_spec("yaml") is None:
        raise TrafficError(
            f"{name}: reading YAML needs the package PyYAML, which is not installed",
            hint="pip install 'agentloom-runtime[testing]'",
            file=name,
        )
    yaml: Any = importlib.import_module("yaml")
    try:
        return yaml.load(data, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        raise TrafficError(f"{name}: the YAML does not hold together{where}: {reason}", file=name) from None
    except RecursionError:
        raise TrafficError(f"{name}: the YAML is nested too deep", file=name) from None
    except (ValueError, TypeError) as error:  # a scalar that is no number, a key that cannot be one
        raise TrafficError(f"{name}: a value of the YAML cannot be read: {error}", file=name) from None


@functools.cache
def _loader() -> Any:
    """The safe loader (libyaml's where it is there), which here knows still less: no times, no merging of mappings."""
    yaml: Any = importlib.import_module("yaml")
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIME]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    for prefix in ("tag:yaml.org,2002:python/", "!ruby/", "tag:ruby.yaml.org,2002:"):
        loader.add_multi_constructor(prefix, _plain)
    # Merged mappings are copied, so that a few lines of them could fill the memory; no writer of cassettes merges.
    loader.flatten_mapping = _unmerged
    loader.add_constructor(_MERGE, _text)
    loader.add_constructor(_TIME, _text)
    for tag in ("!binary", "tag:yaml.org,2002:binary"):
        loader.add_constructor(tag, _binary)
    return loader


def _plain(loader: Any, suffix: str, node: Any) -> Any:
    kind = type(node).__name__
    if kind == "SequenceNode":
        items = loader.construct_sequence(node, deep=True)
        # `istr("Accept")` and its like: one argument of a class of strings. A tuple can be a key; a list cannot.
        single = suffix.startswith("object/apply") and len(items) == 1 and isinstance(items[0], str)
        return items[0] if single else tuple(items) if suffix == "tuple" else items
    return (
        loader.construct_mapping(node, deep=True) if kind == "MappingNode" else loader.construct_scalar(node)
    )


def _unmerged(loader: Any, node: Any) -> None:
    """Leave the keys of a mapping as they are."""


def _text(loader: Any, node: Any) -> str:
    return str(loader.construct_scalar(node))


def _binary(loader: Any, node: Any) -> bytes:
    try:
        return base64.b64decode("".join(str(loader.construct_scalar(node)).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"line {node.start_mark.line + 1}: a binary value is no base64 ({error})") from None
