"""Pushes and pulls: sends what a server lacks of a run directory or a project's labels, and fetches labels."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from agentv.authoring.source.masking import environment_secrets
from agentv.errors import StoreError
from agentv.extensions.team.connection import ConflictError, Connection, PushError
from agentv.extensions.team.uploaded import (
    LARGEST_BATCH,
    AddedLabels,
    Changed,
    LabelLines,
    MissingContents,
    Received,
    UploadState,
)
from agentv.model.redaction import Redactor
from agentv.model.run.labels import Label, time_problem
from agentv.reports.text import one_line
from agentv.store.files.directory import ARTIFACTS, INDEX, RUN, SUMMARY, is_being_written, read_document
from agentv.store.files.whole_file import as_store_error
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.store.labels import (
    label_in,
    label_line,
    labels_directory,
    labels_file,
    merge_labels,
    read_labels_and_ratings,
)

_SETTLED_S = 1.0
"""Seconds after its last change at which a file counts as completely written."""


_BATCH = 1 << 20
"""Bytes of rows in a batch, which ends with the line that reaches them."""

_CONFLICTS = 100
"""Most attempts when other pushes of the same run interfere."""


def redactor_of(env: Mapping[str, str], token: str) -> Redactor:
    """Return a redactor of the secrets in an environment and of the server's token."""
    return Redactor((*environment_secrets(env), token))


class Pushed(Struct, frozen=True):
    """The result of a push.

    Attributes:
        rows: number of rows sent.
        artifacts: number of contents sent.
        changed: whether the server lacked anything.
        skipped: paths of artifacts that are too large.
    """

    run_id: str
    rows: int
    artifacts: int
    changed: bool
    skipped: tuple[str, ...] = ()


