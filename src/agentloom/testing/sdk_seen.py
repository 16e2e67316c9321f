"""What a program can see of the objects of an SDK, as plain data: to compare them deeply, wherever they came from."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

__all__ = ["headers_seen", "seen"]

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_CHANGES = frozenset(("date", "expires", "age"))
"""Headers whose values tell when an answer was made, and nothing else."""


def seen(value: object) -> Any:
    """``value`` as JSON data in which a difference of type, field, order, header, cause or text shows.

    Known: plain data, pydantic models (fields, which of them are set, unknown ones, the request's id), dataclasses,
    enums, exceptions with their attributes and causes, requests and responses of httpx, httpx2 and requests.
    ``TypeError`` for anything else: say what of it you look at. Times that differ from run to run are left out.
    """
    if value is None or isinstance(value, bool | int | float):
        return value if not isinstance(value, Enum) else _enum(value)
    if isinstance(value, Enum):
        return _enum(value)
    if isinstance(value, str):
        return _ADDRESS.sub("0x", str(value))
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, Mapping):
        pairs = dict[Any, Any](cast("Any", value))
        return {"map": [[seen(key), "" if _tells_time(key) else seen(one)] for key, one in pairs.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        group = cast(Any, value)
        items = [seen(one) for one in group]
        return items if isinstance(group, list) else {type(group).__name__: items}
    if isinstance(value, BaseException):
        return _error(value)
    return _object(value)


def _tells_time(name: object) -> bool:
    return isinstance(name, str) and name.lower() in _CHANGES


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _enum(value: Enum) -> Any:
    return {"enum": _name(value), "value": seen(value.value)}


def _object(value: Any) -> Any:
    if hasattr(value, "model_fields_set"):
        return _model(value)
    if dataclasses.is_dataclass(value):
        fields = {one.name: seen(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"type": _name(value), "fields": fields}
    if isinstance(value, dt.timedelta):
        return {"type": _name(value)}
    if isinstance(value, dt.datetime | dt.date):
        return {"type": _name(value), "value": value.isoformat()}
    if hasattr(value, "status_code") and hasattr(value, "headers"):
        return _response(value)
    if hasattr(value, "method") and hasattr(value, "url"):
        return {"type": _name(value), "method": value.method, "url": str(value.url)}
    raise TypeError(f"what is seen of a {_name(value)}? take it apart in the program")


def _model(value: Any) -> Any:
    names: list[str] = list(cast(Any, type(value)).model_fields)
    fields: dict[str, Any] = {name: seen(getattr(value, name)) for name in names}
    made: dict[str, Any] = {
        "type": _name(value),
        "set": sorted(value.model_fields_set),
        "fields": fields,
        "extra": seen(value.model_extra),
    }
    request = getattr(value, "_request_id", None)
    return made | ({"request_id": request} if request is not None else {})


def headers_seen(pairs: Any) -> list[list[str]]:
    """Headers in order; of those that tell the time, the name alone. Of a cookie all but its value, which is a secret:
    a trace has a placeholder there."""
    return [[str(name), _header(str(name).lower(), str(value))] for name, value in pairs]


def _header(name: str, value: str) -> str:
    if name == "set-cookie":
        return re.sub(r"=[^;]*", "=", value, count=1)
    return "" if name in _CHANGES else value


def _response(value: Any) -> Any:
    headers = value.headers
    pairs = headers.multi_items() if hasattr(headers, "multi_items") else headers.items()
    made = {
        "type": _name(value),
        "status": value.status_code,
        "reason": getattr(value, "reason_phrase", getattr(value, "reason", None)),
        "headers": headers_seen(pairs),
        "url": str(value.url),
        "version": getattr(value, "http_version", None),
        "closed": getattr(value, "is_closed", None),
        "history": [seen(one) for one in value.history],
    }
    if getattr(value, "is_closed", True):
        made["elapsed"] = seen(value.elapsed)
    if hasattr(value, "_content") and value._content is not False:
        made["content"] = seen(value.content)
    return made


def _error(error: BaseException) -> Any:
    held: dict[str, Any] = {}
    for name, value in vars(error).items():
        if name.startswith("__"):
            continue
        try:
            held[name] = seen(value)
        except TypeError:
            held[name] = {"type": _name(value)}
    return {
        "type": _name(error),
        "bases": [one.__name__ for one in type(error).__mro__],
        "text": seen(str(error)),
        "attributes": held,
        "cause": None if error.__cause__ is None else _error(error.__cause__),
        "hidden": error.__suppress_context__,
    }
