"""The whole exception tree of agentloom.

::

    Exception
    └── LoomError                      everything agentloom raises on purpose
        ├── TraceError                 damage in a trace (code, line, offset)
        │   ├── FormatError            bytes that are not a valid trace
        │   │   └── UnsupportedVersion a newer major version, or a must-understand extension
        │   └── IntegrityError         the chain, a blob or a head does not hold
        ├── ValueRefused               a value that cannot be kept exactly (path, type, remedy)
        ├── StoreError                 the store cannot read or write (path, reason)
        │   ├── RunNotFound            no run of that id, prefix, tag or file
        │   ├── AmbiguousRun           a prefix or tag that fits several runs
        │   ├── LeaseHeld              another process is writing this run
        │   ├── MailTaken              that answer was given before (existing)
        │   └── StoreFailed            no space, read-only, I/O error while recording (fail closed)
        ├── TargetError                an agent or script that cannot be found, imported or chosen
        │   └── NotRecorded            a trace asked for where nothing was recorded on purpose (why)
        ├── NoActiveRun                a host function called outside a run
        ├── NotSupported               a feature that this version does not have, said loudly
        ├── UnrecordedEffect           an effect that a strict guard refused (what, kind, file, line, function)
        ├── PayloadMissing             a blob that was erased or lost (call id, blob id)
        ├── ProviderError              a model provider that cannot be reached or configured
        │   └── ModelError             a provider's refusal or failure of one call (kind, status, delay)
        ├── AnswerError                a model's answer that is not what was asked for (text, position)
        │   └── OutputError            an answer that is not of the type asked for (model, problems, answers)
        ├── TemplateError              a template that cannot be read or filled (template, line, variable)
        ├── TrafficError               recorded traffic that cannot be read or played (file, exchange)
        ├── WorkflowError              a workflow that cannot be built (step)
        ├── DriftError                 code, packages or provider differ where the user asked for equality
        ├── RecordedError              stands for a recorded exception whose type is not loaded here
        ├── Suspended                  a run that waits for a person, a message or a time (run, asks, due)
        ├── Expired                    nobody answered in time, and there is no default (ask, due)
        ├── AnswerRefused              an answer that a run does not take (run, ask, open)
        │   ├── UnknownAsk             no question of that id
        │   ├── AmbiguousAsk           several are open, and none was named
        │   ├── LateAnswer             its deadline has passed
        │   ├── StaleAnswer            the run has ended, or no longer asks that
        │   ├── ReusedAnswer           it was answered before (existing)
        │   ├── UnauthorisedAnswer     not by somebody who may answer it (by, approver)
        │   └── InvalidAnswer          not one of the choices, or not of the schema (problems)
        ├── GrantRefused               a call that the approval at hand does not cover (why)
        ├── Interrupted                the process died while a stream was read: there is no more of it (call)
        └── DivergenceError            a replay that asked for something else (report)
    BaseException
    └── ControlFlow                    never caught by ``except Exception`` (docs/internals.md, Verdicts)
        ├── Diverged                   raised inside the agent when its replay diverged
        ├── Stopped                    raised inside the agent when its run can no longer be recorded
        └── Suspend                    raised inside the agent when its run waits for a person

Every error carries fields, not only text; its message says what happened, where, and what to do next.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AmbiguousAsk",
    "AmbiguousRun",
    "AnswerError",
    "AnswerRefused",
    "ControlFlow",
    "Diverged",
    "DivergenceError",
    "DriftError",
    "Expired",
    "FormatError",
    "GrantRefused",
    "IntegrityError",
    "Interrupted",
    "InvalidAnswer",
    "LateAnswer",
    "LeaseHeld",
    "LoomError",
    "MailTaken",
    "ModelError",
    "NoActiveRun",
    "NotRecorded",
    "NotSupported",
    "OutputError",
    "PayloadMissing",
    "ProviderError",
    "RecordedError",
    "ReusedAnswer",
    "RunNotFound",
    "StaleAnswer",
    "Stopped",
    "StoreError",
    "StoreFailed",
    "Suspend",
    "Suspended",
    "TargetError",
    "TemplateError",
    "TraceError",
    "TrafficError",
    "UnauthorisedAnswer",
    "UnknownAsk",
    "UnrecordedEffect",
    "UnsupportedVersion",
    "ValueRefused",
    "WorkflowError",
]


class LoomError(Exception):
    """Base of every error that agentloom raises on purpose.

    ``message`` says what happened and where; ``hint`` says what to do next; ``fields`` holds the facts by name.
    """

    def __init__(self, message: str, *, hint: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields: dict[str, Any] = fields

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.hint}" if self.hint else self.message


def _fact(name: str, doc: str) -> property:
    """A fact of ``fields`` as an attribute; None where the error does not have it."""

    def get(error: LoomError) -> Any:
        return error.fields.get(name)

    return property(get, doc=doc)


class TraceError(LoomError):
    """Bytes that are not a whole, unchanged trace. ``code`` is a code of the specification's error table;
    ``line`` (from 1) and ``offset`` (bytes) are the place of the fault, where it has one."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int | None = None,
        offset: int | None = None,
        hint: str | None = None,
        **fields: Any,
    ) -> None:
        where = (
            "" if line is None else f" (line {line}" + ("" if offset is None else f", byte {offset}") + ")"
        )
        super().__init__(
            f"{message}{where} [{code}]", hint=hint, code=code, line=line, offset=offset, **fields
        )
        self.code = code
        self.line = line
        self.offset = offset


