"""The stored work of an agent, `work.json`, and its reader for runs that grade it again.

`work.json` is one object with the keys `version`; `trace` and `patch`, the hashes of `trace.json` and `diff.patch`
beside it; `changes`, the changed files, including protected ones; `ignored`, the globs of files that the diff omits;
`tool_state`; and `sandbox`. A part in which a secret was redacted is null and named in `redacted`, as the rest would
misrepresent the agent's work.

The hash of this file is in the row, and the row's checksum in the journal, so that edited work is never graded.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentv.model.redaction import Redactor
from agentv.model.run.trial import AgentWork, Trial
from agentv.model.suite.workspace import SandboxName
from agentv.model.values.response import Failure
from agentv.model.values.trace import FileChange, Trace, WorkspaceChanges
from agentv.store.files.directory import INDEX
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines

if TYPE_CHECKING:
    from agentv.store.journal.journal_reader import JournalReader

WORK = "work.json"
DIFF = "diff.patch"


class KeptParts(Struct, frozen=True):
    """Hashes of the files beside `work.json`; None if there is no such file or a secret was redacted in it."""

    trace: str | None = None
    patch: str | None = None


class _Changes(Struct, frozen=True):
    """The changed files of a diff."""

    files: tuple[FileChange, ...]
    protected: tuple[str, ...]
    test_config: tuple[str, ...]
    cut: bool


class _Document(Struct, kw_only=True):
    version: int = 1
    trace: str | None = None
    patch: str | None = None
    changes: _Changes | None = None
    ignored: tuple[str, ...] = ()
    tool_state: dict[str, Any] | None = None
    sandbox: SandboxName | None = None
    redacted: tuple[str, ...] = ()


class _Row(Struct):
    """The fields of a row that are needed to find and verify its work."""

    test_id: str
    target: str
    suite: str = ""
    prompt_id: str | None = None
    variant: str | None = None
    sample: int = 1
    output: str | None = None
    work_path: str | None = None
    work_sha256: str | None = None

    @property
    def name(self) -> tuple[object, ...]:
        """Identity of the trial within its run."""
        return (self.suite, self.test_id, self.target, self.prompt_id, self.variant, self.sample)


def document(work: AgentWork, parts: KeptParts, redactor: Redactor) -> bytes:
    """Return the content of `work.json`.

    Args:
        work: of an agent.
        parts: hashes of the files beside it.
        redactor: finds secrets.
    """
    done = work.changes
    changes = None if done is None else _Changes(done.files, done.protected, done.test_config, done.cut)
    kept: dict[str, Any] = {"trace": parts.trace, "patch": parts.patch}
    kept |= {"changes": changes, "tool_state": work.tool_state}
    there = {"trace": work.trace is not None, "patch": bool(done and done.files)}
    redacted = [name for name, is_there in there.items() if is_there and kept[name] is None]
    for name in ("changes", "tool_state"):
        if kept[name] is not None and redactor.found_in(to_json(kept[name])):
            kept[name] = None
            redacted.append(name)
    return to_json(_Document(**kept, ignored=work.ignored, sandbox=work.sandbox, redacted=tuple(redacted)))


class KeptWorks:
    """A `WorkArchive` for the stored work of an earlier run. Its rows are read on the first call of `work`.

    Args:
        journal: of the run; rows whose checksum is not in it are rejected.
    """

    def __init__(self, journal: JournalReader) -> None:
        self._journal = journal
        self._rows: dict[tuple[object, ...], _Row | None] | None = None

    def work(self, trial: Trial, output: str | None) -> AgentWork | Failure | None:
        """Return a trial's work, None if none is stored for this answer, or a Failure if it was changed or removed."""
        if self._rows is None:
            self._rows = dict(self._read())
        case = trial.case
        name = (trial.suite.name, case.id, trial.target.name, case.prompt_id, trial.variant_name, trial.sample)
        if name not in self._rows:
            return None
        row = self._rows[name]
        if row is None:
            return self._changed(INDEX)
        if row.work_path is None or row.output != output:
            return None
        ignored = case.workspace.ignore if case.workspace is not None else ()
        return self._of(row.work_path, row.work_sha256 or "", ignored)

    def _read(self) -> Any:
        for _, line in read_lines(self._journal.run / INDEX):
            try:
                row = msgspec.json.decode(line, type=_Row)
            except ValueError:
                continue  # a torn line
            whole = self._journal.checksum_position(line.rstrip(b"\n")) is not None
            yield row.name, row if whole or row.work_path is None else None

    def _of(self, named: str, digest: str, ignored: tuple[str, ...]) -> AgentWork | Failure | None:
        place = (self._journal.run / named).parent
        data = _content(place / WORK, digest)
        if data is None:
            return self._changed(named)
        found = msgspec.json.decode(data, type=_Document)
        trace = self._trace(found, place)
        if isinstance(trace, Failure):
            return trace
        changes = self._changes(found, place) if found.ignored == ignored else None
        if isinstance(changes, Failure):
            return changes
        return AgentWork(found.sandbox, trace, changes, ignored=found.ignored, tool_state=found.tool_state)

    def _trace(self, found: _Document, place: Path) -> Trace | Failure | None:
        from agentv.model.values.trace_document import TRACE_FILE, parse

        if found.trace is None:
            return None
        data = _content(place / TRACE_FILE, found.trace)
        return self._changed(TRACE_FILE) if data is None else parse(data)

    def _changes(self, found: _Document, place: Path) -> WorkspaceChanges | Failure | None:
        changes = found.changes
        if changes is None or "patch" in found.redacted:
            return None
        patch = b"" if found.patch is None else _content(place / DIFF, found.patch)
        if patch is None:
            return self._changed(DIFF)
        return WorkspaceChanges(changes.files, patch.decode(), changes.protected, changes.cut, changes.test_config)

    def _changed(self, what: str) -> Failure:
        message = f"{what} of the run {self._journal.run_id} was changed or removed after it was written"
        return Failure("bad-trace", message)


def _content(path: Path, digest: str) -> bytes | None:
    """Return the content of a file, or None if it is missing or has another hash."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None
