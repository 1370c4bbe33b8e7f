"""A run directory is pushed: what the server lacks is sent, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentv.authoring.source.masking import environment_secrets
from agentv.errors import StoreError
from agentv.extensions.team.push.artifacts import Artifacts
from agentv.extensions.team.push.connection import ConflictError, Connection, PushError
from agentv.extensions.team.push.pushed import Pushed
from agentv.extensions.team.store.uploaded import LARGEST_BATCH, Received, UploadState
from agentv.model.secrets.redaction import Redactor
from agentv.store.files.directory import INDEX, RUN, SUMMARY, is_being_written, read_document
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.user_code.os_errors import store_error

_BATCH = 1 << 20
"""Bytes of rows after which a batch ends."""

_CONFLICTS = 20
"""Times in a row that another push of the same run may come first without bringing the run further."""

Progress = Callable[[int, int], object]
"""Called with the bytes of rows that the server has, and how many rows were sent."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """How far the rows of a file are on the server. `file`: device and inode; another file may lie there later."""

    generation: int
    size: int
    file: tuple[int, int]


class _Missing(Struct):
    missing: list[str]


def redactor_of(env: Mapping[str, str], token: str) -> Redactor:
    """Finds the secrets of an environment, and the token of the server."""
    return Redactor((*environment_secrets(env), token))


class RunPush:
    """One run on its way to a server.

    Args:
        path: the run's directory.
        connection: to the server.
        redactor: of secrets that must not be in what is sent.
        progress: called after every batch.
    """

    def __init__(
        self, path: Path, connection: Connection, redactor: Redactor, progress: Progress = lambda *_: None
    ) -> None:
        self._path = path
        self._connection = connection
        self._redactor = redactor
        self._progress = progress
        self._artifacts = Artifacts(path)
        self._sent: _Sent | None = None
        self._checked = False
        self._changed = False
        self.rows = 0
        self.run_id = _run_id(path)

    @property
    def size(self) -> int:
        """Bytes of rows that the server has, as far as is known."""
        return 0 if self._sent is None else self._sent.size

    def push(self, *, writing: bool | None = None) -> Pushed:
        """Send what the server lacks.

        Args:
            writing: the run goes on; None: if a process writes it.

        Raises:
            PushError: the server refuses or cannot be reached, or the run must not leave this machine.
            StoreError: a file cannot be read, or rows were changed after they had been written.
        """
        writing = is_being_written(self._path) if writing is None else writing
        conflicts, known = 0, -1
        while conflicts < _CONFLICTS:
            state: UploadState = self._connection.get(f"uploads/{self.run_id}", UploadState)
            try:
                state = self._begin(state, writing=writing)
                self._send_rows(state, writing=writing)
                artifacts = self._send_artifacts(state.files)
                self._finish(state, writing=writing)
            except ConflictError:
                found = _file_of(self._path / INDEX)
                grew = found is not None and known < state.size <= found[1]
                conflicts, known = (0 if grew else conflicts + 1), state.size
                continue
            return Pushed(self.run_id, self.rows, self.size, artifacts, self._changed, self._artifacts.too_large)
        raise PushError(f"cannot push {self.run_id}: other pushes of this run always come first; try again later")

    def push_new_rows(self) -> bool:
        """Send what was appended since the last push of a run that goes on; whether there was anything.

        Raises:
            PushError, StoreError: as `push`.
        """
        before = self.rows
        found, sent = _file_of(self._path / INDEX), self._sent
        if sent is None or found is None or found[0] != sent.file or found[1] < sent.size:
            self.push(writing=True)
        elif found[1] > sent.size:
            try:
                with (self._path / INDEX).open("rb") as file:
                    self._send_from(file, sent.size, UploadState(sent.generation, sent.size), writing=True)
            except FileNotFoundError:
                self._sent = None
            except ConflictError:
                self.push(writing=True)
        return self.rows > before

    def push_new_artifacts(self) -> int:
        """Send artifacts that are new since the last push; how many contents.

        Raises:
            PushError, StoreError: as `push`.
        """
        return self._send_artifacts(settled=True)

    def say_that_it_goes_on(self) -> None:
        """Let the server know that the run goes on though it has no new rows.

        Raises:
            PushError, StoreError: as `push`.
        """
        self._send("PUT", "record", {"writing": True}, self._content(RUN), dict[str, Any])

    def _begin(self, state: UploadState, *, writing: bool) -> UploadState:
        """Send `run.json`. A run that the server does not have is said to go on until its rows are sent."""
        record = self._content(RUN)
        if state.record == sha256(record).hexdigest() and (state.writing or not writing):
            return state
        going = writing or state.writing or state.record is None  # else the server would sum a part of its rows
        self._send("PUT", "record", {"writing": going}, record, dict[str, Any])
        return msgspec.structs.replace(state, generation=state.generation or 1, writing=going)

    def _send_rows(self, state: UploadState, *, writing: bool) -> None:
        """Send the rows behind those that the server has."""
        path = self._path / INDEX
        try:
            with path.open("rb") as file:
                start = _agreeing(file, state)
                self._send_from(file, start, state, writing=writing)
        except FileNotFoundError:
            self._sent = _Sent(state.generation, 0, (0, 0))
        except OSError as error:
            raise store_error("read", path, error) from error
        if self.size < state.size and self._sent is not None and self._sent.generation == state.generation:
            received = self._send_batch(self.size, state.generation, b"", replace=True, writing=writing)
            self._sent = replace(self._sent, generation=received.generation, size=received.size)  # it became shorter

    def _send_from(self, file: Any, start: int, state: UploadState, *, writing: bool) -> None:
        found = os.fstat(file.fileno())
        self._sent = sent = _Sent(state.generation, start, (found.st_dev, found.st_ino))
        file.seek(start)
        for lines in _batches(file, self._path / INDEX):
            received = self._send_batch(
                sent.size,
                sent.generation,
                lines,
                replace=sent.generation == state.generation and sent.size < state.size,
                writing=writing,
            )
            self._sent = sent = replace(sent, generation=received.generation, size=received.size)

    def _send_batch(self, start: int, generation: int, lines: bytes, *, replace: bool, writing: bool) -> Received:
        if not (self._checked or writing):
            check_rows(self._path)  # once: the server vouches for what it has received
            self._checked = True
        self._refuse_secrets(lines, f"the rows of {self.run_id} from byte {start} on")
        digest = sha256(lines).hexdigest()
        query = {"start": start, "generation": generation, "sha256": digest, "replace": replace}
        received: Received = self._send("POST", "rows", query, lines, Received)
        if received.size != start + len(lines):  # it came before, and more with it
            raise ConflictError
        self.rows += lines.count(b"\n")
        self._progress(received.size, self.rows)
        return received

    def _send_artifacts(self, known: int = 0, *, settled: bool = False) -> int:
        """Send the artifacts that were not sent before; how many contents.

        Args:
            known: how many files the server has.
            settled: leave out files that may still be written.
        """
        files = self._artifacts.new(settled=settled)
        if not files:
            return 0
        listed = msgspec.json.encode(files)
        self._refuse_secrets(listed, f"the name of an artifact of {self.run_id}")
        missing = self._send("POST", "files", {}, listed, _Missing).missing
        by_hash = {digest: path for path, digest in files.items()}
        for digest in missing:
            if digest not in by_hash:
                raise PushError("the server asks for artifacts that the run does not have")
            content = self._content(by_hash[digest])
            self._refuse_secrets(content, by_hash[digest])
            self._connection.send("PUT", f"contents/{digest}", {}, content, dict[str, Any])
        if missing and self._send("POST", "files", {}, listed, _Missing).missing:
            raise PushError("a run with the same artifacts was deleted on the server meanwhile; push again")
        self._artifacts.were_sent(files)
        self._changed = self._changed or known != len(files)
        return len(missing)

    def _finish(self, state: UploadState, *, writing: bool) -> None:
        stored = stored_summary(self._path)
        summary = b"" if stored is None else stored.content
        self._refuse_secrets(summary, str(self._path / SUMMARY))
        digest = sha256(summary).hexdigest() if summary else None
        if digest != state.summary or state.writing != writing:
            self._send("PUT", "summary", {"writing": writing}, summary, dict[str, Any])

    def _send(self, method: str, what: str, query: dict[str, Any], body: bytes, into: Any) -> Any:
        found = self._connection.send(method, f"uploads/{self.run_id}/{what}", query, body, into)
        if isinstance(found, Received):
            self._changed = self._changed or found.changed
        elif isinstance(found, dict):
            self._changed = self._changed or bool(found.get("changed"))
        return found

    def _content(self, name: str) -> bytes:
        path = self._path / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise store_error("read", path, error) from error
        self._refuse_secrets(content, str(path))
        return content

    def _refuse_secrets(self, content: bytes, where: str) -> None:
        """Rows are redacted when they are written; what was secret only later, or was put there by others, is not."""
        if self._redactor.found_in(content):
            raise PushError(
                f"{where} contains a secret of this environment, so the run was not pushed: "
                "delete the run and run it again, or unset the variable if its value is no secret"
            )


def _run_id(path: Path) -> str:
    found = read_document(path / RUN).get("run_id")
    if not isinstance(found, str):
        raise StoreError(f"{path / RUN} was not written by agentv: it has no run_id")
    return found


def _file_of(path: Path) -> tuple[tuple[int, int], int] | None:
    """Which file lies there, and its size."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino), found.st_size


def _agreeing(file: Any, state: UploadState) -> int:
    """Where the file and the server's rows begin to differ: behind the last batch that both have."""
    place = 0
    for batch in state.batches:
        if batch.start != place or sha256(file.read(batch.size)).hexdigest() != batch.sha256:
            break
        place += batch.size
    return place


def _batches(file: Any, path: Path) -> Iterator[bytes]:
    """Whole lines, together. What stands behind the last line's end is still being written."""
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
