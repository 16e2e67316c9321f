"""Fakes and helpers for testing agents: shipped, typed, used by agentloom's own tests."""

from agentloom.testing.exchanges import Exchange, Frame, Traffic
from agentloom.testing.fake_provider import FakeProvider, Seen
from agentloom.testing.player import Faults, Player
from agentloom.testing.player_matching import Arrived, Miss
from agentloom.testing.replies import Drops, Fails, Raw, Reply, Says, Wants
from agentloom.testing.traffic import read_traffic

__all__ = [
    "Arrived",
    "Drops",
    "Exchange",
    "Fails",
    "FakeProvider",
    "Faults",
    "Frame",
    "Miss",
    "Player",
    "Raw",
    "Reply",
    "Says",
    "Seen",
    "Traffic",
    "Wants",
    "read_traffic",
]
