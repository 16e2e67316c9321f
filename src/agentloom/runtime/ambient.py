"""Ambient values: time, random draws, identifiers, environment. Each is recorded when asked for."""

from __future__ import annotations

import datetime as dt
import os
import random
import uuid as _uuid
from collections.abc import Callable
from typing import cast

from agentloom.errors import ValueRefused
from agentloom.format.words import kind_of
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.redaction_env import passwords_in
from agentloom.runtime.redaction_names import is_secret_variable
from agentloom.runtime.sendable import refuse_half_pairs

__all__ = ["env_call", "looks_secret", "now_call", "placeholder", "random_call", "uuid_call"]

Prepared = tuple[CallSpec, Callable[[Call], object]]


def looks_secret(name: str, value: str) -> bool:
    """Whether an environment variable is not to be written: by its name, or as an address with a password in it."""
    return is_secret_variable(name) or bool(passwords_in(value))


def placeholder(name: str) -> str:
    """What stands in a trace without a redactor for the value of a variable that is not to be written."""
    return f"[secret {name}]"


def now_call() -> Prepared:
    """The wall clock as an aware UTC datetime with microseconds."""
    return CallSpec("now", "now", {}), lambda _: dt.datetime.now(dt.UTC)


def random_call() -> Prepared:
    """A float in [0, 1) from the run's generator of this path (seeded when the run has a seed)."""
    scope = taking_part("random")
    generator = random.SystemRandom() if scope is None else scope.session.random_for(scope.path)
    return CallSpec("random", "random", {}), lambda _: generator.random()


def uuid_call() -> Prepared:
    """A version 4 UUID from the system's randomness."""
    return CallSpec("uuid", "uuid4", {}), lambda _: _uuid.uuid4()


def env_call(name: str, default: str | None) -> Prepared:
    """An environment variable's value, or the default. Names that look like credentials, and addresses that hold a
    password, are refused: they would be written to the trace."""
    if not isinstance(cast("object", name), str):
        raise TypeError(f"env() takes the name of a variable, not {kind_of(name)}")
    refuse_half_pairs("env(name)", name)
    if is_secret_variable(name):
        raise ValueRefused(
            f"env({name!r})",
            "str",
            "the name looks like a credential, and what env() returns is recorded",
            hint="read credentials inside a tool, whose body is not recorded",
        )

    def perform(_: Call) -> str | None:
        value = os.environ.get(name, default)
        if value is not None and passwords_in(value):
            raise ValueRefused(
                f"env({name!r})",
                "str",
                "its value is an address with a password in it, and what env() returns is recorded",
                hint="read it inside a tool, whose body is not recorded",
            )
        return value

    return CallSpec("env", name, {"name": name, "default": default}), perform
