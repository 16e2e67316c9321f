"""Scripted model servers for the pages' blocks (`<!-- provider: NAME -->`): no key, no network."""

from __future__ import annotations

from agentloom.testing import FakeProvider, Reply, Says, Seen, Wants


def _refund(seen: Seen) -> Reply:
    """The refund agent of the README: looks the order up, refunds it, says so."""
    done = sum(message["role"] == "tool" for message in seen.body["messages"])
    return (
        Says(tools=[Wants("lookup_order", {"order_id": 812})], usage=(85, 0, 17, 0)),
        Says(tools=[Wants("issue_refund", {"order_id": 812, "amount": 40})], usage=(117, 0, 22, 0)),
        Says("Refunded order 812: $40.00", usage=(148, 0, 11, 0)),
    )[done]


def _triage(seen: Seen) -> Reply:
    """Two models of two providers: one classifies, the other responds."""
    return Says(
        "billing: charged twice" if seen.body["model"].startswith("gpt") else "We are looking into it."
    )


PROVIDERS = {"refund": _refund, "triage": _triage}


def provider(name: str) -> FakeProvider:
    """The server of that name, not started."""
    return FakeProvider(PROVIDERS[name])
