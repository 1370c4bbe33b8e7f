"""The directory of a run: made once, locked while something writes to it (SPEC section 13)."""

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
from agentv.store.files.whole_file import DIRECTORY_MODE, make_private, new_private, open_private, refusals

RUN, INDEX, JOURNAL, SUMMARY = "run.json", "index.jsonl", "journal.jsonl", "summary.json"
HISTORY = "history.jsonl"
"""Rows that were superseded."""

ARTIFACTS = "artifacts"
"""The directory with what agents did: one directory for each trial."""

KEPT_WORKSPACES = "workspaces"
"""The directory with the workspaces that are kept."""

REJECTED = "rejected.jsonl"
"""Rows that were changed after they had been written."""

VIEWED = "view.sqlite"
"""The index of cases that `agentv view` builds from the rows."""

_JOURNAL_BEGINS = b'{"format":"agentv-journal",'
_ID = lazy_pattern(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
LOCK_S = 2.0
"""Seconds for which a run directory that is in use is waited for."""

_POLL_S = 0.02
_IDS_TRIED = 100


class Closing:
    """A context manager that closes itself."""

    def close(self) -> None:
        """Let go of what is open."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DamagedRecordError(StoreError):
    """A `run.json` or `summary.json` that is not what agentv wrote."""


class PreviousRun(Struct, frozen=True):
    """Earlier processes of a run.

    Attributes:
        run_id: of the run.
        settings: as in `run.json`; empty for a new run.
        processes: their number.
        duration_ms: their total duration.
        started: start of the first one, from `run.json`; None for a new run.
        agent_versions: name of a target → versions of its agents.
        labels_sha256: of the labels that decide its gates; None: it had no gates.
    """

    run_id: str = ""
    settings: JsonObject = field(default_factory=dict)
    processes: int = 0
    duration_ms: float = 0.0
    started: str | None = None
    agent_versions: JsonObject = field(default_factory=dict)
    labels_sha256: str | None = None


def results_directory(root: Path) -> Path:
    """The directory of all runs of a repository, which need not exist."""
    return root / ".agentv" / "results"


def new_run_id(now: datetime) -> str:
    """An id such as `20261121T140322Z-7f3a`: the time, in UTC, and four random digits."""
    return f"{now:%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def holds_run(path: Path) -> bool:
    """Return true if a run was begun in this directory."""
    return any((path / name).exists() and (path / name).stat().st_size for name in (RUN, INDEX, JOURNAL))


def without_record(run: Path) -> str:
    """The message for a run whose `run.json` is missing."""
    return f"the run {run.name} has no {RUN} any more: it was removed, so the run's settings are lost"


def read_document(path: Path) -> dict[str, Json]:
    """`run.json` or `summary.json`.

    Raises:
        StoreError: the file is missing, or is not a JSON object.
    """
    with refusals("read", path):
        return document_in(path, path.read_bytes())


def document_in(path: Path, content: bytes) -> dict[str, Json]:
    """The object in the bytes of a `run.json` or `summary.json`.

    Raises:
        DamagedRecordError: they hold none.
    """
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedRecordError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise DamagedRecordError(f"cannot read {path}: it contains no JSON object")
    return found


def is_being_written(path: Path) -> bool:
    """Return true if a process holds the lock of a run directory.

    Raises:
        StoreError: the system refuses.
    """
    if not (path / JOURNAL).exists():
        return False
    with refusals("lock", path / JOURNAL), (path / JOURNAL).open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class RunDirectory(Closing, Struct):
    """The directory of one run, locked until `close`. A context manager.

    Attributes:
        path: absolute.
        run_id: of the run.
        lock: descriptor of the file that is locked; -1 after `close`.
        redactor: takes secrets out of all that is written here.
        repaired: what was found damaged in it when it was opened.
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
        """A new run's directory: `out`, else one named by the new run's id under `root`'s results.

        Its `run.json` holds `schema_version` and `run_id` from the start.

        Raises:
            StoreError: it cannot be made, or already holds a run.
        """
        if out is None:
            path = _make_in(results_directory(root), now)
            run_id = path.name
        else:
            path, run_id = out.absolute(), new_run_id(now)
            with refusals("make", path):
                make_private(path)
                if not any(path.iterdir()):  # one that holds files of others keeps git's view of them
                    ignore(path)
        with _closing_on_error(_locked(path)) as lock:
            if holds_run(path):
                raise StoreError(f"{path} already contains a run: resume it with --resume, or use another --out")
            made = cls(path, run_id, lock, redactor or Redactor())
            made.write(RUN, {"schema_version": SCHEMA_VERSION, "run_id": run_id})
            return made

    @classmethod
    def open(cls, path: Path, *, redactor: Redactor | None = None) -> RunDirectory:
        """The directory of a run that was begun, to go on with it.

        Raises:
            StoreError: it is not a run, something else writes to it, or a newer agentv wrote it.
        """
        path = path.absolute()
        if not (path / RUN).is_file():
            what = f"{path} is not a run: it has no {RUN}"
            raise StoreError(without_record(path) if holds_run(path) else what)
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
        """The directory of a run whose `run.json` is damaged: its answers are worth more than what that said."""
        aside = path / f"{RUN}.damaged"
        with refusals("mend", path / RUN):
            (path / RUN).replace(aside)
        run_id = path.name if _ID.fullmatch(path.name) else new_run_id(datetime.now(UTC))
        made = cls(path, run_id, lock, redactor)
        made.write(RUN, {"schema_version": SCHEMA_VERSION, "run_id": run_id})
        made.repaired = (
            f"{error}: moved it to {aside.name}; this command's flags decide what runs, and the answers are kept",
        )
        return made

    def write(self, name: str, content: JsonObject) -> None:
        """Write `run.json` or `summary.json`, whole or not at all. Keys of the old file that `content` lacks stay.

        Raises:
            StoreError: the system refuses.
        """
        path = self.path / name
        old = read_document(path) if path.exists() else {}
        self.replace(name, self.document({**old, **content}))

    def replace(self, name: str, document: bytes) -> None:
        """Write as `write` does, whatever the old file says.

        Raises:
            StoreError: the system refuses.
        """
        path = self.path / name
        with refusals("write", path):
            write_private(path, document)

    def document(self, content: JsonObject) -> bytes:
        """The bytes of a `run.json` or `summary.json`, without secrets."""
        return to_document({key: self.redactor.redact_json(value) for key, value in content.items()})

    def close(self) -> None:
        """Let others write here."""
        if self.lock >= 0:
            fcntl.flock(self.lock, fcntl.LOCK_UN)  # a fork of the caller's code may still have the file open
            os.close(self.lock)
            self.lock = -1


def _sweep(path: Path) -> None:
    """Remove temporary files of a process that was killed while replacing a file; no other process writes here."""
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


def _make_in(results: Path, now: datetime) -> Path:
    with refusals("make", results, "; choose another directory with --out DIRECTORY"):
        make_private(results)
        ignore(results)
        for _ in range(_IDS_TRIED):
            path = results / new_run_id(now)
            try:
                path.mkdir(mode=DIRECTORY_MODE)
            except FileExistsError:  # another run of this very second drew the same digits
                continue
            return path
    raise StoreError(f"cannot create a run directory in {results}: every id is taken")


def ignore(directory: Path) -> None:
    """Have git ignore what is in a directory, unless somebody says otherwise there."""
    file = directory / ".gitignore"
    if not file.exists():
        file.write_text("*\n", encoding="utf-8")


def _locked(path: Path) -> int:
    """The descriptor that holds the lock of a run directory.

    The lock is on the journal: the one file that every run has and that is never replaced.
    """
    with refusals("open", path / JOURNAL):
        descriptor = open_private(path / JOURNAL, os.O_RDWR | os.O_CREAT)
    deadline = time.monotonic() + LOCK_S  # a run that was killed lets go of the lock a moment later
    with _closing_on_error(descriptor), refusals("lock", path / JOURNAL):
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
    """Whether there is a journal that holds something."""
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
    """Put a file in the place of another, whole or not at all; only its owner reads it.

    Raises:
        OSError: the system refuses.
    """
    new = path.with_name(f".{path.name}.new")
    with open(new_private(new), "wb") as file:  # noqa: PTH123  # a descriptor has no path
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
