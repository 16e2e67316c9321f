"""Whether a model's name stands for one model for ever, or for whatever the provider puts behind it.

A rule for each provider, from its own pages on versions, not a list of models: names that came later are judged too.
A name that no rule knows is unknown, which is said and is no verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Standing", "standing"]

_DATE = r"20\d\d-?[01]\d-?[0-3]\d"
_LOCAL = ("local", "ollama", "lmstudio", "llamafile", "llamacpp", "vllm", "sglang")
# Wrappers around the same names: a prefix of a provider, of a router's vendor, or of a cloud.
_PREFIX = re.compile(r"^~?(?:[A-Za-z][\w-]*[:/])+(?=[\w@.:-]+$)")
_VARIANT = re.compile(r":(free|beta|nitro|floor|online|extended|thinking|exacto)$")  # of a router
_BEDROCK = re.compile(
    r"^(?:[a-z]{2,6}(?:-gov)?\.)?(?P<vendor>[a-z][a-z0-9]+)\.(?P<rest>[a-z][\w.-]*?)(?P<version>-v\d+(?::\d+)*(?::\d+k)?)?$"
)
_VENDORS = frozenset(
    """ai21 amazon anthropic cohere deepseek google luma meta minimax mistral moonshot nvidia openai qwen stability
    twelvelabs writer zai""".split()
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a name stands for, and why. ``fix``: what to write instead; "" where there is nothing to say."""

    kind: Literal["pinned", "floating", "unknown"]
    provider: str
    reason: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Names that ``family`` matches are ``provider``'s: pinned where ``pinned`` is found in them, else floating."""

    provider: str
    family: str
    pinned: str
    fix: str
    why: str = "an undated name goes to whichever version the provider chooses"


_RULES = (
    _Rule(
        "OpenAI",  # https://platform.openai.com/docs/models: each model lists its alias and its snapshots
        r"(gpt-(?!oss)|chatgpt-|o\d|codex-|computer-use-|omni-moderation)",
        rf"-({_DATE}|[01]\d[0-3]\d)(-preview)?$",
        "a dated snapshot: {name}-YYYY-MM-DD",
        "OpenAI moves an undated name from one snapshot to the next",
    ),
    _Rule(
        "Anthropic",  # https://platform.claude.com/docs/en/about-claude/models/model-ids-and-versions
        r"claude",
        # From generation 4.6 on a name without a date is one version: claude-NAME-MAJOR[-MINOR], 4-6 or later.
        rf"(-{_DATE}(?!\d)|^claude-(instant-)?\d\.\d$|^claude-[a-z]+-(4-([6-9]|\d\d)|[5-9]|\d\d)(-\d{{1,2}})?(-v\d)?$)",
        "the dated name: {name}-YYYYMMDD",
        "before generation 4.6 Anthropic's undated names are aliases of the newest dated one",
    ),
    _Rule(
        "Google",  # https://ai.google.dev/gemini-api/docs/models#model-versions, and Vertex AI's page on versions
        r"(gemini|gemma|learnlm|deep-research)",
        r"(-00\d$|-(0\d|1[0-2])-(20)?\d\d$|-[01]\d[0-3]\d$|^gemma-|^gemini-(omni-\d|2\.[5-9]|[3-9](\.\d+)?|\d\d(\.\d+)?)(?!.*(latest|preview|exp))-?)",
        "a stable name (gemini-2.5-flash), or one with a number or a date (gemini-2.0-flash-001)",
        "Google moves it to the newest version: latest, previews, and names of before 2.5 without a number",
    ),
    _Rule(
        "Mistral",  # https://docs.mistral.ai/getting-started/models/#api-versioning
        r"(open-.*-2\d(0[1-9]|1[0-2])$|mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral|mathstral)",
        r"-2\d-?(0[1-9]|1[0-2])(-|$)",
        "the dated version: {name}-YYMM",
    ),
    _Rule(
        "xAI",  # https://docs.x.ai/docs/models#model-aliases
        r"grok",
        r"-[01]\d[0-3]\d(-|$)",
        "the dated release: {name}-MMDD",
        "xAI aliases the bare name to the latest stable version",
    ),
    _Rule(
        "Cohere",  # https://docs.cohere.com/docs/models
        r"(command|c4ai|north)",
        r"-(0[1-9]|1[0-2])-20\d\d$",
        "the dated version: {name}-MM-YYYY",
    ),
    _Rule(
        "DeepSeek",  # https://api-docs.deepseek.com/updates: the names are kept, the models behind them change
        r"deepseek-(chat|reasoner|coder|flash|pro)",
        r"-[01]\d[0-3]\d$",
        "DeepSeek has no dated names for these; keep what `agentloom check RUN` says that they resolved to",
        "DeepSeek puts each new release behind the same name",
    ),
    _Rule("Perplexity", r"(sonar|pplx)", rf"-{_DATE}$", "Perplexity has no dated names; keep what the answers say"),
)  # fmt: skip


