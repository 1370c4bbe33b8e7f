"""Artifacts of trials, with secrets redacted: the trace, the diff, and the output of the agent's program."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.redaction import REDACTED, Redactor
from agentv.model.run.trial import AgentWork, StoredWork, Trial, TrialResult
from agentv.model.values.trace import Trace
from agentv.model.values.values import lazy_pattern
from agentv.store.files.directory import ARTIFACTS, RunDirectory
from agentv.store.files.whole_file import DIRECTORY_MODE, make_private, new_private
from agentv.user_code.files import store_error

if TYPE_CHECKING:
    from agentv.app.running.kept_work import KeptParts

_KEY_DIGITS = 12
_LONGEST_NAME = 60
_UNSAFE = lazy_pattern(r"[^\w.-]+")


class Artifacts(Struct):
    """Writes the artifacts of agents' work to a run directory."""

    directory: RunDirectory

    def store(self, result: TrialResult) -> TrialResult:
        """Write the artifacts of a result, and return the result with their paths instead of the work.

        Raises:
            StoreError: a file cannot be written.
        """
        from agentv.app.running.kept_work import DIFF, KeptParts

        work = result.work
        if work is None:
            return result
        stored = StoredWork(work.sandbox, work.agent_version or None, workspace_path=self._relative_path(work.kept))
        place = self.directory.path / ARTIFACTS / directory_name(result.trial)
        try:
            whole = KeptParts()
            if work.changes is not None and work.changes.files:
                patch = work.changes.patch.encode(errors="replace")
                written = self._write(place / DIFF, patch)
                stored = replace(stored, diff_path=self._relative_path(str(place / DIFF)))
                whole = replace(whole, patch=sha256(written).hexdigest() if written == patch else None)
            for name, data in work.logs.items():
                self._write(place / name, data)
            if work.trace is not None:
                stored, digest = self._with_trace(work.trace, place, stored)
                whole = replace(whole, trace=digest)
            stored = self._with_work(work, whole, place, stored)
        except OSError as error:
            raise store_error("write", Path(error.filename or place), error) from error
        return replace(result, work=None, stored=stored)

    def _with_trace(self, trace: Trace, place: Path, stored: StoredWork) -> tuple[StoredWork, str | None]:
        """Write a trace; return its paths, and its file's hash or None if a secret was redacted."""
        from agentv.store.files.traces import write  # few runs have traces

        self._make_directory(place)
        clean = self.directory.redactor.redacted(trace)
        files = write(replace(clean, native=self._redacted_bytes(trace.native)), place)
        named = replace(
            stored,
            agent_turns=None if trace.partial else trace.turns or None,
            trace_path=self._relative_path(files.trace_path),
            native_path=self._relative_path(files.native_path),
        )
        return named, files.sha256 if clean is trace or clean == trace else None

    def _with_work(self, work: AgentWork, whole: KeptParts, place: Path, stored: StoredWork) -> StoredWork:
        """Write `work.json`, from which a later run can grade the work again."""
        from agentv.app.running.kept_work import WORK, document

        if work.trace is None and work.changes is None and work.tool_state is None:
            return stored
        data = document(work, whole, self.directory.redactor)
        self._make_directory(place)
        with os.fdopen(new_private(place / WORK), "wb") as file:
            file.write(data)
        return replace(stored, work_path=self._relative_path(str(place / WORK)), work_sha256=sha256(data).hexdigest())

    def _write(self, path: Path, data: bytes) -> bytes:
        """Write a file with secrets redacted, and return the written bytes."""
        self._make_directory(path.parent)
        clean = self._redacted_bytes(data)
        with os.fdopen(new_private(path), "wb") as file:
            file.write(clean)
        return clean

    def _make_directory(self, place: Path) -> None:
        make_private(self.directory.path / ARTIFACTS)
        place.mkdir(mode=DIRECTORY_MODE, exist_ok=True)

    def _relative_path(self, path: str | None) -> str | None:
        """Return a path relative to the run's directory if it is inside."""
        return None if path is None else path.removeprefix(f"{self.directory.path}/")

    def _redacted_bytes(self, data: bytes) -> bytes:
        """Return the bytes with secrets redacted."""
        redactor = self.directory.redactor
        if not redactor:
            return data
        text = redacted_stream(data, redactor).decode(errors="surrogateescape")
        return redactor.redact(text).encode(errors="surrogateescape")


def directory_name(trial: Trial) -> str:
    """Return a readable and unique name for the directory of a trial."""
    key, _, sample = trial.key.rpartition("-")
    parts = [trial.case.id, trial.variant_name or "", key[:_KEY_DIGITS], sample]
    case = _UNSAFE.sub("_", "-".join(part for part in parts[:2] if part))[:_LONGEST_NAME].strip(".")
    return "-".join((case or "case", *parts[2:]))


def redacted_stream(data: bytes, redactor: Redactor) -> bytes:
    """Redact secrets that are split over several JSON lines, as in streamed texts. Other lines are not changed."""
    from agentv.model.values.joined_texts import Change, PieceChanges, joined_texts

    if not redactor or b"\n{" not in data:
        return data
    lines = data.split(b"\n")
    objects = [_object(line) for line in lines]
    changes = PieceChanges()
    for joined in joined_texts(objects, _place):
        if len(joined.pieces) == 1:
            continue
        for first, last in redactor.spans_in(joined.text):
            inside = joined.inside(first, last)
            for number, piece in enumerate(inside if len(inside) > 1 else ()):
                changes.add(piece, Change(first, last, "" if number else REDACTED))
    for line in changes.values():
        written = json.dumps(changes.changed(line, objects[line]), separators=(",", ":"), ensure_ascii=False)
        lines[line] = written.encode(errors="surrogatepass")
    return b"\n".join(lines)


def _object(line: bytes) -> Any:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _place(value: Any, number: int) -> tuple[str, ...]:
    """Return the same place for all entries of a list, so that their texts are joined."""
    del value
    return () if number < 0 else ("*",)
