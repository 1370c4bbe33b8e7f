"""The workspaces of a stored run, made again: the template with the stored diff, in a directory of their own.

Nothing is believed: what the new workspace differs by from its baseline must be what the run stored, file by file. The
stored run, a kept workspace and the user's files are only read.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentv.engine.run_context import RunContext
from agentv.extensions.mutate.operators.named import named_by
from agentv.extensions.mutate.operators.patch import FilePatch, read_patch
from agentv.extensions.mutate.operators.work import Work, WorkFile, named_work, reads_work
from agentv.extensions.mutate.operators.workspaces import is_test_file
from agentv.model.run.trial import Trial
from agentv.model.run.work import AgentWork
from agentv.model.values.changes import FileChange, WorkspaceChanges
from agentv.model.values.path_globs import matches
from agentv.model.values.response import Failure
from agentv.ports import Workspace
from agentv.store.files.artifact import artifact
from agentv.work_ports import TrialWork

NOT_REBUILT = "cases whose workspace cannot be rebuilt"
MOST_TESTS = 20
"""Files with tests that are read, at most."""

_MOST_ENTRIES = 20_000
_LONGEST_TEST = 200_000
_ELSEWHERE = frozenset({".git", "node_modules", ".venv", "venv", "site-packages", "__pycache__"})


@dataclass(frozen=True, slots=True)
class FinalFile:
    """A changed file as the agent left it. `content`: None: it deleted the file."""

    change: FileChange
    content: bytes | None
    mode: str
    patch: FilePatch


@dataclass(slots=True)
class RebuiltWork:
    """The final workspace of a trial, which can be made as often as it takes.

    Attributes:
        kept: what the run stored of the agent's work.
        files: what the agent changed.
        tests: path → text of files with tests.
        shared: a workspace with nothing changed besides, open until `close`; None: it was not needed yet.
    """

    trial: Trial
    run_context: RunContext
    kept: AgentWork
    files: tuple[FinalFile, ...] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    shared: TrialWork | None = None

    def seen(self) -> Work:
        """The workspace as operators see it."""
        changed = []
        for one in self.files:
            text = None if one.content is None else _text(one.content)
            if one.content is None or text is not None:
                is_new = one.change.kind == "added"
                changed.append(WorkFile(one.change.path, text, one.patch.hunks, is_new=is_new))
        case = self.trial.case
        tests = tuple(WorkFile(path, text) for path, text in self.tests.items())
        words = named_by(
            case, (entry for entry in case.assertions if reads_work(entry) and entry.type != "file-changes")
        )
        return Work(tuple(changed), tests, named_work(case, case.assertions), words)

    async def open(self, changed: Mapping[str, str | None]) -> TrialWork | Failure:
        """A new workspace with what the agent left, changed further, ready to be graded. Discard it afterwards.

        Args:
            changed: path → new text of a file; None: it is removed.
        """
        opened = await _opened(self.trial, self.run_context)
        return opened if isinstance(opened, Failure) else await self.finished(opened, changed)

    async def finished(self, opened: Workspace, changed: Mapping[str, str | None]) -> TrialWork | Failure:
        """A new workspace as `open` gives it. It is removed where that fails."""
        work = self.work(opened)
        failure: Failure | None = Failure("workspace-failed", "the workspace was not written")
        try:
            await asyncio.to_thread(self._write, opened, changed)
            failure = await work.finish()
        except OSError as error:
            failure = Failure("workspace-failed", f"cannot write the workspace: {error.strerror}")
        finally:
            if failure is not None:
                await work.discard()
        return failure or work

    def work(self, workspace: Workspace | None) -> TrialWork:
        """The agent's work, with a workspace or as it is stored."""
        work = self.run_context.works.work(self.trial, workspace)
        work.recall(self.kept)
        return work

    async def original(self) -> TrialWork | Failure:
        """A workspace as the agent left it, the same at every call."""
        if self.shared is None:
            opened = await self.open({})
            if isinstance(opened, Failure):
                return opened
            self.shared = opened
        return self.shared

    async def close(self) -> None:
        """Remove the shared workspace."""
        if self.shared is not None:
            shared, self.shared = self.shared, None
            await shared.discard()

    def _write(self, place: Workspace, changed: Mapping[str, str | None]) -> None:
        for one in self.files:
            if one.change.old_path is not None:
                place.write(one.change.old_path, None)
            if one.content is None:
                place.write(one.change.path, None)
        modes = {}
        for one in self.files:
            if one.content is not None:
                modes[one.change.path] = one.mode
                place.write(one.change.path, one.content, one.mode)
        for path, text in changed.items():
            content = None if text is None else text.encode(errors="surrogateescape")
            place.write(path, content, modes.get(path) or _mode(place.path, path))


