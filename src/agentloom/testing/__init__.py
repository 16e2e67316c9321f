"""Fakes and helpers for testing agents: shipped, typed, used by agentloom's own tests."""

from agentloom.testing.fake_provider import FakeProvider, Seen
from agentloom.testing.replies import Drops, Fails, Raw, Reply, Says, Wants

__all__ = ["Drops", "Fails", "FakeProvider", "Raw", "Reply", "Says", "Seen", "Wants"]
