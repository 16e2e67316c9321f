"""Shapes of secrets: each is found where it stands, and not where it only looks like one."""

from __future__ import annotations

import random
import re

import pytest

from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, is_open_value

SEED = 20261128
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HEX = "abcdef0123456789"


def _some(rng: random.Random, count: int, letters: str = LETTERS) -> str:
    return "".join(rng.choice(letters) for _ in range(count))


def _examples(rng: random.Random) -> dict[str, str]:
    """One of each shape, put together here: none is in any source."""
    upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    return {
        "OpenAI-style key": f"sk-{'proj'}-{_some(rng, 48)}",
        "Anthropic key": f"sk-{'ant'}-api03-{_some(rng, 60)}",
        "Hugging Face token": f"hf{'_'}{_some(rng, 34)}",
        "Groq key": f"gsk{'_'}{_some(rng, 52)}",
        "xAI key": f"xai{'-'}{_some(rng, 80)}",
        "Perplexity key": f"pplx{'-'}{_some(rng, 48)}",
        "Replicate token": f"r8{'_'}{_some(rng, 37)}",
        "Tavily key": f"tvly{'-'}{_some(rng, 32)}",
        "LangSmith key": f"lsv2_pt{'_'}{_some(rng, 32, HEX)}_{_some(rng, 10, HEX)}",
        "Google API key": f"AI{'za'}{_some(rng, 35)}",
        "AWS key id": f"AK{'IA'}{_some(rng, 16, upper)}",
        "GitHub token": f"ghp{'_'}{_some(rng, 36)}",
        "GitLab token": f"glpat{'-'}{_some(rng, 20)}",
        "DigitalOcean token": f"dop_v1{'_'}{_some(rng, 64, HEX)}",
        "PyPI token": f"pypi{'-'}{_some(rng, 80)}",
        "npm token": f"npm{'_'}{_some(rng, 36)}",
        "Docker token": f"dckr_pat{'_'}{_some(rng, 27)}",
        "HashiCorp Vault token": f"hvs{'.'}{_some(rng, 24)}",
        "Databricks token": f"dapi{_some(rng, 32, HEX)}",
        "age secret key": f"AGE-SECRET-KEY-{'1'}{_some(rng, 58, '0123456789ABCDEFGHJKLMNPQRSTUVWXYZ')}",
        "Slack token": f"xoxb{'-'}{_some(rng, 40)}",
        "Slack webhook": f"hooks.slack.com/services/T{_some(rng, 8)}/B{_some(rng, 8)}/{_some(rng, 24)}",
        "Stripe key": f"sk_live{'_'}{_some(rng, 24)}",
        "SendGrid key": f"SG{'.'}{_some(rng, 22)}.{_some(rng, 43)}",
        "Mailgun key": f"key{'-'}{_some(rng, 32, HEX)}",
        "Square token": f"sq0atp{'-'}{_some(rng, 22)}",
        "Shopify token": f"shpat{'_'}{_some(rng, 32, HEX)}",
        "Linear key": f"lin_api{'_'}{_some(rng, 40)}",
        "Notion token": f"ntn{'_'}{_some(rng, 46)}",
        "Sentry token": f"sntrys{'_'}{_some(rng, 60)}",
        "New Relic key": f"NRAK{'-'}{_some(rng, 27, upper)}",
        "Postman key": f"PMAK{'-'}{_some(rng, 24, HEX)}-{_some(rng, 34, HEX)}",
        "Telegram bot token": f"https://api.telegram.org/bot{rng.randrange(10**8, 10**9)}:{_some(rng, 35)}/sendMessage",
        "JWT": f"ey{'J'}{_some(rng, 30)}.eyJ{_some(rng, 30)}.{_some(rng, 43)}",
        "private key": f"-----BEGIN {'PRIVATE'} KEY-----\n{_some(rng, 64)}\n-----END PRIVATE KEY-----",
        "password in a URL": f"amqp://app:{_some(rng, 12)}@queue:5672/",
    }


def test_there_is_an_example_of_every_shape() -> None:
    assert set(_examples(random.Random(SEED))) == {one.kind for one in FORMATS}


@pytest.mark.parametrize("kind", sorted({one.kind for one in FORMATS}))
def test_every_shape_is_found_as_what_it_is(kind: str) -> None:
    print(f"seed {SEED}")
    secret = _examples(random.Random(SEED))[kind]
    data = secret.encode()
    for before, after in (
        (b"", b""),
        (b"it is ", b" ."),
        (b'{"a":"', b'"}'),
        (b"\\n", b"\\n"),
        (b"x=", b"&y"),
    ):
        found = Redactor().found_in(before + data + after)
        assert [known.kind for _, _, known in found] == [kind], (before, found)
        start, end, _ = found[0]
        assert len(before) <= start < end <= len(before + data)


@pytest.mark.parametrize("kind", ["OpenAI-style key", "AWS key id", "GitHub token", "JWT", "Google API key"])
def test_a_shape_inside_a_longer_word_is_none(kind: str) -> None:
    data = _examples(random.Random(SEED))[kind].encode()
    assert Redactor().found_in(b"word" + data) == []
    assert Redactor().found_in(data[:12]) == []


def test_patterns_are_anchored_at_their_beginnings_and_bounded() -> None:
    for shape in FORMATS:
        for start in shape.starts:
            assert re._parser.parse(shape.pattern.pattern).getwidth()[1] < 70_000, shape.kind  # type: ignore[attr-defined]
            assert shape.pattern.match(start) is None
    for context in CONTEXTS:
        assert re._parser.parse(context.pattern.pattern).getwidth()[1] < 5_000  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [b"", b"short", b"changeme", b"$TOKEN", b"{{ key }}", b"<your key>", b"****************", b"xxxxxxxx",
     b"**REDACTED**", b"phc_XXXXXXXXXXXX", b"sk-...", b"[REDACTED]", b"FILTERED", b"os.environ['K']",
     b"your-api-key-here", b"__redacted_1__", b"FAKE-SESSION-TOKEN-FOR-TESTS"],
)  # fmt: skip
def test_what_is_no_secret_after_a_telling_name(value: bytes) -> None:
    assert is_open_value(value)


@pytest.mark.parametrize(
    "value", [b"hunter-22", b"correct horse", b"Tr0ub4dor&3", b"example-9f83a1", b"x1x2x3x4"]
)
def test_what_may_be_one(value: bytes) -> None:
    assert not is_open_value(value)


def test_the_key_of_the_documentation_is_none() -> None:
    assert Redactor().found_in(b"AKIA" + b"IOSFODNN7EXAMPLE") == []
