"""Source distributions of other packages, and what their tests need: in a cache outside of this repository.

``AGENTLOOM_SUITES`` names the cache (default: ``agentloom-suites`` in the user's cache folder). Nothing from it is
copied here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

__all__ = ["NotHere", "blocks", "cache", "installed", "overlay", "source"]


class NotHere(Exception):
    """A source distribution or a package cannot be had here. The message says which and why."""


def cache() -> Path:
    """Where everything is kept."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentloom-suites"
    return Path(os.environ.get("AGENTLOOM_SUITES") or default)


def installed(package: str) -> str | None:
    """The version of a package in this environment, whose own tests are the ones to run."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def source(package: str, version: str, *, download: bool = True) -> Path:
    """The unpacked source distribution. `NotHere` when it is not in the cache and cannot be downloaded."""
    stem = f"{package.replace('-', '_')}-{version}"
    place = cache() / "sources" / stem
    if place.is_dir():
        return place
    archive = cache() / "downloads" / f"{stem}.tar.gz"
    if not archive.exists():
        if not download:
            raise NotHere(f"{archive.name} is not in {cache()}")
        wanted = ["--no-binary", ":all:", "--no-deps", f"{package}=={version}"]
        _pip("download", "-d", str(archive.parent), *wanted)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        tar.extractall(place.parent, filter="data")
    return place


def blocks(package: str, folder: Path | None = None) -> list[str]:
    """The Python blocks of the page that a package is published with. ``folder``: an overlay that holds it."""
    found = metadata.distributions(name=package, path=[str(folder)]) if folder else ()
    one = next(iter(found), None) or metadata.distribution(package)
    page = str(one.metadata.get_payload() or one.metadata["Description"])  # type: ignore[attr-defined]
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def overlay(name: str, packages: tuple[str, ...], *, download: bool = True, deep: bool = False) -> Path:
    """A folder with packages that only a suite needs, for ``PYTHONPATH``: without what they depend on, which is here
    or named too, so that nothing stands in front of the packages under test; ``deep``: with all of it."""
    stamp = f"{sys.version_info.major}.{sys.version_info.minor}"
    # By that name it is a folder of libraries, whose effects while they are imported are not the program's.
    place = cache() / "overlays" / f"{name}-{stamp}" / "site-packages"
    listed, text = place / "packages.txt", "\n".join(packages)
    if not (listed.exists() and listed.read_text(encoding="utf-8") == text):
        if not download:
            raise NotHere(f"{', '.join(packages)} are not in {cache()}")
        _pip("install", "--upgrade", *(() if deep else ("--no-deps",)), "--target", str(place), *packages)
        listed.write_text(text, encoding="utf-8")
    return place


def _pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments[:1], "-q", *arguments[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error"))]
        raise NotHere(f"pip {' '.join(arguments)}: {(said or ['it failed'])[-1][:300]}")
