"""The directory of a run, which is locked while a process writes to it (SPEC section 13)."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct, field

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.run.trial import SCHEMA_VERSION
from agentv.model.values.values import Json, JsonObject, lazy_pattern
from agentv.store.files.encoding import to_document
from agentv.store.files.whole_file import DIRECTORY_MODE, as_store_error, make_private, new_private, open_private

RUN, INDEX, JOURNAL, SUMMARY = "run.json", "index.jsonl", "journal.jsonl", "summary.json"
HISTORY = "history.jsonl"
"""File with rows that were superseded."""

ARTIFACTS = "artifacts"
"""Directory with the traces and changes of agents: one subdirectory per trial."""

KEPT_WORKSPACES = "workspaces"
"""Directory with the workspaces that are kept."""

REJECTED = "rejected.jsonl"
"""File with rows that were changed after they had been written."""

VIEWED = "view.sqlite"
"""The index of cases that `agentv view` builds from the rows."""

_JOURNAL_BEGINS = b'{"format":"agentv-journal",'
_ID = lazy_pattern(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
LOCK_S = 2.0
"""Seconds to wait for a run directory that is in use."""

_POLL_S = 0.02
_IDS_TRIED = 100


class Closing:
    """A context manager that closes itself."""

    def close(self) -> None:
        """Release all resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DamagedRecordError(StoreError):
    """Raised for a `run.json` or `summary.json` that is damaged or was not written by agentv."""


class PreviousRun(Struct, frozen=True):
    """Earlier processes of a run.

    Attributes:
        run_id: id of the run.
        settings: settings in `run.json`; empty for a new run.
        processes: their number.
        duration_ms: their total duration.
        started: start of the first one, from `run.json`; None for a new run.
        agent_versions: name of a target → versions of its agents.
        labels_sha256: hash of the labels that decide its gates; None without gates.
    """

    run_id: str = ""
    settings: JsonObject = field(default_factory=dict)
    processes: int = 0
    duration_ms: float = 0.0
    started: str | None = None
    agent_versions: JsonObject = field(default_factory=dict)
    labels_sha256: str | None = None


def results_directory(root: Path) -> Path:
    """Return the directory of all runs of a repository, which need not exist."""
    return root / ".agentv" / "results"


def new_run_id(now: datetime) -> str:
    """Return an id such as `20261121T140322Z-7f3a`: the time in UTC and four random hex digits."""
    return f"{now:%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def holds_run(path: Path) -> bool:
    """Whether a run was started in this directory."""
    return any((path / name).exists() and (path / name).stat().st_size for name in (RUN, INDEX, JOURNAL))


def missing_record_message(run: Path) -> str:
    """Return the error message for a run whose `run.json` is missing."""
    return f"the run {run.name} has no {RUN} any more: it was removed, so the run's settings are lost"


def read_document(path: Path) -> dict[str, Json]:
    """Read `run.json` or `summary.json`.

    Raises:
        StoreError: the file is missing, or is not a JSON object.
    """
    with as_store_error("read", path):
        return document_in(path, path.read_bytes())


def document_in(path: Path, content: bytes) -> dict[str, Json]:
    """Return the object in the content of a `run.json` or `summary.json`.

    Raises:
        DamagedRecordError: the content is not a JSON object.
    """
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedRecordError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise DamagedRecordError(f"cannot read {path}: it contains no JSON object")
    return found


