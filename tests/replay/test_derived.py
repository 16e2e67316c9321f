"""Code that looks inside what was redacted gets a verdict of its own, which says what it did."""

from __future__ import annotations

import hashlib
import random
import re
from typing import Any

import pytest

from agentloom import agent, tool
from agentloom.format.placeholders import PLACEHOLDER, placeholder
from agentloom.replay.derived import derivation
from agentloom.replay.fields import Difference
from agentloom.runtime.redaction_secrets import Secret
from agentloom.store import MemoryStore
from tests.secrets.shapes import make

HELD: dict[str, str] = {}


@tool(effect="read")
def key() -> str:
    return HELD["key"]


@tool
def use(value: Any) -> str:
    return "used"


@agent(guard="off")
def slices() -> str:
    return use(key()[:12])


@agent(guard="off")
def measures() -> str:
    return use(len(key()))


@agent(guard="off")
def hashes() -> str:
    return use(hashlib.sha256(key().encode()).hexdigest())


@agent(guard="off")
def returns() -> str:
    return key()[-10:]


@pytest.mark.parametrize(
    ("chosen", "how"),
    [
        (slices, "its first 12 characters"),
        (measures, "its length"),
        (hashes, "its SHA256"),
        (returns, "its last 10 characters"),
    ],
)
def test_a_value_made_from_a_placeholder_is_told(chosen: Any, how: str) -> None:
    HELD["key"] = make("openai", random.Random(7))
    trace = chosen.run(store=MemoryStore())
    report = trace.replay(check=False)
    assert report.finding is not None
    assert report.finding.cls == "redacted"
    assert re.search(rf"{PLACEHOLDER.pattern} \(OpenAI-style key\): {how}", report.finding.message)
    assert HELD["key"] not in str(report)


def test_a_value_that_has_nothing_to_do_with_it_is_not_told() -> None:
    secrets = {1: Secret(1, "JWT", None)}
    assert derivation([Difference("a", "changed", "x", "y")], secrets) is None
    assert derivation([Difference("a", "changed", 1, 2)], secrets) is None
    assert derivation([Difference("a", "changed", "x", f"as it is: {placeholder(1)}")], secrets) is None
    assert derivation([Difference("a", "changed", "x", {"k": ["__reda"]})], secrets) is not None
