"""Known shapes of secrets: a literal that each begins with, found in one pass, and the pattern that it must fit there.

Shapes are those that their issuers document (fixed prefix, alphabet, length); where an issuer gives no length,
the shortest that was seen. A pattern is anchored at its literal and bounded, so that no text takes more than
linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentloom.runtime.redaction_names import SCHEMES

__all__ = ["CONTEXTS", "FORMATS", "LEAST_KEY", "Context", "Format", "is_open_value"]

# Before a key stands no letter or digit, unless they are the end of an escape: "\n", "\u000a", "%3D".
_ESCAPE_ENDS = rb"|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
_BEFORE = rb"(?:(?<![A-Za-z0-9])" + _ESCAPE_ENDS
_BEFORE_RUN = rb"(?:(?<![A-Za-z0-9_-])" + _ESCAPE_ENDS
_AFTER = rb"(?![A-Za-z0-9_-])"
_KEY_BYTES = 512
LEAST_KEY = 20
"""Bytes that every shape has at least that ends with its run."""
_PASSWORD = rb"[^\s/@\"'<>\\]"  # up to the last "@" before a slash: a password may hold one


@dataclass(frozen=True, slots=True)
class Format:
    """A shape of secret: what it is called in reports, what it begins with, and the pattern there. ``group`` is what of
    a match is secret."""

    kind: str
    starts: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    group: int = 0
    within: int = 0
    """The most bytes that it takes up to the end of its run of letters, digits, ``-`` and ``_``; 0 where it may go
    on behind such a run."""


def _key(kind: str, starts: str, rest: str, *, after: bytes = _AFTER) -> Format:
    heads = tuple(start.encode() for start in starts.split())
    either = b"|".join(re.escape(head) for head in heads)
    pattern = re.compile(_BEFORE + b"(?:" + either + b")" + rest.encode() + after)
    return Format(kind, heads, pattern, within=0 if set(starts + rest) & set("./=") else _KEY_BYTES)


_GAP = rb"(?:[ +]|%20)"
_HEAD = (
    rb"-----BEGIN"
    + _GAP
    + rb"(?:[A-Z0-9]{1,20}"
    + _GAP
    + rb"){0,4}PRIVATE"
    + _GAP
    + rb"KEY(?:"
    + _GAP
    + rb"BLOCK)?-----"
)

FORMATS: tuple[Format, ...] = (
    # Documented prefixes of model providers.
    _key("OpenAI-style key", "sk-", r"(?:[A-Za-z0-9]{1,64}-)?[A-Za-z0-9_-]{20,300}"),
    _key("Anthropic key", "sk-ant-", r"[A-Za-z0-9_-]{20,200}"),
    _key("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,60}"),
    _key("Groq key", "gsk_", r"[A-Za-z0-9]{40,80}"),
    _key("xAI key", "xai-", r"[A-Za-z0-9]{40,120}"),
    _key("Perplexity key", "pplx-", r"[A-Za-z0-9]{40,80}"),
    _key("Replicate token", "r8_", r"[A-Za-z0-9]{30,60}"),
    _key("Tavily key", "tvly-", r"[A-Za-z0-9-]{20,80}"),
    _key("LangSmith key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),
    _key("Google API key", "AIza", r"[A-Za-z0-9_-]{35}"),
    # Clouds and code hosts.
    # Not the one of the documentation.
    _key("AWS key id", "AKIA ASIA ABIA ACCA", r"(?![A-Z2-7]{9}EXAMPLE)[A-Z2-7]{16}"),
    _key("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,255}"),
    _key("GitHub token", "github_pat_", r"[A-Za-z0-9_]{40,255}"),
    _key("GitLab token", "glpat- gldt- glrt- glcbt- glptt- glsoat-", r"[A-Za-z0-9_.-]{20,100}"),
    _key("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),
    _key("PyPI token", "pypi-", r"[A-Za-z0-9_-]{50,400}"),
    _key("npm token", "npm_", r"[A-Za-z0-9]{36}"),
    _key("Docker token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,80}"),
    _key("HashiCorp Vault token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,300}"),
    _key("Databricks token", "dapi", r"[a-f0-9]{32}(?:-[0-9])?"),
    _key("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    # Services that agents use.
    _key("Slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", r"[A-Za-z0-9.-]{10,250}"),
    _key("Slack webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/_-]{20,100}"),
    _key(
        "Stripe key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
        r"[A-Za-z0-9+/=]{16,250}",
    ),
    _key("SendGrid key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    _key("Mailgun key", "key-", r"[a-f0-9]{32}"),
    _key("Square token", "sq0atp- sq0csp- EAAA", r"[A-Za-z0-9_-]{22,64}"),
    _key("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    _key("Linear key", "lin_api_", r"[A-Za-z0-9]{32,64}"),
    _key("Notion token", "ntn_ secret_", r"[A-Za-z0-9]{40,60}"),
    _key("Sentry token", "sntrys_ sntryu_", r"[A-Za-z0-9_=+/-]{40,400}"),
    _key("New Relic key", "NRAK-", r"[A-Z0-9]{27}"),
    _key("Postman key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    # A Telegram bot's token is part of the path of its addresses.
    Format(
        "Telegram bot token",
        (b"api.telegram.org/bot",),
        re.compile(rb"api\.telegram\.org/bot([0-9]{6,12}:[A-Za-z0-9_-]{30,40})"),
        1,
    ),
    # RFC 7519: three parts of base64url, the first two of which are JSON objects ("eyJ" is `{"`).
    Format(
        "JWT",
        (b"eyJ",),
        # Not inside a longer run of its own alphabet: looking again from each "eyJ" in one would take too long.
        re.compile(
            _BEFORE_RUN + rb"eyJ[A-Za-z0-9_-]{5,4000}\.[A-Za-z0-9_-]{5,8000}\.[A-Za-z0-9_-]{5,2000}"
        ),
    ),
    # RFC 7468. One that is cut off is secret as far as it goes.
    Format(
        "private key",
        (b"-----BEGIN",),
        re.compile(
            _HEAD
            + rb"(?:(?:[^-]|-(?!----)){0,20000}-----END"
            + _GAP
            + rb"(?:[A-Z0-9]{1,20}"
            + _GAP
            + rb"){0,6}(?:KEY|BLOCK)-----|[A-Za-z0-9+/=\s\\]{0,20000})"
        ),
    ),
    # RFC 3986, 3.2.1: the password of an address, or a token in the place of a user.
    Format(
        "password in a URL",
        (b"://", b":\\/\\/"),
        re.compile(
            rb"(?:://|:\\/\\/)(?:[^\s:/@\"'<>\\]{0,128}+:(?P<value>"
            + _PASSWORD
            + rb"{1,400}+(?:@"
            + _PASSWORD
            + rb"{1,400}+){0,4}(?=@))|(?P<user>[A-Za-z0-9_.~-]{20,400}+))(?:@|%40)"
        ),
    ),
    # The same in percent encoding: it ends at an encoded slash.
    Format(
        "password in a URL",
        (b"%3A%2F%2F", b"%3a%2f%2f"),
        re.compile(
            rb"%3[Aa]%2[Ff]%2[Ff](?:(?:[A-Za-z0-9_.~+-]|%25){0,128}+%3[Aa](?P<value>"
            rb"(?:[A-Za-z0-9_.~+!*-]|%(?!40|2[Ff]|3[Aa])[0-9A-Fa-f]{2}){1,400}+)|(?P<user>[A-Za-z0-9_.~-]{20,400}+))%40"
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Context:
    """Names after which a value is secret whatever it looks like: each with what may stand behind it, and the length of
    the name; and the pattern of what follows the name."""

    starts: tuple[tuple[bytes, int], ...]
    pattern: re.Pattern[bytes]
    forms: bool = False


_NAMES = """assword ASSWORD asswd ASSWD assphrase ASSPHRASE ecret ECRET pi_key PI_KEY pikey PIKEY piKey pi-key
    pi-Key PI-KEY ass_word ass-word ass-Word ASS_WORD assWord s_token S_TOKEN h_token H_TOKEN n_token
    N_TOKEN d_token D_TOKEN ity_token ITY_TOKEN rf_token RF_TOKEN rer_token RER_TOKEN sToken hToken nToken
    dToken ityToken rfToken rerToken -token -Token -TOKEN stoken htoken ntoken dtoken itytoken rftoken
    rertoken rivate_key RIVATE_KEY rivateKey rivate-key rivate-Key rivatekey ccess_key CCESS_KEY ccessKey
    ccess-key ccess-Key ccesskey cret_key CRET_KEY cretKey cret-key cret-Key cretkey uth-key uth-Key uth_key
    UTH_KEY uthKey uthorization UTHORIZATION ookie OOKIE ookie2 redential REDENTIAL redentials
    REDENTIALS""".split()
_ENDS = ('"', "'", "=", ":", "\\", " =", " :", "%3D", "%3d", "%22")
_QUERY = ("key", "token", "sig", "signature", "auth", "code")

CONTEXTS: tuple[Context, ...] = (
    Context(
        tuple(
            ((name + end).encode(), len(name))
            for name in _NAMES
            for end in _ENDS
            if (name, end) != ("redential", "=")  # "Credential=" of AWS says who signs
        ),
        # `": "`, `\": \"`, `=`, ` = '`, `': '`, `: Bearer `; then the value up to what ends it.
        re.compile(
            rb"(?:\\{0,4}[\"'])?\s{0,2}[:=]\s{0,2}(?:\\{0,4}(?P<quote>[\"']))?"
            rb"(?:(?i:" + "|".join(SCHEMES).encode() + rb")\s{1,3})?"
            rb"(?P<value>(?(quote)[^\"'\s\\]{6,4000}|[^\"'\s\\&;,<>(){}\[\]]{6,300}))"
        ),
        True,
    ),
    # Headers as pairs.
    Context(
        tuple(
            (f'{name}","'.encode(), len(name))
            for name in ("uthorization", "ookie", "pi-key", "pi-Key", "-token", "-Token")
        ),
        re.compile(rb'(?P<quote>",")(?P<value>[^"\\]{6,4000})'),
    ),
    # Query fields whose names are too common elsewhere.
    Context(
        tuple((f"{mark}{name}=".encode(), len(name) + 2) for mark in "?&" for name in _QUERY),
        re.compile(rb"(?P<quote>)(?P<value>[^&\s\"'<>#\\]{12,4000})"),
    ),
    Context(
        tuple((f"{word} ".encode(), len(word) + 1) for word in ("Bearer", "bearer", "Basic")),
        re.compile(rb"(?P<quote>)(?P<value>[A-Za-z0-9._~+/=-]{16,4000})"),
    ),
)

_OPEN_WORDS = frozenset(
    b"""true false null none undefined string number integer boolean object array required optional enabled
    disabled default unknown missing empty invalid expired redacted removed hidden secret password passwd
    token bearer basic digest hunter changeme example placeholder dummy agentloom-replay your-api-key
    your_api_key not-needed no-key-needed filtered sanitized masked scrubbed aws4-hmac-sha256 include
    same-origin omit application/json description properties""".split()
)
_REFERENCE = re.compile(
    rb"\$|\{\{|<|%\(|\{[A-Za-z_]|os\.environ|os\.getenv|process\.env|env\.|settings\.|config\.|self\.|getenv"
)
# Filled up, also behind a prefix: "****", "phc_XXXXXXXX", "sk-...".
_FILLED = re.compile(rb"(?:[A-Za-z]{1,6}[_-]){0,3}[*.xX#_-]+")
_WORDS = re.compile(rb"[A-Za-z_. -]+")
_MADE_UP = re.compile(rb"(?i)fake|dummy|example|placeholder|your[_-]")


def is_open_value(value: bytes) -> bool:
    """Whether what stands after a telling name is no secret for all that: a word, a mask, a reference to a variable."""
    return (
        len(value) < 6
        or value.strip(b"*<>[](){}#_-. ").lower() in _OPEN_WORDS
        or _REFERENCE.match(value) is not None
        or _FILLED.fullmatch(value) is not None
        or (_WORDS.fullmatch(value) is not None and _MADE_UP.search(value) is not None)
        or b"__redacted_" in value
    )
