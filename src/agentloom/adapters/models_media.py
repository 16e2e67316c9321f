"""Media in requests: data URLs taken apart, and the types that names of files show.

A table of our own: Python's `mimetypes` reads files of the machine, and a request must not depend on where it is made.
"""

from __future__ import annotations

from types import MappingProxyType
from urllib.parse import urlsplit

from agentloom.adapters.models_anthropic_parts import Refused

__all__ = ["TYPES", "data_of", "media_type_of"]

TYPES = MappingProxyType(
    {
        "aac": "audio/aac",
        "avi": "video/avi",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "flac": "audio/flac",
        "flv": "video/x-flv",
        "gif": "image/gif",
        "heic": "image/heic",
        "heif": "image/heif",
        "html": "text/html",
        "jpeg": "image/jpeg",
        "jpg": "image/jpeg",
        "json": "application/json",
        "m4a": "audio/mp4",
        "md": "text/markdown",
        "mkv": "video/x-matroska",
        "mov": "video/quicktime",
        "mp3": "audio/mpeg",
        "mp4": "video/mp4",
        "mpeg": "video/mpeg",
        "ogg": "audio/ogg",
        "opus": "audio/opus",
        "pdf": "application/pdf",
        "png": "image/png",
        "txt": "text/plain",
        "wav": "audio/wav",
        "webm": "video/webm",
        "webp": "image/webp",
        "wmv": "video/x-ms-wmv",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
"""Media types by the ending of a name, in lower case."""


def media_type_of(url: str) -> str | None:
    """The media type that the ending of an address's path shows, or None."""
    return TYPES.get(urlsplit(url).path.rpartition("/")[2].rpartition(".")[2].lower())


def data_of(url: str, place: str) -> tuple[str, str]:
    """Media type and base64 text of a data URL. Refused for one that holds no base64."""
    head, comma, data = url[5:].partition(",")
    kind, _, coding = head.partition(";")
    if not comma or not coding.endswith("base64"):
        raise Refused(place, "data must be base64 there")
    return kind or "text/plain", data