class FormatError(TraceError):
    """Bytes that are not a valid trace."""


class UnsupportedVersion(FormatError):
    """The trace needs a newer agentloom: a newer major version, or an extension it must understand."""


class IntegrityError(TraceError):
    """The chain, a blob or a head does not hold."""


class ValueRefused(LoomError):
    """A value that cannot be written and read back exactly.

    ``path`` is where it sits in the captured value (``messages[2].content.when``), ``type_name`` its type.
    """

    def __init__(self, path: str, type_name: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"cannot record the value at {path}: {type_name}: {reason}",
            hint=hint or "return plain data, or register the type with agentloom.register(Type)",
            path=path,
            type=type_name,
        )
        self.path = path
        self.type_name = type_name
        self.reason = reason


class StoreError(LoomError):
    """The store cannot do what was asked."""


class RunNotFound(StoreError):
    """No run of that id, prefix, tag or file."""


class AmbiguousRun(StoreError):
    """A prefix or tag that fits several runs; ``matches`` lists them."""

    matches = _fact("matches", "The ids of the runs.")


class LeaseHeld(StoreError):
    """Another process (``owner``) is writing this run."""

    owner = _fact("owner", "Who writes it, as far as it is known.")


class MailTaken(StoreError):
    """Mail of that kind and key was posted to the run before: of several at once one wins. ``existing`` is that one."""

    existing = _fact("existing", "The mail that was there before.")


class StoreFailed(StoreError):
    """Writing failed (no space, read-only, I/O error): the run stops before its next effect (see ``Stopped``)."""


class TargetError(LoomError):
    """An agent or script that cannot be found, imported, or chosen among several."""


class NotRecorded(TargetError):
    """A trace was asked for where there is none on purpose: ``AGENTLOOM=off``, a request that sampling left out, code
    that is part of somebody else's run. ``why`` says which; ``run.recorded`` tells before."""

    why = _fact("why", "Why nothing was recorded.")


class NoActiveRun(LoomError):
    """A host function was called where no run is active."""


class NotSupported(LoomError):
    """A feature that this version does not have."""


class UnrecordedEffect(LoomError):
    """A strict guard refused an effect of the agent's own code, which its trace would not hold. The run ends failed
    with it, whatever the agent catches. ``what``, ``kind``, ``file``, ``line``, ``function``."""

    what = _fact("what", "The effect.")
    file = _fact("file", "The file of the code that tried it.")
    line = _fact("line", "Its line, from 1.")
    function = _fact("function", "Its function.")


class PayloadMissing(LoomError):
    """A payload that the trace no longer holds: erased on purpose, or lost."""


class ProviderError(LoomError):
    """A model provider that cannot be reached, is not configured, or is not installed."""


class ModelError(ProviderError):
    """A provider refused or failed one call, or the way to it did. Holds plain values only, never a credential.

    ``kind`` is one of ``rate_limit``, ``quota``, ``overload``, ``context_length``, ``content_filter``, ``auth``,
    ``not_found``, ``bad_request``, ``server``, ``connection``, ``timeout``, ``malformed``. ``delay``: seconds that the
    provider asked to wait, or None. ``status``: the HTTP status, or None. ``code``: the provider's own code, or None.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        provider: str,
        model: str,
        status: int | None = None,
        code: str | None = None,
        delay: float | None = None,
        request_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(
            message,
            hint=hint,
            kind=kind,
            provider=provider,
            model=model,
            status=status,
            code=code,
            delay=delay,
            request_id=request_id,
        )
        self.kind = kind
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.delay = delay
        self.request_id = request_id

    @property
    def retryable(self) -> bool:
        """Whether the same request may well succeed later."""
        return self.kind in ("rate_limit", "overload", "server", "connection", "timeout")


class AnswerError(LoomError):
    """A model's answer that is not what was asked for: no JSON, malformed tool arguments. ``text``, ``position``."""

    def __init__(
        self, message: str, *, text: str, position: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, text=text, position=position)
        self.text = text
        self.position = position


