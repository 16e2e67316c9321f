"""Tokens with their probabilities: beside the text of a token its bytes, its number and its alternatives tell the same.

Shapes: OpenAI chat and responses (``token``, ``bytes``, ``top_logprobs``), completions (``tokens`` beside
``top_logprobs`` and ``token_ids``), Gemini (``chosenCandidates`` beside ``topCandidates``), text-generation-inference
(``text``, ``id``), llama.cpp (``content`` or ``token``, ``probs``).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from agentloom.format.guards import is_list, is_map

__all__ = ["ALTERNATIVES", "BYTES", "PIECES", "beside", "is_piece", "put"]

ALTERNATIVES = (
    "top_logprobs",
    "topLogprobs",
    "probs",
    "top_probs",
    "topCandidates",
    "top_candidates",
    "top_tokens",
)
"""Fields that hold what could have been said instead. No text goes on in them."""

PIECES = ("token", "tokens", "delta", "partial_json", "chosenCandidates", "chosen_candidates", "tok_str")
"""Names of fields that hold a text in pieces."""

_TEXTS = ("token", "text", "content", "tok_str")
_TELLING = frozenset(
    ("logprob", "logProbability", "log_probability", "prob", "bytes", "special", *ALTERNATIVES)
)
_IDS = ("id", "token_id", "tokenId")
_COLUMNS = ("tokens",)
_CHOSEN = {"chosenCandidates": "topCandidates", "chosen_candidates": "top_candidates"}
BYTES = ("$bytes", "$bytearray", "$str")
"""Tags of what a payload holds in base64."""
Path = tuple[Any, ...]
Change = Callable[[bytes], bytes]


def is_piece(name: str, holder: Mapping[str, Any]) -> bool:
    """Whether a text under this name is a piece of a longer one, not a text that stands for itself in a list."""
    return name in PIECES or (name in _TEXTS and not _TELLING.isdisjoint(holder))


def put(tree: Any, changes: Mapping[Path, Change]) -> Any:
    """A copy of ``tree`` with the texts at some places changed, and with what tells of the tokens that they are. What
    is not on the way to one is shared."""
    here = changes.get(())
    if here is not None:
        return here(tree.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    below: dict[Any, dict[Path, Change]] = {}
    for place, change in changes.items():
        below.setdefault(place[0], {})[place[1:]] = change
    copy: Any = tree.copy()
    for step, inner in below.items():
        if step in BYTES and len(tree) == 1 and () in inner:
            copy[step] = base64.b64encode(inner[()](base64.b64decode(tree[step]))).decode()
        else:
            copy[step] = put(tree[step], inner)
    if is_map(tree):
        beside(copy, tree)
    return copy


def beside(copy: dict[str, Any], tree: Mapping[str, Any]) -> None:
    """Change in a copy of ``tree`` what stands beside a text, or a list of texts, that was changed."""
    for step in _TEXTS:
        if step in copy and copy[step] is not tree.get(step) and type(tree.get(step)) is str:
            if any(name in tree for name in _TELLING):
                _token(copy, tree[step], copy[step])
            return
    for step in (*_COLUMNS, *_CHOSEN):
        old, new = tree.get(step), copy.get(step)
        if new is old or not is_list(old) or not is_list(new):
            continue
        places = [place for place in range(len(old)) if new[place] is not old[place]]
        if step in _COLUMNS:
            _columns(copy, old, new, places)
        else:
            _candidates(copy, _CHOSEN[step], places)


def _token(entry: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """A token whose text was changed."""
    for name in _IDS:
        if type(entry.get(name)) is int:
            entry[name] = 0
    if is_list(entry.get("bytes")):
        entry["bytes"] = list(new.encode("utf-8", "surrogatepass"))
    for name in ALTERNATIVES:
        others = entry.get(name)
        if is_list(others):
            entry[name] = [_alternative(one, old, new) for one in others]
    return entry


def _alternative(entry: Any, old: str, new: str) -> Any:
    """What could have been said instead: the same, or nothing that can be shown."""
    if not is_map(entry):
        return entry
    name = next((name for name in _TEXTS if type(entry.get(name)) is str), None)
    if name is None:
        return {}
    text = new if entry[name] in (old, new) else ""
    return _token({**entry, name: text}, entry[name], text)


def _columns(columns: dict[str, Any], old: list[Any], new: list[Any], places: list[int]) -> None:
    """Tokens in one list, and what belongs to each at the same place of other lists."""
    for name in ("token_ids", "ids", *ALTERNATIVES):
        rows = columns.get(name)
        if not is_list(rows):
            continue
        columns[name] = made = rows.copy()
        for place in places:
            if place < len(rows):
                made[place] = _cell(rows[place], old[place], new[place])


def _cell(cell: Any, old: Any, new: Any) -> Any:
    if type(old) is not str:
        return cell
    if is_map(cell):
        return {new: cell[old]} if old in cell else {}
    return 0 if type(cell) is int else cell


def _candidates(result: dict[str, Any], name: str, places: list[int]) -> None:
    """Gemini: the candidates at the same places of another list."""
    rows = result.get(name)
    if is_list(rows):
        result[name] = made = rows.copy()
        for place in places:
            if place < len(rows):
                made[place] = {"candidates": []}
