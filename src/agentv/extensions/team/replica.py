"""Copies of the runs of a database as run directories, from which pages are read. They may be deleted at any time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec
from msgspec import Struct

from agentv.app.results.listing import totals_of_upload
from agentv.errors import StoreError
from agentv.extensions.team.database import Database
from agentv.extensions.team.labels import TeamLabels
from agentv.extensions.team.uploaded import copied_record
from agentv.extensions.team.uploads import silent_since
from agentv.store.files.directory import INDEX, JOURNAL, RUN, SUMMARY, results_directory, write_private
from agentv.store.files.encoding import decodable
from agentv.store.files.whole_file import as_store_error, make_private, open_private
from agentv.store.journal.answers import HEADER, row_checksum_line, summary_checksum_line
from agentv.store.labels import label_line, labels_directory, labels_file
from agentv.store.rows.reading import key_of_row
from agentv.user_code.files import store_error

_AT_ONCE = 4 << 20
"""Bytes of rows that are read from the database at once."""

_COPIED = "copied.json"
"""How far a copy is; it lies in its directory."""


class _Copied(Struct):
    revision: int = 0
    generation: int = 0
    size: int = 0
    journal: int = 0


class _Source(Struct, frozen=True):
    """A run in the database."""

    id: int
    project: str
    name: str
    revision: int
    generation: int
    size: int
    writing: int
    pushed: str


class Replica:
    """The copies in one directory. Used by one process at a time, which is locked out of it by another one.

    Args:
        database: where the runs are.
        directory: of the copies: `PROJECT/.agentv/results/RUN`.

    Raises:
        StoreError: the directory cannot be made, or another server uses it.
    """

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        self._directory = directory.absolute()
        self._copied: dict[Path, _Copied] = {}
        self._locks: dict[Path, int] = {}
        self._labels: dict[str, int] = {}
        self._files: dict[Path, str] = {}
        with as_store_error("use", self._directory):
            make_private(self._directory)
            self._lock = open_private(self._directory / ".lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StoreError(f"another server uses {self._directory}: choose another --data") from error

    def root(self, project: str) -> Path:
        """The directory of a project, as a checkout would be: it contains `.agentv/results`."""
        return self._directory / project

    def update(self) -> int:
        """Copy what changed, newest runs first; return how many runs did. Runs that cannot be written are passed over.

        Raises:
            StoreError: a file cannot be written.
            DatabaseUnavailableError: the database cannot be reached; the next update goes on.
        """
        columns = ", ".join(_Source.__struct_fields__)
        with self._database.reading() as transaction:
            projects = [name for (name,) in transaction.rows("SELECT name FROM projects")]
            rows = transaction.rows(f"SELECT {columns} FROM runs ORDER BY name DESC")  # noqa: S608  # names of columns
        found = (_Source(*row) for row in rows)
        sources = {results_directory(self.root(one.project)) / one.name: one for one in found}
        with as_store_error("write", self._directory):
            for project in projects:
                results_directory(self.root(project)).mkdir(parents=True, exist_ok=True)
                self._copy_labels(project)
            changed, problems = 0, []
            for path, source in sources.items():
                try:
                    changed += self._copy(path, source)
                except OSError as error:
                    problems.append(store_error("write", path, error))
            changed += self._remove_others(projects, sources.keys())
        if problems:
            raise problems[0]
        return changed

    def _copy_labels(self, project: str) -> None:
        """Write the label files of a project again where labels were added."""
        with self._database.reading() as transaction:
            query = "SELECT COALESCE(MAX(number), 0) FROM labels WHERE project = :project"
            ((last,),) = transaction.rows(query, project=project)
        directory = labels_directory(self.root(project))
        if last == self._labels.get(project, 0):
            return
        by_file: dict[Path, list[bytes]] = {}
        for label in TeamLabels(self._database, project, "").read_all():
            by_file.setdefault(labels_file(self.root(project), label.suite), []).append(label_line(label) + b"\n")
        directory.mkdir(parents=True, exist_ok=True)
        for path, lines in by_file.items():
            write_private(path, b"".join(lines))
        self._labels[project] = last

    def close(self) -> None:
        """Let another process use the directory."""
        for run in list(self._locks):
            self._unlock_run(run)
        os.close(self._lock)

    def _lock_run(self, run: Path) -> None:
        """Lock the journal of a run, as a process does that writes it: every reader takes the run as going on."""
        if run not in self._locks:
            run.mkdir(mode=0o700, exist_ok=True)
            descriptor = open_private(run / JOURNAL, os.O_RDWR | os.O_CREAT)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._locks[run] = descriptor

    def _unlock_run(self, run: Path) -> None:
        descriptor = self._locks.pop(run, None)
        if descriptor is not None:
            os.close(descriptor)

    def _copy(self, path: Path, source: _Source) -> bool:
        """Bring one copy up to date; return whether it was not."""
        copied = self._copied.get(path)
        if copied is None:
            try:
                copied = msgspec.json.decode((path / _COPIED).read_bytes(), type=decodable(_Copied))
            except (OSError, msgspec.DecodeError):
                copied = _Copied()
        changed = copied.revision != source.revision
        if changed:
            found = self._copy_changed(path, source, copied)
            if found is None:
                return False
            copied = found
        self._copied[path] = copied
        goes_on = bool(source.writing) and source.pushed > silent_since()
        change_lock = self._lock_run if goes_on else self._unlock_run
        change_lock(path)
        return changed

    def _copy_changed(self, path: Path, source: _Source, before: _Copied) -> _Copied | None:
        """Copy a run that has changed; None: it was deleted just now."""
        with self._database.reading() as transaction:
            query = "SELECT record, given, replaced, summary FROM runs WHERE id = :id"
            documents = transaction.rows(query, id=source.id)
            files = transaction.rows("SELECT path, sha256 FROM files WHERE run = :id", id=source.id)
        if not documents:
            return None
        ((record, given, replaced, summary),) = documents
        self._lock_run(path)
        (path / SUMMARY).unlink(missing_ok=True)  # it is of other rows
        size, journal = self._copy_rows(path, source, before)
        self._copy_files(path, source.project, files)
        write_private(path / RUN, copied_record(record, given, replaced))
        if summary is not None and not source.writing:
            journal += _write_summary(path, summary)
        copied = _Copied(source.revision, source.generation, size, journal)
        write_private(path / _COPIED, msgspec.json.encode(copied))
        return copied

    def _copy_rows(self, path: Path, source: _Source, before: _Copied) -> tuple[int, int]:
        """Write the rows that a copy lacks, all of them where rows were dropped; the bytes of rows, and of checksums.

        The journal of a copy has the checksums of its rows alone, which readers hold them against.
        """
        if before.generation != source.generation or not (path / INDEX).exists() or not (path / JOURNAL).exists():
            before = _Copied()
        with _opened(path / INDEX) as rows, _opened(path / JOURNAL) as checksums:
            for file, size in ((rows, before.size), (checksums, before.journal)):
                if file.seek(0, os.SEEK_END) != size:  # else readers would take all rows for new ones
                    file.truncate(size)  # what a process wrote that was killed then
                file.seek(size)
            if not before.journal:
                checksums.write(HEADER)
            for lines in self._rows(source, before.size):
                checksums.write(b"".join(map(_checksum, lines)))
                rows.write(b"".join(lines))
            return rows.tell(), checksums.tell()

    def _rows(self, source: _Source, done: int) -> Iterator[list[bytes]]:
        """The rows from a place on, in their order; none any more once rows were dropped meanwhile."""
        query = (
            "SELECT rows.line FROM rows JOIN runs ON runs.id = rows.run WHERE rows.run = :run "
            "AND runs.generation = :generation AND rows.start >= :start AND rows.start < :stop ORDER BY rows.start"
        )
        for start in range(done, source.size, _AT_ONCE):
            stop = min(start + _AT_ONCE, source.size)
            with self._database.reading() as transaction:
                found = transaction.rows(query, run=source.id, generation=source.generation, start=start, stop=stop)
            yield [line for (line,) in found]

    def _copy_files(self, path: Path, project: str, files: list[tuple[str, str]]) -> None:
        for name, digest in files:
            target = path / PurePosixPath(name)
            if target.is_file() and self._files.get(target) == digest:
                continue
            query = "SELECT content FROM contents WHERE project = :project AND sha256 = :sha256"
            with self._database.reading() as transaction:
                found = transaction.rows(query, project=project, sha256=digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_private(target, found[0][0] if found else b"")
            self._files[target] = digest

    def _remove_others(self, projects: list[str], known: Collection[Path]) -> int:
        """Remove copies of runs that were deleted; how many."""
        removed = 0
        for project in projects:
            for path in results_directory(self.root(project)).iterdir():
                if path not in known and path.is_dir():
                    self._unlock_run(path)
                    self._copied.pop(path, None)
                    shutil.rmtree(path)
                    removed += 1
        return removed


def _opened(path: Path) -> BinaryIO:
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    return open(descriptor, "r+b")  # noqa: PTH123  # a descriptor has no path; who asks closes it


def _checksum(line: bytes) -> bytes:
    row = line.rstrip(b"\n")
    return b"" if line.isspace() else row_checksum_line(key_of_row(row) or "", row)


def _write_summary(path: Path, pushed: bytes) -> int:
    """Write the totals of the rows, after their checksum; return how many bytes that added to the journal.

    The pushed totals may disagree with the rows.
    """
    try:
        content = totals_of_upload(path, pushed)
    except Exception:  # noqa: BLE001  # rows may hold anything: opening the run shows the error, and other runs are copied
        return 0
    line = summary_checksum_line(content, (path / INDEX).stat().st_size)
    with (path / JOURNAL).open("ab") as journal:
        journal.write(line)
    write_private(path / SUMMARY, content)
    return len(line)
