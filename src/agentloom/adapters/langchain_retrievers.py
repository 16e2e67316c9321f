"""LangChain's retrievers become ``retrieve`` calls: the documents that ``BaseRetriever.invoke`` and ``ainvoke`` find,
with their ids and metadata, and with the scores that a vector store gave them.

A retriever that asks others (an ensemble, one that has a model rewrite the query) is structure: what these are asked is
recorded, below its name.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import wrap_overrides
from agentloom.adapters.framework_scopes import within
from agentloom.adapters.framework_values import can_be_kept, held_by
from agentloom.adapters.releases import needed
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.contexts import put
from agentloom.runtime.passed import passes
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current

__all__ = ["Retrieved", "install", "install_stores"]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Documents with the score of each, as the vector store tells it (a similarity or a distance)."""

    documents: list[Any]
    scores: list[float]


TYPES.register(Retrieved)

_scored: contextvars.ContextVar[list[tuple[Any, Any]] | None] = contextvars.ContextVar(
    "agentloom.scored", default=None
)
"""In a retriever that runs: what its vector store scored."""


def install(module: ModuleType) -> None:
    """Patch ``langchain_core.retrievers``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "BaseRetriever", "_get_relevant_documents")
    needed(module, "BaseRetriever", "_aget_relevant_documents")
    from langchain_core.documents import Document

    TYPES.declare(Document)
    wrappers = {"_get_relevant_documents": _blocking, "_aget_relevant_documents": _awaited}
    wrap_overrides(cast(Any, module).BaseRetriever, wrappers)
    cast(Any, module).__agentloom__ = True


def install_stores(module: ModuleType) -> None:
    """Have the vector stores of ``langchain_core.vectorstores.base`` tell scores to the retriever that asks them."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "VectorStore", "similarity_search_with_score")
    wrappers = {"similarity_search_with_score": _scoring, "asimilarity_search_with_score": _awaited_scoring}
    wrap_overrides(cast(Any, module).VectorStore, wrappers)
    cast(Any, module).__agentloom__ = True


def _scoring(method: Any) -> Any:
    @functools.wraps(method)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _note(method(self, *args, **kwargs))

    return search


def _awaited_scoring(method: Any) -> Any:
    @functools.wraps(method)
    async def search(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _note(await method(self, *args, **kwargs))

    return search


def _note(found: Any) -> Any:
    scored = _scored.get()
    if scored is not None:
        scored.extend(cast("list[tuple[Any, Any]]", found))
    return found


def _blocking(method: Any) -> Any:
    @functools.wraps(method)
    def _get_relevant_documents(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if _passes(self):
            return method(self, query, *args, **kwargs)
        if _asks_others(self):
            with within(self.get_name()):
                return method(self, query, *args, **kwargs)

        def perform(_: object) -> Any:
            with _scores() as scored:
                return _kept(method(self, query, *args, **kwargs), scored)

        return _documents(call_inline(_spec(self, query, kwargs), perform))

    return _get_relevant_documents


def _awaited(method: Any) -> Any:
    @functools.wraps(method)
    async def _aget_relevant_documents(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if _passes(self):
            return await method(self, query, *args, **kwargs)
        if _asks_others(self):
            with within(self.get_name()):
                return await method(self, query, *args, **kwargs)

        async def perform(_: object) -> Any:
            with _scores() as scored:
                return _kept(await method(self, query, *args, **kwargs), scored)

        return _documents(await call_async(_spec(self, query, kwargs), perform))

    return _aget_relevant_documents


def _passes(retriever: Any) -> bool:
    return current() is None and passes(f"retriever {retriever.get_name()} (langchain)")


def _spec(retriever: Any, query: Any, kwargs: dict[str, Any]) -> CallSpec:
    request: dict[str, Any] = {"query": query}
    settings: Any = getattr(retriever, "search_kwargs", None)
    told = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
    more = {name: value for name, value in kwargs.items() if name not in ("run_manager", "callbacks")}
    # A filter that is a function has no form in a trace; it is code, and a change of it is seen as such.
    found = {name: value for name, value in (told | more).items() if can_be_kept(value)}
    if found:
        request["search"] = {"type": getattr(retriever, "search_type", None), **found}
    return CallSpec("retrieve", retriever.get_name(), request, effect="read")


@contextmanager
def _scores() -> Generator[list[tuple[Any, Any]]]:
    scored: list[tuple[Any, Any]] = []
    token = put(_scored, scored)
    try:
        yield scored
    finally:
        _scored.reset(token)


def _kept(found: Any, scored: list[tuple[Any, Any]]) -> Any:
    """The documents, with their scores where each has one. (Same objects: stores give their documents on.)"""
    documents: list[Any] = list(found)
    scores = {id(document): float(score) for document, score in scored}
    if documents and all(id(document) in scores for document in documents):
        return Retrieved(documents, [scores[id(document)] for document in documents])
    return documents


def _documents(value: Any) -> Any:
    return value.documents if isinstance(value, Retrieved) else value


def _asks_others(retriever: Any) -> bool:
    """Whether it is made of other retrievers, models or chains."""
    from langchain_core.runnables import Runnable

    return any(isinstance(one, Runnable) for one in held_by(retriever))
