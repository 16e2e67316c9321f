"""Findings as the JSON of ``agentloom check`` has them."""

from __future__ import annotations

import json

from agentloom.cli.checks.findings import Finding


def test_a_finding_as_json_has_every_field() -> None:
    found = Finding("model-alias", "warning", "a.py", 3, 7, "gpt-4o", "said", "reason", "fix")
    assert json.loads(json.dumps(found.to_json())) == {
        "check": "model-alias", "level": "warning", "file": "a.py", "line": 3, "column": 7, "subject": "gpt-4o",
        "said": "said", "reason": "reason", "fix": "fix",
        "function": "",
    }  # fmt: skip
