"""Who may answer: names, and roles that people have.

Roles stand in a file, ``people.toml`` of the store's folder or wherever AGENTLOOM_PEOPLE says::

    [roles]
    finance = ["ann", "bob"]

Nobody is authenticated here: whoever answers says who it is, and is believed. A program that knows who is at the other
end (a web page behind a login) hands in ``by`` and ``roles`` itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import cast

from agentloom.errors import TargetError
from agentloom.store import LocalStore, Store
from agentloom.store.in_front import InFront

__all__ = ["may_answer", "roles_of"]

_VARIABLE = "AGENTLOOM_PEOPLE"
_FILE = "people.toml"


def may_answer(approver: Sequence[str], by: str | None, roles: Iterable[str]) -> bool:
    """Whether somebody called ``by`` who has ``roles`` is one of those whom ``approver`` names."""
    return not approver or (by is not None and not {by, *roles}.isdisjoint(approver))


def roles_of(by: str | None, store: Store) -> list[str]:
    """The roles of ``by`` in the file; none where there is no file. ``TargetError`` for a file that cannot be read."""
    path = os.environ.get(_VARIABLE) or _beside(store)
    if path is None or by is None:
        return []
    import tomllib  # here: most programs that answer name nobody

    try:
        with open(path, "rb") as file:
            read = tomllib.load(file)
    except FileNotFoundError:
        if os.environ.get(_VARIABLE):
            raise TargetError(
                f"{_VARIABLE} names {path}, which is not there", hint="correct it, or unset it"
            ) from None
        return []
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}", hint="[roles] with lists of names") from error
    roles: object = read.get("roles", {})
    if not isinstance(roles, dict):
        raise TargetError(
            f"{path}: roles is no table", hint='[roles] with lines such as finance = ["ann", "bob"]'
        )
    found: list[str] = []
    for role, people in cast("dict[str, object]", roles).items():
        names = cast("list[object]", people) if isinstance(people, list) else [None]
        if not all(isinstance(name, str) for name in names):
            raise TargetError(f"{path}: roles.{role} is no list of names", hint='finance = ["ann", "bob"]')
        if by in names:
            found.append(role)
    return found


def _beside(store: Store) -> str | None:
    while isinstance(store, InFront):
        store = store.behind
    return os.path.join(store.root, _FILE) if isinstance(store, LocalStore) else None
