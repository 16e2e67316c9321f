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

__all__ = [
    "Memory",
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
    "sleep",
    "step",
    "uuid",
]
