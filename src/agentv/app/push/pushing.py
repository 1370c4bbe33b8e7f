"""A run directory is pushed: what the server lacks is sent, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from agentv.app.push.remote import ConflictError, Connection, PushError
from agentv.authoring.source.masking import environment_secrets
from agentv.errors import StoreError
from agentv.model.run.pushed import Pushed
from agentv.model.secrets.redaction import Redactor
from agentv.store.files.directory import ARTIFACTS, INDEX, RUN, SUMMARY, is_being_written, read_document
from agentv.store.journal.verification import check_rows
from agentv.store.team.uploaded import LARGEST_BATCH, Received, UploadState
from agentv.user_code.os_errors import store_error

_BATCH = 1 << 20
"""Bytes of rows after which a batch ends."""

_CONFLICTS = 20
"""Times in a row that another push of the same run may come first without bringing the run further."""


def push_run(path: Path, connection: Connection, env: Mapping[str, str]) -> Pushed:
    """Push a run; secrets of the environment never leave it.

    Raises:
        PushError, StoreError: as `RunPush.push`.
    """
    return RunPush(path, connection, Redactor(environment_secrets(env))).push()


class RunPush:
    """One run on its way to a server.

    Args:
        path: the run's directory.
        connection: to the server.
        redactor: of secrets that must not be in what is sent.
        progress: told how many bytes of rows the server has.
    """

    def __init__(
        self, path: Path, connection: Connection, redactor: Redactor, progress: Callable[[int], object] = lambda _: None
    ) -> None:
        self._path = path
        self._connection = connection
        self._redactor = redactor
        self._progress = progress
        self._rows = 0
        self._checked = False
        self._changed = False
        self.run_id = _run_id(path)

    def push(self) -> Pushed:
        """Send what the server lacks.

        Raises:
            PushError: the server refuses or cannot be reached, or the run must not leave this machine.
            StoreError: a file cannot be read, or rows were changed after they had been written.
        """
        writing = is_being_written(self._path)
        conflicts, known = 0, -1
        while conflicts < _CONFLICTS:
            state: UploadState = self._connection.get(f"uploads/{self.run_id}", UploadState)
            try:
                state = self._begin(state, writing=writing)
                size = self._send_rows(state)
                artifacts, skipped = self._send_artifacts(state)
                self._finish(state, writing=writing)
            except ConflictError:
                conflicts, known = (0 if state.size > known else conflicts + 1), state.size
                continue
            return Pushed(self.run_id, self._rows, size, artifacts, self._changed, skipped)
        raise PushError(f"cannot push {self.run_id}: other pushes of this run always come first; try again later")

    def _begin(self, state: UploadState, *, writing: bool) -> UploadState:
        record = self._content(RUN)
        if state.record == sha256(record).hexdigest() and state.writing == writing:
            return state
        self._send("PUT", "record", {"writing": writing}, record, dict[str, Any])
        return state if state.generation else msgspec.structs.replace(state, generation=1)

    def _send_rows(self, state: UploadState) -> int:
        """Send the rows behind those that the server has; the bytes that it has then."""
        path = self._path / INDEX
        generation, end = state.generation, state.size
        try:
            with path.open("rb") as file:
                start = _agreeing(file, state)
                file.seek(start)
                for lines in _batches(file, path):
                    received = self._send_batch(start, generation, lines, replace=start < end)
                    start, generation, end = received.size, received.generation, received.size
        except FileNotFoundError:
            start = 0
        except OSError as error:
            raise store_error("read", path, error) from error
        if start < end:  # the file became shorter
            start = self._send_batch(start, generation, b"", replace=True).size
        return start

    def _send_batch(self, start: int, generation: int, lines: bytes, *, replace: bool) -> Received:
        if not (self._checked or is_being_written(self._path)):
            check_rows(self._path)  # once: the server vouches for what it has received
            self._checked = True
        self._refuse_secrets(lines, f"the rows of {self.run_id} from byte {start} on")
        digest = sha256(lines).hexdigest()
        query = {"start": start, "generation": generation, "sha256": digest, "replace": replace}
        received: Received = self._send("POST", "rows", query, lines, Received)
        if received.size != start + len(lines):  # it came before, and more with it
            raise ConflictError
        self._rows += lines.count(b"\n")
        self._progress(received.size)
        return received

    def _send_artifacts(self, state: UploadState) -> tuple[int, tuple[str, ...]]:
        files, skipped = _artifacts(self._path)
        if not files:
            return 0, skipped
        listed = msgspec.json.encode(files)
        missing = self._send("POST", "files", {}, listed, dict[str, list[str]])["missing"]
        by_hash = {digest: path for path, digest in files.items()}
        for digest in missing:
            if digest not in by_hash:
                raise PushError("the server asks for artifacts that the run does not have")
            content = self._content(by_hash[digest])
            self._refuse_secrets(content, by_hash[digest])
            self._connection.send("PUT", f"contents/{digest}", {}, content, dict[str, Any])
        if missing:
            self._send("POST", "files", {}, listed, dict[str, list[str]])
        self._changed = self._changed or state.files != len(files)
        return len(missing), skipped

    def _finish(self, state: UploadState, *, writing: bool) -> None:
        summary = self._content(SUMMARY) if (self._path / SUMMARY).exists() else b""
        digest = sha256(summary).hexdigest() if summary else None
        if digest != state.summary:
            self._send("PUT", "summary", {"writing": writing}, summary, dict[str, Any])

    def _send(self, method: str, what: str, query: dict[str, Any], body: bytes, into: Any) -> Any:
        found = self._connection.send(method, f"uploads/{self.run_id}/{what}", query, body, into)
        self._changed = self._changed or bool(found.changed if isinstance(found, Received) else found.get("changed"))
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


def _artifacts(run: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Path below the run → SHA-256, of all files that agents left, and those that are too large. Links are left out."""
    found: dict[str, str] = {}
    skipped: list[str] = []
    for directory, _, names in os.walk(run / ARTIFACTS):
        for path in (Path(directory, name) for name in sorted(names)):
            if path.is_symlink() or not path.is_file():
                continue
            shown = path.relative_to(run).as_posix()
            try:
                if path.stat().st_size > LARGEST_BATCH:
                    skipped.append(shown)
                    continue
                with path.open("rb") as file:
                    found[shown] = file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise store_error("read", path, error) from error
    return found, tuple(skipped)
