"""Model names in the source that may stand for another model tomorrow."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.cli.checks.findings import Finding, Source
from agentloom.cli.checks.model_calls import named_models
from agentloom.cli.checks.model_names import standing

__all__ = ["NAME", "check"]

NAME = "model-alias"


def check(source: Source) -> Iterator[Finding]:
    """A warning for each floating name, a note for each unknown one in what certainly is a model call."""
    for found in named_models(source.tree):
        stands = standing(found.name)
        if stands.kind == "pinned" or (stands.kind == "unknown" and not found.certain):
            continue
        floating = stands.kind == "floating"
        said = (
            f"{found.name} is {'a floating name' if floating else 'not known to be pinned'}, in {found.call}"
        )
        fix = f"name {stands.fix}" if stands.fix else "look up whether the provider pins it"
        yield Finding(
            NAME,
            "warning" if floating else "note",
            source.shown,
            found.line,
            found.column,
            found.name,
            said,
            stands.reason,
            fix,
        )
