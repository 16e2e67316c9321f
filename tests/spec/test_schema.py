"""spec/trace.schema.json describes single lines: what is written passes, malformed lines do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import agentloom
from agentloom.errors import FormatError, PayloadMissing
from agentloom.format.journal import Journal
from agentloom.store import MemoryStore
from spec.vector_maker import lines

SPEC = Path(__file__).parents[2] / "spec"
SCHEMA = json.loads((SPEC / "trace.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
ROWS = json.loads((SPEC / "vectors" / "v1" / "vectors.json").read_text())["vectors"]
VALID = [row["file"] for row in ROWS if row["consistent"]]
# Faults that one line alone shows, and that JSON Schema can say.
SHOWN = """request-without-key call-is-a-number call-id-syntax call-id-zero req-is-text vt-is-float at-is-text
    flag-as-true end-status run-id start-without-nonce delivery-zero newer-major must-understand other-digest encrypted
    erase-by-name retract-all blob-form blob-extra-member"""


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", VALID)
def test_every_line_of_a_valid_vector_passes(name: str) -> None:
    for line in lines((SPEC / "vectors" / "v1" / name).read_bytes()):
        if b"\x00" not in line:
            VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize("name", SHOWN.split())
def test_the_faulty_line_of_a_broken_vector_fails(name: str) -> None:
    row: dict[str, Any] = next(row for row in ROWS if row["file"] == f"invalid/{name}.loom")
    line = lines((SPEC / "vectors" / "v1" / row["file"]).read_bytes())[row["line"] - 1]
    assert not VALIDATOR.is_valid(json.loads(line))


POLICY = Draft202012Validator({"$ref": "#/$defs/policy", "$defs": SCHEMA["$defs"]})


def policy_of(data: bytes) -> Any:
    journal = Journal.parse(data)
    return journal.tree(str(journal.entries[0]["policy"]))


@pytest.mark.parametrize("name", VALID)
def test_the_policy_of_a_valid_vector_passes(name: str) -> None:
    try:
        policy = policy_of((SPEC / "vectors" / "v1" / name).read_bytes())
    except (PayloadMissing, FormatError):  # erased, or not opened by this version
        pytest.skip("no policy to look at")
    POLICY.validate(policy)


def test_the_policy_of_a_run_passes_with_all_its_fields() -> None:
    store = MemoryStore()
    with agentloom.record("block", store=store, tools={"look": "read", "research": "agent"}):
        pass
    policy = policy_of(store.read(store.runs()[0].run))
    assert policy["tools"] == {"look": "read", "research": "agent"}
    assert set(policy) <= set(SCHEMA["$defs"]["policy"]["properties"])
    POLICY.validate(policy)


@pytest.mark.parametrize(
    "policy",
    [{"tools": {"look": "reads"}}, {"tools": ["look"]}, {"yields": True}, {"guard": None}, {"entropy": "5a"}],
    ids=str,
)
def test_a_malformed_policy_fails(policy: Any) -> None:
    assert not POLICY.is_valid(policy)
