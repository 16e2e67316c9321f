"""The mail of a local store: ``mail/RUN/`` with one file for each, numbered in the order in which they were posted.

A file is made whole beside its place, synced, and linked to the next free number: never half, never replaced. Whoever
links a number has read all before it, so that of several who post the same at once exactly one finds nothing. No lock.
"""

from __future__ import annotations

import contextlib
import os
import re

from agentloom.errors import NotSupported
from agentloom.store.files import FRESH, NO_LINKS, temporary
from agentloom.store.mail import Mail, checked_mail, read_mail, taken
from agentloom.store.osfile import Os, failed, read_span, sync_folder, write_all

__all__ = ["Mailbox"]

_NAME = re.compile(r"([0-9]{8})\.json\Z")


class Mailbox:
    """``root``: the folder with one folder of each run that has mail."""

    def __init__(self, system: Os, root: str) -> None:
        self._system = system
        self._root = root

    def post(self, run: str, mail: Mail) -> None:
        """Keep ``mail``; it survives a power cut when this returns. ``MailTaken``, ``StoreFailed``, ``FormatError``."""
        body = checked_mail(mail)
        folder = os.path.join(self._root, run)
        try:
            self._prepare(folder)
            before = self._numbers(folder)
            for number in before:
                self._not_taken(run, folder, number, mail)
            hidden = temporary(_path(folder, 0))
            try:
                self._write(hidden, body)
                number = before[-1] if before else 0
                while not self._linked(hidden, _path(folder, number := number + 1)):
                    self._not_taken(run, folder, number, mail)  # somebody else posted meanwhile
            finally:
                with contextlib.suppress(OSError):  # what stays goes with the run
                    self._system.unlink(hidden)
            sync_folder(self._system, folder)
        except OSError as error:
            raise failed("post mail to", folder, error, run=run) from error

    def mail(self, run: str) -> list[Mail]:
        """All mail of the run, oldest first. ``StoreFailed``, ``FormatError``."""
        folder = os.path.join(self._root, run)
        try:
            return [self._read(folder, number) for number in self._numbers(folder)]
        except OSError as error:
            raise failed("read the mail in", folder, error, run=run) from error

    def remove(self, run: str) -> None:
        """Delete the mail of a run that is gone. ``StoreFailed``."""
        folder = os.path.join(self._root, run)
        try:
            for name in self._system.listdir(folder):
                self._system.unlink(os.path.join(folder, name))
            self._system.rmdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failed("remove", folder, error, run=run) from error

    def _write(self, hidden: str, body: bytes) -> None:
        fd = self._system.open(hidden, FRESH, 0o600)
        try:
            write_all(self._system, fd, body)
            self._system.fsync(fd)
        finally:
            self._system.close(fd)

    def _linked(self, hidden: str, path: str) -> bool:
        try:
            self._system.link(hidden, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in NO_LINKS:
                raise NotSupported(
                    f"the file system of {path} has no hard links, without which two answers could take one place",
                    hint="keep the store on a file system that has them",
                ) from error
            raise
        return True

    def _not_taken(self, run: str, folder: str, number: int, mail: Mail) -> None:
        found = self._read(folder, number)
        if (found.kind, found.key) == (mail.kind, mail.key):
            sync_folder(
                self._system, folder
            )  # whoever posted it may have died before: what is told here stands
            raise taken(run, found)

    def _read(self, folder: str, number: int) -> Mail:
        path = _path(folder, number)
        return read_mail(read_span(self._system, path), path)

    def _numbers(self, folder: str) -> list[int]:
        try:
            names = self._system.listdir(folder)
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for match in map(_NAME.match, names) if match)

    def _prepare(self, folder: str) -> None:
        for path in (self._root, folder):
            with contextlib.suppress(FileExistsError):
                self._system.mkdir(path, 0o700)
            sync_folder(self._system, os.path.dirname(path))  # whoever made it may have died before


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number:08d}.json")
