"""``agentloom doctor``: what is installed, what works here, and what to do about what does not.

Each check is a small function that returns a ``Check``; none changes anything that it leaves behind.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentloom._version import __version__
from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.render import size
from agentloom.errors import LoomError, ProviderError
from agentloom.store.fate import dies_with

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CHECKS", "Check", "command"]

DISTRIBUTION = "agentloom-runtime"
FOREIGN = "agentloom"
SDKS = (
    "openai", "anthropic", "any-llm-sdk", "google-genai", "langgraph", "langchain", "llama-index-core", "pydantic-ai",
    "openai-agents", "mcp", "litellm", "smolagents", "crewai",
)  # fmt: skip
WITHOUT_ADAPTER = (
    "aiokafka", "asyncpg", "boto3", "elastic-transport", "grpcio", "motor", "mysqlclient", "nats-py", "psycopg",
    "psycopg2", "pycurl", "pymongo", "pymysql", "redis", "sqlalchemy", "tornado", "websockets",
)  # fmt: skip
_LOW_SPACE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``state``: ``ok``, ``info`` (a fact that limits nothing), ``warn``, ``fail``."""

    name: str
    state: str
    detail: str
    next: str | None = None


def python(_: Settings) -> Check:
    """The interpreter: CPython 3.11 or newer is what the inner event loop is tested on."""
    found = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    if platform.python_implementation() != "CPython":
        return Check("python", "warn", found, "the event loop of async agents is tested on CPython only")
    if sys.version_info >= (3, 14):
        return Check(
            "python",
            "warn",
            found,
            "tested on 3.11, 3.12 and 3.13: run your own replays before relying on it",
        )
    return Check("python", "ok", found)


def packages(_: Settings) -> Check:
    """The distribution and its core dependencies, against what its metadata asks for."""
    try:
        needs = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return Check(
            "packages", "fail", f"{DISTRIBUTION} is not installed; agentloom {__version__} is imported from {_where()}",
            f"install it: pip install {DISTRIBUTION}",
        )  # fmt: skip
    found = [f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)}"]
    missing: list[str] = []
    for need in (text for text in needs if ";" not in text):
        match = re.match(r"[\w.-]+", need)
        name = match[0] if match else need
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(need)
    if missing:
        return Check("packages", "fail", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    if metadata.version(DISTRIBUTION) != __version__:
        return Check(
            "packages", "warn", f"imported is {__version__}, installed is {metadata.version(DISTRIBUTION)}",
            f"install again: pip install -U {DISTRIBUTION}",
        )  # fmt: skip
    return Check("packages", "ok", ", ".join(found))


def name_clash(_: Settings) -> Check:
    """The unrelated distribution ``agentloom``: it installs a package of the same import name over ours."""
    try:
        other = metadata.version(FOREIGN)
    except metadata.PackageNotFoundError:
        return Check("name", "ok", f"`import agentloom` is {DISTRIBUTION}, from {_where()}")
    return Check(
        "name",
        "fail",
        f"another distribution called {FOREIGN} ({other}) is installed; it has the same import name: files of one have "
        "overwritten files of the other",
        f"pip uninstall -y {FOREIGN} {DISTRIBUTION} && pip install {DISTRIBUTION}",
    )


def store(settings: Settings) -> Check:
    """Whether the store can be written, and whether its disk has room."""
    folder = _store_folder(settings)
    place = folder if os.path.exists(folder) else _existing_parent(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-") as probe:
            probe.write(b"agentloom")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Check(
            "store", "fail", f"{folder} cannot be written: {error.strerror or error}",
            "choose another place with --store or AGENTLOOM_STORE, or change its permissions",
        )  # fmt: skip
    free = shutil.disk_usage(place).free
    detail = f"{folder} is writable, {size(free)} free" + (
        "" if os.path.exists(folder) else " (made by the first run)"
    )
    if free < _LOW_SPACE:
        return Check(
            "store", "warn", detail, "make room: a run stops before its next effect when the disk is full"
        )
    return Check("store", "ok", detail)


def index(settings: Settings) -> Check:
    """The index of the store: it is rebuilt from the traces alone, so a damaged one costs time, never data."""
    path = _store_folder(settings) / "index.sqlite"
    if not os.path.exists(path):
        return Check("index", "ok", "none yet; made when runs are listed")
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as db:
            verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict != "ok":
        return Check(
            "index", "warn", f"{path.name}: {verdict}", "nothing to do: the next `agentloom ls` makes it anew"
        )
    return Check("index", "ok", f"{path.name} is sound")


def runs(settings: Settings) -> Check:
    """How many runs there are, and which of them cannot be read."""
    folder = _store_folder(settings)
    if not os.path.exists(folder):
        return Check("runs", "ok", "none yet")
    try:
        opened = settings.open_store()
        rows = opened.runs()
    except LoomError as error:
        return Check("runs", "fail", error.message, error.hint)
    bad = [row for row in rows if row.status == "damaged"]
    crashed = sum(row.status == "crashed" for row in rows)
    waiting = sum(row.status == "suspended" for row in rows)
    detail = f"{len(rows)} runs" + (f", {waiting} suspended" if waiting else "")
    detail += f", {crashed} without an end" if crashed else ""
    if bad:
        return Check(
            "runs", "warn", f"{detail}, {len(bad)} damaged: {bad[0].run}: {bad[0].problem}",
            f"agentloom verify {bad[0].run}",
        )  # fmt: skip
    if waiting and (why := dies_with(opened)) is not None:
        return Check("runs", "warn", f"{detail}; {why.partition('; ')[0]}", why.partition("; ")[2])
    return Check("runs", "ok", detail)


def local_model(_: Settings) -> Check:
    """The local model of the demo: engine and weights."""
    from agentloom.adapters import local

    absent = local.missing()
    if absent:
        return Check("local model", "info", "; ".join(error.message for error in absent), absent[0].hint)
    try:
        weights = local.find_weights()
    except ProviderError as error:
        return Check("local model", "info", error.message, error.hint)
    return Check("local model", "ok", f"{weights.name}, {size(weights.stat().st_size)}")


def namespaces(_: Settings) -> Check:
    """Whether the system lets a replay run without a network, enforced by the kernel (Linux network namespaces)."""
    if sys.platform != "linux":
        return Check(
            "network", "info", "no network namespaces on this system: replays are guarded by Python alone"
        )
    probe = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "flags = 0x40000000 | (0 if os.geteuid() == 0 else 0x10000000)\n"  # CLONE_NEWNET, CLONE_NEWUSER
        "sys.exit(0 if libc.unshare(flags) == 0 else ctypes.get_errno() or 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", probe], capture_output=True, text=True, timeout=20, check=False
    )
    if done.returncode == 0:
        return Check(
            "network",
            "ok",
            "a network namespace can be made: the kernel refuses every connection of a replay",
        )
    why = os.strerror(done.returncode) if 0 < done.returncode < 128 else done.stderr.strip()[-200:]
    return Check("network", "info", f"no network namespace ({why}): replays are guarded by Python alone")


