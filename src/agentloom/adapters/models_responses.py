"""OpenAI's Responses API: chat-completions requests in, answers out in the same mapping as chat completions'.

Asked for with ``api="responses"`` in the request. What that API has no word for is refused with its place in the
request; nothing is dropped in silence. Items and parts in its own form (``{"type": "function_call_output", ...}``,
``input_text``, server tools) pass as they are, and so do its own parameters (``include``, ``previous_response_id``,
``instructions``, ...). Source of the forms: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_anthropic_parts import Refused, check_form
from agentloom.adapters.models_openai import LOCAL_FIELDS
from agentloom.adapters.models_responses_answer import Reader, answer
from agentloom.adapters.models_responses_input import items_of
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["PATH", "answer", "body", "reader"]

PATH = "/responses"

_TRANSLATED = frozenset(
    [
        "messages",
        "tools",
        "tool_choice",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "verbosity",
        "reasoning_effort",
        "logprobs",
        "stream_options",
        "n",
    ]
)
_UNKNOWN_THERE = frozenset(
    [
        "seed",
        "stop",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "prediction",
        "modalities",
        "audio",
        "functions",
        "function_call",
        "web_search_options",
    ]
)


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    """The request's body without ``stream``. ModelError (``bad_request``) for what the API has no word for."""
    try:
        check_form(request.get("messages") or [])
        return _body(request, route, stream=stream)
    except Refused as refused:
        reason = str(refused)
    raise ModelError(
        "bad_request",
        f"{route.provider} {route.model}: the request cannot be said in the Responses API: {reason}",
        provider=route.provider,
        model=route.model,
        hint="change that field, leave out api=, or add it as it is with extra_body= for a server that knows it",
    )


def _body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    sent: dict[str, Any] = {"model": route.model, "input": items_of(request.get("messages") or [])}
    for name, value in request.items():
        if name in LOCAL_FIELDS or name in _TRANSLATED or value is None:
            continue
        if name in _UNKNOWN_THERE:
            raise Refused(name, "it has no such parameter")
        if name == "input":
            raise Refused(
                name, "the conversation is in messages; items in the API's own form are allowed there"
            )
        sent[name] = value
    if sent.get("background") and not stream:
        raise Refused("background", "such a response has no answer yet; ask for it with stream=True")
    if request.get("n") not in (None, 1):
        raise Refused("n", "it gives one answer")
    _limit(request, sent)
    _forms(request, sent)
    _tools(request, sent)
    if request.get("logprobs"):
        wanted = "message.output_text.logprobs"
        include: list[str] = sent.get("include") or []
        sent["include"] = include if wanted in include else [*include, wanted]
    options: Mapping[str, Any] = request.get("stream_options") or {}
    left = {name: value for name, value in options.items() if name != "include_usage"}  # it always counts
    if left:
        sent["stream_options"] = left
    return sent


def _limit(request: Mapping[str, Any], sent: dict[str, Any]) -> None:
    given = {request.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")} - {
        None
    }
    if len(given) > 1:
        raise Refused("max_tokens", "the limit is given twice, with different values")
    if given:
        sent["max_output_tokens"] = given.pop()


def _forms(request: Mapping[str, Any], sent: dict[str, Any]) -> None:
    """How the answer should look: ``text`` and ``reasoning``."""
    text: dict[str, Any] = {}
    wanted: Mapping[str, Any] | None = request.get("response_format")
    if wanted is not None:
        text["format"] = _format(wanted)
    if request.get("verbosity") is not None:
        text["verbosity"] = request["verbosity"]
    if text:
        sent["text"] = {**text, **(sent.get("text") or {})}
    if request.get("reasoning_effort") is not None:
        sent["reasoning"] = {"effort": request["reasoning_effort"], **(sent.get("reasoning") or {})}


def _format(wanted: Mapping[str, Any]) -> dict[str, Any]:
    kind = wanted.get("type")
    if kind == "json_schema" and isinstance(wanted.get("json_schema"), dict):
        return {"type": "json_schema", **wanted["json_schema"]}
    if kind == "grammar":
        raise Refused("response_format", "a grammar is given to a custom tool there")
    return dict(wanted)


def _tools(request: Mapping[str, Any], sent: dict[str, Any]) -> None:
    if request.get("tools"):
        sent["tools"] = [_tool(tool) for tool in request["tools"]]
    if request.get("tool_choice") is not None:
        sent["tool_choice"] = _choice(request["tool_choice"])


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    kind = tool.get("type")
    inner = tool.get(kind) if kind in ("function", "custom") else None
    if not isinstance(inner, dict):
        return dict(tool)
    made: dict[str, Any] = {"type": kind, **cast("dict[str, Any]", inner)}
    if kind == "function":
        made.setdefault(
            "strict", False
        )  # the default here; over there a function is strict unless it says no
        made.setdefault("parameters", None)  # required there
    grammar: Any = made.get("format")
    if isinstance(grammar, dict) and isinstance(cast("dict[str, Any]", grammar).get("grammar"), dict):
        made["format"] = {"type": "grammar", **cast("dict[str, Any]", grammar)["grammar"]}
    return made


def _choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    fields = cast("dict[str, Any]", choice)
    kind = fields.get("type")
    inner = fields.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return fields
    made: dict[str, Any] = {"type": kind, **cast("dict[str, Any]", inner)}
    if kind == "allowed_tools" and isinstance(made.get("tools"), list):
        made["tools"] = [_choice(one) for one in made["tools"]]
    return made


def reader() -> Reader:
    """A reader of a stream's events."""
    return Reader()
