"""An agent that cleans up accounts, and now and then picks the wrong target.

    agentloom run agent.py:cleanup -- "clean up the inactive accounts in staging"

It reads a runbook, lets a model choose the arguments of `delete_accounts` under a JSON schema, and calls it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import accounts

from agentloom import agent, model, retrieve, tool
from agentloom.errors import AnswerError

MODEL = "local:smollm2"
SYSTEM = (
    "You are an operations assistant. Answer with one call of delete_accounts as JSON: "
    '{"target": "...", "filter": "inactive > 90 days"}'
)
ATTEMPTS = 3
RUNBOOKS = Path(__file__).with_name("runbooks")
TARGETS = ["staging", "production"]
FILTER = r"^inactive > [1-9][0-9]{1,2} days$"
SCHEMA = {
    "type": "object",
    "properties": {
        "target": {"enum": TARGETS},
        "filter": {"type": "string", "pattern": FILTER},
    },
    "required": ["target", "filter"],
    "additionalProperties": False,
}


def search_runbooks(request: str) -> list[dict[str, Any]]:
    """The runbook that shares the most words with the request, with its id, score and text."""
    words = set(re.findall(r"[a-z]+", request.lower()))
    found: list[dict[str, Any]] = []
    for path in sorted(RUNBOOKS.glob("*.md")):
        text = path.read_text("utf-8")
        score = len(words & set(re.findall(r"[a-z]+", text.lower()))) / len(words)
        found.append({"id": path.stem, "score": round(score, 3), "text": text.strip()})
    return sorted(found, key=lambda runbook: runbook["score"], reverse=True)[:1]


@tool(effect="write")
def delete_accounts(target: str, filter: str) -> dict[str, Any]:  # noqa: A002 - the name that the model sees
    """Delete accounts of ``target`` for good. ``filter`` reads ``inactive > N days``."""
    days = int(filter.split()[2])
    return {"target": target, "deleted": accounts.delete(target, days)}


def usable(chosen: Any) -> bool:
    """Whether an answer keeps to the schema; one that ended too early does not."""
    return (
        isinstance(chosen, dict)
        and chosen.get("target") in TARGETS
        and re.match(FILTER, str(chosen.get("filter"))) is not None
    )


async def choose(request: str, runbook: str) -> dict[str, str]:
    """Ask the model for the arguments; a malformed answer is asked for again."""
    for _ in range(ATTEMPTS):
        answer = await model(
            MODEL,
            messages=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{runbook}\n\nRequest: {request}"},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "delete_accounts", "strict": True, "schema": SCHEMA},
            },
            temperature=0.7,
            max_tokens=48,
            logprobs=True,
            top_logprobs=20,
        )
        try:
            chosen = answer.json()
        except AnswerError:
            continue
        if usable(chosen):
            return {"target": chosen["target"], "filter": chosen["filter"]}
    raise RuntimeError(f"no usable answer in {ATTEMPTS} attempts")


@agent
async def cleanup(request: str) -> str:
    """Clean up accounts as ``request`` says."""
    [runbook] = await retrieve(search_runbooks, request)
    chosen = await choose(request, runbook["text"])
    done = delete_accounts(chosen["target"], chosen["filter"])
    return f"deleted {done['deleted']:,} accounts in {done['target']}"
