"""The tools that an MCP server serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["ServedTools"]


class ServedTools:
    """What one server said of its tools so far, page by page."""

    def __init__(self) -> None:
        self._pages: list[Mapping[str, Any]] = []
        self._hints: dict[str, bool] = {}

    def add(self, cursor: object, result: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        """Take an answer to ``tools/list``; the whole list when it was the last page."""
        tools: Any = result.get("tools")
        found = [cast("Mapping[str, Any]", tool) for tool in tools or () if isinstance(tool, Mapping)]
        self._pages = found if cursor is None else [*self._pages, *found]
        for tool in found:
            said: Any = tool.get("annotations")
            hints: Mapping[str, Any] = cast(Any, said) if isinstance(said, Mapping) else {}
            self._hints[str(tool.get("name"))] = hints.get("readOnlyHint") is True
        return self._pages if result.get("nextCursor") is None else None

    def reads(self, name: str) -> bool:
        """Whether the server says that the tool only reads."""
        return self._hints.get(name, False)