class RunPush:
    """Pushes one run to a server.

    Args:
        path: the run's directory.
        connection: connection to the server.
        redactor: finds secrets, which must not be sent.
        progress: called after every batch with the bytes of rows on the server, `completed`, and in all, `total`.

    Attributes:
        rows: number of rows sent.
        size: bytes of rows on the server, as last reported.
    """

    def __init__(
        self, path: Path, connection: Connection, redactor: Redactor, progress: Callable[..., object] = lambda **_: None
    ) -> None:
        self._path = path
        self._connection = connection
        self._redactor = redactor
        self._progress = progress
        self._sent: dict[str, tuple[int, int]] = {}  # artifact → time of change and size when it was sent
        self._too_large: dict[str, None] = {}
        self._generation: int | None = None
        self._changed = False
        self.rows = 0
        self.size = 0
        found = read_document(path / RUN).get("run_id")
        if not isinstance(found, str):
            raise StoreError(f"{path / RUN} was not written by agentv: it has no run_id")
        self.run_id = found

    def push(self, *, writing: bool | None = None) -> Pushed:
        """Send what the server lacks.

        Args:
            writing: whether the run is in progress; None: detect whether a process writes it.

        Raises:
            PushError: the server refuses or cannot be reached, or the run contains a secret.
            StoreError: a file cannot be read, or rows were changed after they had been written.
        """
        writing = is_being_written(self._path) if writing is None else writing
        if not writing:
            check_rows(self._path)
        for _ in range(_CONFLICTS):
            state: UploadState = self._connection.get(f"uploads/{self.run_id}", UploadState)
            self._generation, self.size = state.generation or 1, state.size
            # with False, the server would summarize partial rows
            in_progress = writing or state.writing or not state.generation
            try:
                self._send("PUT", "record", {"writing": in_progress}, self._content(RUN), Changed)
                self._send_rows(state.rows)
                artifacts = self.send_artifacts()
                self._finish(writing=writing)
            except ConflictError:
                continue
            return Pushed(self.run_id, self.rows, artifacts, self._changed, tuple(self._too_large))
        raise PushError(f"cannot push {self.run_id}: other pushes of this run always come first; try again later")

    def push_new_rows(self) -> None:
        """Send the rows appended since the last push of a run in progress.

        Raises:
            PushError, StoreError: as `push`.
        """
        path, size = self._path / INDEX, self._size()
        if self._generation is None or size < self.size:
            self.push(writing=True)
        elif size > self.size:
            try:
                with path.open("rb") as file:
                    file.seek(self.size)
                    self._send_from(file)
            except ConflictError:
                self.push(writing=True)

    def send_heartbeat(self) -> None:
        """Tell the server that the run is still in progress, though it has no new rows.

        Raises:
            PushError, StoreError: as `push`.
        """
        self._send("PUT", "record", {"writing": True}, self._content(RUN), Changed)

    def _send_rows(self, known: str) -> None:
        """Send the rows that the server lacks; if it has different ones, replace them with all rows.

        Args:
            known: SHA-256 of the server's rows.
        """
        path = self._path / INDEX
        if not self.size and not path.exists():
            return
        with as_store_error("read", path), path.open("rb") if path.exists() else BytesIO() as file:
            is_same = _sha256_of(file, self.size) == known
            if not is_same:
                file.seek(0)
            self._send_from(file, replace=not is_same)

    def _send_from(self, file: IO[bytes], *, replace: bool = False) -> None:
        """Send the rows from the current position of a file. `replace`: replace the server's rows."""
        for lines in chain(_batches(file, self._path / INDEX), [b""]):
            if not lines and not replace:
                continue
            start = 0 if replace else self.size
            self._refuse_secrets(lines, f"the rows of {self.run_id} from byte {start} on")
            query = {"start": start, "generation": self._generation, "replace": replace}
            received: Received = self._send("POST", "rows", query, lines, Received)
            self._generation, self.size, replace = received.generation, received.size, False
            self.rows += lines.count(b"\n")
            self._progress(completed=self.size, total=self._size())

    def send_artifacts(self, *, settled: bool = False) -> int:
        """Send artifacts that are new or changed since the last call, and return the number of contents sent.

        Args:
            settled: leave out files that may still be written.

        Raises:
            PushError, StoreError: as `push`.
        """
        with as_store_error("read", self._path / ARTIFACTS):
            states = self._unsent_artifacts(settled=settled)
        if not states:
            return 0
        files = {}
        for name in states:
            with as_store_error("read", self._path / name), (self._path / name).open("rb") as file:
                files[name] = file_digest(file, "sha256").hexdigest()
        listed = msgspec.json.encode(files)
        self._refuse_secrets(listed, f"the name of an artifact of {self.run_id}")
        missing = self._send("POST", "files", {}, listed, MissingContents).missing
        by_hash = {digest: path for path, digest in files.items()}
        for digest in missing:
            if digest not in by_hash:
                raise PushError("the server asks for artifacts that the run does not have")
            content = self._content(by_hash[digest])
            self._refuse_secrets(content, by_hash[digest])
            self._connection.send("PUT", f"contents/{digest}", {}, content, dict[str, Any])
        if missing and self._send("POST", "files", {}, listed, MissingContents).missing:
            raise PushError("a run with the same artifacts was deleted on the server meanwhile; push again")
        self._sent |= states
        return len(missing)

    def _unsent_artifacts(self, *, settled: bool) -> dict[str, tuple[int, int]]:
        """Return path below the run → (time, size) of all artifacts not sent in this state. Links are skipped."""
        latest, found = time.time() - _SETTLED_S if settled else float("inf"), {}
        top = self._path / ARTIFACTS
        for directory, _, names in () if top.is_symlink() else os.walk(top):
            for path in (Path(directory, name) for name in sorted(names)):
                if path.is_symlink() or not path.is_file():
                    continue
                name, stat = path.relative_to(self._path).as_posix(), path.stat()
                if stat.st_size > LARGEST_BATCH:
                    self._too_large[name] = None
                elif stat.st_mtime <= latest and self._sent.get(name) != (stat.st_mtime_ns, stat.st_size):
                    found[name] = stat.st_mtime_ns, stat.st_size
        return found

    def _size(self) -> int:
        return (self._path / INDEX).stat().st_size if (self._path / INDEX).exists() else 0

    def _finish(self, *, writing: bool) -> None:
        stored = stored_summary(self._path)
        summary = b"" if stored is None else stored.content
        self._refuse_secrets(summary, str(self._path / SUMMARY))
        self._send("PUT", "summary", {"writing": writing}, summary, Changed)

    def _send(self, method: str, what: str, query: dict[str, Any], body: bytes, into: Any) -> Any:
        found = self._connection.send(method, f"uploads/{self.run_id}/{what}", query, body, into)
        self._changed = self._changed or getattr(found, "changed", False)
        return found

    def _content(self, name: str) -> bytes:
        path = self._path / name
        with as_store_error("read", path):
            content = path.read_bytes()
        self._refuse_secrets(content, str(path))
        return content

    def _refuse_secrets(self, content: bytes, where: str) -> None:
        """Raise if content holds a secret that was not known when rows were redacted, or that others wrote there."""
        if self._redactor.found_in(content):
            hint = "delete the run and run it again, or unset the variable if its value is no secret"
            raise PushError(f"{where} contains a secret of this environment, so the run was not pushed: {hint}")


