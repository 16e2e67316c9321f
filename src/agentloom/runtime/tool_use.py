"""What a run knows of the tools of frameworks: which effect each has, and who takes what they print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

__all__ = ["AGENT", "EFFECTS", "ToolEffect", "ToolUse", "checked_tools", "declared_effect", "tools_of_record"]

ToolEffect = Literal["pure", "read", "write", "agent"]
AGENT: ToolEffect = "agent"
"""A tool whose code is the agent's own (it asks another agent): it runs again on replay, and what it asks is
recorded."""

EFFECTS: tuple[ToolEffect, ...] = ("pure", "read", "write", "agent")


@dataclass(slots=True)
class ToolUse:
    """``effects`` by name, as the user of the run said them; ``emit`` takes a stream's name and a text that a tool
    printed, once its outcome is there; ``used`` is told each tool that runs: its name, its effect, its framework."""

    effects: Mapping[str, ToolEffect] = field(default_factory=dict[str, ToolEffect])
    emit: Callable[[str, str], None] | None = None
    used: Callable[[str, ToolEffect, str], None] | None = None


def checked_tools(tools: Mapping[str, ToolEffect] | None) -> dict[str, ToolEffect]:
    """A ``tools=`` of a user. Raises ``ValueError`` for an effect that is none."""
    for name, effect in (tools or {}).items():
        if effect not in EFFECTS:
            raise ValueError(
                f"tools={{{name!r}: {effect!r}}}: an effect is one of {', '.join(sorted(EFFECTS))}"
            )
    return dict(tools or {})


def tools_of_record(policy: object) -> ToolUse | None:
    """What the user of a recorded run said, from the ``policy`` of its trace."""
    tools: object = cast("dict[str, object]", policy).get("tools") if isinstance(policy, dict) else None
    if not isinstance(tools, dict):
        return None
    said = cast("dict[str, Any]", tools)
    return ToolUse({name: effect for name, effect in said.items() if effect in EFFECTS})


def declared_effect(metadata: object, name: str) -> ToolEffect | None:
    """What a tool says of itself in its ``metadata``: ``{"agentloom": "read"}``. Raises ``ValueError`` for another
    word."""
    if not isinstance(metadata, Mapping):
        return None
    said = cast("Mapping[object, object]", metadata).get("agentloom")
    if said is None:
        return None
    if said not in EFFECTS:
        raise ValueError(
            f"the metadata of tool {name} say agentloom={said!r}: an effect is one of {', '.join(sorted(EFFECTS))}"
        )
    return said
