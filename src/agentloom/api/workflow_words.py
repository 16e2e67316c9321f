"""The words of ``Workflow.step``, and the step that they make."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agentloom.api.retries import policy_of
from agentloom.api.workflow_steps import Kind, Step
from agentloom.errors import WorkflowError
from agentloom.format.words import kind_of

__all__ = ["KINDS", "step_of"]

KINDS: tuple[Kind, ...] = ("model", "fn", "tool", "agent", "workflow")
_WORDS = frozenset(
    """prompt template system output repair after when retry timeout args each limit loop inputs""".split()
)
"""The words besides ``KINDS`` that are not parameters of a model."""
_ALIKE = frozenset(("tools",))
"""Parameters of models that only look like a misspelt word of ours."""


def step_of(name: str, given: Mapping[str, Any], *, verify: bool, before: str | None) -> Step:
    """The step that ``given`` describes; without ``after`` it follows ``before``. Raises ``WorkflowError``."""
    kind = _kind(name, given)
    target: object = given[kind]
    params = {word: value for word, value in given.items() if word not in _WORDS and word not in KINDS}
    _spelt(name, params)
    if given.get("repair") is not None and given.get("output") is None:
        raise WorkflowError(f"step {name!r}: repair= is for a model step with output=", step=name)
    try:
        retry = policy_of(given.get("retry"))
    except (TypeError, ValueError) as error:
        raise WorkflowError(f"step {name!r}: {error}", step=name) from None
    after, inputs = given.get("after"), given.get("inputs")
    for word in ("after", "inputs"):
        if given.get(word) is not None:
            _are_names(name, word, given[word])
    loop: object = given.get("loop")
    if loop is not None and not isinstance(loop, Mapping):
        raise WorkflowError(
            f"step {name!r}: loop= is {kind_of(loop)}",
            hint='it names steps and how often a run goes back to each: loop={"draft": 3}',
            step=name,
        )
    if loop is not None:
        _are_names(name, "loop", cast("object", loop))
    return Step(
        name=name,
        kind=kind,
        models=_names(given[kind]) if kind == "model" and isinstance(target, Iterable) else (),
        target=None if kind == "model" else target,
        prompt=given.get("prompt"),
        template=given.get("template"),
        system=given.get("system"),
        output=given.get("output"),
        repair=1 if given.get("repair") is None else given["repair"],
        params=params,
        after=_names(after) if after is not None else () if before is None else (before,),
        when=given.get("when"),
        retry=retry,
        timeout=given.get("timeout"),
        args=given.get("args"),
        each=given.get("each"),
        limit=given.get("limit", 8),
        loop=dict(given.get("loop") or {}),
        inputs=None if inputs is None else _names(inputs),
        verify=verify,
    )


def _kind(name: str, given: Mapping[str, Any]) -> Kind:
    kinds: list[Kind] = [kind for kind in KINDS if given.get(kind) is not None]
    if len(kinds) != 1:
        words = ", ".join(f"{kind}=" for kind in KINDS)
        raise WorkflowError(f"step {name!r}: give exactly one of {words}", step=name)
    return kinds[0]


def _spelt(name: str, params: Iterable[str]) -> None:
    """A misspelt word would go to the provider as a parameter, and the step would run without what it says."""
    for word in params:
        near = difflib.get_close_matches(word, _WORDS, 1, cutoff=0.8)
        if near and word not in _ALIKE:
            raise WorkflowError(
                f"step {name!r}: {word}= is no word of a step", hint=f"did you mean {near[0]}=?", step=name
            )


def _are_names(step: str, word: str, given: object) -> None:
    """Raise ``WorkflowError`` where ``given`` is neither a name nor several, in an order to rely on."""
    kind = kind_of(given)
    if isinstance(given, set | frozenset) or not isinstance(given, Iterable):
        raise WorkflowError(
            f"step {step!r}: {word}= takes the name of a step or a list of names, not {kind}",
            step=step,
        )
    for one in () if isinstance(given, str) else cast("Iterable[object]", given):
        if type(one) is not str:
            raise WorkflowError(f"step {step!r}: {word}= names {one!r}; names are texts", step=step)


def _names(given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(cast("Iterable[str]", given)))
