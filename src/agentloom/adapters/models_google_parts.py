"""Messages in Google's form: contents with parts; parts in Google's own form pass as they are.

Google's calls of functions have no ids that one may count on, so results are put beside their calls: by the id that the
history gives the call, in the order of the calls. Source: https://ai.google.dev/api/caching#Content
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agentloom.adapters.models_anthropic_parts import Refused
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.adapters.models_media import data_of, media_type_of

__all__ = ["FORM", "conversation"]

FORM = "google"
"""The name of this form in ``blocks`` (`agentloom.runtime.assembly`)."""

_ROLES = ("system", "developer")


def conversation(messages: Any, provider: str) -> tuple[list[dict[str, Any]], Any]:
    """The parts of the system instruction, and the contents. Refused for what Google has no word for.

    A list that is no conversation in any protocol goes out as it is: the provider says so.
    """
    if not isinstance(messages, list):
        return [], messages
    items = cast("list[object]", messages)
    if not all(isinstance(message, dict) for message in items):
        return [], items
    made = _Conversation(provider)
    for number, message in enumerate(cast("list[dict[str, Any]]", items)):
        made.add(message, f"messages[{number}]")
    return made.system, made.contents


class _Conversation:
    def __init__(self, provider: str) -> None:
        self.system: list[dict[str, Any]] = []
        self.contents: list[dict[str, Any]] = []
        self._provider = provider
        self._calls: dict[str, tuple[int, dict[str, Any]]] = {}
        """By the id in the history: the place among the calls of its turn, and the call. A later turn's count."""
        self._results: list[tuple[int, dict[str, Any]]] | None = None

    def add(self, message: Mapping[str, Any], place: str) -> None:
        role = message.get("role")
        if role != "tool":
            self._results = None
        if role in _ROLES:
            if self.contents:
                raise Refused(place, f"a {role} message after the conversation began has no place there")
            _only(message, ("role", "content"), place)
            self.system += _parts(message.get("content"), place, self._provider)
        elif role == "user":
            _only(message, ("role", "content"), place)
            self._turn("user", _parts(message.get("content"), place, self._provider))
        elif role == "assistant":
            self._turn("model", self._answer(message, place))
        elif role == "tool":
            self._result(message, place)
        else:
            raise Refused(place, f"role {role!r} does not exist there")

    def _turn(self, role: str, parts: list[dict[str, Any]]) -> None:
        self.contents.append({"role": role, "parts": parts})

    def _answer(self, message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
        known = ("role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content", "blocks")
        _only(message, known, place)
        calls: list[dict[str, Any]] = message.get("tool_calls") or []
        mine = as_mapping(message.get("blocks")).get(FORM)
        if mine is not None:  # given back as it came: thought signatures belong to their parts
            parts = [dict(part) for part in mine["parts"]]
            made = [part["functionCall"] for part in parts if "functionCall" in part]
        else:
            content = message.get("content")
            content = message.get("refusal") if content is None else content
            made = [_call(call, f"{place}.tool_calls[{at}]") for at, call in enumerate(calls)]
            parts = _parts(content, place, self._provider)
            parts += [{"functionCall": call} for call in made]
        for at, (call, name) in enumerate(zip(made, _ids(calls, made), strict=True)):
            if name is not None:
                self._calls[name] = (at, call)
        return parts

    def _result(self, message: Mapping[str, Any], place: str) -> None:
        _only(message, ("role", "content", "tool_call_id", "name", "is_error"), place)
        at, call = self._calls.get(str(message.get("tool_call_id")), (0, cast("dict[str, Any]", {})))
        name = message.get("name") or call.get("name")
        if name is None:
            raise Refused(
                f"{place}.tool_call_id", "it answers no call before it, and Google needs the tool's name"
            )
        part = _response(
            message, place, self._provider, {"id": call["id"]} if call.get("id") else {}, str(name)
        )
        if self._results is None:
            self._results = []
            self._turn("user", [])
        self._results.append((at, part))
        # Calls of one function in one turn are told apart by their order alone.
        self._results.sort(key=lambda result: result[0])
        self.contents[-1]["parts"] = [part for _, part in self._results]


def _ids(calls: list[dict[str, Any]], made: list[dict[str, Any]]) -> list[str | None]:
    names: list[Any] = [call.get("id") for call in calls]
    if len(names) != len(made):  # a history without tool_calls: Google's own ids are all there is
        names = [call.get("id") for call in made]
    return [name if isinstance(name, str) else None for name in names]


def _only(message: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name, value in message.items():
        if name not in known and value is not None:
            raise Refused(f"{place}.{name}", "messages have no such field there")


def _call(call: Mapping[str, Any], place: str) -> dict[str, Any]:
    function: Mapping[str, Any] | None = call.get("function")
    if function is None:
        raise Refused(place, "only function calls exist there")
    try:
        given = json.loads(str(function.get("arguments") or "{}"))
    except ValueError as error:
        raise Refused(f"{place}.function.arguments", f"they must be a JSON object there: {error}") from None
    if not isinstance(given, dict):
        raise Refused(f"{place}.function.arguments", "they must be a JSON object there")
    return {"name": function.get("name"), "args": given}


def _response(
    message: Mapping[str, Any], place: str, provider: str, ids: dict[str, Any], name: str
) -> dict[str, Any]:
    """A result as Google has it: an object. One that is written as a JSON object is that object; any other text is its
    ``output``, or its ``error``; media go beside it."""
    content = message.get("content")
    own = [as_mapping(part) for part in as_list(content)]
    if len(own) == 1 and "functionResponse" in own[0]:
        return dict(own[0])
    parts = _parts(content, place, provider)
    texts = [part["text"] for part in parts if set(part) == {"text"}]
    media = [part for part in parts if set(part) != {"text"}]
    said: Any = texts[0] if len(texts) == 1 else texts or ("" if not media else None)
    response = {"error": said} if message.get("is_error") else _object(said)
    made: dict[str, Any] = {**ids, "name": name, "response": response}
    if media:
        made["parts"] = media
    return {"functionResponse": made}


def _object(said: Any) -> dict[str, Any]:
    if said is None:
        return {}
    if isinstance(said, str):
        try:
            value = json.loads(said, parse_constant=_no_number, object_pairs_hook=_distinct)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    return {"output": said}


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):  # which of them counts is the reader's choice: left as the text that it is
        raise ValueError("a name twice")
    return made


def _parts(content: object, place: str, provider: str) -> list[dict[str, Any]]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"text": content}]
    if not isinstance(content, list):
        raise Refused(f"{place}.content", f"it is {type(content).__name__}, neither text nor a list of parts")
    parts = cast("list[dict[str, Any]]", content)
    return [_part(part, f"{place}.content[{number}]", provider) for number, part in enumerate(parts)]


