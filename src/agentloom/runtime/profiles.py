"""Profiles: which fields of a request decide the answer, which are only noted, and which are never written.

Each API has a profile with a version in its name (``agentloom.model/1``); the name is kept in the trace, so a rule is
never changed under an old name. ``key`` fields are load-bearing; ``noted`` ones are recorded and reported when they
differ, and are never a miss; ``secret`` ones are not written. A field that a profile does not know is a key field, for
a wrong answer is worse than a miss, and is named once in the log. How users change a profile says ``changes``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from agentloom.errors import NotSupported
from agentloom.format.canonical import Tree
from agentloom.runtime import profile_fields as fields_of
from agentloom.runtime.fieldrules import MISSING, Node, Role, part, with_secrets_below, without_secrets

__all__ = [
    "Profile",
    "Split",
    "all_key",
    "get",
    "is_secret_header",
    "parts_of",
    "plain_url",
    "register",
    "split",
    "with_secrets",
]

_log = logging.getLogger("agentloom.profiles")
_named: set[tuple[str, str]] = set()

# Whole names for query fields: a `page_token` or a `sort_key` decides the answer and must stay.
_SECRET_FIELD = re.compile(
    r"^(key|api[-_]?key|(access|auth|refresh|id|bearer|session)[-_]?(token|key)|token|(client[-_]?)?secret|passwd|password"
    r"|sig|signature|auth|authorization|credentials?|x-(amz|goog)-(signature|credential|security-token))$",
    re.IGNORECASE,
)
_SECRET_HEADER = re.compile(
    r"(^|[-_.])(key|apikey|token|secret|passwd|password|signature|credentials?|auth|authorization|cookie2?|jwt|csrf"
    r"|session([-_]?id)?)$",
    re.IGNORECASE,
)
_REMEMBERED = 64  # sets of names, of each profile
_OPEN_HEADERS = frozenset(["idempotency-key", "x-idempotency-key"])


@dataclass(frozen=True, slots=True)
class Profile:
    """The rule of one API. ``key`` None: every field that is not named otherwise is load-bearing.

    ``scrub`` gives, for a field, a function that returns its value without the secrets in it (the very same object
    when there are none). In the fields of ``minted`` a framework may stamp fresh ids in every process: a replay
    pairs them by first appearance, and reports them as noted.

    Of a profile that a user changed: ``strict`` makes ``key`` an allow-list (other fields are noted), ``places`` holds
    the rules for parts of fields, ``collapse`` leaves spacing out of the key, ``base`` is the profile that was changed
    and ``rule`` the change as the trace keeps it.
    """

    name: str
    key: frozenset[str] | None = None
    noted: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    scrub: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])
    minted: frozenset[str] = frozenset()
    strict: bool = False
    collapse: bool = False
    places: Node | None = None
    base: Profile | None = None
    rule: dict[str, Tree] | None = None
    all_key: set[tuple[str, ...]] = field(
        init=False, compare=False, repr=False, default_factory=set[tuple[str, ...]]
    )
    """Names of fields of which it was found out that all are load-bearing (``all_key``)."""

    @property
    def family(self) -> str:
        """The name of the profile that was not changed."""
        return self.name if self.base is None else self.base.name

    @property
    def whole(self) -> bool:
        """Whether each field is of one role, and its key is what was written."""
        return self.places is None and not self.collapse

    def role(self, name: str) -> Role:
        """The role of a field."""
        if name in self.secret:
            return "secret"
        if name in self.noted:
            return "noted"
        return "key" if not self.strict or (self.key is not None and name in self.key) else "noted"


@dataclass(slots=True)  # not frozen: one is made for each call, and that would cost more than the split
class Split:
    """A request taken apart. Values are those of the request, not copies, except where a secret was taken out.

    ``secret_paths`` names what was left out (``api_key``, ``headers.authorization``); ``unknown`` the fields that the
    profile does not know, which are in ``key``.
    """

    key: dict[str, Any]
    noted: dict[str, Any]
    secret_paths: list[str]
    unknown: list[str]

    def written(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of both roles, in the order of the request; values come from here, where no secret is left."""
        if not self.noted:
            return self.key
        both = self.key | self.noted
        return {name: both[name] for name in request if name in both}


def is_secret_header(name: object) -> bool:
    """Whether a header of that name holds a credential; such a header is never written."""
    text = str(name).lower()
    return text not in _OPEN_HEADERS and _SECRET_HEADER.search(text) is not None


