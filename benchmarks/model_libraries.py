"""What a model library hands on: the measurements behind docs/adr/0007-model-providers.md.

Run it once in an environment of each candidate, from the repository's root (``src`` on the path)::

    PYTHONPATH=src python benchmarks/model_libraries.py own|any-llm|pydantic-ai|litellm

Every check sends a chat-completions request through the library to a scripted server and looks at what arrived there
and what came back. A value counts as handed on when it appears anywhere in the library's answer.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

from agentloom.adapters.models import backend
from agentloom.testing import Fails, FakeProvider, Raw, Says, Wants

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "price of 812?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"id":812}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "40"},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
        },
    }
]
THINKING = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "first", "signature": "sig-one"},
        {"type": "redacted_thinking", "data": "redacted-data"},
        {
            "type": "text",
            "text": "It costs 40.",
            "citations": [{"type": "char_location", "cited_text": "cited-40"}],
        },
    ],
    "stop_reason": "stop_sequence",
    "stop_sequence": "END-MARK",
    "usage": {
        "input_tokens": 6,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 3,
        "output_tokens": 5,
    },
}


def _module(name: str) -> Any:
    return importlib.import_module(name)


def own(fake: FakeProvider, api: str, request: dict[str, Any], stream: bool) -> Any:
    url = fake.openai_url if api == "openai" else fake.anthropic_url
    whole = {**request, "model": f"{api}:{request['model']}", "base_url": url}
    return list(backend.stream_sync(whole)) if stream else backend.complete_sync(whole)


def any_llm(fake: FakeProvider, api: str, request: dict[str, Any], stream: bool) -> Any:
    library = _module("any_llm")
    url = fake.openai_url if api == "openai" else fake.anthropic_url
    args = {**request, "provider": api, "api_base": url, "api_key": "k", "client_args": {"max_retries": 0}}
    result: Any = library.completion(**args, stream=stream)
    return [chunk.model_dump() for chunk in result] if stream else result.model_dump()


def litellm(fake: FakeProvider, api: str, request: dict[str, Any], stream: bool) -> Any:
    library = _module("litellm")
    url = fake.openai_url if api == "openai" else fake.anthropic_url
    args = {
        **request,
        "model": f"{api}/{request['model']}",
        "api_base": url,
        "api_key": "k",
        "max_retries": 0,
    }
    result: Any = library.completion(**args, stream=stream)
    return [chunk.model_dump() for chunk in result] if stream else result.model_dump()


def _pydantic_messages(messages: list[dict[str, Any]]) -> list[Any]:
    m = _module("pydantic_ai.messages")
    made: list[Any] = []
    for message in messages:
        content, role = message.get("content"), message["role"]
        if isinstance(content, list):
            content = content[0]["text"]
        if role == "assistant":
            parts: list[Any] = [m.TextPart(content)] if content else []
            for call in message.get("tool_calls") or []:
                function = call["function"]
                parts.append(m.ToolCallPart(function["name"], function["arguments"], tool_call_id=call["id"]))
            made.append(m.ModelResponse(parts))
        elif role == "tool":
            part = m.ToolReturnPart("look", content, tool_call_id=message["tool_call_id"])
            made.append(m.ModelRequest([part]))
        else:
            kind: Any = m.SystemPromptPart if role == "system" else m.UserPromptPart
            made.append(m.ModelRequest([kind(content)]))
    return made


def pydantic_ai(fake: FakeProvider, api: str, request: dict[str, Any], stream: bool) -> Any:
    direct = _module("pydantic_ai.direct")
    if api == "openai":
        client = _module("openai").AsyncOpenAI(base_url=fake.openai_url, api_key="k", max_retries=0)
        provider = _module("pydantic_ai.providers.openai").OpenAIProvider(openai_client=client)
        model = _module("pydantic_ai.models.openai").OpenAIChatModel(request["model"], provider=provider)
    else:
        client = _module("anthropic").AsyncAnthropic(base_url=fake.anthropic_url, api_key="k", max_retries=0)
        provider = _module("pydantic_ai.providers.anthropic").AnthropicProvider(anthropic_client=client)
        model = _module("pydantic_ai.models.anthropic").AnthropicModel(request["model"], provider=provider)
    known = {"temperature", "seed", "max_tokens", "parallel_tool_calls"}
    marked = any(isinstance(message["content"], list) for message in request["messages"])
    rest = {name: v for name, v in request.items() if name not in known | {"model", "messages", "tools"}}
    settings: Any = {name: v for name, v in request.items() if name in known}
    if marked:
        settings["anthropic_cache_instructions"] = True
    if rest.pop("logprobs", None):
        settings["openai_logprobs"] = True
    if rest:
        settings["extra_body"] = rest
    tools = [
        _module("pydantic_ai.tools").ToolDefinition(
            name=t["function"]["name"], parameters_json_schema=t["function"]["parameters"]
        )
        for t in request.get("tools", [])
    ]
    args = (model, _pydantic_messages(request["messages"]))
    options: Any = {
        "model_settings": settings,
        "model_request_parameters": _module("pydantic_ai.models").ModelRequestParameters(
            function_tools=tools
        ),
    }
    if not stream:
        return dataclasses.asdict(direct.model_request_sync(*args, **options))
    with direct.model_request_stream_sync(*args, **options) as events:
        found = [repr(event) for event in events]
        return [*found, repr(events.response)]


LIBRARIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "own": ("openai, anthropic", own),
    "any-llm": ("any_llm", any_llm),
    "pydantic-ai": ("pydantic_ai.direct,pydantic_ai.models.openai,pydantic_ai.models.anthropic", pydantic_ai),
    "litellm": ("litellm", litellm),
}


class Bench:
    def __init__(self, name: str) -> None:
        self.call = LIBRARIES[name][1]
        self.rows: list[tuple[str, str]] = []

    def check(
        self, title: str, script: Any, look: Callable[[FakeProvider, str], bool], *, api: str, **request: Any
    ) -> None:
        stream = bool(request.pop("stream", False))
        whole = {"model": "gpt-4o" if api == "openai" else "claude-x", "messages": MESSAGES[:2], **request}
        with FakeProvider([script, script, script, script]) as fake:
            try:
                text = json.dumps(self.call(fake, api, whole, stream), default=repr)
            except Exception as error:  # noqa: BLE001 - whatever a library raises is the finding
                text = _error_text(error)
            try:
                verdict = "yes" if look(fake, text) else "NO"
            except (LookupError, AttributeError):
                verdict = "NO (" + text[:70] + ")"
        self.rows.append((f"{api}: {title}", verdict))


def _error_text(error: BaseException) -> str:
    seen: list[str] = []
    current: BaseException | None = error
    while current is not None and len(seen) < 4:
        headers = getattr(getattr(current, "response", None), "headers", None)
        seen.append(f"{type(current).__name__} {current} {vars(current)} {dict(headers or {})}")
        current = current.__cause__
    return "ERROR " + " <- ".join(seen)


def _body(fake: FakeProvider) -> dict[str, Any]:
    return fake.seen[-1].body


def openai_checks(bench: Bench) -> None:
    def check(title: str, script: Any, look: Callable[[FakeProvider, str], bool], **request: Any) -> None:
        bench.check(title, script, look, api="openai", **request)

    def exact(fake: FakeProvider, _: str) -> bool:
        return bool(_body(fake)["messages"] == MESSAGES) and bool(_body(fake)["tools"] == TOOLS)

    check("messages and tools arrive exactly as given", Says("x"), exact, messages=MESSAGES, tools=TOOLS)
    check(
        "nothing is added to the body",
        Says("x"),
        lambda f, _: set(_body(f)) <= {"model", "messages", "temperature"},
        temperature=0,
    )
    check("an unknown parameter arrives", Says("x"), lambda f, _: _body(f)["brand_new"] == 1, brand_new=1)
    named = [{"role": "user", "content": "x", "name": "ann"}]
    check(
        "a message's `name` arrives",
        Says("x"),
        lambda f, _: _body(f)["messages"][0]["name"] == "ann",
        messages=named,
    )
    check("system_fingerprint comes back", Says("x"), lambda _, t: "fp_fake" in t)
    check(
        "logprobs come back",
        Says("a b", logprobs=[-0.25, -0.5]),
        lambda _, t: "-0.25" in t and "-0.5" in t,
        logprobs=True,
    )
    check(
        "logprobs come back streamed",
        Says("a b", logprobs=[-0.25, -0.5]),
        lambda _, t: "-0.25" in t and "-0.5" in t,
        logprobs=True,
        stream=True,
    )
    check("reasoning_content comes back", Says("x", reasoning="I-thought"), lambda _, t: "I-thought" in t)
    check(
        "an unknown field of the answer comes back",
        Says("x", extra={"brand_new": "new-value"}),
        lambda _, t: "new-value" in t,
    )
    broken = Says(tools=[Wants("look", '{"id": 812')])
    check(
        "malformed tool arguments come back as written",
        broken,
        lambda _, t: '{\\"id\\": 812' in t or '{"id": 812' in t,
        tools=TOOLS,
    )
    check(
        "429: retry-after can be read",
        Fails(429, retry_after=7),
        lambda _, t: "7" in t.split("retry-after", 1)[-1][:8] or "delay': 7" in t,
    )
    check(
        "429: one request, no hidden retry", Fails(429), lambda f, t: f.count == 1 and t.startswith("ERROR")
    )
    check(
        "400: the provider's code can be read",
        Fails(400, code="context_length_exceeded"),
        lambda _, t: "context_length_exceeded" in t,
    )


def anthropic_checks(bench: Bench) -> None:
    def check(title: str, script: Any, look: Callable[[FakeProvider, str], bool], **request: Any) -> None:
        bench.check(title, script, look, api="anthropic", **request)

    def history(fake: FakeProvider, _: str) -> bool:
        content = _body(fake)["messages"][1]["content"]
        result = _body(fake)["messages"][2]["content"][0]
        return bool(content[-1]["input"] == {"id": 812}) and bool(result["tool_use_id"] == "call_1")

    check("temperature=0 arrives", Says("x"), lambda f, _: _body(f)["temperature"] == 0, temperature=0)
    check("a tool's call and result arrive", Says("x"), history, messages=MESSAGES, tools=TOOLS)
    marked = [
        {
            "role": "system",
            "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        },
        MESSAGES[1],
    ]
    check(
        "a cache mark on the system prompt arrives",
        Says("x"),
        lambda f, _: "ephemeral" in json.dumps(_body(f)),
        messages=marked,
    )
    raw = Raw(json.dumps(THINKING).encode())
    check("thinking with its signature comes back", raw, lambda _, t: "first" in t and "sig-one" in t)
    check("redacted thinking comes back", raw, lambda _, t: "redacted-data" in t)
    check("citations come back", raw, lambda _, t: "cited-40" in t)
    check("the stop sequence that ended it comes back", raw, lambda _, t: "END-MARK" in t)
    check(
        "cached and cache-written tokens come back", raw, lambda _, t: all(n in t for n in ('": 4', '": 3'))
    )
    check("the answer's id comes back streamed", Says("x"), lambda _, t: "msg_fake_1" in t, stream=True)
    check(
        "a parameter it does not have is refused, not dropped",
        Says("x"),
        lambda f, t: t.startswith("ERROR") or "seed" in _body(f),
        seed=3,
    )
    check(
        "529: one request, no hidden retry", Fails(529), lambda f, t: f.count == 1 and t.startswith("ERROR")
    )
    check("529: the provider's type can be read", Fails(529), lambda _, t: "overloaded_error" in t)


def import_seconds(modules: str) -> float:
    """CPU seconds of a fresh interpreter that imports modules; the median of three."""
    times: list[float] = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(times)[1]


def main() -> int:
    name = sys.argv[1]
    warnings.simplefilter("ignore")
    for variable in [v for v in os.environ if v.startswith(("OPENAI_", "ANTHROPIC_"))]:
        del os.environ[variable]
    bench = Bench(name)
    openai_checks(bench)
    anthropic_checks(bench)
    for title, verdict in bench.rows:
        print(f"{verdict[:90]:6} {title}")
    passed = sum(verdict == "yes" for _, verdict in bench.rows)
    print(
        f"{name}: {passed} of {len(bench.rows)}; import {import_seconds(LIBRARIES[name][0]):.2f} s of CPU (median of 3)"
    )
    for module in ("openai", "anthropic"):
        try:
            print(module, importlib.import_module(module).__version__)
        except ImportError:
            print(module, "not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
