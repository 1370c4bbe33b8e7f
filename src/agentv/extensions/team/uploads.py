"""Storage of uploaded runs. Batches of rows may arrive twice, truncated, or out of order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import randbits
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from agentv.extensions.team.database import Database, Transaction, insert, now, time_text
from agentv.extensions.team.database import record as audit
from agentv.extensions.team.uploaded import (
    MissingContents,
    OtherTokenError,
    Received,
    Replaced,
    RowBatch,
    RunName,
    UploadConflictError,
    UploadRefusedError,
    UploadState,
    check_files,
    checked_record,
    checked_rows,
    name_in,
    object_in,
)

SILENT_S = 120
"""Seconds without an upload after which a run no longer counts as in progress."""


_CHUNK = 4 << 20
"""Bytes of rows read at a time."""


class Uploads(Struct, frozen=True):
    """The runs in a database. A run may be changed by the sender that began it, and by admins.

    For other senders, every change of a run raises `OtherTokenError`.
    """

    _database: Database

    def changes(self) -> int:
        """Return the number of changes of any kind made to the database."""
        with self._database.reading() as transaction:
            ((found,),) = transaction.rows("SELECT number FROM changes")
        return int(found)

    def state(self, name: RunName) -> UploadState:
        """Return the server's state of a run; the default state if it has nothing."""
        with self._database.reading() as transaction:
            run = _find_run(transaction, name)
            if run is None:
                return UploadState()
            digest = sha256()  # of all rows, read in parts
            query = "SELECT line FROM rows WHERE run = :run AND start >= :start AND start < :stop ORDER BY start"
            for start in range(0, run.size, _CHUNK):
                for (line,) in transaction.rows(query, run=run.id, start=start, stop=start + _CHUNK):
                    digest.update(line)
        return UploadState(run.generation, run.size, digest.hexdigest(), bool(run.writing))

    def put_record(self, name: RunName, record: bytes, *, writing: bool) -> bool:
        """Store a run's `run.json`, creating the run if needed, and return whether anything changed.

        Raises:
            UploadRefusedError: the record is invalid, or belongs to another run.
        """
        began = checked_record(name.run, record)
        with self._changing(name) as (transaction, run):
            if run is None:
                begun = _StoredRun(randbits(62), int(writing), record, begun_by=name.actor)
                insert(transaction, "runs", project=name.project, name=name.run, pushed=now(), **asdict(begun))
                audit(transaction, name.actor, "run begun", name.project, name.run)
                return True
            started = object_in(run.record, "run.json").get("started")
            if started != began:
                hint = "delete one of them on the server, or push to another project"
                raise UploadRefusedError(f"the project has another run {name.run}, which started at {started}: {hint}")
            changed = run.record != record or bool(run.writing) != writing
            if changed:
                # a new name in the pushed run.json replaces the name given on the server
                given = run.given if name_in(record) == name_in(run.record) else None
                _change(transaction, name, run, record=record, writing=int(writing), given=given)
                audit(transaction, name.actor, "run.json updated", name.project, name.run)
            elif writing:
                _check_owner(name, run)
                transaction.run("UPDATE runs SET pushed = :now WHERE id = :id", now=now(), id=run.id)
            return changed

    def add_rows(self, name: RunName, batch: RowBatch) -> Received:
        """Store rows.

        Raises:
            UploadRefusedError: the rows are invalid, or too many.
            UploadConflictError: the rows do not start where the server's end, or the run was not begun.
        """
        rows = checked_rows(batch)
        with self._changing_begun(name) as (transaction, run):
            if batch.generation != run.generation:
                raise UploadConflictError("another upload has replaced rows of this run meanwhile")
            if batch.start != (0 if batch.replace else run.size):
                raise UploadConflictError(f"the rows begin at byte {batch.start}, and the server has {run.size} bytes")
            generation, size, replaced = run.generation, batch.start + len(batch.lines), run.replaced
            if batch.replace and run.size:
                dropped = transaction.run("DELETE FROM rows WHERE run = :run", run=run.id)
                before = 0 if replaced is None else msgspec.json.decode(replaced, type=Replaced).rows
                replaced = msgspec.json.encode(Replaced(before + dropped, now(), name.actor, generation))
                generation += 1
            if not rows and generation == run.generation:
                return Received(generation, size, changed=False)
            transaction.run_many(
                "INSERT INTO rows (run, start, line) VALUES (:run, :start, :line)",
                ({"run": run.id, "start": start, "line": line} for start, line in rows),
            )
            _change(transaction, name, run, generation=generation, size=size, replaced=replaced)
            what = "rows added" if generation == run.generation else "rows replaced"
            audit(transaction, name.actor, what, name.project, f"{name.run}: {len(rows)} from byte {batch.start}")
            return Received(generation, size, changed=True)

    def put_summary(self, name: RunName, summary: bytes | None, *, writing: bool) -> bool:
        """Store a run's `summary.json`, or None if it has none, and return whether anything changed.

        Raises:
            UploadRefusedError: the summary is invalid, or belongs to another run.
            UploadConflictError: the run was not begun.
        """
        if summary is not None and object_in(summary, "summary.json").get("run_id") != name.run:
            raise UploadRefusedError(f"the summary is not of the run {name.run}")
        with self._changing_begun(name) as (transaction, run):
            changed = run.summary != summary or bool(run.writing) != writing
            if changed:
                _change(transaction, name, run, summary=summary, writing=int(writing))
                audit(transaction, name.actor, "summary.json updated", name.project, name.run)
            return changed

    def put_files(self, name: RunName, files: Mapping[str, str]) -> MissingContents:
        """Store the list of a run's artifacts: path below its directory → SHA-256.

        Returns:
            The contents that the project lacks; until they have been uploaded, nothing is stored.

        Raises:
            UploadRefusedError: a path or a hash is invalid.
            UploadConflictError: the run was not begun.
        """
        with self._changing_begun(name) as (transaction, run):
            known = transaction.rows("SELECT path, sha256 FROM files WHERE run = :run", run=run.id)
            before: dict[str, str] = dict(known)
            check_files(files, before)
            new = {path: digest for path, digest in files.items() if before.get(path) != digest}
            query = "SELECT 1 FROM contents WHERE project = :project AND sha256 = :sha256"
            wanted = dict.fromkeys(new.values())
            missing = [one for one in wanted if not transaction.rows(query, project=name.project, sha256=one)]
            if missing or not new:
                return MissingContents(missing)
            transaction.run_many(
                "INSERT INTO files (run, path, sha256) VALUES (:run, :path, :sha256) "
                "ON CONFLICT (run, path) DO UPDATE SET sha256 = excluded.sha256",
                ({"run": run.id, "path": path, "sha256": digest} for path, digest in new.items()),
            )
            _change(transaction, name, run)
            audit(transaction, name.actor, "artifacts added", name.project, f"{name.run}: {len(new)} files")
        return MissingContents([], changed=True)

    def put_content(self, project: str, digest: str, content: bytes) -> None:
        """Store the content of an artifact.

        Raises:
            UploadRefusedError: the content has another hash.
        """
        if sha256(content).hexdigest() != digest:
            raise UploadRefusedError("the content has another SHA-256 than the address says: it was cut or changed")
        with self._database.transaction() as transaction:
            insert(transaction, "contents", or_nothing=True, project=project, sha256=digest, content=content)

    def give_name(self, name: RunName, given: str) -> bool:
        """Rename a run ("" removes its name), and return whether it exists. Its `run.json` stays as pushed."""
        with self._changing(name) as (transaction, run):
            if run is None:
                return False
            before = name_in(run.record) if run.given is None else run.given
            if before != given:
                _change(transaction, name, run, given=given)
                audit(transaction, name.actor, "run named", name.project, f"{name.run}: {given}")
        return True

    def delete(self, name: RunName) -> bool:
        """Delete a run and contents of its artifacts not used by other runs, and return whether the run existed."""
        with self._changing(name) as (transaction, run):
            if run is None:
                return False
            statement = (
                "DELETE FROM contents WHERE project = :project "
                "AND sha256 IN (SELECT sha256 FROM files WHERE run = :id) AND sha256 NOT IN "
                "(SELECT files.sha256 FROM files JOIN runs ON runs.id = files.run "
                "WHERE runs.project = :project AND runs.id <> :id)"
            )
            transaction.run(statement, project=name.project, id=run.id)
            transaction.run("DELETE FROM runs WHERE id = :id", id=run.id)
            audit(transaction, name.actor, "run deleted", name.project, name.run)
        return True

    @contextmanager
    def _changing(self, name: RunName) -> Iterator[tuple[Transaction, _StoredRun | None]]:
        """Open a transaction that changes one run; other uploads of the run wait for it."""
        with self._database.transaction() as transaction:
            transaction.lock(f"run {name.project}/{name.run}")
            yield transaction, _find_run(transaction, name)

    @contextmanager
    def _changing_begun(self, name: RunName) -> Iterator[tuple[Transaction, _StoredRun]]:
        with self._changing(name) as (transaction, run):
            if run is None:
                raise UploadConflictError(f"the run {name.run} was not begun: upload its run.json first")
            yield transaction, run