def standing(name: str) -> Standing:
    """What ``name`` stands for, as it is given to `model` or to an SDK. Never fails."""
    text = name.strip()
    prefix = (re.match(r"^([A-Za-z][\w-]*)[:/]", text) or ("", ""))[1].lower()
    if prefix == "local":
        return Standing("pinned", "local", "a file on this machine")
    if prefix in _LOCAL:
        return Standing("unknown", prefix, "what a server of your own calls by this name is up to it")
    if prefix in ("azure", "azure-openai", "azureopenai"):
        return Standing(
            "unknown", prefix, "a deployment: its version and how it updates are set in the resource"
        )
    if text.startswith("arn:"):
        return Standing("unknown", "Bedrock", "an address of a resource: its model is set there")
    if prefix == "ft" or ":ft-" in text:
        return _fine_tuned(text)
    latest = re.search(r"(^|[-:@/_])(latest|auto|default)\b", text)
    if latest or text.startswith("~"):
        word = latest[2] if latest else "~"
        return Standing("floating", _provider(text), f"{word!r} is whatever is newest", _fix(text))
    return _of_model(text)


def _fine_tuned(text: str) -> Standing:
    return (
        Standing("pinned", "OpenAI", "a fine-tuned model is one set of weights")
        if text.count(":") >= 3
        else Standing("unknown", "OpenAI", "a fine-tuned model has an id at its end")
    )


def _bare(text: str) -> tuple[str, str]:
    """The model's own name without prefixes of providers and clouds, and Bedrock's version ("" without one)."""
    bare = _PREFIX.sub("", _VARIANT.sub("", text))
    bare = re.sub(r"@(?=\d)", "-", bare)  # Vertex AI: claude-sonnet-4-5@20250929
    found = _BEDROCK.match(bare)
    if found and found["vendor"] in _VENDORS:
        return found["rest"], found["version"] or ""
    return bare, ""


def _rule(bare: str) -> _Rule | None:
    return next((rule for rule in _RULES if re.match(rule.family, bare)), None)


def _provider(text: str) -> str:
    rule = _rule(_bare(text)[0])
    return rule.provider if rule else ""


def _fix(text: str) -> str:
    bare = re.sub(r"[-:@](latest|default)$", "", _bare(text)[0])
    rule = _rule(bare)
    if rule and re.search(rule.pinned, bare):
        return bare
    return rule.fix.format(name=bare) if rule else "the version that the answers of your runs name"


def _of_model(text: str) -> Standing:
    bare, version = _bare(text)
    if version:
        return Standing("pinned", "Bedrock", "a model id with its version")
    bare = re.sub(
        r"^(claude-(?!instant)[a-z]+-\d+)\.(\d+)", r"\1-\2", bare
    )  # as routers write it: claude-opus-4.8
    rule = _rule(bare)
    if rule is None:
        return Standing("unknown", "", "no rule for names like this")
    if re.search(rule.pinned, bare):
        return Standing("pinned", rule.provider, "one version, by its name")
    return Standing("floating", rule.provider, rule.why, rule.fix.format(name=bare))
