"""agentloom makes agent runs reproducible: every effect is recorded once, and the run is replayed byte for byte."""

from agentloom.api.agent import Agent, agent
from agentloom.api.hosts import (
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
    sleep,
    step,
    uuid,
)
from agentloom.api.trace import Trace, TraceCall
from agentloom.api.workflow import State, Workflow
from agentloom.errors import DivergenceError, LoomError
from agentloom.runtime.answers import Answer, StreamedAnswer
from agentloom.runtime.memory import use_memory
from agentloom.runtime.models import set_backend
from agentloom.runtime.registry import register
from agentloom.runtime.tools import tool

__all__ = [
    "Agent",
    "Answer",
    "DivergenceError",
    "LoomError",
    "Memory",
    "State",
    "StreamedAnswer",
    "Trace",
    "TraceCall",
    "Workflow",
    "agent",
    "env",
    "flag",
    "http",
    "memory",
    "model",
    "note",
    "now",
    "parallel",
    "random",
    "register",
    "retrieve",
    "set_backend",
    "sleep",
    "step",
    "tool",
    "use_memory",
    "uuid",
]
