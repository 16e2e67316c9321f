"""What the cases of several SDKs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentloom.testing import Fails, Raw, Says
from agentloom.testing.replies import Reply
from agentloom.testing.sdk_contract import Case
from agentloom.testing.sdk_seen import seen

BUSY = Fails(429, "slow down", code="rate_limit_exceeded", retry_after=0.01)
HTML = Raw(b"<html>bad gateway</html>", 502, {"content-type": "text/html"})
SLOW = Says("late", latency=3.0)


def errors(programs: Iterable[Callable[[str], Any]], replies: Mapping[str, Reply]) -> list[Case]:
    """Each of ``programs`` asks once for each of ``replies`` (by what is special), which is an error."""
    asked = list(programs)
    return [
        Case("error", program, [reply], ["model"], name)
        for name, reply in replies.items()
        for program in asked
    ]


def raised(kind: type[BaseException], ask: Callable[..., object], **options: Any) -> Any:
    """What is seen of the error that ``ask(**options)`` raises. One that is no ``kind`` goes on."""
    try:
        ask(**options)
    except kind as error:
        return seen(error)
    return "no error"