class _StoredRun(Struct, frozen=True):
    id: int
    writing: int
    record: bytes
    begun_by: str
    revision: int = 1
    generation: int = 1
    size: int = 0
    summary: bytes | None = None
    given: str | None = None
    replaced: bytes | None = None


def _find_run(transaction: Transaction, name: RunName) -> _StoredRun | None:
    query = f"SELECT {', '.join(_StoredRun.__struct_fields__)} FROM runs WHERE project = :project AND name = :run"  # noqa: S608  # names of columns
    found = transaction.rows(query, project=name.project, run=name.run)
    return _StoredRun(*found[0]) if found else None


def _check_owner(name: RunName, run: _StoredRun) -> None:
    if not name.is_admin and name.actor != run.begun_by:
        began = f"the run {name.run} was begun by {run.begun_by}"
        raise OtherTokenError(f"{began}: push it with that token, or with one that has the scope 'admin'")


def _change(transaction: Transaction, name: RunName, run: _StoredRun, **columns: Any) -> None:
    """Change columns of a run, increasing its revision so that every server copies it again.

    Raises:
        OtherTokenError: the sender may not change the run; the transaction is rolled back.
    """
    _check_owner(name, run)
    changed = {**columns, "revision": run.revision + 1, "pushed": now()}
    settings = ", ".join(f"{column} = :{column}" for column in changed)
    transaction.run(f"UPDATE runs SET {settings} WHERE id = :id", id=run.id, **changed)  # noqa: S608  # names of columns


def silent_since() -> str:
    """Return the time since which a run in progress must have been uploaded."""
    return time_text(datetime.now(UTC) - timedelta(seconds=SILENT_S))
