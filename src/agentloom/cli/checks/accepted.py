"""Findings that somebody looked at and accepted: ``# agentloom: ok NAME reason``, on the line or alone above it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.checks.findings import Finding, Source

__all__ = ["Accepted", "accept"]

_COMMENT = re.compile(r"#\s*agentloom:\s*ok\b[ \t]*(?P<name>[\w-]*)[ \t:]*(?P<reason>.*)")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding and the reason that its comment gives."""

    finding: Finding
    reason: str

    def to_json(self) -> dict[str, object]:
        """The finding as plain JSON, with ``accepted``: the reason."""
        return {**self.finding.to_json(), "accepted": self.reason}


@dataclass(slots=True)
class _Comment:
    file: str
    line: int
    covers: int
    name: str
    reason: str
    used: bool = False


def accept(
    sources: Iterable[Source], found: Sequence[Finding], names: Iterable[str] = RULES
) -> tuple[list[Finding], list[Accepted]]:
    """The findings that no comment accepts, with a note for each comment that accepts none; and the accepted ones.

    ``names``: what was looked for; a comment on another name is not judged.
    """
    comments = [comment for source in sources for comment in _comments(source)]
    at = {(comment.file, comment.covers, comment.name): comment for comment in comments if comment.reason}
    left: list[Finding] = []
    accepted: list[Accepted] = []
    for finding in found:
        comment = at.get((finding.file, finding.line, finding.check))
        if comment is None:
            left.append(finding)
        else:
            comment.used = True
            accepted.append(Accepted(finding, comment.reason))
    looked = {*names}
    left += [_idle(one) for one in comments if not one.used and (one.name in looked or one.name not in RULES)]
    return left, accepted


def _comments(source: Source) -> list[_Comment]:
    if "agentloom:" not in source.text:
        return []
    lines = re.split(r"\r\n|\r|\n", source.text)  # as the parser counts them; splitlines knows more line ends
    found: list[_Comment] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                row = token.start[0]
                alone = not token.line[: token.start[1]].strip()
                covers = _next_code(lines, row) if alone else row
                found.append(_Comment(source.shown, row, covers, match["name"], match["reason"].strip()))
    except (tokenize.TokenError, SyntaxError):  # it was parsed before: what is left of it has no comments
        pass
    return found


def _next_code(lines: Sequence[str], row: int) -> int:
    """The number of the first line after ``row`` that is neither empty nor a comment."""
    for number in range(row, len(lines)):
        text = lines[number].strip()
        if text and not text.startswith("#"):
            return number + 1
    return row


def _idle(comment: _Comment) -> Finding:
    rule = RULES["accepted"]
    if comment.name not in RULES:
        said = f"`agentloom: ok {comment.name}` names no kind of finding"
    elif not comment.reason:
        said = f"`agentloom: ok {comment.name}` gives no reason, and accepts nothing"
    else:
        said = f"`agentloom: ok {comment.name}` accepts nothing: there is no such finding"
    return Finding(
        "accepted", "note", comment.file, comment.line, 1, comment.name, said, rule.reason, rule.fix
    )
