"""Copies of a database's runs as run directories, which the pages read. They may be deleted at any time."""

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

_CHUNK = 4 << 20
"""Bytes of rows read from the database at a time."""

_COPIED = "copied.json"
"""File in a copy with the state that was copied."""


class _Copied(Struct):
    id: int = 0
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
    """Keeps the copies in one directory up to date. A lock makes sure that only one process uses it.

    Args:
        database: database with the runs.
        directory: directory of the copies, which are in `PROJECT/.agentv/results/RUN`.

    Raises:
        StoreError: the directory cannot be created, or another server uses it.
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
        """Return the directory of a project, which contains `.agentv/results` like a checkout."""
        return self._directory / project

    def update(self) -> int:
        """Copy changed runs, newest first, and return their number. Runs that cannot be written do not stop the others.

        Raises:
            StoreError: a file cannot be written.
            DatabaseUnavailableError: the database cannot be reached; the next update continues.
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
            changed += self._remove_deleted(projects, sources.keys())
        if problems:
            raise problems[0]
        return changed

    def _copy_labels(self, project: str) -> None:
        """Rewrite the label files of a project if labels were added."""
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
        """Release the locks, so that another process can use the directory."""
        for run in list(self._locks):
            self._unlock_run(run)
        os.close(self._lock)

    def _lock_run(self, run: Path) -> None:
        """Lock the journal of a run like a process that writes it, so that readers consider the run in progress."""
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
        """Bring one copy up to date, and return whether it was outdated."""
        copied = self._copied.get(path)
        if copied is None:
            try:
                copied = msgspec.json.decode((path / _COPIED).read_bytes(), type=decodable(_Copied))
            except (OSError, msgspec.DecodeError):
                copied = _Copied()
        if copied.id != source.id and path.exists():  # of a run that was deleted and pushed again since
            self._remove(path)
            copied = _Copied()
        changed = copied.revision != source.revision
        if changed:
            found = self._copy_changed(path, source, copied)
            if found is None:
                return False
            copied = found
        self._copied[path] = copied
        in_progress = bool(source.writing) and source.pushed > silent_since()
        change_lock = self._lock_run if in_progress else self._unlock_run
        change_lock(path)
        return changed

    def _copy_changed(self, path: Path, source: _Source, before: _Copied) -> _Copied | None:
        """Copy a run that has changed, and return the copied state, or None if the run was deleted meanwhile."""
        with self._database.reading() as transaction:
            query = "SELECT record, given, replaced, summary FROM runs WHERE id = :id"
            documents = transaction.rows(query, id=source.id)
            files = transaction.rows("SELECT path, sha256 FROM files WHERE run = :id", id=source.id)
        if not documents:
            return None
        ((record, given, replaced, summary),) = documents
        self._lock_run(path)
        (path / SUMMARY).unlink(missing_ok=True)  # it belongs to the earlier rows
        size, journal = self._copy_rows(path, source, before)
        self._copy_files(path, source.project, files)
        write_private(path / RUN, copied_record(record, given, replaced))
        if summary is not None and not source.writing:
            journal += _write_summary(path, summary)
        copied = _Copied(source.id, source.revision, source.generation, size, journal)
        write_private(path / _COPIED, msgspec.json.encode(copied))
        return copied

    def _copy_rows(self, path: Path, source: _Source, before: _Copied) -> tuple[int, int]:
        """Write the rows that a copy lacks, or all if rows were dropped; return the bytes of rows and of checksums.

        The journal of a copy contains only the checksums by which readers verify its rows.
        """
        if before.generation != source.generation or not (path / INDEX).exists() or not (path / JOURNAL).exists():
            before = _Copied()
        with _opened(path / INDEX) as rows, _opened(path / JOURNAL) as checksums:
            for file, size in ((rows, before.size), (checksums, before.journal)):
                if file.seek(0, os.SEEK_END) != size:  # truncating needlessly would make readers read all rows again
                    file.truncate(size)  # drop what a killed process wrote
                file.seek(size)
            if not before.journal:
                checksums.write(HEADER)
            for lines in self._rows(source, before.size):
                checksums.write(b"".join(map(_checksum, lines)))
                rows.write(b"".join(lines))
            return rows.tell(), checksums.tell()

    def _rows(self, source: _Source, done: int) -> Iterator[list[bytes]]:
        """Yield the rows from byte `done` on, in order; empty lists if rows are dropped meanwhile."""
        query = (
            "SELECT rows.line FROM rows JOIN runs ON runs.id = rows.run WHERE rows.run = :run "
            "AND runs.generation = :generation AND rows.start >= :start AND rows.start < :stop ORDER BY rows.start"
        )
        for start in range(done, source.size, _CHUNK):
            stop = min(start + _CHUNK, source.size)
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

    def _remove_deleted(self, projects: list[str], known: Collection[Path]) -> int:
        """Remove copies of deleted runs, and return their number."""
        removed = 0
        for project in projects:
            for path in results_directory(self.root(project)).iterdir():
                if path not in known and path.is_dir():
                    self._remove(path)
                    removed += 1
        return removed

    def _remove(self, path: Path) -> None:
        self._unlock_run(path)
        self._copied.pop(path, None)
        shutil.rmtree(path)


def _opened(path: Path) -> BinaryIO:
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    return open(descriptor, "r+b")  # noqa: PTH123  # a descriptor has no path; the caller closes it


def _checksum(line: bytes) -> bytes:
    row = line.rstrip(b"\n")
    return b"" if line.isspace() else row_checksum_line(key_of_row(row) or "", row)


def _write_summary(path: Path, pushed: bytes) -> int:
    """Write the totals of the rows and their checksum, and return the bytes added to the journal.

    Totals are computed from the rows, since the pushed ones may disagree with them.
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