async def rebuilt(
    trial: Trial, kept: AgentWork | None, directory: str | None, context: RunContext
) -> RebuiltWork | str:
    """The workspace of a trial; what to call the case if it cannot be rebuilt. Its original is open.

    Args:
        trial: with a workspace.
        kept: what the run stored of the agent's work; None: nothing.
        directory: absolute path where the run kept the workspace; None: it kept none.
        context: of the workspaces.
    """
    opened = await _opened(trial, context)
    if isinstance(opened, Failure):
        return f"{NOT_REBUILT}: {opened.message}"
    found = await _found(trial, kept, directory, (opened, context))
    if isinstance(found, str):
        await opened.close(keep=False)
        return f"{NOT_REBUILT}: {found}"
    work = await found.finished(opened, {})
    if isinstance(work, Failure):
        return f"{NOT_REBUILT}: {work.message}"
    if not _is_same(work.changes, found.kept.changes):
        await work.discard()
        return f"{NOT_REBUILT}: it is another one now than in the run"
    found.shared = work
    found.tests = await asyncio.to_thread(_tests, work)
    return found


async def _found(
    trial: Trial, kept: AgentWork | None, directory: str | None, opened: tuple[Workspace, RunContext]
) -> RebuiltWork | str:
    """What the run stored of a workspace, by a new one; why it is not enough."""
    changes = kept.changes if kept is not None else None
    if kept is None or changes is None:
        return "the run does not store its changes"
    patches = None if changes.cut else read_patch(changes.patch)
    if patches is None or len(patches) != len(changes.files):
        return "its diff is too long to be stored whole" if changes.cut else "its diff cannot be read"
    files = await asyncio.to_thread(_final_files, opened[0], changes.files, patches, directory)
    return files if isinstance(files, str) else RebuiltWork(trial, opened[1], kept, files)


async def _opened(trial: Trial, context: RunContext) -> Workspace | Failure:
    """A new workspace of the case, as for a trial."""
    spec = trial.case.workspace
    if spec is None or spec.existing:
        return Failure("no-workspace", "it is a directory of your own")
    return await context.works.workspace(trial)


def _final_files(
    place: Workspace, changes: tuple[FileChange, ...], patches: tuple[FilePatch, ...], directory: str | None
) -> tuple[FinalFile, ...] | str:
    """The changed files by the diff against a new workspace, else from the kept one; why that is impossible."""
    found = []
    for change, patch in zip(changes, patches, strict=True):
        before_path = change.old_path or change.path
        mode = patch.mode or ("100644" if change.kind == "added" else _mode(place.path, before_path))
        if change.kind == "deleted":
            found.append(FinalFile(change, None, mode, patch))
            continue
        before = b"" if change.kind == "added" else place.read(before_path)
        after = None if change.binary or before is None else patch.applied(before.decode(errors="surrogateescape"))
        content = None if after is None else after.encode(errors="surrogateescape")
        if content is None or _digest(content) != change.sha256:
            content = None if directory is None else _kept_content(directory, change.path)
        if content is None or _digest(content) != change.sha256:
            why = "is binary or large" if change.binary else "differs from the stored diff"
            return f"'{change.path}' {why}, and no kept workspace has it"
        found.append(FinalFile(change, content, mode, patch))
    return tuple(found)


def _is_same(now: WorkspaceChanges | None, then: WorkspaceChanges | None) -> bool:
    return now is not None and then is not None and (now.files, now.protected) == (then.files, then.protected)


def _tests(work: TrialWork) -> dict[str, str]:
    """The files with tests, without those that are hidden files or that the diff leaves out."""
    spec, workspace = work.trial.case.workspace, work.workspace
    if spec is None or workspace is None:
        return {}
    hidden = workspace.hidden()
    found: dict[str, str] = {}
    for path in _test_paths(workspace.path):
        if len(found) == MOST_TESTS:
            break
        if path in hidden or any(matches(glob, path) for glob in spec.ignore):
            continue
        content = workspace.read(path)
        text = _text(content) if content is not None and len(content) <= _LONGEST_TEST else None
        if text is not None and not Path(workspace.path, path).is_symlink():
            found[path] = text
    return found


def _test_paths(root: str) -> Iterator[str]:
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _ELSEWHERE)
        seen += len(names)
        if seen > _MOST_ENTRIES:
            return
        below = os.path.relpath(folder, root)
        for name in sorted(names):
            path = name if below == "." else f"{below}/{name}"
            if is_test_file(path):
                yield path


def _kept_content(directory: str, path: str) -> bytes | None:
    """The content of a file in a workspace that the run kept, or None if it is missing or a link leads out."""
    found = artifact(Path(directory), path)
    return found.read_bytes() if isinstance(found, Path) and found.is_file() else None


def _mode(directory: str, path: str) -> str:
    try:
        mode = Path(directory, path).lstat().st_mode
    except OSError:
        return "100644"
    return "120000" if mode & 0o170000 == 0o120000 else "100755" if mode & 0o100 else "100644"


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
