"""One question to a model in full: fallback models, attempts, an answer of a type, repairs. Sync and async alike.

``_course`` is the whole course of it without doing anything: it yields whom to ask what, and is sent what came back.
Every request is an ordinary call of the run, so tokens and cost of repairs, attempts and fallbacks are in the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from agentloom.api.outputs import Shape, read_answer, repair_message, shape_of
from agentloom.api.retries import Retry, attempted, attempted_sync, policy_of
from agentloom.errors import ModelError, NotSupported, OutputError
from agentloom.runtime import host
from agentloom.runtime.answers import Answer
from agentloom.runtime.boundary import call_async, call_inline

__all__ = [
    "Messages",
    "Once",
    "Question",
    "another_may_do_better",
    "ask",
    "ask_sync",
    "question_of",
    "refuse_stream",
]

Messages = Sequence[Mapping[str, Any]] | str

_NO_OTHER = frozenset(["bad_request", "auth"])
"""Kinds of ModelError that are faults of the program or its setting: asking somebody else would only hide them."""


class Question:
    """What is asked, and of whom: ``models`` in turn. ``timeout``: seconds of each attempt. ``answered`` is set to the
    one of ``models`` that answered."""

    __slots__ = ("answered", "messages", "models", "params", "repair", "retry", "shape", "timeout")

    def __init__(
        self,
        models: tuple[str, ...],
        messages: Messages,
        params: dict[str, Any],
        shape: Shape | None,
        repair: int,
        retry: Retry | None,
        timeout: float | None,
    ) -> None:
        self.models = models
        self.messages = messages
        self.params = params
        self.shape = shape
        self.repair = repair
        self.retry = retry
        self.timeout = timeout
        self.answered: str | None = None


def _names_of(models: str | Sequence[str]) -> tuple[str, ...]:
    """The models of ``model=``: one, or several to ask in turn. TypeError for anything else."""
    if isinstance(models, str):
        return (models,)
    names = tuple(models) if isinstance(cast("object", models), Sequence) else ()
    if not names or not all(isinstance(name, str) and name for name in cast("tuple[object, ...]", names)):
        raise TypeError("model takes the name of a model, or several: the first, then its fallbacks")
    return names


def question_of(
    models: str | Sequence[str],
    messages: Messages,
    params: Mapping[str, Any],
    *,
    output: Any = None,
    repair: int | None = None,
    retry: Retry | int | None = None,
    timeout: float | None = None,
) -> Question:
    """The question that ``model(...)`` or a model step asks. TypeError, ValueError or NotSupported where it makes no
    sense."""
    sent = dict(params)
    shape = None
    if output is not None:
        if sent.get("response_format") is not None:
            raise TypeError("output= says what the answer has to be; leave response_format= out")
        if (sent.get("n") or 1) != 1:
            raise NotSupported("output= reads one answer, and n= asks for several", hint="ask several times")
        shape = shape_of(output)
        sent["response_format"] = shape.response_format
    elif repair is not None:
        raise TypeError("repair= is for an answer with output=")
    repair = 1 if repair is None else repair
    if type(repair) is not int or repair < 0:
        raise ValueError(f"repair={repair!r}: how often a wrong answer is sent back, a whole number from 0")
    return Question(_names_of(models), messages, sent, shape, repair, policy_of(retry), timeout)


def refuse_stream(models: object, *, output: Any, retry: Retry | int | None) -> None:
    """NotSupported where ``model(..., stream=True)`` is given what needs a whole answer."""
    words = {
        "output=": output,
        "retry=": retry,
        "several models": None if isinstance(models, str) else models,
    }
    wrong = [word for word, given in words.items() if given is not None]
    if wrong:
        raise NotSupported(
            f"stream=True does not go with {' and '.join(wrong)}: what was read of an answer cannot be taken back",
            hint="leave stream=True out; a model step of a workflow takes both, and tells the text as it comes",
        )


def another_may_do_better(error: BaseException) -> bool:
    """Whether another model may answer where one failed with ``error``: not where the request or a key is wrong."""
    if isinstance(error, ModelError):
        return error.kind not in _NO_OTHER
    return isinstance(error, OutputError | TimeoutError)


Asked = Generator[tuple[str, Messages], Answer, Answer]


def _course(question: Question) -> Asked:
    """Yields model and messages, is sent the answer or thrown the error; returns the answer, raises the last error."""
    before: list[str] = []
    for number, model in enumerate(question.models, start=1):
        try:
            answer = yield from _of_one(question, model)
        except Exception as error:
            for line in before:
                error.add_note(line)
            if number == len(question.models) or not another_may_do_better(error):
                raise
            before.append(f"asked before: {model}, {type(error).__name__}: {_first_line(error)}")
        else:
            question.answered = model
            return answer
    raise RuntimeError("a question without models")


def _of_one(question: Question, model: str) -> Asked:
    """Ask one model; send its answer back with what is wrong while that may help. Only the last wrong answer goes
    along: a history of all of them would grow with every repair."""
    messages = question.messages
    answers = 1
    while True:
        answer = yield model, messages
        if question.shape is None:
            return answer
        try:
            return read_answer(question.shape, answer, model=model, answers=answers)
        except OutputError as error:
            if error.reason != "invalid" or answers > question.repair:
                raise
            messages = [*_history(question.messages), *_said(answer), repair_message(error)]
        answers += 1


def _history(messages: Messages) -> Sequence[Mapping[str, Any]]:
    return [{"role": "user", "content": messages}] if isinstance(messages, str) else messages


def _said(answer: Answer) -> list[dict[str, Any]]:
    return [answer.message] if answer.text else []  # an empty message is an error to some providers


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


# -- drivers ---------------------------------------------------------------------------------------------------------

Once = Callable[[str, Messages], Awaitable[Answer]]


async def ask(question: Question, once: Once | None = None) -> Answer:
    """Ask it; ``once`` makes one request (default: a plain one). Raises the error that ended it."""
    perform = once or _plain(question)
    course = _course(question)
    go_on: Callable[[], tuple[str, Messages]] = partial(next, course)
    while True:
        try:
            asked = go_on()
        except StopIteration as done:
            return cast(Answer, done.value)
        try:
            answer = await attempted(question.retry, question.timeout, partial(perform, *asked))
        except Exception as error:  # noqa: BLE001 - the course raises it where nobody else can be asked
            go_on = partial(course.throw, error)
        else:
            go_on = partial(course.send, answer)


def ask_sync(question: Question) -> Answer:
    """As ``ask``, in a sync agent."""

    def perform(model: str, messages: Messages) -> Answer:
        spec = host.model_spec(model, messages, question.params)
        return Answer(cast("dict[str, Any]", call_inline(spec, host.perform_model_sync)))

    course = _course(question)
    go_on: Callable[[], tuple[str, Messages]] = partial(next, course)
    while True:
        try:
            asked = go_on()
        except StopIteration as done:
            return cast(Answer, done.value)
        try:
            answer = attempted_sync(question.retry, partial(perform, *asked))
        except Exception as error:  # noqa: BLE001 - the course raises it where nobody else can be asked
            go_on = partial(course.throw, error)
        else:
            go_on = partial(course.send, answer)


def _plain(question: Question) -> Once:
    async def perform(model: str, messages: Messages) -> Answer:
        spec = host.model_spec(model, messages, question.params)
        return Answer(cast("dict[str, Any]", await call_async(spec, host.perform_model)))

    return perform
