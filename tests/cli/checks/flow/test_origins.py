"""The tables of origins."""

from __future__ import annotations

import ast

from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.checks.flow.origins import ATTRIBUTES, FACTS, VALUES, effect_of, is_credential, origin_of


def test_every_rule_of_the_tables_is_one() -> None:
    assert {*VALUES.values(), *FACTS.values()} <= RULES.keys()
    assert ATTRIBUTES <= VALUES.keys() | FACTS.keys()
    assert not VALUES.keys() & FACTS.keys()


def test_facts_are_of_the_process_at_import_alone() -> None:
    assert [origin_of("os.getcwd", in_run=now) for now in (True, False)] == [None, "folder"]
    assert [origin_of("numpy.random.rand", in_run=now) for now in (True, False)] == ["unseen-random"] * 2
    assert origin_of("numpy.random.default_rng", in_run=True) is None


def test_effects_and_credentials() -> None:
    assert (effect_of("os.remove"), effect_of("os.getcwd")) == ("writes files", None)
    names = [is_credential(ast.Constant(name)) for name in ("OPENAI_API_KEY", "MODEL", 3)]
    assert names == [True, False, False]