def is_being_written(path: Path) -> bool:
    """Whether a process holds the lock of a run directory.

    Raises:
        StoreError: the lock cannot be checked.
    """
    if not (path / JOURNAL).exists():
        return False
    with as_store_error("lock", path / JOURNAL), (path / JOURNAL).open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class RunDirectory(Closing, Struct):
    """The directory of one run, locked until `close`. A context manager.

    Attributes:
        path: absolute path.
        run_id: id of the run.
        lock: descriptor of the locked file; -1 after `close`.
        redactor: removes secrets from everything that is written.
        repaired: messages about damage that was repaired when it was opened.
    """

    path: Path
    run_id: str
    lock: int
    redactor: Redactor
    repaired: tuple[str, ...] = ()

    @classmethod
    def create(
        cls, root: Path, now: datetime, *, out: Path | None = None, redactor: Redactor | None = None
    ) -> RunDirectory:
        """Create the directory of a new run: `out`, or else one named after the run's id in the results of `root`.

        Its `run.json` has `schema_version` and `run_id` from the start.

        Raises:
            StoreError: it cannot be created, or already contains a run.
        """
        if out is None:
            path = _create_in(results_directory(root), now)
            run_id = path.name
        else:
            path, run_id = out.absolute(), new_run_id(now)
            with as_store_error("make", path):
                make_private(path)
                if not any(path.iterdir()):  # do not hide the user's own files from git
                    ignore(path)
        with _closing_on_error(_locked(path)) as lock:
            if holds_run(path):
                raise StoreError(f"{path} already contains a run: resume it with --resume, or use another --out")
            made = cls(path, run_id, lock, redactor or Redactor())
            made.write(RUN, {"schema_version": SCHEMA_VERSION, "run_id": run_id})
            return made

    @classmethod
    def open(cls, path: Path, *, redactor: Redactor | None = None) -> RunDirectory:
        """Open the directory of an existing run, to resume it.

        Raises:
            StoreError: it is not a run, another process is writing to it, or a newer agentv wrote it.
        """
        path = path.absolute()
        if not (path / RUN).is_file():
            what = f"{path} is not a run: it has no {RUN}"
            raise StoreError(missing_record_message(path) if holds_run(path) else what)
        with _closing_on_error(_locked(path)) as lock:
            _sweep(path)
            try:
                return cls(path, _run_id(read_document(path / RUN), path), lock, redactor or Redactor())
            except DamagedRecordError as error:
                if not has_answers(path):
                    raise
                return cls._without_record(path, lock, redactor or Redactor(), error)

    @classmethod
    def _without_record(cls, path: Path, lock: int, redactor: Redactor, error: StoreError) -> RunDirectory:
        """Open the directory of a run with a damaged `run.json`, to save its answers; the settings are lost."""
        aside = path / f"{RUN}.damaged"
        with as_store_error("mend", path / RUN):
            (path / RUN).replace(aside)
        run_id = path.name if _ID.fullmatch(path.name) else new_run_id(datetime.now(UTC))
        made = cls(path, run_id, lock, redactor)
        made.write(RUN, {"schema_version": SCHEMA_VERSION, "run_id": run_id})
        made.repaired = (
            f"{error}: moved it to {aside.name}; this command's flags decide what runs, and the answers are kept",
        )
        return made

    def write(self, name: str, content: JsonObject) -> None:
        """Write `run.json` or `summary.json` atomically. Keys of the old file that `content` lacks are kept.

        Raises:
            StoreError: the file cannot be written.
        """
        path = self.path / name
        old = read_document(path) if path.exists() else {}
        self.replace(name, self.document({**old, **content}))

    def replace(self, name: str, document: bytes) -> None:
        """Replace a file atomically, without keeping anything of the old one.

        Raises:
            StoreError: the file cannot be written.
        """
        path = self.path / name
        with as_store_error("write", path):
            write_private(path, document)

    def document(self, content: JsonObject) -> bytes:
        """Return the content of a `run.json` or `summary.json`, without secrets."""
        return to_document({key: self.redactor.redact_json(value) for key, value in content.items()})

    def close(self) -> None:
        """Release the lock."""
        if self.lock >= 0:
            fcntl.flock(self.lock, fcntl.LOCK_UN)  # a fork of user code may still have the file open
            os.close(self.lock)
            self.lock = -1


def _sweep(path: Path) -> None:
    """Remove temporary files of a process that was killed while replacing a file. The caller holds the lock."""
    from agentv.user_code.files import sweep

    for name in (RUN, INDEX, JOURNAL, SUMMARY, HISTORY):
        with suppress(OSError):
            (path / f".{name}.new").unlink()
    sweep(path, rf"\.{re.escape(VIEWED)}\.(\d+)\.new")


@contextmanager
def _closing_on_error(descriptor: int) -> Iterator[int]:
    with ExitStack() as closing:
        closing.callback(os.close, descriptor)
        yield descriptor
        closing.pop_all()


def _create_in(results: Path, now: datetime) -> Path:
    with as_store_error("make", results, "; choose another directory with --out DIRECTORY"):
        make_private(results)
        ignore(results)
        for _ in range(_IDS_TRIED):
            path = results / new_run_id(now)
            try:
                path.mkdir(mode=DIRECTORY_MODE)
            except FileExistsError:  # another run started in the same second and drew the same digits
                continue
            return path
    raise StoreError(f"cannot create a run directory in {results}: every id is taken")


def ignore(directory: Path) -> None:
    """Make git ignore the content of a directory, unless it has a `.gitignore`."""
    file = directory / ".gitignore"
    if not file.exists():
        file.write_text("*\n", encoding="utf-8")


def _locked(path: Path) -> int:
    """Lock a run directory, and return the descriptor that holds the lock.

    The lock is on the journal, because every run has one and it is never replaced.
    """
    with as_store_error("open", path / JOURNAL):
        descriptor = open_private(path / JOURNAL, os.O_RDWR | os.O_CREAT)
    deadline = time.monotonic() + LOCK_S  # a run that was just killed releases its lock a moment later
    with _closing_on_error(descriptor), as_store_error("lock", path / JOURNAL):
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreError(f"{path} is in use: another process is writing a run there") from None
                time.sleep(_POLL_S)
            else:
                return descriptor


def has_answers(path: Path) -> bool:
    """Whether a run directory has a journal with a header."""
    try:
        with (path / JOURNAL).open("rb") as file:
            return file.read(len(_JOURNAL_BEGINS)) == _JOURNAL_BEGINS
    except OSError:
        return False


def _run_id(record: JsonObject, path: Path) -> str:
    version, run_id = record.get("schema_version"), record.get("run_id")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        known = f"(format {version}; this one reads up to {SCHEMA_VERSION})"
        raise StoreError(f"{path / RUN} was written by a newer agentv {known}")
    if not isinstance(run_id, str):
        raise DamagedRecordError(f"{path / RUN} was not written by agentv: it has no run_id")
    return run_id


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, readable only by its owner.

    Raises:
        OSError: the file cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    with open(new_private(new), "wb") as file:  # noqa: PTH123  # a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
