"""A server that sends given bytes in given slices, and the three ways to run a program against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic

from agentloom.testing import Exchange, Faults, Player


@dataclass(frozen=True)
class Sent:
    """One answer. ``slice``: bytes a chunk of the transfer (0: all at once); ``lost``: the connection ends before the
    transfer does."""

    data: bytes = field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    slice: int = 0
    lost: bool = False


class Wire(Player):
    """Answers each POST with the next of ``answers`` (again from the first one after the last), until it is left."""

    def __init__(self, *answers: Sent) -> None:
        self._faults = [Faults(pieces=one.slice, cut=len(one.data) if one.lost else None) for one in answers]
        exchanges = [
            Exchange(
                str(number), "POST", "", (), None, one.status, tuple(one.headers.items()), one.data, True
            )
            for number, one in enumerate(answers)
        ]
        super().__init__(*exchanges, repeat=True, faults=lambda one, _: self._faults[int(one.name)])

    @property
    def bodies(self) -> list[bytes]:
        """What arrived."""
        return [one.body for one in self.seen]

    @property
    def url(self) -> str:
        """The ``base_url`` for an OpenAI client."""
        return super().url + "/v1"


def seen(value: Any) -> Any:
    """All that a program can see of an SDK object: types by name at every level, set and extra fields, plain values."""
    if isinstance(value, pydantic.BaseModel):
        fields = {name: seen(getattr(value, name)) for name in type(value).model_fields}
        extra = {name: seen(one) for name, one in (value.model_extra or {}).items()}
        return {
            "type": f"{type(value).__module__}:{type(value).__qualname__}",
            "fields": fields,
            "extra": extra,
            "set": sorted(value.model_fields_set),
            "request_id": getattr(value, "_request_id", None),
        }
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(seen, value)]
    if isinstance(value, dict):
        return {"dict": [[name, seen(one)] for name, one in value.items()]}
    if isinstance(value, BaseException):
        told: dict[str, Any] = {
            "raised": f"{type(value).__module__}:{type(value).__qualname__}",
            "text": str(value),
        }
        told |= {
            name: seen(getattr(value, name))
            for name in ("status_code", "code", "param", "type", "body", "request_id")
            if hasattr(value, name)
        }
        cause = value.__cause__
        if (
            cause is not None and "httpcore" in type(cause).__module__
        ):  # holds the connection: left out (docs/run.md)
            cause = None
        return told | {"cause": None if cause is None else seen(cause)}
    return [type(value).__name__, value]
