"""agentloom makes agent runs reproducible: every effect is recorded once, and the run is replayed byte for byte.

The public API. Its names are loaded together when the first of them is used, so that ``import agentloom`` and commands
that need none of them (``agentloom ls``) start at once, and nothing is imported in the middle of a run. The names of
workflows, and those that record what was not written for agentloom, are loaded when the first of these is used: a
program without them does without their modules.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentloom.adapters.personal import personal
    from agentloom.adapters.service import instrument
    from agentloom.adapters.wrapping import wrap
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
    from agentloom.api.outputs import TypedAnswer
    from agentloom.api.people import Grant, OpenAsk, answer, approve, ask, inbox, send_signal, signal
    from agentloom.api.recording import RecordedBlock, RecordedRun, record, replaying
    from agentloom.api.resuming import aresume, resume
    from agentloom.api.retries import Retry, retrying
    from agentloom.api.rollback import rollback
    from agentloom.api.templates import Template, render
    from agentloom.api.trace import Trace, TraceCall, trace_of
    from agentloom.api.workflow import State, Workflow, goto
    from agentloom.errors import DivergenceError, LoomError, Suspended
    from agentloom.runtime.answers import Answer, StreamedAnswer
    from agentloom.runtime.changes import profile, use_profiles
    from agentloom.runtime.guard_allow import allow
    from agentloom.runtime.memory import use_memory
    from agentloom.runtime.models import set_backend
    from agentloom.runtime.redaction_rules import secrets, use_secrets
    from agentloom.runtime.registry import register
    from agentloom.runtime.revisions import changed
    from agentloom.runtime.tools import idempotency_key, tool

__all__ = [
    "Agent",
    "Answer",
    "DivergenceError",
    "Grant",
    "LoomError",
    "Memory",
    "OpenAsk",
    "RecordedBlock",
    "RecordedRun",
    "Retry",
    "State",
    "StreamedAnswer",
    "Suspended",
    "Template",
    "Trace",
    "TraceCall",
    "TypedAnswer",
    "Workflow",
    "agent",
    "allow",
    "answer",
    "approve",
    "aresume",
    "ask",
    "changed",
    "env",
    "flag",
    "goto",
    "http",
    "idempotency_key",
    "inbox",
    "instrument",
    "memory",
    "model",
    "note",
    "now",
    "parallel",
    "personal",
    "profile",
    "random",
    "record",
    "register",
    "render",
    "replaying",
    "resume",
    "retrieve",
    "retrying",
    "rollback",
    "secrets",
    "send_signal",
    "set_backend",
    "signal",
    "sleep",
    "step",
    "tool",
    "trace_of",
    "use_memory",
    "use_profiles",
    "use_secrets",
    "uuid",
    "wrap",
]

_HOMES = (
    "agentloom.api.agent",
    "agentloom.api.hosts",
    "agentloom.api.outputs",
    "agentloom.api.retries",
    "agentloom.api.trace",
    "agentloom.errors",
    "agentloom.runtime.answers",
    "agentloom.runtime.changes",
    "agentloom.runtime.guard_allow",
    "agentloom.runtime.memory",
    "agentloom.runtime.models",
    "agentloom.runtime.redaction_rules",
    "agentloom.runtime.registry",
    "agentloom.runtime.revisions",
    "agentloom.runtime.tools",
)
"""The modules that define the names; each lists them in its own ``__all__``."""
_RECORDING_HOMES = ("agentloom.api.recording",)
_RECORDING_NAMES = frozenset(("RecordedBlock", "RecordedRun", "record", "replaying"))
_PEOPLE_HOMES = ("agentloom.api.people",)
_PEOPLE_NAMES = frozenset(("Grant", "OpenAsk", "answer", "approve", "ask", "inbox", "send_signal", "signal"))
_RESUMING_HOMES = ("agentloom.api.resuming",)
_RESUMING_NAMES = frozenset(("aresume", "resume"))
_SERVICE_HOMES = ("agentloom.adapters.service", "agentloom.adapters.wrapping")
_SERVICE_NAMES = frozenset(("instrument", "wrap"))
_PERSONAL_HOMES = ("agentloom.adapters.personal",)
_WORKFLOW_HOMES = ("agentloom.api.templates", "agentloom.api.workflow")
_WORKFLOW_NAMES = frozenset(("State", "Template", "Workflow", "goto", "render"))


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'agentloom' has no attribute {name!r}")
    from importlib import import_module

    names = globals()
    homes: tuple[str, ...] = _HOMES
    if name in _WORKFLOW_NAMES:
        homes = _WORKFLOW_HOMES
    elif name in _RECORDING_NAMES:
        homes = _RECORDING_HOMES
    elif name in _PEOPLE_NAMES:
        homes = _PEOPLE_HOMES
    elif name == "rollback":
        homes = ("agentloom.api.rollback",)
    elif name in _RESUMING_NAMES:
        homes = _RESUMING_HOMES
    elif name == "personal":
        homes = _PERSONAL_HOMES
    elif name in _SERVICE_NAMES:
        homes = _SERVICE_HOMES
    for home in map(import_module, homes):
        names.update({public: getattr(home, public) for public in home.__all__ if public in __all__})
    return names[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
