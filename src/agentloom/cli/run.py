"""``agentloom run TARGET [-- ARGS]``: record a script or an agent."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.options import Settings, common
from agentloom.cli.run_mode import chosen_mode, left_alone, replay_instead
from agentloom.cli.runs import short
from agentloom.cli.script_parent import Child, child_environment, start
from agentloom.cli.targets import parse_target
from agentloom.errors import RunNotFound
from agentloom.runtime.effects import READS
from agentloom.runtime.tool_use import EFFECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentloom.cli.render import Screen, Span
    from agentloom.cli.targets import Target
    from agentloom.format.journal import Journal
    from agentloom.runtime.redaction_secrets import Secret
    from agentloom.store import Store

__all__ = ["calls_of", "command", "record_job"]

_SHOWN = 6
"""How many unrecorded effects the summary names; the trace holds all."""


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        pairs[name] = value
    return pairs


def _tools(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = _pairs("--tool", given)
    for name, effect in pairs.items():
        if effect not in EFFECTS:
            raise click.BadParameter(
                f"{name}={effect}: an effect is read, pure, write or agent", param_hint="--tool"
            )
    return pairs


def _tags(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    return _pairs("--tag", given)


@click.command(context_settings={"ignore_unknown_options": False}, short_help="Record an agent or a script.")
@click.argument("target")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME=EFFECT", callback=_tools,
    help="What a tool does to the world: read, pure, or write (the default); agent: its code is the agent's own.",
)  # fmt: skip
@click.option("--seed", type=int, help="Seed of the run's explicit random draws.")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME=VALUE", callback=_tags, help="Tag the run. Repeatable."
)
@click.option("--conversation", metavar="ID", help="The conversation that the run belongs to.")
@click.option(
    "--guard", type=click.Choice(["strict", "virtual", "off"]),
    help="The run's guard. Default: the agent's own; of a script: virtual.",
)  # fmt: skip
@common
def command(
    settings: Settings,
    target: str,
    args: tuple[str, ...],
    tools: dict[str, str],
    seed: int | None,
    tags: dict[str, str],
    conversation: str | None,
    guard: str | None,
) -> int:
    """Record TARGET: a script that uses the openai SDK, unmodified, or an @agent or Workflow.

    \b
    agentloom run agent.py -- "refund order 812"
    agentloom run support.py:support -- 812 note='"urgent"'
    agentloom run package.module:support

    ARGS after -- go to the script as they are; to an agent each as JSON (plain text where it is not JSON), or as
    NAME=VALUE. The exit code is the script's own. AGENTLOOM=replay replays the newest run of it, or AGENTLOOM_TRACE;
    AGENTLOOM=off runs it unrecorded.
    """
    mode = chosen_mode(os.environ)
    chosen = parse_target(target)
    if tools and chosen.name is not None:
        raise click.UsageError(
            f"--tool is for scripts: the tools of {chosen.name} say it themselves, by @tool(effect=...)"
        )
    if mode == "replay":
        return replay_instead(settings, chosen, args, tags)
    if mode == "off" and chosen.name is None:
        return left_alone(settings, target, args)
    job = {
        **record_job(chosen, args, settings.store, shown=target),
        "tools": tools,
        "seed": seed,
        "tags": tags,
        "conversation": conversation,
        "guard": guard,
        "json": settings.json,
    }
    if mode == "off":
        job["store"] = ":memory:"
        settings.screen().note("-- kept in memory alone: AGENTLOOM=off")
    began = time.monotonic()
    child = start(job, child_environment(None, os.environ))
    settings.ended_by = (child.done or {}).pop("signal", None) or child.signal
    return _report(settings, settings.screen(), target, child, time.monotonic() - began)


def record_job(
    target: Target, args: Sequence[str], store: str | None, *, shown: str | None = None
) -> dict[str, Any]:
    """What the child process is told that records ``target``, as the command does without options. ``shown``: what a
    script sees as its name."""
    return {
        "mode": "record",
        "path": target.path,
        "shown": shown or target.path,
        "module": target.module,
        "object": target.name,
        "args": list(args),
        "store": store,
        "tools": {},
        "seed": None,
        "tags": {},
        "conversation": None,
        "guard": None,
        "json": False,
    }


def _report(settings: Settings, screen: Screen, target: str, child: Child, seconds: float) -> int:
    if child.error is not None:
        if screen.json:
            screen.error_text(_json({"error": child.error}))
        else:
            screen.problem(
                str(child.error.get("message")), child.error.get("next") or child.error.get("hint")
            )
            if child.run is not None:
                run = short(child.run)
                screen.note(f"   what was done before that is in run {run}: agentloom show {run}")
        return int(child.error.get("exit") or 1)
    if child.run is None:
        message = f"the process of the program ended with exit code {child.code} before the run began"
        hint = "what it wrote above says why; nothing was recorded"
        if screen.json:
            facts = {"type": "NoRun", "message": message, "next": hint, "exit": child.code or 1}
            screen.error_text(_json({"error": facts}))
        else:
            screen.problem(message, hint)
        return child.code or 1
    counts, secrets = _counts(settings, child.run)
    done = child.done or {"status": "crashed", "exit": child.code}
    suspended = done["status"] == "suspended"
    if screen.json:
        if suspended:
            from agentloom.cli.suspended import facts_of

            done |= facts_of(settings.open_store(), child.run)
        screen.data(
            {
                "run": child.run,
                "calls": counts,
                "seconds": round(seconds, 3),
                **done,
                "secrets": [one.facts() for one in secrets],
            }
        )
    else:
        _summary(screen, target, child.run, counts, done, seconds)
        if suspended:
            from agentloom.cli.suspended import show_suspended

            show_suspended(screen, settings.open_store(), child.run)
        if secrets or settings.verbosity:
            from agentloom.runtime.redaction_secrets import secrets_line

            screen.note(f"   {secrets_line(secrets)}")
    return child.code


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


def _counts(settings: Settings, run: str) -> tuple[dict[str, int], list[Secret]]:
    """Calls by type, and secrets that were redacted, from the trace itself, so that they are right also when the
    process was killed."""
    from agentloom.format.journal import Journal
    from agentloom.runtime.redaction_secrets import secrets_in

    try:
        data = settings.open_store().read(run)
    except RunNotFound:
        return {}, []
    journal = Journal.parse(data)
    return _calls_in(journal), list(secrets_in(journal).values())


def calls_of(store: Store, run: str) -> dict[str, int]:
    """How many calls of each type the run has made."""
    from agentloom.format.journal import Journal

    return _calls_in(Journal.parse(store.read(run)))


def _calls_in(journal: Journal) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in journal.entries:
        if entry["kind"] == "request":
            kind = str(entry["type"])
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _summary(
    screen: Screen, target: str, run: str, counts: dict[str, int], done: dict[str, Any], seconds: float
) -> None:
    total = sum(counts.values())
    order = sorted(counts, key=lambda kind: (kind not in ("model", "tool"), kind != "model", kind))
    parts = ", ".join(f"{counts[kind]} {kind}" for kind in order)
    calls = f"{total} call{'' if total == 1 else 's'}" + (f": {parts}" if parts else "")
    status = done["status"]
    word: list[Span] = [] if status == "completed" else [("warn", "  " + _status(done))]
    screen.note(("good", "-- recorded "), ("name", short(run)), f"  {calls}  {seconds:.1f} s", *word)
    tools: list[dict[str, Any]] = done.get("tools") or []
    if tools:
        named = ", ".join(f"{tool['name']} ({_line(tool['place'])})" for tool in tools)
        screen.note(f"   tools found by name: {named}")
        writes = [tool for tool in tools if tool["effect"] == "write"]
        if writes:
            which = "" if len(writes) == len(tools) else ", ".join(tool["name"] for tool in writes) + " "
            kind = "a write" if which and len(writes) == 1 else "writes"
            screen.note(f"   {which}treated as {kind}, never run on replay. Change: --tool NAME=read")
    _unrecorded(screen, done)
    if done.get("guard") == "off":
        screen.note("   guard off: clocks, random numbers and effects were the program's own")
    agents: list[str] = done.get("agents") or []
    for agent in [] if total else agents:
        screen.note(f"   {agent} is defined there and was not run: agentloom run {target}:{agent} -- ARGS")


def _status(done: dict[str, Any]) -> str:
    if done["status"] == "failed":
        return f"failed, exit code {done['exit']}"
    return str(done["status"])


def _line(place: str) -> str:
    if ":" not in place:
        return place  # a framework
    file, _, line = place.rpartition(":")
    return f":{line}" if "/" not in file else place


def _unrecorded(screen: Screen, done: dict[str, Any]) -> None:
    if "unrecorded" not in done:
        return
    items = [f"tool {tool['name']} ({tool['why']})" for tool in done["missing"]]
    items += [f"{effect['what']} ({effect['where']})" for effect in done["unrecorded"]]
    if not items:
        screen.note("   not recorded: nothing")
        return
    screen.note(("warn", "   not recorded:"))
    for item in items[:_SHOWN]:
        screen.note(f"     {item}")
    rest = len(items) - _SHOWN + done.get("more", 0)
    if rest > 0:
        screen.note(f"     and {rest} more")
    if missing := done["missing"]:
        name = missing[0]["name"]
        screen.note(
            f"   recorded as tools are plain functions, such as a def {name}(...) that calls the rest"
        )
    refused = {effect["kind"] for effect in done["unrecorded"]} - READS
    if refused:
        instead = "let tools take and return plain data" if refused == {"tool"} else "move them into a tool"
        screen.note(f"   a replay refuses these and stops there: {instead}")
