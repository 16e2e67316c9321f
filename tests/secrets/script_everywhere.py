"""A script that has a secret in every place in which a program can have one, and fails in the end. The secret comes
from outside: an argument, the standard input, a variable without a telling name, a tool that reads a file."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from agentloom import sync, tool
from agentloom.errors import LoomError

logging.basicConfig(stream=sys.stdout)


@tool(effect="read")
def fetch(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


@tool
def save(path: str, text: str) -> int:
    return len(path) + len(text)


@tool
def use(value: Any) -> Any:
    return value


@tool
def sign_in(password: str) -> str:
    try:
        raise KeyError(f"no user with {password}")  # noqa: TRY301
    except KeyError as error:
        failed = PermissionError(f"cannot sign in with {password}", {"given": password})
        failed.add_note(f"tried {password}")
        failed.filename = f"/home/{password}/key"
        raise failed from error


def _with_locals(secret: str) -> list[str]:
    try:
        held = [secret]
        raise ValueError(held)  # noqa: TRY301
    except ValueError as error:
        return list(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def main() -> None:
    secret = fetch(sys.argv[1])
    given = sys.argv[2]
    use([given, os.environ["PLAIN_SETTING"], sys.argv])
    save(f"/tmp/{secret}/{secret}.txt", "x")
    use(_with_locals(secret))
    use({secret: {"in": [secret]}, f"k-{secret}": 1})
    sync.note({"note": secret})
    sync.flag(f"look at {secret}")
    print("printed", secret)
    warnings.warn(f"warned of {secret}", stacklevel=1)
    logging.getLogger("app").error("logged %s", secret, extra={"secret": secret})
    try:
        sign_in(secret)
    except (PermissionError, LoomError) as error:
        use([str(error), error.args, error.__notes__, str(error.__cause__), repr(error.__cause__)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(secret, UserWarning, stacklevel=1)
    use([str(one.message) for one in caught])
    sync.step(lambda: {"kept": secret})
    raise RuntimeError(f"the end of {secret}") from ValueError(secret)


main()
