"""The local store: a folder with one trace file a run. See docs/store.md for the layout."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Sequence

from agentloom.errors import FormatError, LeaseHeld, RunNotFound, StoreFailed
from agentloom.store.appender import Durability, LocalAppender, checked_durability
from agentloom.store.base import Query, RunRow, check_run_name
from agentloom.store.files import read_path, write_path
from agentloom.store.find import fits, missing, resolve
from agentloom.store.index import Index, Version
from agentloom.store.lease import Owner, acquire, claim, held, owner_path, refused
from agentloom.store.lines import checked, recovered, whole_lines
from agentloom.store.mail import Mail
from agentloom.store.mailbox import Mailbox
from agentloom.store.memory import different
from agentloom.store.osfile import CLOEXEC, NOFOLLOW, REAL, Os, failed, shut, sync_folder, write_small
from agentloom.store.scan import Source, damaged, live, scan, sort_key, unfinished
from agentloom.store.searching import TextSearch

__all__ = ["LocalStore"]

PLAIN, PACKED = ".loom", ".loom.zst"
_BATCH = 256  # files looked up in the index at a time
_STALE = 3600.0  # seconds after which a temporary file has no living writer
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL}
"""Why a folder above the store that cannot be synced is left alone: another's, read only, or there is no such thing."""
_APPEND = os.O_RDWR | os.O_APPEND | CLOEXEC | NOFOLLOW


