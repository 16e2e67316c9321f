"""The host functions for sync agents: the names of ``agentloom``, called instead of awaited."""

from agentloom.api.hosts_sync import (
    Memory,
    env,
    flag,
    http,
    memory,
    model,
    note,
    now,
    parallel,
    random,
    retrieve,
    retrying,
    sleep,
    step,
    uuid,
)
from agentloom.api.people_sync import approve, ask, signal

__all__ = [
    "Memory",
    "approve",
    "ask",
    "env",
    "flag",
    "http",
    "memory",
    "model",
    "note",
    "now",
    "parallel",
    "random",
    "retrieve",
    "retrying",
    "signal",
    "sleep",
    "step",
    "uuid",
]
