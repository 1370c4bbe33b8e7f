"""Data types of uploads, and their validation without the database."""

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
"""Most bytes of rows in a batch, and so in a row."""

_MOST_LINES = 1 << 20
"""Most lines in a batch; even empty ones take memory."""

_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_PATH = 1_000
"""Most bytes of an artifact's path."""

LONGEST_FILE_NAME = 250
"""Most bytes of a file name; while the file is being written, its name is five bytes longer."""

_Place = Annotated[int, Meta(ge=0, le=2**53)]


class UploadRefusedError(StoreError):
    """An upload is invalid; sending it again cannot help."""


class OtherTokenError(UploadRefusedError):
    """A run was begun by another sender, and this one is not an admin."""


class UploadConflictError(StoreError):
    """An upload does not continue what the server has; the client must fetch the state and continue from there."""


class UploadState(Struct, frozen=True):
    """The server's state of a run.

    Attributes:
        generation: changes whenever rows are dropped; 0 if the server does not have the run.
        size: offset at which the next batch starts, in bytes of the client's file.
        rows: SHA-256 of all rows.
        writing: whether the run is in progress.
    """

    generation: _Place = 0
    size: _Place = 0
    rows: str = sha256().hexdigest()
    writing: bool = False


class Received(Struct, frozen=True):
    """The state of a run's rows after an upload. `changed`: whether the upload changed anything."""

    generation: _Place
    size: _Place
    changed: bool


class Changed(Struct, frozen=True):
    """Whether a request changed anything."""

    changed: bool


class MissingContents(Struct, frozen=True):
    """SHA-256 of the contents that the client must upload before it sends the list again; empty if none are missing.

    `changed`: whether the list was stored.
    """

    missing: list[str]
    changed: bool = False


class LabelLines(Struct, frozen=True):
    """Labels in order of arrival."""

    labels: list[msgspec.Raw]


class AddedLabels(Struct, frozen=True):
    """Number of labels that were new to the project."""

    added: int


class RunName(Struct, frozen=True):
    """A run of a project, and the sender that uploads or changes it.

    Attributes:
        actor: name of the sender in the audit log.
        is_admin: whether the sender may change runs begun by others.
    """

    project: str
    run: str
    actor: str
    is_admin: bool = False


class RowBatch(Struct, frozen=True):
    """Rows to upload.

    Attributes:
        start: offset of the rows in the client's file, in bytes.
        generation: generation of the state known to the client.
        lines: whole lines with line ends.
        replace: whether to drop the rows on the server; `start` must be 0 then.
    """

    start: int
    generation: int
    lines: bytes
    replace: bool = False


def checked_rows(batch: RowBatch) -> list[tuple[int, bytes]]:
    """Return the lines of a batch, each with its offset, after checking them.

    Raises:
        UploadRefusedError: the batch has too many lines, or a line is not a row.
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
    if not row.key.isprintable():  # the key is written to a line of the copy's journal
        raise UploadRefusedError(f"the row at byte {place} has a key with control characters")


def object_in(document: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object in a document.

    Raises:
        UploadRefusedError: the document is not a JSON object.
    """
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UploadRefusedError(f"this is no {what}: {error}") from error


def checked_record(run: str, record: bytes) -> Any:
    """Check the `run.json` of a run, and return its time of start.

    Raises:
        UploadRefusedError: the record is not a valid `run.json`, or belongs to another run.
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
    is_text = isinstance(name, str) and name.replace("\u200d", "").isprintable()  # U+200D joins emoji
    if not is_text or len(name) > LONGEST_NAME:
        what = f"printable text of {LONGEST_NAME} characters at most"
        raise UploadRefusedError(f"the name of the run must be {what}; name it again")
    return found.get("started")


def name_in(record: bytes) -> Any:
    """Return the name of the run in a stored `run.json`, or ""."""
    return object_in(record, "run.json").get("name") or ""


class Replaced(Struct, frozen=True):
    """Record of the replaced rows of a run.

    Attributes:
        rows: number of rows replaced, in all earlier generations.
        time: time of the last replacement.
        by: sender of the last replacement, as named in the audit log.
        generations: number of earlier generations.
    """

    rows: int
    time: str
    by: str
    generations: int


def copied_record(record: bytes, given: str | None, replaced: bytes | None) -> bytes:
    """Return a stored `run.json` with what only the server knows.

    Args:
        record: content of `run.json` as pushed.
        given: name given to the run on the server, or None.
        replaced: JSON of `Replaced`; None if no rows were replaced.
    """
    pushed = object_in(record, "run.json")
    found = pushed if given is None else {**pushed, "name": given}
    found = {key: value for key, value in found.items() if key != "replaced"}
    if replaced is not None:
        found["replaced"] = msgspec.json.decode(replaced)
    return record if found == pushed else msgspec.json.encode(found)


def check_files(files: Mapping[str, str], known: Iterable[str]) -> None:
    """Raise for an invalid path, one that conflicts with known ones, or an invalid hash.

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
