"""Code blocks of a Markdown page and the comments that say how to run them (CONTRIBUTING.md, Docs)."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/sdks/*.md")])
RUN = {"python", "console", "bash", "sh", "shell", "pycon"}
KNOWN = {"file", "output", "command", "needs", "provider", "not run"}
WHOLE_PAGE = "page not run"

_FENCE = re.compile(r"^(`{3,})([\w+-]*)\s*$")
_MARK = re.compile(r"^<!-- ([a-z ]+?)(?:: (.+))? -->$")


class PageError(Exception):
    """A page whose blocks or comments make no sense; the message names page and line."""


@dataclass
class Block:
    """One fenced block: its page, first line, language, text, and the comments right above it."""

    page: Path
    line: int
    lang: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, text: str | None = None) -> list[Block]:
    """The blocks of ``page`` in order. Raises ``PageError`` for a misspelt or misplaced comment or an open fence."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    default: dict[str, str] = {}
    fence = ""
    for number, line in enumerate((page.read_text("utf-8") if text is None else text).split("\n"), start=1):
        if fence:
            if line == fence:
                fence = ""
            else:
                found[-1].text += line + "\n"
        elif match := _FENCE.match(line):
            fence = match[1]
            found.append(Block(page, number, match[2], "", default | marks))
            marks = {}
        elif match := _MARK.match(line):
            if match[1] == WHOLE_PAGE:
                default = {"not run": match[2]}
                continue
            if match[1] in KNOWN:
                marks[match[1]] = match[2] or ""
            elif difflib.get_close_matches(match[1], KNOWN):  # any other comment is somebody else's
                raise PageError(f"{page.name}:{number}: unknown comment {match[1]!r}; known: {sorted(KNOWN)}")
        elif marks:
            raise PageError(f"{page.name}:{number}: a comment {marks} must stand on the line above its block")
    if fence or marks:
        raise PageError(f"{page.name}: ends within a block or after a comment")
    return found


def console(block: Block) -> list[tuple[str, str]]:
    """The ``(command, output)`` pairs of a console block; a line that starts with ``> `` goes on with the command."""
    pairs: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif line.startswith("> ") and pairs and not pairs[-1][1]:
            pairs[-1] = (pairs[-1][0] + "\n" + line[2:], "")
        elif pairs:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line + "\n")
        else:
            raise PageError(f"{block.place}: a console block starts with '$ '")
    return pairs


_ID = re.compile(
    r"\b(?=\w*\d)(?=\w*[a-z])[0-9a-hjkmnp-tv-z]{4,64}\b"
)  # a run id or an end of it, a digest, a key
_SHAPES = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b[\d,]*\d(\.\d+)? (us|ms|s|min)\b"), "DURATION"),
    (re.compile(r"\b[\d,]*\d(\.\d+)? (B|KB|MB|GB)\b"), "SIZE"),
    (re.compile(r"\$\d+\.\d+"), "$N"),
]


def shape(text: str) -> str:
    """``text`` with what differs from run to run (times, durations, sizes, money) replaced by its kind."""
    text = re.sub(r"[ \t]+", " ", text)
    for pattern, kind in _SHAPES:
        text = pattern.sub(kind, text)
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def matches(expected: str, actual: str) -> bool:
    """Whether ``actual`` has the shape of ``expected``, where ``...`` is any text or any lines, an id any id."""
    pattern = ""
    for line in shape(expected).split("\n"):
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            escaped = re.escape(_ID.sub("IDENTIFIER", line)).replace("IDENTIFIER", "[0-9a-hjkmnp-tv-z]{4,64}")
            pattern += escaped.replace(r"\.\.\.", ".*") + r"\n"
    return re.fullmatch(pattern, shape(actual) + "\n") is not None
