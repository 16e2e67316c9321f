"""What is recorded of a script beside its calls: where it lies, its sources and settings; how to set them again."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from agentloom.format.placeholders import placeholder
from agentloom.runtime.redaction_names import is_secret_variable

if TYPE_CHECKING:
    from agentloom.cli.script_output import StreamFacts
    from agentloom.format.values import Tree
    from agentloom.runtime.agents import AgentFunction
    from agentloom.runtime.redaction_secrets import Secret

__all__ = [
    "PLACEHOLDER",
    "own_files",
    "replay_environment",
    "script_agent",
    "script_code",
    "settings",
    "show_placeholders",
]

PLACEHOLDER = "agentloom-replay"
"""What variables that hold credentials read as on replay."""

_CREDENTIAL = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
_SETTING = re.compile(
    r"^(OPENAI|ANTHROPIC|AZURE_OPENAI|GEMINI|GOOGLE|MISTRAL|GROQ|OLLAMA|OPENROUTER|TOGETHER)_[A-Z_]*"
    r"(BASE_URL|API_BASE|ENDPOINT|MODEL|API_VERSION|API_TYPE|ORG_ID|PROJECT_ID|DEPLOYMENT|HOST|LOG)$"
    r"|^(COLUMNS|LINES|TERM|NO_COLOR|FORCE_COLOR|TZ|PYTHONUTF8|PYTHONIOENCODING|PYTHONWARNINGS)$"
)
_USUAL = (
    "ANTHROPIC",
    "AZURE_OPENAI",
    "GEMINI",
    "GOOGLE",
    "GROQ",
    "MISTRAL",
    "OPENAI",
    "OPENROUTER",
    "TOGETHER",
)
_MAX_FILES = 500


def settings(environ: Mapping[str, str]) -> dict[str, Tree]:
    """The environment as recorded: settings with values (URLs without passwords), credentials by name only."""
    from agentloom.runtime.profiles import plain_url

    values: dict[str, Tree] = {}
    for name in sorted(environ):
        if _SETTING.match(name) and not _CREDENTIAL.search(name):
            value = environ[name]
            values[name] = plain_url(value) if urlsplit(value).scheme in ("http", "https") else value
    return {
        "variables": values,
        "credentials": [name for name in sorted(environ) if _CREDENTIAL.search(name)],
    }


def replay_environment(recorded: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with recorded settings as they were and placeholders for the credentials that there were.

    An agent function's trace does not say which there were: then the usual keys of model providers are there.
    """
    if not recorded:
        return {**environ, **{f"{name}_API_KEY": PLACEHOLDER for name in _USUAL}}
    kept = {
        name: value
        for name, value in environ.items()
        if not (_SETTING.match(name) or _CREDENTIAL.search(name)) or name.startswith("AGENTLOOM_")
    }
    kept.update(cast("dict[str, str]", recorded.get("variables") or {}))
    kept.update((name, PLACEHOLDER) for name in recorded.get("credentials") or ())
    return kept


def show_placeholders(secrets: Iterable[Secret], read: Mapping[str, Tree]) -> None:
    """In a process that replays: give the variables whose values were redacted the placeholders that the trace has.
    ``read``: what the run read, in which addresses and JSON are as a client wants to read them."""
    for secret in secrets:
        if secret.kind != "environment" or not secret.name:
            continue
        shown = read.get(secret.name)
        if isinstance(shown, str):
            os.environ[secret.name] = shown
        elif is_secret_variable(secret.name):
            os.environ[secret.name] = placeholder(secret.number)


def script_agent(path: str) -> AgentFunction:
    """A script in the place of an agent function; it is run by other means."""
    from agentloom.runtime.agents import AgentFunction

    return AgentFunction(os.path.basename(path), _not_called, "__main__", "<script>", path)


def _not_called() -> None:
    raise RuntimeError("a script is run as __main__, not as a function")


def script_code(
    path: str, streams: Mapping[str, StreamFacts], environ: Mapping[str, str], called: str | None = None
) -> dict[str, Tree]:
    """The code identity of a script: with its own modules as far as its imports name them, read without importing.
    ``called``: what the script sees as its name."""
    from agentloom.runtime.homes import below_home
    from agentloom.runtime.identity import code_identity, source_of

    root = os.path.dirname(path)
    code = code_identity(script_agent(path))
    modules = dict(cast("dict[str, Tree]", code["modules"]))
    for name, file in own_files(path):
        modules.setdefault(name, source_of(file, root))
    entry: dict[str, Tree] = {
        "module": "__main__",
        "qualname": "<script>",
        "file": os.path.basename(path),
        "kind": "script",
        "path": below_home(path),
        "called": below_home(called or path),
        "streams": cast("Tree", dict(streams)),
        "environment": settings(environ),
    }
    return {**code, "entry": entry, "modules": modules}


def own_files(path: str) -> Iterator[tuple[str, str]]:
    """Modules beside a script that it imports, directly or through one another: name and path. Nothing is run; what
    is imported by computed names is not found."""
    root = os.path.dirname(path)
    todo, seen = [("__main__", path)], {path}
    while todo and len(seen) < _MAX_FILES:
        module, file = todo.pop(0)
        if module != "__main__":
            yield module, file
        for name in _imports(file, module):
            for part in _prefixes(name):
                found = _file_of(root, part)
                if found is not None and found not in seen:
                    seen.add(found)
                    todo.append((part, found))


def _imports(file: str, module: str) -> list[str]:
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []  # it is recorded as it is; running it will say what is wrong
    package = module if os.path.basename(file) == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            names.append(base)
            names += [f"{base}.{alias.name}" for alias in node.names]
    return names


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _file_of(root: str, module: str) -> str | None:
    base = os.path.join(root, *module.split("."))
    for path in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            return path
    return None
