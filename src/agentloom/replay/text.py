"""Plain text of values and of reports: styled segments, so that a terminal can colour without re-implementing.

A :data:`Line` is a list of ``(style, text)``. Styles are words, not colours: ``""`` plain, ``bad``, ``good``,
``old``, ``old-part``, ``new``, ``new-part``, ``label``, ``path``, ``dim``, ``strong``.
"""

from __future__ import annotations

import base64
import binascii

import orjson

from agentloom.format.values import Tree

__all__ = ["Line", "clip", "one_line", "plain", "shorten", "show", "size_of"]

Segment = tuple[str, str]
Line = list[Segment]

ELLIPSIS = "..."
_PLAIN_TAGS = {
    "$int": "",
    "$float": "",
    "$decimal": "Decimal ",
    "$uuid": "UUID ",
    "$datetime": "",
    "$date": "",
    "$time": "",
    "$timedelta": "timedelta ",
    "$complex": "",
    "$fraction": "",
}
_DUMP_LIMIT = 4000


def plain(lines: list[Line]) -> str:
    """The text of styled lines, without trailing spaces, joined by newlines."""
    return "\n".join("".join(text for _, text in line).rstrip() for line in lines)


def clip(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters; a cut is shown by ``...`` at its end."""
    if len(text) <= width:
        return text
    return text[: max(0, width - len(ELLIPSIS))] + ELLIPSIS


def shorten(text: str, width: int) -> str:
    """As ``clip``, for sentences: they are cut between two words."""
    if len(text) <= width:
        return text
    at = text.rfind(" ", 0, max(0, width - len(ELLIPSIS)))
    if at < width // 2:
        return clip(text, width)  # one long word: an address, a path
    return f"{text[:at].rstrip(' ,;:(')} {ELLIPSIS}"


def one_line(text: str) -> str:
    """``text`` with line breaks, tabs and other control characters made visible."""
    if text.isprintable():
        return text
    out: list[str] = []
    for char in text:
        if char == "\n":
            out.append("\\n")
        elif char == "\t":
            out.append("\\t")
        elif char.isprintable():
            out.append(char)
        else:
            out.append(char.encode("unicode_escape", "surrogatepass").decode("ascii"))
    return "".join(out)


def size_of(count: int) -> str:
    """``count`` bytes or characters with thousands separated: ``4,031``."""
    return f"{count:,}"


def show(tree: Tree, width: int = 60) -> str:
    """One line for any value, at most ``width`` characters; never costs more than its clipped part."""
    if isinstance(tree, str):
        if len(tree) + 2 <= width:
            return f'"{one_line(tree)}"'
        return clip('"' + one_line(tree[:width]), width)
    if tree is None or isinstance(tree, bool | int | float):
        return clip(orjson.dumps(tree).decode(), width)
    if isinstance(tree, list):
        return _show_list(tree, width)
    return _show_dict(tree, width)


def _show_list(items: list[Tree], width: int, marks: str = "[]") -> str:
    out = marks[0]
    for number, item in enumerate(items):
        piece = ("" if number == 0 else ", ") + show(item, max(8, width - len(out) - 1))
        if len(out) + len(piece) + 1 > width and number > 0:
            return clip(f"{out}, ...{len(items) - number} more{marks[1]}", width)
        out += piece
    return clip(out + marks[1], width)


def _show_dict(tree: dict[str, Tree], width: int) -> str:
    if len(tree) == 1:
        tag = next(iter(tree))
        if tag.startswith("$"):
            return _show_tag(tag, tree[tag], width)
    out = "{"
    for number, (key, item) in enumerate(tree.items()):
        head = ("" if number == 0 else ", ") + f'"{one_line(key[:40])}": '
        piece = head + show(item, max(8, width - len(out) - len(head) - 1))
        if len(out) + len(piece) + 1 > width and number > 0:
            return clip(f"{out}, ...{len(tree) - number} more}}", width)
        out += piece
    return clip(out + "}", width)


def _show_tag(tag: str, value: Tree, width: int) -> str:
    if tag in ("$bytes", "$bytearray") and isinstance(value, str):
        return f"{size_of(_decoded_size(value))} bytes"
    if tag in ("$tuple", "$set", "$frozenset") and isinstance(value, list):
        return _show_list(value, width, "()" if tag == "$tuple" else "{}")
    if tag == "$obj" and isinstance(value, dict):
        name = str(value.get("type", "object")).rpartition(":")[2]
        return clip(f"{name} {show(value.get('data'), max(8, width - len(name) - 1))}", width)
    if tag == "$error" and isinstance(value, dict):
        name = str(value.get("type", "error")).rpartition(":")[2]
        return clip(f"{name}: {one_line(str(value.get('message', ''))[:width])}", width)
    if tag == "$map" and isinstance(value, list):
        pairs = [pair for pair in value[:50] if isinstance(pair, list) and len(pair) == 2]
        inner = ", ".join(f"{show(key, 20)}: {show(item, 20)}" for key, item in pairs)
        return clip("{" + inner + "}", width)
    if tag == "$str" and isinstance(value, str):
        return clip('"' + one_line(_surrogates(value)) + '"', width)
    if tag in ("$datetime", "$time") and isinstance(value, dict):
        return clip(f"{value.get('at')}{_zone(value)}", width)
    prefix = _PLAIN_TAGS.get(tag, tag[1:] + " ")
    text = value if isinstance(value, str) else show(value, width)
    return clip(prefix + text, width)


def _zone(moment: dict[str, Tree]) -> str:
    """``+02:00`` or `` Europe/Berlin``, and whether it is the second of two equal readings of the clock."""
    fold = " (second time)" if moment.get("fold") else ""
    if "zone" in moment:
        return f" {moment['zone']}{fold}"
    offset = moment.get("offset")
    if not isinstance(offset, list) or len(offset) != 3:
        return fold
    days, seconds, _ = (part if isinstance(part, int) else 0 for part in offset)
    minutes = (days * 86_400 + seconds) // 60
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}{fold}"


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _surrogates(text: str) -> str:
    try:
        return base64.b64decode(text[:_DUMP_LIMIT], validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        return text
