"""``agentloom run`` under ``AGENTLOOM=replay`` and ``off``: the same command line, another thing done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import click

from agentloom.cli.runs import Found, find
from agentloom.errors import TargetError
from agentloom.format.values import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentloom.cli.options import Settings
    from agentloom.cli.targets import Target

__all__ = ["chosen_mode", "left_alone", "replay_instead"]

_VARIABLE, _TRACES = "AGENTLOOM", "AGENTLOOM_TRACE"


def chosen_mode(environ: Mapping[str, str]) -> str:
    """``record``, ``replay`` or ``off``. Raises ``click.UsageError`` for another word."""
    word = environ.get(_VARIABLE) or "record"
    if word not in ("record", "replay", "off"):
        raise click.UsageError(
            f"{_VARIABLE}={word[:40]!r} is no mode: it is one of record, replay, off; unset, it is record"
        )
    return word


def left_alone(settings: Settings, script: str, args: Sequence[str]) -> int:
    """Run a script as it is, and say so. Its exit code; where stdout is its own, it takes the place of this process."""
    settings.screen().note(f"-- not recorded: {_VARIABLE}=off")
    command = [sys.executable, script, *args]
    if not settings.json:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, command)  # noqa: S606 - to run the user's program is what this is for
    code = subprocess.run(command, stdout=sys.stderr.fileno(), check=False).returncode
    if code < 0:
        settings.ended_by, code = -code, 128 - code
    settings.screen().data({"run": None, "status": "completed" if code == 0 else "failed", "exit": code})
    return code


def replay_instead(settings: Settings, target: Target, args: Sequence[str], tags: Mapping[str, str]) -> int:
    """Replay the trace that is named, else the newest run of that program with these tags. ``TargetError`` where there
    is none, or where it was recorded with other arguments: nothing runs then."""
    from agentloom.cli.replay import beginning, replay_found

    name = target.name or os.path.basename(str(target.path))
    found = _found(settings, name, tags)
    _same_arguments(found, beginning(found).payload("input"), args)
    where = str(target.path) if target.name is None else f"{target.path or target.module}:{target.name}"
    return replay_found(settings, found, target=where)


def _found(settings: Settings, name: str, tags: Mapping[str, str]) -> Found:
    from agentloom.api.recording_mode import newest_run
    from agentloom.cli.replay import beginning

    given = [part.strip() for part in os.environ.get(_TRACES, "").split(",") if part.strip()]
    if given:
        all_found = [find(settings, part) for part in given]
        named = [beginning(one).agent for one in all_found]
        if name not in named:
            raise TargetError(
                f"{_TRACES} holds no trace of {name}; it has traces of: {', '.join(sorted(set(named)))}",
                hint=f"name a trace of {name}: agentloom ls",
            )
        return all_found[named.index(name)]
    store = settings.open_store()
    run = newest_run(name, tags, store)
    return Found(store.read(run), run, None)


def _same_arguments(found: Found, recorded: Any, args: Sequence[str]) -> None:
    value = decode(recorded)
    then = cast("dict[str, Any]", value if isinstance(value, dict) else {})
    positional = list(then.get("args") or ())
    named = cast("dict[str, Any]", then.get("kwargs") or {})
    now: list[Any] = []
    now_named: dict[str, Any] = {}
    for text in args:
        name, equals, value = text.partition("=")
        if equals and name in named:
            now_named[name] = value
        else:
            now.append(text)
    if not _alike(now, positional) or not _alike(now_named, named):
        raise TargetError(
            f"{found.full_name} was recorded with other arguments: {_words(positional, named)}",
            hint="give the same, or record again",
        )


def _alike(now: Any, then: Any) -> bool:
    """Whether words of a command line are what was recorded: themselves, or what they say as JSON."""
    if isinstance(now, str):
        try:
            return now == then or _same(json.loads(now), then)
        except ValueError:
            return False
    return _of_one_shape(now, then) and all(_alike(one, other) for one, other in _side_by_side(now, then))


def _same(now: Any, then: Any) -> bool:
    """Whether two values are the same and of the same types: ``1`` is neither ``True`` nor ``1.0``."""
    if isinstance(now, (dict, list)):
        return _of_one_shape(now, then) and all(_same(one, other) for one, other in _side_by_side(now, then))
    return type(now) is type(then) and bool(now == then or (now != now and then != then))  # noqa: PLR0124 - NaN


def _of_one_shape(now: Any, then: Any) -> bool:
    if type(now) is not type(then) or len(now) != len(then):
        return False
    return not isinstance(now, dict) or now.keys() == then.keys()


def _side_by_side(now: Any, then: Any) -> list[tuple[Any, Any]]:
    if isinstance(now, dict):
        return [(value, then[name]) for name, value in cast("dict[str, Any]", now).items()]
    return list(zip(now, then, strict=True))


def _words(positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    words = [_word(one) for one in positional]
    words += [f"{name}={_word(value)}" for name, value in named.items()]
    return " ".join(words) or "none"


def _word(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)