def _is_secret_field(name: object) -> bool:
    return _SECRET_FIELD.match(str(name)) is not None


def _headers(value: Any) -> Any:
    """Headers without those that hold credentials."""
    return fields_of.without(value, is_secret_header)


def _query(value: Any) -> Any:
    """Query fields without those that hold credentials."""
    return fields_of.without(value, _is_secret_field)


def plain_url(value: Any) -> Any:
    """An address without a user, a password and the values of query fields that look like credentials."""
    if not isinstance(value, str):
        return value
    parts = urlsplit(value)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    secret = any(_is_secret_field(name) for name, _ in pairs)
    if "@" not in parts.netloc and not secret:
        return value
    query = parts.query
    if secret:
        query = urlencode([(name, "***" if _is_secret_field(name) else one) for name, one in pairs])
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, parts.fragment))


_CHAT_KEY = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "n",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "response_format",
        "reasoning",
        "reasoning_effort",
        "verbosity",
        "modalities",
        "audio",
        "prediction",
        "web_search_options",
        "stream",
        # A stream with other options brings other chunks.
        "stream_options",
    ]
)
_MODEL_KEY = frozenset(
    [
        "system",
        "thinking",
        "output_config",
        "extra_body",
        "extra_query",
        "random_seed",
        # Of the Responses API.
        "api",
        "instructions",
        "previous_response_id",
        "conversation",
        "prompt",
        "include",
        "text",
        "truncation",
        "max_output_tokens",
        "max_tool_calls",
        "context_management",
        # Of Google's generateContent.
        "generationConfig",
        "systemInstruction",
        "safetySettings",
        "toolConfig",
        "cachedContent",
        # Of Amazon Bedrock.
        "inferenceConfig",
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "outputConfig",
        "promptVariables",
        "anthropic_version",
        "anthropic_beta",
    ]
)
# The same request through another gateway, port or client setting asks for the same answer.
_MODEL_NOTED = frozenset(["base_url", "api_key_env", "timeout", "max_retries", "extra_headers"])

_API_KEY = frozenset(["api_key"])

_PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("plain/1"),
        Profile("tool/1"),
        # The same request to a server that is started elsewhere, or traced in another way, asks for the same answer.
        Profile("mcp/1", noted=frozenset(["target", "meta"])),
        Profile(
            "openai.chat/1",
            key=_CHAT_KEY,
            noted=fields_of.OPENAI_NOTED,
            secret=_API_KEY,
            minted=frozenset(["messages"]),
        ),
        Profile(
            "agentloom.model/1",
            key=_CHAT_KEY | _MODEL_KEY,
            noted=fields_of.OPENAI_NOTED | _MODEL_NOTED,
            secret=_API_KEY,
            scrub={"extra_headers": _headers, "extra_query": _query, "base_url": plain_url},
            minted=frozenset(["messages"]),
        ),
        Profile(
            "openai.responses/1",
            key=fields_of.RESPONSES_KEY,
            noted=fields_of.OPENAI_NOTED,
            secret=_API_KEY,
            minted=frozenset(["input"]),
        ),
        Profile(
            "openai.completions/1",
            key=fields_of.COMPLETIONS_KEY,
            noted=fields_of.OPENAI_NOTED,
            secret=_API_KEY,
        ),
        Profile(
            "openai.embeddings/1",
            key=fields_of.EMBEDDINGS_KEY,
            noted=fields_of.OPENAI_NOTED,
            secret=_API_KEY,
        ),
        Profile(
            "anthropic.messages/1",
            key=fields_of.ANTHROPIC_KEY,
            noted=fields_of.ANTHROPIC_NOTED,
            secret=_API_KEY,
            scrub={"mcp_servers": fields_of.without_tokens},
            minted=frozenset(["messages"]),
        ),
        Profile(
            "google.generate/1",
            key=fields_of.GOOGLE_KEY,
            noted=fields_of.GOOGLE_NOTED,
            secret=_API_KEY,
            minted=frozenset(["contents"]),
        ),
        Profile(
            "google.embed/1",
            key=fields_of.GOOGLE_EMBED_KEY,
            noted=fields_of.GOOGLE_NOTED,
            secret=_API_KEY,
        ),
        Profile(
            "http/1",
            key=frozenset(
                ["method", "url", "params", "json", "text", "bytes", "content", "data", "files", "form"]
            ),
            noted=frozenset(["headers", "timeout", "follow_redirects", "verify"]),
            secret=frozenset(["auth", "cookies", "cert"]),
            scrub={"headers": _headers, "params": _query, "url": plain_url},
        ),
    )
}


