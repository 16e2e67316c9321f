"""The releases of each SDK that the tests have run with, and what is said of others."""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from agentloom.errors import NotSupported

__all__ = ["RANGES", "Range", "check", "function_of", "needed", "range_of", "say"]


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the newest release tested, both included; ``package`` as the registry names it."""

    package: str
    lowest: str
    newest: str

    def __str__(self) -> str:
        return f"{self.package} {self.lowest} to {self.newest}"

    def holds(self, version: str) -> bool:
        """Whether a release is within the range. Patch releases of the newest minor one are: they fix what is there."""
        return (
            _numbers(self.lowest) <= _numbers(version) and _numbers(version)[:2] <= _numbers(self.newest)[:2]
        )


RANGES: dict[str, Range] = {
    "openai": Range("openai", "2.0.0", "3.57.0"),
    "anthropic": Range("anthropic", "0.90.0", "2.14.0"),
    "google.genai": Range("google-genai", "2.17.0", "3.6.1"),
    "litellm": Range("litellm", "1.100.0", "1.110.2"),
    "httpx": Range("httpx", "0.27.0", "0.28.1"),
    "httpx2": Range("httpx2", "2.0.0", "2.16.2"),
    "requests": Range("requests", "2.32.2", "2.34.2"),
    "urllib3": Range("urllib3", "2.2.0", "2.8.0"),
    "aiohttp": Range("aiohttp", "3.12.0", "3.14.5"),
    "langchain_core": Range("langchain-core", "1.3.0", "1.8.3"),
    "langgraph": Range("langgraph", "1.1.0", "1.2.24"),
    "langgraph.checkpoint": Range("langgraph-checkpoint", "4.0.0", "4.3.2"),
    "pydantic_ai": Range("pydantic-ai-slim", "2.20.0", "2.68.0"),
    "llama_index.core": Range("llama-index-core", "0.14.20", "0.14.25"),
    "workflows": Range("llama-index-workflows", "2.26.1", "2.26.1"),
    "agents": Range("openai-agents", "0.20.0", "0.24.0"),
    "mcp": Range("mcp", "1.19.0", "2.3.0"),
}
"""By the name of the module, or of a package that it is in."""

_said: set[str] = set()


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3]]
    return tuple(found + [0] * (3 - len(found)))


def range_of(module: str) -> Range | None:
    """The range of ``module``, or of the nearest package around it that has one."""
    return RANGES.get(_ranged(module))


def _ranged(module: str) -> str:
    while module and module not in RANGES:
        module = module.rpartition(".")[0]
    return module


def check(module: str) -> None:
    """Warn once when the installed release of ``module`` is outside of the tested range."""
    module = _ranged(module)
    known = RANGES.get(module)
    if known is None:
        return
    try:
        version = importlib.metadata.version(known.package)
    except importlib.metadata.PackageNotFoundError:  # vendored, or on the path without its metadata
        return
    if not known.holds(version):
        say(
            module,
            f"{known.package} {version} is outside of what the adapter {module} was tested with ({known}): calls may "
            "be recorded in another way, or not at all; install a release of the range, or upgrade agentloom",
        )


def needed(module: ModuleType, place: str, name: str) -> None:
    """Look for a method that a seam stands on: ``name``, at ``place`` in ``module`` (``Client``, ``a.Client``). Raises
    ``NotSupported`` for a release that does not have it."""
    owner: Any = module
    for part in place.split("."):
        owner = getattr(owner, part, None)
    if not callable(getattr(owner, name, None)):
        library, version = module.__name__, getattr(module, "__version__", "of unknown version")
        raise NotSupported(
            f"requests of {library} {version} cannot be recorded: no {place.rpartition('.')[2]}.{name}",
            hint=f"install a release of {library} that agentloom's tests name",
        )


def function_of(module: ModuleType, name: str, otherwise: str) -> Any:
    """A function of a module that a seam stands on. Raises ``NotSupported`` for a release that does not have it:
    ``otherwise`` is what becomes of the program's calls then."""
    found = getattr(module, name, None)
    if not callable(found):
        known = range_of(module.__name__)
        package = module.__name__ if known is None else known.package
        raise NotSupported(
            f"this release of {package} has no {name}: {otherwise}",
            hint=f"install a release of {package} that agentloom's tests name",
        )
    return found


def say(module: str, text: str) -> None:
    """Warn, once for each adapter. The program goes on, also where warnings are errors."""
    if module in _said:
        return
    _said.add(module)
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        import logging

        logging.getLogger("agentloom.adapters").warning("%s", text)
