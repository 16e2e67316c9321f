"""Parts of a message's content in Anthropic's form: text, images, documents; blocks of their own pass as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["Refused", "check_form", "content_of", "parts_of"]


class Refused(Exception):
    """What the protocol cannot say: the place in the request and why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")


def check_form(messages: object) -> None:
    """Refused for messages that are no mappings, or hold parts that are none: nothing could be translated."""
    if not isinstance(messages, list | tuple):
        raise Refused("messages", f"they must be a list, not {type(messages).__name__}")
    for number, message in enumerate(cast("list[object]", messages)):
        if not isinstance(message, Mapping):
            raise Refused(f"messages[{number}]", f"it must be a mapping, not {type(message).__name__}")
        content = cast("Mapping[str, object]", message).get("content")
        for place, part in enumerate(cast("list[object]", content) if isinstance(content, list) else []):
            if not isinstance(part, Mapping):
                raise Refused(
                    f"messages[{number}].content[{place}]", f"it must be a mapping, not {type(part).__name__}"
                )


def content_of(content: object, place: str) -> Any:
    return content if isinstance(content, str) else parts_of(content, place)


def parts_of(content: object, place: str) -> list[dict[str, Any]]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Refused(f"{place}.content", f"it is {type(content).__name__}, neither text nor a list of parts")
    parts = cast("list[dict[str, Any]]", content)
    return [_part(part, f"{place}.content[{number}]") for number, part in enumerate(parts)]


def _part(part: dict[str, Any], place: str) -> dict[str, Any]:
    kind = part.get("type")
    marks = {"cache_control": part["cache_control"]} if part.get("cache_control") else {}
    if kind == "image_url":
        image: Any = part.get("image_url")
        url = cast("dict[str, Any]", image).get("url") if isinstance(image, dict) else image
        return {"type": "image", "source": _source(url, place), **marks}
    if kind == "file":
        file: Mapping[str, Any] = part.get("file") or {}
        if file.get("file_data") is None:
            raise Refused(place, "a file by id of another provider does not exist there; send file_data")
        title = {"title": file["filename"]} if file.get("filename") else {}
        return {"type": "document", "source": _source(file["file_data"], place), **title, **marks}
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal"), **marks}
    if kind in ("input_audio", "video_url"):
        raise Refused(place, f"{kind} does not exist there")
    return part


def _source(url: object, place: str) -> dict[str, Any]:
    if not isinstance(url, str):
        raise Refused(place, "it has no url")
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    head, comma, data = url[5:].partition(",")
    media, _, coding = head.partition(";")
    if not comma or not coding.endswith("base64"):
        raise Refused(place, "data must be base64 there")
    return {"type": "base64", "media_type": media, "data": data}