def register(profile: Profile) -> None:
    """Add a profile of one's own, under a name of its own (``my.api/1``). NotSupported when the name is taken."""
    held = _PROFILES.get(profile.name)
    if held is not None and held != profile:
        raise NotSupported(
            f"the profile {profile.name} exists and traces depend on it",
            hint="give the changed rule a new version in its name",
            profile=profile.name,
        )
    _PROFILES[profile.name] = profile


def get(name: str) -> Profile:
    """The profile of that name. NotSupported for a name that this version and this program do not know."""
    profile = _PROFILES.get(name)
    if profile is None:
        known = ", ".join(sorted(_PROFILES))
        raise NotSupported(
            f"there is no profile {name!r}; known: {known}",
            hint="the trace may be of a newer agentloom, or its program registers the profile: upgrade, or import it",
            profile=name,
        )
    return profile


def all_key(profile: Profile, request: Mapping[str, Any]) -> bool:
    """Whether each field of a request is load-bearing and known, with nothing to be taken out of it: then its split is
    all of it."""
    names = tuple(request)
    return names in profile.all_key or _remember(profile, names)


def _remember(profile: Profile, names: tuple[str, ...]) -> bool:
    for name in names:
        known = profile.key is None or name in profile.key
        if profile.role(name) != "key" or not known or name in profile.scrub or not profile.whole:
            return False
    if len(profile.all_key) < _REMEMBERED:
        profile.all_key.add(names)
    return True


def split(profile: Profile, request: Mapping[str, Any]) -> Split:
    """Take a request apart, field order kept. Touches no value that has no secret in it.

    A field that is of several roles is in ``key`` or ``noted`` as a whole: ``parts_of`` takes its tree apart. Raises
    ``ValueRefused`` where a secret cannot be taken out of an object.
    """
    if profile.key is None and not (
        profile.noted or profile.secret or profile.scrub or profile.places or profile.strict
    ):
        return Split(dict(request), {}, [], [])
    out = Split({}, {}, [], [])
    for name, value in request.items():
        if name in profile.secret:
            out.secret_paths.append(name)
            continue
        clean = _cleaned(profile, name, value, out.secret_paths)
        role = profile.role(name)
        if role == "noted":
            out.noted[name] = clean
            continue
        if profile.key is not None and name not in profile.key and not profile.strict:
            out.unknown.append(name)
            _name_once(profile.family, name)
        out.key[name] = clean
    return out


def _cleaned(profile: Profile, name: str, value: Any, secrets: list[str]) -> Any:
    """A field without the secrets in it, which are named in ``secrets``."""
    clean = value
    if name in profile.scrub:
        clean = profile.scrub[name](value)
        if clean is not value:
            secrets += _missing(name, value, clean)
    node = profile.places.at(name) if profile.places is not None else None
    if node is not None and node.secretive:
        left = without_secrets(clean, node, name)
        if left is not clean:
            secrets.append(name)
            clean = left
    return clean


def parts_of(profile: Profile, tree: Mapping[str, Any], role: Role) -> dict[str, Any]:
    """The fields of a request's tree that are of ``role`` (``key``, ``noted``), those of several roles taken apart."""
    places = profile.places
    if places is None and not profile.collapse:
        return {name: value for name, value in tree.items() if profile.role(name) == role}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        node = places.at(name) if places is not None else None
        kept = part(value, node or _NOWHERE, profile.role(name), role, profile.collapse)
        if kept is not MISSING:
            found[name] = kept
    return found


_NOWHERE = Node()


def _missing(name: str, before: object, after: object) -> list[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        left = cast("Mapping[str, Any]", after)
        return [f"{name}.{field}" for field in cast("Mapping[str, Any]", before) if field not in left]
    return [name]


def _name_once(profile: str, name: str) -> None:
    if (profile, name) not in _named:
        _named.add((profile, name))
        _log.warning("profile %s does not know the field %r: it counts as load-bearing", profile, name)


def with_secrets(profile: Profile, request: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """``recorded`` (a request as written) with the secrets of ``request`` (as made) put back, for performing it."""
    whole: dict[str, Any] = dict(recorded)
    for name, value in request.items():
        node = profile.places.at(name) if profile.places is not None else None
        if name in profile.secret:
            whole[name] = value
        elif name in profile.scrub and profile.scrub[name](value) is not value:
            whole[name] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
        elif node is not None and node.secretive:
            whole[name] = with_secrets_below(value, whole[name], node)
    return whole