def _sha256_of(file: IO[bytes], size: int) -> str:
    """Return the SHA-256 of the next `size` bytes of a file, or of the rest if it is shorter."""
    digest = sha256()
    while size > 0 and (some := file.read(min(size, _BATCH))):
        digest.update(some)
        size -= len(some)
    return digest.hexdigest()


def _batches(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield batches of whole lines. Text after the last line end is still being written."""
    while True:
        lines = file.read(_BATCH)
        lines += file.readline(LARGEST_BATCH) if lines and not lines.endswith(b"\n") else b""
        whole = lines[: lines.rfind(b"\n") + 1]
        if len(lines) > LARGEST_BATCH:
            raise StoreError(f"cannot push {path}: it has a row of more than {LARGEST_BATCH >> 20} MB")
        if whole:
            yield whole
        if len(whole) < len(lines) or not lines:
            return


_ADDRESS = "labels/lines"


def push_labels(root: Path, connection: Connection, redactor: Redactor) -> int:
    """Send the labels of a project, and return how many were new to the server.

    Raises:
        PushError: the server refuses or cannot be reached, or a label contains a secret.
        StoreError: a file of labels cannot be read.
    """
    found: AddedLabels = connection.send("POST", _ADDRESS, {}, b"\n".join(_lines(root, redactor)), AddedLabels)
    return found.added


def pull_labels(root: Path, connection: Connection) -> tuple[int, tuple[Path, ...]]:
    """Append labels from the server that a project lacks, and return their number and the files changed.

    Raises:
        PushError: the server refuses or cannot be reached, or sends an invalid label.
        StoreError: a file cannot be written.
    """
    by_file: dict[Path, list[Label]] = {}
    found: LabelLines = connection.get(_ADDRESS, LabelLines)
    for line in found.labels:
        try:
            label = label_in(bytes(line))
        except (ValueError, RecursionError) as error:
            raise PushError(f"the server sent what is no label: {error}") from error
        by_file.setdefault(labels_file(root, label.suite), []).append(label)
    added = {path: merge_labels(path, labels) for path, labels in sorted(by_file.items())}
    return sum(added.values()), tuple(path for path, count in added.items() if count)


def _lines(root: Path, redactor: Redactor) -> Iterator[bytes]:
    """Yield the labels of a project as lines, in the order of its files."""
    for path in sorted(labels_directory(root).glob("*.jsonl")):
        for label in read_labels_and_ratings([path]):
            line = label_line(label)
            problem = time_problem(label, datetime.now(UTC))
            if problem is not None:
                what = f"the time '{one_line(label.time[:40])}' of a label of {one_line(label.person)} {problem}"
                raise PushError(f"{path}: {what}: delete its line, and label the answer again")
            if redactor.found_in(line):
                what = "a label contains a secret of this environment, so the labels were not pushed"
                raise PushError(f"{path}: {what}: remove the secret from its line")
            yield line