class LocalStore:
    """Traces in the folder ``root``, which is made when the first run is written.

    ``durability``: ``process`` (an entry survives the death of the process) or ``power`` (of the machine).
    ``system``: the operations of the operating system; tests hand in failing ones.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, durability: Durability = "process", system: Os = REAL
    ) -> None:
        self.root: str = os.path.abspath(os.fspath(root))
        self.durability: Durability = checked_durability(durability)
        self._system = system
        self._runs = os.path.join(self.root, "runs")
        self._leases = os.path.join(self.root, "leases")
        self._mailbox = Mailbox(system, os.path.join(self.root, "mail"))
        self._index = Index(os.path.join(self.root, "index.sqlite"))
        self._safe = False  # the folders themselves are on the disk

    def __repr__(self) -> str:
        return f"LocalStore({self.root!r})"

    def path(self, run: str) -> str:
        """The trace file of the run; `RunNotFound`."""
        check_run_name(run)
        for suffix in (PLAIN, PACKED):
            name = os.path.join(self._runs, run + suffix)
            if self._exists(name):
                return name
        raise missing(run, self.root, [name for name, _ in self._files()])

    def create(self, run: str) -> LocalAppender:
        path = os.path.join(self._runs, check_run_name(run) + PLAIN)
        try:
            fd = self._create_file(path)
        except FileExistsError as error:
            if held(self._system, run, path, self._leases):
                raise refused(run, Owner.load(self._system, owner_path(self._leases, run))) from error
            raise StoreFailed(
                f"run {run} exists already: {path}", hint="reopen it, or use a new run id", run=run, path=path
            ) from error
        except OSError as error:
            raise failed("create", path, error, run=run) from error
        try:
            lease = acquire(self._system, fd, run, path, self._leases)
        except BaseException as error:
            if not isinstance(error, LeaseHeld):
                with contextlib.suppress(OSError):
                    self._system.unlink(path)
            shut(self._system, fd)
            raise
        return LocalAppender(self._system, path, run, fd, 0, lease, self.durability)

    def reopen(self, run: str) -> LocalAppender:
        path = self.path(run)
        if path.endswith(PACKED):
            raise StoreFailed(
                f"run {run} is kept compressed and cannot be written: {path}",
                hint=f"decompress it first: zstd -d --rm {path}",
                run=run,
                path=path,
            )
        try:
            fd = self._system.open(path, _APPEND)
        except OSError as error:
            raise failed("open for writing", path, error, run=run) from error
        try:
            return self._reopened(run, path, fd)
        except OSError as error:
            shut(self._system, fd)
            raise failed("reopen", path, error, run=run) from error
        except BaseException:
            shut(self._system, fd)
            raise

    def _reopened(self, run: str, path: str, fd: int) -> LocalAppender:
        self._folder(self._leases)
        lease = acquire(self._system, fd, run, path, self._leases)
        try:
            self._still_there(run, path, fd)
            data = read_path(self._system, path)
            end = recovered(data, run)
            if end < len(data):
                self._system.ftruncate(fd, end)
            if self.durability == "power":
                self._sync_folders()  # whoever made it may not have
                self._system.fdatasync(fd)
            return LocalAppender(self._system, path, run, fd, end, lease, self.durability, len(data) - end)
        except BaseException:
            lease.release()
            raise

    def _still_there(self, run: str, path: str, fd: int) -> None:
        """Between opening and locking, the file may have been removed or replaced."""
        found, now = self._system.fstat(fd), self._system.stat(path)
        if (found.st_ino, found.st_dev) != (now.st_ino, now.st_dev):
            raise StoreFailed(
                f"{path} was replaced while it was being opened", hint="try again", run=run, path=path
            )

    def read(self, run: str) -> bytes:
        path = self.path(run)
        try:
            return whole_lines(read_path(self._system, path))
        except OSError as error:
            raise failed("read", path, error, run=run) from error

    def runs(self, query: Query | None = None) -> list[RunRow]:
        query = query or Query()
        files = self._files()
        self._index.keep_only({name for _, name in files})
        rows = self._fitting(files, query)
        return list(itertools.islice(rows, query.limit) if query.limit is not None else rows)

    def resolve(self, ref: str) -> str:
        files = self._files()
        by_run = dict(files)
        return resolve(
            ref,
            list(by_run),
            lambda runs: list(self._rows([(run, by_run[run]) for run in runs], deep=False)),
            lambda tag: self._tagged(files, tag),
            lambda: {tag for row in self._rows(files, deep=False) for tag in row.tags},
            self.root,
        )

    def add(self, data: bytes) -> str:
        run, data = checked(data)
        check_run_name(run)
        path = os.path.join(self._runs, run + PLAIN)
        if self._same(run, data):
            return run
        try:
            self._prepare()
            self._sweep()
            write_path(self._system, path, data, fresh=True)
        except FileExistsError as error:
            if not self._same(run, data):
                raise different(run, self.root) from error
        except OSError as error:
            raise failed("write", path, error, run=run) from error
        return run

    def remove(self, run: str) -> None:
        try:
            path = self.path(run)
        except RunNotFound:
            self._mailbox.remove(check_run_name(run))  # of a removal that was killed in between
            raise
        try:
            fd = self._system.open(path, os.O_RDONLY | CLOEXEC)
        except OSError as error:
            raise failed("remove", path, error, run=run) from error
        try:
            # Under the lease, so that no writer can begin between the question and the deletion.
            claim(self._system, fd, run, path, self._leases)
            self._system.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise failed("remove", path, error, run=run) from error
        finally:
            shut(self._system, fd)
        with contextlib.suppress(OSError):
            self._system.unlink(owner_path(self._leases, run))
        self._index.forget([os.path.basename(path)])
        self._mailbox.remove(run)

    def post(self, run: str, mail: Mail) -> None:
        self.path(run)
        self._mailbox.post(run, mail)

    def mail(self, run: str) -> list[Mail]:
        self.path(run)
        return self._mailbox.mail(run)

    # -- files and folders

    def _exists(self, path: str) -> bool:
        try:
            self._system.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise failed("look at", path, error) from error
        return True

    def _create_file(self, path: str) -> int:
        flags = _APPEND | os.O_CREAT | os.O_EXCL
        for attempt in (0, 1):
            try:
                fd = self._system.open(path, flags, 0o600)
                break
            except FileNotFoundError:
                if attempt:
                    raise
                self._prepare()
        else:  # pragma: no cover
            raise AssertionError("unreachable")
        try:
            if self.durability == "power":
                self._sync_folders()
        except OSError:
            shut(self._system, fd)
            with contextlib.suppress(OSError):
                self._system.unlink(path)
            raise
        return fd

    def _sync_folders(self) -> None:
        """Have the name of a trace outlive a power cut, and those of the folders that it is in."""
        if not self._safe:
            sync_folder(self._system, self.root)
            folder = self.root
            while folder != (folder := os.path.dirname(folder)):
                # Any of them may be new, made by a process that died then; not those that nobody could write to.
                try:
                    sync_folder(self._system, folder)
                except OSError as error:
                    if error.errno not in _NOT_OURS:
                        raise
            self._safe = True
        sync_folder(self._system, self._runs)

    def _folder(self, path: str) -> bool:
        try:
            self._system.mkdir(path, 0o700)
        except FileExistsError:
            return False
        return True

    def _prepare(self) -> None:
        """Make the folders. ``.gitignore`` goes into a folder that is ours alone, never over a user's files."""
        missing_parents: list[str] = []
        parent = os.path.dirname(self.root)
        while not self._exists(parent):
            missing_parents.append(parent)
            parent = os.path.dirname(parent)
        for folder in reversed(missing_parents):
            self._folder(folder)
            if self.durability == "power":
                sync_folder(self._system, os.path.dirname(folder))
        self._folder(self.root)
        ours = set(self._system.listdir(self.root)) <= {
            "runs",
            "leases",
            "mail",
            "index.sqlite",
            ".gitignore",
        }
        self._folder(self._leases)
        self._folder(self._runs)
        ignore = os.path.join(self.root if ours else self._runs, ".gitignore")
        with contextlib.suppress(FileExistsError):
            write_small(self._system, ignore, b"*\n", fresh=True)

    def _same(self, run: str, data: bytes) -> bool:
        """Whether the run is here with just these bytes; `StoreFailed` when with others."""
        for suffix in (PLAIN, PACKED):
            path = os.path.join(self._runs, run + suffix)
            try:
                there = read_path(self._system, path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise failed("read", path, error, run=run) from error
            if there != data or held(self._system, run, path, self._leases):
                raise different(run, self.root)
            return True
        return False

    def _sweep(self) -> None:
        """Delete temporary files that a killed process left."""
        old = time.time() - _STALE
        for name in self._system.listdir(self._runs):
            if name.startswith(".") and name.endswith(".tmp"):
                path = os.path.join(self._runs, name)
                with contextlib.suppress(FileNotFoundError):
                    if self._system.stat(path).st_mtime < old:
                        self._system.unlink(path)

    # -- listing

    def _files(self) -> list[tuple[str, str]]:
        """Run id and file name of every trace file, newest first."""
        try:
            names = self._system.listdir(self._runs)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise failed("list", self._runs, error) from error
        files: dict[str, str] = {}
        for name in names:
            if name.startswith("."):
                continue
            if name.endswith(PLAIN):
                files[name.removesuffix(PLAIN)] = name
            elif name.endswith(PACKED):
                files.setdefault(name.removesuffix(PACKED), name)
        return sorted(files.items(), key=lambda item: sort_key(item[0]), reverse=True)

    def _fitting(self, files: Sequence[tuple[str, str]], query: Query) -> Iterator[RunRow]:
        sought = TextSearch(query.text) if query.text is not None else None
        names = dict(files)
        # Tools and later tags may be anywhere in a large trace: only questions about them read all of it.
        for row in self._rows(files, deep=query.tool is not None or query.tag is not None):
            if fits(row, query) and (sought is None or self._has_text(names[row.run], sought)):
                yield row

    def _tagged(self, files: Sequence[tuple[str, str]], tag: str) -> list[RunRow]:
        near = [row for row in self._rows(files, deep=False) if fits(row, Query(tag=tag))]
        return near or [row for row in self._rows(files, deep=True) if fits(row, Query(tag=tag))]

    def _rows(self, files: Sequence[tuple[str, str]], *, deep: bool) -> Iterator[RunRow]:
        """One row a file, in order; files that vanish meanwhile are left out."""
        for start in range(0, len(files), _BATCH):
            yield from self._batch(files[start : start + _BATCH], deep=deep)

    def _batch(self, files: Sequence[tuple[str, str]], *, deep: bool) -> Iterable[RunRow]:
        versions: dict[str, Version] = {}
        troubles: dict[str, OSError] = {}
        for _, name in files:
            try:
                versions[name] = Version.of(self._system.stat(os.path.join(self._runs, name)))
            except OSError as error:
                troubles[name] = error
        known = self._index.get(versions)
        rows: list[RunRow] = []
        fresh: list[tuple[str, Version, int, RunRow]] = []
        for run, name in files:
            row = known.get(name)
            if row is None or (deep and row.partial):
                try:
                    if name in troubles:
                        raise troubles[name]
                    seen = time.time_ns()
                    row = self._scan(run, name, versions[name].size, deep=deep)
                    fresh.append((name, versions[name], seen, row))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    row = damaged(run, 0, f"cannot be read: {error.strerror}")
            if unfinished(row):
                row = live(row, held(self._system, run, os.path.join(self._runs, name), self._leases))
            rows.append(row)
        self._index.put(fresh)
        return rows

    def _scan(self, run: str, name: str, size: int, *, deep: bool) -> RunRow:
        path = os.path.join(self._runs, name)
        if name.endswith(PACKED):
            try:
                source = Source.of(read_path(self._system, path))
            except (FormatError, StoreFailed) as error:
                return damaged(run, size, error.message)
            return scan(source, run, deep=True)
        fd = self._system.open(path, os.O_RDONLY | CLOEXEC)
        try:
            return scan(Source(size, lambda start, count: self._span(fd, start, count)), run, deep=deep)
        finally:
            shut(self._system, fd)

    def _span(self, fd: int, start: int, count: int) -> bytes:
        self._system.seek(fd, start)
        parts: list[bytes] = []
        while count > 0 and (part := self._system.read(fd, count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _has_text(self, name: str, sought: TextSearch) -> bool:
        path = os.path.join(self._runs, name)
        try:
            if name.endswith(PACKED):
                return sought.found(Source.of(read_path(self._system, path)))
            size = self._system.stat(path).st_size
            fd = self._system.open(path, os.O_RDONLY | CLOEXEC)
        except (FormatError, StoreFailed, OSError):
            return False  # listed as damaged by a query that asks for no text
        try:
            return sought.found(Source(size, lambda start, count: self._span(fd, start, count)))
        except OSError:
            return False
        finally:
            shut(self._system, fd)