def _part(part: dict[str, Any], place: str, provider: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind is None:
        return dict(part)  # Google's own
    if part.get("cache_control"):
        raise Refused(f"{place}.cache_control", "Google caches by itself, or by cachedContent")
    if kind in ("text", "refusal"):
        return {"text": part.get(kind)}
    said = as_mapping(part.get(kind)) or {"url": part.get(kind)}
    if kind in ("image_url", "video_url"):
        if said.get("detail") not in (None, "auto"):
            raise Refused(f"{place}.{kind}.detail", "use generationConfig.mediaResolution")
        return _media(said.get("url"), place, {})
    if kind == "input_audio":
        return {"inlineData": {"mimeType": f"audio/{said.get('format')}", "data": said.get("data")}}
    if kind == "file":
        return _file(said, place, provider)
    raise Refused(place, f"{kind} does not exist there; parts in Google's own form have no type")


def _file(file: Mapping[str, Any], place: str, provider: str) -> dict[str, Any]:
    title: dict[str, Any] = {}
    if file.get("filename"):
        if provider != "vertex":
            raise Refused(f"{place}.file.filename", "the Gemini API takes no names of files: leave it out")
        title = {"displayName": file["filename"]}
    where = file.get("file_data") if file.get("file_data") is not None else file.get("file_id")
    if file.get("file_data") is None and "://" not in str(where):
        raise Refused(
            place, "a file by id of another provider does not exist there; send file_data, or its URI"
        )
    return _media(where, place, title)


def _media(url: object, place: str, title: dict[str, Any]) -> dict[str, Any]:
    """Inline data of a data URL, else a reference; its media type where the name shows it (Vertex needs one)."""
    if not isinstance(url, str):
        raise Refused(place, "it has no url")
    if url.startswith("data:"):
        kind, data = data_of(url, place)
        return {"inlineData": {"mimeType": kind, "data": data, **title}}
    shown = media_type_of(url)
    return {"fileData": {**({"mimeType": shown} if shown else {}), "fileUri": url, **title}}
