"""Every other provider (``cohere:``, ``nebius:``, ...), through the multi-provider library any-llm.

any-llm speaks the OpenAI style on both sides, so its answers are read as OpenAI's are. What it does not hand on is lost
here too; ``docs/adr/0007-model-providers.md`` lists what was measured and why OpenAI and Anthropic do not go this way.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters import models_openai
from agentloom.adapters.models_errors import broken_stream, malformed, translate
from agentloom.adapters.models_unsendable import unsendable
from agentloom.errors import ModelError
from agentloom.runtime.assembly import copy_tree

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["complete", "complete_sync", "stream", "stream_sync"]

# any-llm's own exception classes (any_llm/exceptions.py); used when they carry no exception of an SDK.
_KINDS = {
    "RateLimitError": "rate_limit",
    "AuthenticationError": "auth",
    "MissingApiKeyError": "auth",
    "ContextLengthExceededError": "context_length",
    "ContentFilterError": "content_filter",
    "ContentFilterFinishReasonError": "content_filter",
    "ModelNotFoundError": "not_found",
    "InsufficientFundsError": "quota",
    "GatewayTimeoutError": "timeout",
    "UpstreamProviderError": "server",
    "ProviderError": "server",
    "InvalidRequestError": "bad_request",
    "UnsupportedParameterError": "bad_request",
    "UnsupportedProviderError": "not_found",
}
_LOCAL = {"timeout"}  # any-llm takes this one itself


_END: dict[str, Any] = {}


async def complete(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """Perform ``request`` and give the answer mapping. ModelError, as `ModelBackend.complete`."""
    client: Any = None
    failure = None
    try:
        client = _client(request, route)
        return _answer(await client.acompletion(**_arguments(request, route, stream=False)), route)
    except Exception as error:
        failure = _failure(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    finally:
        await _close(client)
    raise failure


def complete_sync(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """As `complete`, blocking. The library is async inside, so the call has an event loop in a thread of its own."""
    with ThreadPoolExecutor(1, "agentloom-any-llm") as thread:
        return thread.submit(asyncio.run, complete(request, route)).result()


async def stream(request: Mapping[str, Any], route: Route) -> AsyncGenerator[dict[str, Any]]:
    """Perform ``request`` and give the deltas as they arrive."""
    reader = models_openai.Reader()
    client: Any = None
    failure = None
    try:
        client = _client(request, route)
        chunks = cast(
            "AsyncIterator[Any]", await client.acompletion(**_arguments(request, route, stream=True))
        )
        async for chunk in chunks:
            for delta in reader.read(_plain(chunk, route)):
                yield delta
    except Exception as error:
        failure = _failure(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    finally:
        await _close(client)
    if failure is not None:
        raise failure
    if not reader.complete:
        raise broken_stream(route)


def stream_sync(request: Mapping[str, Any], route: Route) -> Iterator[dict[str, Any]]:
    """As `stream`, blocking; the event loop is as in `complete_sync`."""
    deltas = stream(request, route)

    async def step() -> dict[str, Any]:
        return await anext(deltas, _END)

    with ThreadPoolExecutor(1, "agentloom-any-llm") as thread:
        runner = asyncio.Runner()
        try:
            while (delta := thread.submit(lambda: runner.run(step())).result()) is not _END:
                yield delta
        finally:
            thread.submit(lambda: runner.run(deltas.aclose())).result()
            thread.submit(runner.close).result()


async def _close(client: Any) -> None:
    """Close the SDK's client within the library's: nothing else would before the interpreter ends."""
    close = getattr(getattr(client, "client", None), "close", None)
    if callable(close):
        closing = close()
        if inspect.isawaitable(closing):
            await closing


def _client(request: Mapping[str, Any], route: Route) -> Any:
    """The library's client of the provider: its retries off, its errors in its own classes."""
    from any_llm import AnyLLM, LLMProvider

    provider = LLMProvider(route.provider)
    options: dict[str, Any] = {"unified_exceptions": True}
    if route.api_key is not None:
        options["api_key"] = route.api_key
    if AnyLLM.get_provider_class(provider).MAX_RETRIES_SUPPORT != "unsupported":
        options["max_retries"] = request.get("max_retries") or 0
    return AnyLLM.create(provider, **options)


def _arguments(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    local = models_openai.LOCAL_FIELDS - _LOCAL - {"extra_headers", "extra_body", "extra_query"}
    # Copies: what the library and the SDKs below it do to them is theirs.
    arguments = {name: copy_tree(value) for name, value in request.items() if name not in local}
    arguments.update(model=route.model, stream=stream)
    if stream and "stream_options" not in request and _speaks_openai(route.provider):
        arguments["stream_options"] = {"include_usage": True}
    return arguments


def _speaks_openai(provider: str) -> bool:
    from any_llm import AnyLLM, LLMProvider
    from any_llm.providers.openai.base import BaseOpenAIProvider

    return issubclass(AnyLLM.get_provider_class(LLMProvider(provider)), BaseOpenAIProvider)


def _plain(model: Any, route: Route) -> dict[str, Any]:
    if not hasattr(model, "model_dump"):
        raise malformed(f"any-llm gave {type(model).__name__}", route)
    body: dict[str, Any] = model.model_dump(mode="json", exclude_unset=True, warnings=False)
    choices: list[dict[str, Any]] = body.get("choices") or []
    for choice in choices:
        message: dict[str, Any] = choice.get("message") or choice.get("delta") or {}
        reasoning = message.get("reasoning")
        if isinstance(reasoning, dict) and set(cast("dict[str, Any]", reasoning)) == {"content"}:
            message["reasoning"] = reasoning["content"]
    return body


def _answer(result: Any, route: Route) -> dict[str, Any]:
    try:
        return models_openai.answer(_plain(result, route))
    except ValueError as error:
        reason = str(error)
    raise malformed(reason, route)


def _failure(error: BaseException, route: Route) -> ModelError | None:
    original = getattr(error, "original_exception", None)
    for candidate in (original, error.__cause__, error):
        if isinstance(candidate, BaseException):
            found = translate(candidate, route)
            if found is not None:
                return found
    names = [cls.__name__ for cls in type(error).__mro__]
    if "AnyLLMError" not in names and not isinstance(error, ImportError):
        return None
    kind = next((_KINDS[name] for name in names if name in _KINDS), "server")
    if isinstance(error, ImportError):
        kind = "not_found"
    text = str(error)
    if route.api_key:
        text = text.replace(route.api_key, "[credential]")
    message = f"{route.provider} {route.model}: {text} [{kind}]"
    return ModelError(kind, message, provider=route.provider, model=route.model)