def sdks(_: Settings) -> Check:
    """Which model SDKs and agent frameworks are installed."""
    found: list[str] = []
    for name in SDKS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    if not found:
        return Check("sdks", "info", "none installed", f'pip install "{DISTRIBUTION}[models]"')
    return Check("sdks", "ok", ", ".join(found))


def clients(_: Settings) -> Check:
    """Which installed clients have no adapter: what they do in a run is named there, and not recorded."""
    found: list[str] = []
    for name in WITHOUT_ADAPTER:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    if not found:
        return Check("clients", "ok", "none without an adapter")
    return Check(
        "clients",
        "info",
        f"not recorded: {', '.join(found)}",
        "use them in a tool; outside of one their connections are named at the run's end, and a replay refuses them",
    )


CHECKS: tuple[Callable[[Settings], Check], ...] = (
    python, packages, name_clash, store, index, runs, local_model, namespaces, sdks, clients,
)  # fmt: skip


@click.command(short_help="Check this installation and say what to do.")
@common
def command(settings: Settings) -> int:
    """Check the interpreter, the packages, the store, the local model and what can enforce an offline replay.

    Exit code 1 when something has to be repaired.
    """
    found = [check(settings) for check in CHECKS]
    failed = any(check.state == "fail" for check in found)
    screen = settings.screen()
    if screen.json:
        screen.data({"version": __version__, "ok": not failed, "checks": [asdict(check) for check in found]})
        return Exit.ERROR if failed else Exit.OK
    styles = {"ok": "good", "info": "dim", "warn": "warn", "fail": "bad"}
    width = max(len(check.name) for check in found)
    for check in found:
        screen.line((styles[check.state], check.state.ljust(5)), check.name.ljust(width + 2), check.detail)
        if check.next:
            screen.line(" " * (width + 7), ("strong", "next: "), check.next)
    return Exit.ERROR if failed else Exit.OK


def _where() -> str:
    return str(Path(__file__).parents[1])


def _store_folder(settings: Settings) -> Path:
    """The folder of the store, without making it."""
    return Path(settings.store or os.environ.get("AGENTLOOM_STORE") or ".agentloom").absolute()


def _existing_parent(path: Path) -> Path:
    for parent in path.parents:
        if os.path.exists(parent):
            return parent
    return Path()
