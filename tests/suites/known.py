"""Differing verdicts with a reason: what recording changes by design, each with its page."""

from __future__ import annotations

import re

__all__ = ["KNOWN", "known"]

_SAME = "is one decoded from what was written, equal to the original, but not the same object"
_BODY = "a body has to be read to be recorded, also where the transport does not read it"
_WAIT = "the SDK's wait between retries is a recorded call, in virtual time: a patched sleep is not asked"
_AHEAD = "the transport's own response is read on while the program is at work, and closed at its end"
_CLIENT = (
    (
        "test_unmapped_transport_errors|test_application_exceptions_are_not_retried",
        "*",
        f"the exception {_SAME}",
    ),
    ("test_request_errors_are_wrapped", "*", f"the exception {_SAME}"),
    ("test_multipart_retry_rewinds_seekable_file.closed-file", "*", f"the response {_SAME}"),
    ("test_binary_content_upload_with_(async)?iterator", "*", _BODY),
    ("test_retry_limits_and_backoff", "*", _WAIT),
    ("test_async_stream_aclosing", "*", _AHEAD),
)

_BATON = "a thread goes on when the one that started it waits; the test reckons that it has begun by itself"

KNOWN: dict[str, tuple[tuple[str, str, str], ...]] = {
    "openai": _CLIENT,
    "openai-agents": (
        ("test_tool_end_hooks_receive_raw_function_tool_result", "*", f"the tool's result {_SAME}"),
    ),
    "anthropic": (*_CLIENT, ("test_advisory_caller_skips_when_refresh_in_flight", "*", _BATON)),
}
"""Package -> pattern of tests, ways of recording (or ``*``), reason."""


def known(package: str, test: str, how: str) -> str | None:
    """Why the verdict of a test differs under recording; None when nothing explains it."""
    for pattern, ways, reason in KNOWN.get(package, ()):
        if ways in ("*", how) and re.search(pattern, test):
            return reason
    return None