class OutputError(AnswerError):
    """A model's answer that is not of the type asked for, after all repairs.

    ``problems`` says what is wrong, each a mapping with ``where`` (``items[2].price``, empty for the whole), ``what``
    and, where there is one, ``got``. ``model``: who was asked; ``answers``: how many answers there were; ``reason``:
    ``invalid``, ``cut off`` (at the limit of tokens), ``refused``, or ``tool calls``.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str,
        model: str,
        problems: list[dict[str, str]],
        answers: int,
        reason: str,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, text=text, hint=hint)
        self.fields |= {"model": model, "problems": problems, "answers": answers, "reason": reason}
        self.model = model
        self.problems = problems
        self.answers = answers
        self.reason = reason


class TemplateError(LoomError):
    """A template that cannot be read or filled: ``template`` (its name), ``line`` (from 1), ``variable``."""

    def __init__(
        self,
        message: str,
        *,
        template: str,
        line: int | None = None,
        variable: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, template=template, line=line, variable=variable)
        self.template = template
        self.line = line
        self.variable = variable


class TrafficError(LoomError):
    """A file of recorded HTTP traffic that cannot be read or played; ``file`` and ``exchange`` say where."""

    file = _fact("file", "The file.")
    exchange = _fact("exchange", "Which exchange of it; None where it is about all of the file.")


class WorkflowError(LoomError):
    """A workflow that cannot be built, or a step that asks for what it may not. ``step`` names the step, None where it
    is about no single one; ``steps`` names every step that has a fault."""

    step = _fact("step", "The name of the step.")

    @property
    def steps(self) -> list[str]:
        """The names of all steps that have a fault, in the order in which the message says them."""
        return list(self.fields.get("steps") or ([] if self.step is None else [self.step]))


class DriftError(LoomError):
    """Code, packages, provider or tools differ where the user asked for equality."""


class RecordedError(LoomError):
    """Stands for a recorded exception whose type the running program has not loaded.

    ``type_name`` is the recorded type (``module:qualname``), ``args`` its recorded arguments.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}", type=type_name)
        self.type_name = type_name


class DivergenceError(LoomError):
    """A replay that asked for something else than the trace holds. ``report`` says what, where and why."""

    def __init__(self, report: Any) -> None:
        super().__init__(str(report))
        self.report = report


class Suspended(LoomError):
    """The run waits for what no process does: its process has ended the work on it, and whoever answers resumes it.

    ``run`` is its id, ``asks`` what is open (``OpenAsk``), ``due`` when it goes on without an answer (nanoseconds since
    1970), or None.
    """

    run = _fact("run", "The id of the run.")
    asks = _fact("asks", "What it waits for.")
    due = _fact("due", "When it goes on by itself: nanoseconds since 1970.")


class Expired(LoomError):
    """Nobody answered before the deadline, and the question has no default."""

    ask = _fact("ask", "The id of the question.")
    due = _fact("due", "The deadline: nanoseconds since 1970.")


class AnswerRefused(LoomError):
    """An answer (or a message) that its run does not take; nothing was changed. ``open``: what can be answered."""

    run = _fact("run", "The id of the run.")
    ask = _fact("ask", "The id of the question; None where none was named.")
    open = _fact("open", "The questions that are open (OpenAsk).")


class UnknownAsk(AnswerRefused):
    """The run never asked that, or waits for nobody."""


class AmbiguousAsk(AnswerRefused):
    """Several questions are open, and the answer does not say to which of them it is one."""


class LateAnswer(AnswerRefused):
    """The deadline of the question has passed."""


class StaleAnswer(AnswerRefused):
    """The run has ended, or went on without that question."""


class ReusedAnswer(AnswerRefused):
    """The question was answered before; that answer stands."""

    existing = _fact("existing", "The answer that stands, as it was posted; None where the run has taken it.")


class UnauthorisedAnswer(AnswerRefused):
    """Whoever answers is not one of those who may."""

    by = _fact("by", "Who answered.")
    approver = _fact("approver", "Names and roles that may answer.")


class InvalidAnswer(AnswerRefused):
    """The value is not one of the choices, or not of the schema; ``problems``, each with ``where`` and ``what``."""

    problems = _fact("problems", "What is wrong with it.")


class GrantRefused(LoomError):
    """A call that the approval at hand does not cover; it was not made. ``why``: ``denied``, ``tool``, ``arguments``,
    ``schema``, ``expired`` or ``used``."""

    why = _fact("why", "Why.")


class Interrupted(LoomError):
    """The process died while the agent read a stream: what it had read stands, and there is no more of it."""

    call = _fact("call", "The id of the call.")


class ControlFlow(BaseException):
    """Control flow that an agent's ``except Exception`` must not swallow."""


class Diverged(ControlFlow):
    """Raised inside the agent when its replay diverged; the engine keeps the verdict whatever the agent does."""


class Stopped(ControlFlow):
    """Raised inside the agent when its run can no longer be recorded (``__cause__`` says why).

    Whoever started the run gets the cause itself, a ``StoreFailed``: an agent that goes on after any ``Exception`` must
    not go on after this."""


class Suspend(ControlFlow):
    """Raised inside the agent when its run waits for a person, a message or a time; whoever started the run gets
    ``Suspended``. ``due``: when it goes on by itself (nanoseconds since 1970), or None."""

    def __init__(self, due: int | None = None) -> None:
        super().__init__("the run waits for what no process does")
        self.due = due
