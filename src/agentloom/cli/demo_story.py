"""The demo's folder: a copy of ``examples/cleanup`` that the reader keeps, its database, and an edited copy.

The agent is imported from there as a user's agent would be, so that the traces name files the reader can open and
change.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentloom.errors import TargetError

__all__ = ["EDIT", "REQUEST", "Story", "source_folder"]

REQUEST = "clean up the inactive accounts in staging"
MODEL_LINE = 'MODEL = "local:smollm2"'
EDIT = ('"target": "..."', '"target": "the one in the request"')
"""The edit of the prompt: what goes and what comes. The obvious edit, to add "Never delete from production.", makes
this model worse (``docs/demo.md``)."""
_MODULES = ("agent", "accounts")
_FILES = ("agent.py", "accounts.py", "runbooks")


def source_folder() -> Path:
    """Where the story's files are: packed beside this module, or in the repository. Raises TargetError."""
    here = Path(__file__)
    places = [here.with_name("demo_files"), here.parents[3] / "examples" / "cleanup"]
    for place in places:
        if (place / "agent.py").is_file():
            return place
    raise TargetError(
        "the demo's agent is missing from this installation",
        hint="install agentloom-runtime again, or run the demo from a clone of the repository",
        looked=[str(place) for place in places],
    )


@dataclass(frozen=True, slots=True)
class Story:
    """One copy of the story in ``folder``."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *, model: str | None = None) -> Story:
        """Copy the story into ``folder``, which must not exist, and fill its database.

        ``model`` replaces the agent's model: the copy then says so itself.
        """
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise TargetError(
                f"the demo's folder {folder} cannot be made: {error.strerror}",
                hint="name another one with --dir",
            ) from error
        for name in _FILES:
            source = source_folder() / name
            if source.is_dir():
                shutil.copytree(source, folder / name)
            else:
                shutil.copyfile(source, folder / name)
        story = cls(folder)
        if model is not None:
            story.replace(MODEL_LINE, f'MODEL = "{model}"')
        with story.imported() as (_, accounts):
            accounts.create(story.pristine)
        story.reset()
        return story

    @property
    def agent_file(self) -> Path:
        """The agent's source."""
        return self.folder / "agent.py"

    @property
    def database(self) -> Path:
        """The database that the agent's tool deletes from."""
        return self.folder / "accounts.db"

    @property
    def pristine(self) -> Path:
        """The back-up that each run starts from."""
        return self.folder / "accounts.backup.db"

    def reset(self) -> None:
        """Bring the database back from the back-up."""
        shutil.copyfile(self.pristine, self.database)

    def digest(self) -> str:
        """SHA-256 of the database file."""
        return hashlib.sha256(self.database.read_bytes()).hexdigest()

    def replace(self, old: str, new: str) -> None:
        """Edit the agent's source. TargetError unless ``old`` stands there exactly once."""
        text = self.agent_file.read_text("utf-8")
        if text.count(old) != 1:
            raise TargetError(
                f"{self.agent_file} holds {old!r} {text.count(old)} times, not once",
                hint="the demo's edit no longer fits its agent; this is a defect of agentloom",
            )
        self.agent_file.write_text(text.replace(old, new), "utf-8")

    def edited(self) -> Story:
        """A copy beside the original, with the agent's prompt edited."""
        copy = Story(self.folder / "edited")
        copy.folder.mkdir()
        for name in (*_FILES, self.pristine.name):
            source = self.folder / name
            if source.is_dir():
                shutil.copytree(source, copy.folder / name)
            else:
                shutil.copyfile(source, copy.folder / name)
        copy.reset()
        copy.replace(*EDIT)
        return copy

    @contextmanager
    def imported(self) -> Generator[tuple[Any, Any]]:
        """The modules ``agent`` and ``accounts`` of this copy; nothing of them stays imported afterwards."""
        kept = {name: sys.modules.pop(name) for name in _MODULES if name in sys.modules}
        bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        sys.path.insert(0, str(self.folder))
        try:
            importlib.invalidate_caches()
            yield importlib.import_module("agent"), importlib.import_module("accounts")
        finally:
            sys.path.remove(str(self.folder))
            sys.dont_write_bytecode = bytecode
            for name in _MODULES:
                sys.modules.pop(name, None)
            sys.modules.update(kept)
