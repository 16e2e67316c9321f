"""Personal data in texts, found by ``datafog-core``: a compiled library without dependencies, models or a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from agentloom.errors import NotSupported, ValueRefused

__all__ = ["personal"]

_USUAL = ("EMAIL", "PHONE", "CREDIT_CARD", "SSN")
"""Not dates, addresses of machines and postal codes: programs are full of them."""


def personal(*kinds: str, locale: str | None = None) -> Callable[[str], list[tuple[int, int, str]]]:
    """A finder for ``secrets(find=...)``: personal data with a form of its own, in each text of each payload.

    ``kinds``: what to look for (default: ``EMAIL``, ``PHONE``, ``CREDIT_CARD``, ``SSN``); ``locale`` adds what is
    known of a country (``de``: ``DE_IBAN``, ``DE_TAX_ID`` and others). Names of people have no form and are not
    found. Raises ``NotSupported`` without the extra, ``ValueRefused`` for a kind or a locale that there is not.
    """
    try:
        import datafog_core
    except ImportError as error:
        raise NotSupported(
            "personal() needs the package datafog-core", hint="pip install 'agentloom-runtime[personal]'"
        ) from error
    known = datafog_core.capabilities()
    wanted = list(kinds or _USUAL)
    config: dict[str, Any] = {"entities": wanted}
    if locale is not None:
        if locale not in known["locales"]:
            raise _refused("locale", locale, known["locales"])
        config["locale"] = locale
        if not kinds:
            wanted += known["locales"][locale]["enabled_entities"]
    for kind in wanted:
        if kind not in known["supported_entities"]:
            raise _refused("kind of personal data", kind, known["supported_entities"])
    try:
        datafog_core.scan("", cast(Any, config))
    except datafog_core.DataFogConfigurationError as error:  # a kind that needs a locale, or a document
        reason = f"{', '.join(wanted)} cannot be looked for in a text here: {error}"
        raise ValueRefused("personal()", "str", reason, hint='some kinds need locale="de"') from error

    def find(text: str) -> list[tuple[int, int, str]]:
        if not text.isascii():  # half of a pair is no text there; each takes one place here as well
            text = text.encode("utf-8", "replace").decode()
        return [
            (one.codepoint_range.start, one.codepoint_range.end, one.entity_type.lower().replace("_", " "))
            for one in datafog_core.scan(text, cast(Any, config))
        ]

    return find


def _refused(what: str, given: str, known: Any) -> ValueRefused:
    return ValueRefused(
        "personal()", "str", f"{given!r:.40} is no {what}", hint=f"one of {', '.join(sorted(known))}"
    )
