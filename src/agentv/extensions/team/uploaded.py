"""What is uploaded of a run, and what is refused because it is wrong in itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentv.errors import StoreError
from agentv.model.run.runs import LONGEST_NAME
from agentv.model.run.trial import SCHEMA_VERSION
from agentv.store.files.directory import ARTIFACTS
from agentv.store.rows.reading import row_in

LARGEST_BATCH = 64 << 20
"""Bytes of the rows of one batch, and so of one row."""

_MOST_LINES = 1 << 20
"""Lines of one batch. Each needs memory, also an empty one."""

_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_PATH = 1_000
"""Bytes of the path of an artifact."""

LONGEST_FILE_NAME = 250
"""Bytes of the name of a file, which has five more while it is written."""

_Place = Annotated[int, Meta(ge=0, le=2**53)]


class UploadRefusedError(StoreError):
    """An upload that is wrong in itself: sending it again changes nothing."""


class OtherTokenError(UploadRefusedError):
    """A change of a run that somebody else began, by who is no admin."""


class UploadConflictError(StoreError):
    """An upload that does not continue what the server has; the client asks for the state and goes on from there."""


class UploadState(Struct, frozen=True):
    """What the server has of a run.

    Attributes:
        generation: another one whenever rows were dropped.
        size: where the next batch begins, in bytes of the pusher's file.
        rows: SHA-256 of all rows.
        writing: whether the run goes on.
    """

    generation: _Place = 0
    size: _Place = 0
    rows: str = sha256().hexdigest()
    writing: bool = False


class Received(Struct, frozen=True):
    """How far the rows of a run are now. `changed`: this upload changed something."""

    generation: _Place
    size: _Place
    changed: bool


class Changed(Struct, frozen=True):
    """Whether a request changed anything."""

    changed: bool


class MissingContents(Struct, frozen=True):
    """SHA-256 of the contents that the client must upload before it sends the list again; empty: all are there.

    `changed`: the list was stored.
    """

    missing: list[str]
    changed: bool = False


class LabelLines(Struct, frozen=True):
    """Labels in the order of their arrival."""

    labels: list[msgspec.Raw]


class AddedLabels(Struct, frozen=True):
    """How many labels the project did not have."""

    added: int


class RunName(Struct, frozen=True):
    """A run of a project, and who uploads it, as the audit log names them.

    Attributes:
        is_admin: it may change what others began.
    """

    project: str
    run: str
    actor: str
    is_admin: bool = False


class RowBatch(Struct, frozen=True):
    """Rows to upload.

    Attributes:
        start: where they begin in the pusher's file, in bytes.
        generation: of the state that the pusher knows.
        lines: whole lines, with their ends.
        replace: drop what the server has; `start` is 0 then.
    """

    start: int
    generation: int
    lines: bytes
    replace: bool = False


def checked_rows(batch: RowBatch) -> list[tuple[int, bytes]]:
    """The lines of a batch, each with the place where it begins.

    Raises:
        UploadRefusedError: it has too many lines, or one is no row.
    """
    if batch.lines.count(b"\n") > _MOST_LINES:
        raise UploadRefusedError(f"a batch may have {_MOST_LINES:,} lines at most")
    if batch.lines and not batch.lines.endswith(b"\n"):
        raise UploadRefusedError("a batch must contain whole lines")
    found, place = list[tuple[int, bytes]](), batch.start
    for text in batch.lines[:-1].split(b"\n") if batch.lines else ():
        line = text + b"\n"
        if not line.isspace():
            _check_row(line, place)
        found.append((place, line))
        place += len(line)
    return found


def _check_row(line: bytes, place: int) -> None:
    try:
        row = row_in(line)
    except ValueError as error:
        raise UploadRefusedError(f"the line at byte {place} is not a row of a run: {error}") from error
    except StoreError as error:
        raise UploadRefusedError(f"the row at byte {place} was {error}: upgrade the server") from error
    if not row.key.isprintable():  # it is written into a line of the journal of copies
        raise UploadRefusedError(f"the row at byte {place} has a key with control characters")


def object_in(document: bytes, what: str) -> dict[str, Any]:
    """The JSON object in a document.

    Raises:
        UploadRefusedError: the document is not a JSON object.
    """
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UploadRefusedError(f"this is no {what}: {error}") from error


def checked_record(run: str, record: bytes) -> Any:
    """When the run started, as its `run.json` says.

    Raises:
        UploadRefusedError: it is no `run.json`, or that of another run.
    """
    if _RUN_ID.fullmatch(run) is None:
        raise UploadRefusedError("the id of a run must look like 20261121T140322Z-7f3a")
    found = object_in(record, "run.json")
    version = found.get("schema_version")
    if found.get("run_id") != run or not isinstance(version, int):
        raise UploadRefusedError(f"the run.json is not of the run {run}")
    if version > SCHEMA_VERSION:
        formats = f"format {version}; the server reads up to {SCHEMA_VERSION}"
        raise UploadRefusedError(f"a newer agentv wrote the run ({formats}): upgrade the server")
    name = found.get("name") or ""
    is_text = isinstance(name, str) and name.replace("\u200d", "").isprintable()  # which joins emoji
    if not is_text or len(name) > LONGEST_NAME:
        what = f"printable text of {LONGEST_NAME} characters at most"
        raise UploadRefusedError(f"the name of the run must be {what}; name it again")
    return found.get("started")


def name_in(record: bytes) -> Any:
    """The name that a stored `run.json` has; empty: none."""
    return object_in(record, "run.json").get("name") or ""


class Replaced(Struct, frozen=True):
    """Rows of a run that were replaced.

    Attributes:
        rows: how many, in all generations that ended.
        time: when the last ones were.
        by: who replaced those, as the audit log names them.
        generations: that ended; the first is 1.
    """

    rows: int
    time: str
    by: str
    generations: int


def copied_record(record: bytes, given: str | None, replaced: bytes | None) -> bytes:
    """A stored `run.json` with what only the server knows.

    Args:
        record: as it was pushed.
        given: the name that the run was given on the server; None: none.
        replaced: JSON of `Replaced`; None: no rows were.
    """
    pushed = object_in(record, "run.json")
    found = pushed if given is None else {**pushed, "name": given}
    found = {key: value for key, value in found.items() if key != "replaced"}
    if replaced is not None:
        found["replaced"] = msgspec.json.decode(replaced)
    return record if found == pushed else msgspec.json.encode(found)


def check_files(files: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse paths that lead elsewhere or cannot lie beside those that are known, and what is no hash.

    Raises:
        UploadRefusedError: the text says why.
    """
    for path, digest in files.items():
        parts = PurePosixPath(path).parts
        bounded = len(path.encode()) <= _LONGEST_PATH and all(len(one.encode()) <= LONGEST_FILE_NAME for one in parts)
        if not bounded or not path.isprintable():
            limits = f"{_LONGEST_PATH:,} bytes at most, and {LONGEST_FILE_NAME} in each name"
            raise UploadRefusedError(f"the path of an artifact must be printable, and have {limits}: {path!a:.200}")
        if path != "/".join(parts) or len(parts) < 2 or parts[0] != ARTIFACTS or ".." in parts:
            raise UploadRefusedError(f"an artifact must lie below {ARTIFACTS}/")
        if _SHA256.fullmatch(digest) is None:
            raise UploadRefusedError("the hash of an artifact must be a SHA-256 in hexadecimal")
    paths = {*known, *files}
    directories = {PurePosixPath(path).parent for path in paths}
    if not paths.isdisjoint(str(above) for one in directories for above in (one, *one.parents)):
        raise UploadRefusedError("an artifact cannot be both a file and a directory")
