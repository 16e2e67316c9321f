"""Every name that a finding may have: what it is, why it differs next time, and what to do instead.

The texts are those of findings; ``docs/check.md`` lists them, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentloom.cli.checks.findings import Level

__all__ = ["RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """``what`` is found, in a few words; ``reason``: why it is not the same next time; ``fix``: what to do instead."""

    name: str
    level: Level
    what: str
    reason: str
    fix: str


_ALL = (
    Rule(
        "set-order", "warning", "the order of a set reaches a request, an output or the order of calls",
        "the order of a set depends on the hash seed of the process, or on addresses",
        "sorted(...), or a list or dict in the first place",
    ),
    Rule(
        "listing-order", "warning", "files in the order of the file system",
        "a folder is listed in the order of its file system, another one on another machine",
        "sorted(...)",
    ),
    Rule(
        "float-sum", "warning", "floats summed in the order of a set",
        "adding floats in another order gives other last bits",
        "math.fsum(...), or sum(sorted(...))",
    ),
    Rule(
        "hash", "warning", "hash()",
        "the hash of a text depends on the hash seed of the process, that of an object on its address",
        "hashlib.sha256(text.encode()).hexdigest(), or zlib.crc32",
    ),
    Rule(
        "address", "warning", "the address of an object",
        "an object lies elsewhere in every process; id() is refused under a strict guard",
        "give the class a __repr__, or name the field that is meant",
    ),
    Rule(
        "json-default", "note", "json.dumps(default=str) of what may be any object",
        "what JSON does not have becomes its str() or repr(): of a plain object its address, of a set its order",
        "write a default that knows its types and raises TypeError for others",
    ),
    Rule(
        "unseen-random", "warning", "random numbers that the guard does not see",
        "C code draws them from a generator of its own, which is neither virtual nor recorded",
        "numpy.random.default_rng(seed), Python's random, or agentloom's random()",
    ),
    Rule(
        "unseen-clock", "warning", "a clock that the guard does not see",
        "C code reads the system's clock, which is neither virtual nor recorded",
        "datetime.now(), time.time() or agentloom's now()",
    ),
    Rule(
        "hidden-clock", "warning", "a clock or generator kept in a container or partial at import",
        "the guard binds names anew where modules, classes, closures and defaults hold them, not in containers",
        "keep the name and call it in the run: lambda: time.time()",
    ),
    Rule(
        "import-time", "warning", "a time, random number or identifier from import, used in a run",
        "what is computed while a module is imported is of the real world and is not recorded",
        "compute it inside the run",
    ),
    Rule(
        "environment", "note", "a variable of the environment read at import, used in a request",
        "what is read at import is not recorded: a replay elsewhere reads another value",
        "read it inside the run: agentloom's env(), or os.environ in the function",
    ),
    Rule(
        "time-zone", "warning", "the time zone of the process, from import",
        "what is taken from time at import (from time import tzname) is of the process, not of the run",
        "time.tzname inside the run, datetime.now().astimezone(), or an explicit ZoneInfo",
    ),
    Rule(
        "locale", "warning", "text by the locale of the process",
        "another machine or container has another locale",
        'a fixed format ("{:,.2f}", isoformat()), or a fixed locale by name',
    ),
    Rule(
        "folder", "warning", "a path of this machine: __file__, or a folder asked for at import",
        "a file lies elsewhere on another machine; the working and home folder are recorded only inside a run",
        "a path relative to the project, or ask inside the run",
    ),
    Rule(
        "machine", "warning", "a fact about this machine or process, from import, or one that is refused",
        "another machine has another name and width; such facts are recorded only where a run asks for them",
        "ask inside the run; numbers of the process (getpid) are refused there: use agentloom's uuid()",
    ),
    Rule(
        "arguments", "warning", "the arguments of the process, from import",
        "sys.argv at import is of the process that imports the agent: a replay has others",
        "pass it in as input of the agent, or read it inside the run",
    ),
    Rule(
        "unrecorded-effect", "warning", "an effect outside every host call",
        "it is not recorded: a strict guard refuses it, and a replay does not do it",
        "move it into a tool",
    ),
    Rule(
        "unrecorded-read", "note", "a file read outside every host call",
        "it is not recorded: a replay reads the file as it is then",
        'read it in a tool, or in a scope of allow("file.read", reason=...)',
    ),
    Rule(
        "mutable-default", "warning", "a default argument that is changed",
        "one object serves every call: what one run leaves in it, the next run finds",
        "default None, and make it in the function",
    ),
    Rule(
        "global-state", "warning", "state of the module changed in a run",
        "what one run leaves there, the next run in the process finds; a replay begins in a fresh one",
        "keep it in a local variable, or in agentloom's memory",
    ),
    Rule(
        "tool-state", "warning", "a variable that a tool changes and the agent reads",
        "no tool runs on replay: the variable stays as it was",
        "return what matters from the tool",
    ),
    Rule(
        "cache", "warning", "a cache in front of host calls",
        "what the cache answers makes no call: a warm process has other calls than a cold one",
        "cache inside the tool (@tool above the cache), or clear it at the start of the run",
    ),
    Rule(
        "counter", "warning", "a counter that goes on from run to run",
        "its value depends on how many runs the process had before",
        "count inside the run, or use agentloom's uuid()",
    ),
    Rule(
        "traceback", "warning", "the text of a traceback",
        "a traceback has paths of this machine and lines that move with every edit",
        "the type and message of the error: type(error).__name__, str(error)",
    ),
    Rule(
        "swallow", "note", "a handler around host calls that catches everything",
        "it also catches what ends a run (a pause, a divergence): the verdict stays, but the code goes on after it",
        "except Exception, or raise again",
    ),
    Rule(
        "model-alias", "warning", "a model name behind which the provider may put another model",
        "an undated name goes to whichever version the provider chooses",
        "a dated or numbered name",
    ),
    Rule(
        "double-run", "warning", "a replay of a recorded run that differs in another world",
        "something that no host call recorded differs there",
        "find what makes the value, and pass it in, sort it, or get it from a host call",
    ),
    Rule(
        "unread", "note", "a file that cannot be parsed",
        "a file that is not looked at may hold anything",
        "repair it, or leave it out",
    ),
    Rule(
        "accepted", "note", "a comment `# agentloom: ok` that accepts nothing",
        "the finding is gone, the name is none, or no reason is given",
        "take the comment away, or name the finding and the reason",
    ),
)  # fmt: skip

RULES: dict[str, Rule] = {rule.name: rule for rule in _ALL}
"""The rules by name, in the order of the documentation."""
