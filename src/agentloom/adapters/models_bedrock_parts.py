"""Messages in the form of Bedrock's Converse: content blocks; blocks in its own form pass as they are.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from agentloom.adapters.models_anthropic_parts import Refused
from agentloom.adapters.models_json import as_mapping
from agentloom.adapters.models_media import TYPES, data_of

__all__ = ["FORM", "conversation"]

FORM = "bedrock"
"""The name of this form in ``blocks`` (`agentloom.runtime.assembly`)."""

_IMAGES = frozenset(["png", "jpeg", "gif", "webp"])
_DOCUMENTS = frozenset(["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"])
_VIDEOS = frozenset(["mkv", "mov", "mp4", "webm", "flv", "mpeg", "wmv"])
_FORMATS = MappingProxyType(
    {**{kind: name for name, kind in TYPES.items()}, "image/jpeg": "jpeg", "image/jpg": "jpeg"}
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9\-()\[\] ]+")


def conversation(messages: Any) -> tuple[list[dict[str, Any]], Any]:
    """System blocks, and the turns, in which neighbours of one role share one: Bedrock wants them to take turns.

    A list that is no conversation in any protocol goes out as it is: the provider says so.
    """
    if not isinstance(messages, list):
        return [], messages
    items = cast("list[object]", messages)
    if not all(isinstance(message, dict) for message in items):
        return [], items
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for number, message in enumerate(cast("list[dict[str, Any]]", items)):
        place = f"messages[{number}]"
        role, blocks = _turn(message, place)
        if role == "system" and not turns:
            system += blocks
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return system, turns


def _turn(message: Mapping[str, Any], place: str) -> tuple[str, list[dict[str, Any]]]:
    role = message.get("role")
    if role in ("system", "developer"):
        _only(message, ("role", "content"), place)
        return "system", _blocks(message.get("content"), place)
    if role == "user":
        _only(message, ("role", "content"), place)
        return "user", _blocks(message.get("content"), place)
    if role == "tool":
        return "user", _result(message, place)
    if role == "assistant":
        return "assistant", _answer(message, place)
    raise Refused(place, f"role {role!r} does not exist there")


def _only(message: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name, value in message.items():
        if name not in known and value is not None:
            raise Refused(f"{place}.{name}", "messages have no such field there")


def _answer(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    known = ("role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content", "blocks")
    _only(message, known, place)
    mine = as_mapping(message.get("blocks")).get(FORM)
    if mine is not None:  # given back as it came: signed reasoning must not change
        return [dict(block) for block in mine["content"]]
    content = message.get("content")
    made = _blocks(message.get("refusal") if content is None else content, place)
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    return made + [_call(call, f"{place}.tool_calls[{at}]") for at, call in enumerate(calls)]


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
    return {"toolUse": {"toolUseId": call.get("id"), "name": function.get("name"), "input": given}}


def _result(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    _only(message, ("role", "content", "tool_call_id", "name", "is_error", "cache_control"), place)
    content: Any = message.get("content")
    blocks = [{"text": ""}] if content == "" else _blocks(content, place)
    result: dict[str, Any] = {"toolUseId": message.get("tool_call_id"), "content": blocks}
    if message.get("is_error") is not None:
        result["status"] = "error" if message["is_error"] else "success"
    return [{"toolResult": result}, *_mark(message.get("cache_control"), place)]


def _blocks(content: object, place: str) -> list[dict[str, Any]]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"text": content}]
    if not isinstance(content, list):
        raise Refused(f"{place}.content", f"it is {type(content).__name__}, neither text nor a list of parts")
    made: list[dict[str, Any]] = []
    for number, part in enumerate(cast("list[dict[str, Any]]", content)):
        where = f"{place}.content[{number}]"
        made += [_block(part, where), *_mark(part.get("cache_control"), where)]
    return made


def _mark(cache: Any, place: str) -> list[dict[str, Any]]:
    """A mark of Anthropic's for the cache, as the block of its own that Bedrock has for it."""
    if cache is None:
        return []
    if cache.get("type") != "ephemeral":
        raise Refused(f"{place}.cache_control", f"type {cache.get('type')!r} does not exist there")
    return [{"cachePoint": {"type": "default", **({"ttl": cache["ttl"]} if cache.get("ttl") else {})}}]


def _block(part: dict[str, Any], place: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind is None:
        return dict(part)  # Bedrock's own
    if kind in ("text", "refusal"):
        return {"text": part.get(kind)}
    said = as_mapping(part.get(kind)) or {"url": part.get(kind)}
    if kind == "image_url":
        if said.get("detail") not in (None, "auto"):
            raise Refused(f"{place}.image_url.detail", "images have no such field there")
        return {"image": _medium(said.get("url"), place, _IMAGES)}
    if kind == "video_url":
        return {"video": _medium(said.get("url"), place, _VIDEOS)}
    if kind == "input_audio":
        return {"audio": {"format": said.get("format"), "source": {"bytes": said.get("data")}}}
    if kind == "file":
        return {"document": _document(said, place)}
    raise Refused(place, f"{kind} does not exist there; blocks in Bedrock's own form have no type")


def _document(file: Mapping[str, Any], place: str) -> dict[str, Any]:
    where = file.get("file_data") if file.get("file_data") is not None else file.get("file_id")
    if file.get("file_data") is None and not str(where).startswith("s3://"):
        raise Refused(
            place, "a file by id of another provider does not exist there; send file_data, or its s3: URI"
        )
    stem = str(file.get("filename") or "document").rpartition("/")[2]
    stem = stem.rpartition(".")[0] or stem
    # Names have letters, digits, single spaces, hyphens and brackets there; the ending is said by the format.
    name = " ".join(_NOT_IN_NAMES.sub("-", stem).split()) or "document"
    medium = _medium(where, place, _DOCUMENTS)
    return {"format": medium["format"], "name": name, "source": medium["source"]}


def _medium(url: object, place: str, formats: frozenset[str]) -> dict[str, Any]:
    if not isinstance(url, str):
        raise Refused(place, "it has no url")
    if url.startswith("data:"):
        kind, data = data_of(url, place)
        form = _FORMATS.get(kind.lower(), kind)
        source: dict[str, Any] = {"bytes": data}
    elif url.startswith("s3://"):
        ending = url.rpartition(".")[2].lower()
        form = {"jpg": "jpeg"}.get(ending, ending)
        source = {"s3Location": {"uri": url}}
    else:
        raise Refused(place, "Bedrock fetches nothing from the web: send the data, or an s3: URI")
    if form not in formats:
        raise Refused(place, f"{form} is none of the formats that exist there: {', '.join(sorted(formats))}")
    return {"format": form, "source": source}
