"""The folder of recorded traffic beside the repository: its manifest, its exchanges, and the API that each speaks.

Nothing is chosen by hand: a file is read when the manifest says that it is a container of HTTP traffic, and what an
exchange is shows in its address, or, where only the answer was kept, in the answer's form.
"""

from __future__ import annotations

import csv
import functools
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentloom.errors import TrafficError
from agentloom.testing import Exchange, Traffic, read_traffic
from agentloom.testing.traffic import CONTAINERS

# Another folder with a manifest of the same columns: AGENTLOOM_CORPUS=DIR python -m tests.corpus.table
CORPUS = Path(os.environ.get("AGENTLOOM_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")
WHY = "no folder of recorded traffic (shared/corpus) beside the repository"

# What is behind the host decides, whoever serves it; the first that fits counts.
_PATHS = (
    ("chat", r"/chat/completions$"),
    ("responses", r"/(responses|codex/responses)$"),
    ("count tokens", r"(/messages/count_tokens|:countTokens)$"),
    ("batches", r"/(messages/)?batch(es)?(/|$)"),
    ("assistants", r"/(threads|assistants)(/|$)"),
    ("messages", r"/messages$"),
    ("generateContent", r":(streamGenerateContent|generateContent)$"),
    ("converse", r"/converse(-stream)?$"),
    ("invoke", r"/invoke(-with-response-stream)?$"),
    ("cohere chat", r"cohere[^/]*/v\d/chat$"),
    ("another chat", r"/v\d/chat$"),
    ("ollama chat", r"/api/chat$"),
    ("embeddings", r"(/embeddings|:embedContent|:batchEmbedContents)$"),
    ("completions", r"/completions$"),
    ("audio", r"/audio/"),
    ("files", r"/files(/|$)"),
    ("models", r"/models(/|$)"),
    ("auth", r"oauth2\.googleapis\.com/"),
)


@dataclass(frozen=True)
class Row:
    """A line of the manifest. ``count``: how many exchanges it says that the file holds (0: bare answers)."""

    file: str
    container: str
    apis: tuple[str, ...]
    kinds: frozenset[str]
    count: int


@functools.cache
def rows() -> tuple[Row, ...]:
    """The manifest's rows of recorded HTTP traffic; empty without the folder."""
    if not CORPUS.is_dir():
        return ()
    with (CORPUS / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        return tuple(
            row for row in map(_row, csv.DictReader(file, delimiter="\t")) if row.container in CONTAINERS
        )


def _row(line: Mapping[str, str]) -> Row:
    container, *kinds = line["kind_tags"].split(";")
    counts = [int(kind[2:]) for kind in kinds if re.fullmatch(r"n=\d+", kind)]
    return Row(line["file"], container, tuple(line["api"].split(",")), frozenset(kinds), sum(counts))


@functools.cache
def traffic(row: Row) -> Traffic:
    """What a file holds; its form is found out, and only for bare answers told by the manifest."""
    return read_traffic(
        CORPUS / row.file, row.container if row.container in ("chunks", "resp_json") else None
    )


@functools.cache
def exchanges() -> tuple[tuple[Row, Exchange], ...]:
    """Every exchange of the files that can be read, with its row (see `unreadable`)."""
    bad = {row.file for row, _ in unreadable()}
    return tuple((row, one) for row in rows() if row.file not in bad for one in traffic(row).exchanges)


@functools.cache
def unreadable() -> tuple[tuple[Row, str], ...]:
    """The files that the player cannot read, and why."""
    found: list[tuple[Row, str]] = []
    for row in rows():
        try:
            traffic(row)
        except TrafficError as error:
            found.append((row, error.message))
    return tuple(found)


def api_of(one: Exchange) -> str:
    """The API that an exchange speaks: by its address, else by the form of its bodies; "other" when neither says."""
    if one.url:
        place = f"{one.host}{one.path}"
        return next((api for api, pattern in _PATHS if re.search(pattern, place)), "other")
    asked = one.request()
    if isinstance(asked, dict) and "input" in asked and "model" in asked:
        return "responses"
    return _by_answer(one)


def _by_answer(one: Exchange) -> str:
    first = _first_event(one)
    kind, said = str(first.get("type", "")), str(first.get("object", ""))
    if said.startswith("chat.completion") or "choices" in first:
        return "chat"
    if said == "response" or kind.startswith("response."):
        return "responses"
    if kind in ("message", "message_start"):
        return "messages"
    if "sdk_http_response" in first:  # what an SDK made of an answer, not what came over the wire
        return "other"
    if "candidates" in first:
        return "generateContent"
    if one.content_type == "application/vnd.amazon.eventstream" or "output" in first:
        return "converse"
    return "audio" if one.content_type.startswith("audio/") else "other"


def _first_event(one: Exchange) -> dict[str, Any]:
    try:
        text = one.content.decode()
    except UnicodeDecodeError:
        return {}
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")] or [text]
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
