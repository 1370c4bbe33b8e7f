"""The workspace of one trial, from its baseline to its removal."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp

from msgspec.structs import replace

from agentv.extensions.agents.workspaces.changes.baseline import Baselines
from agentv.extensions.agents.workspaces.changes.diff import shown_path
from agentv.extensions.agents.workspaces.changes.failing_tests import failing, failing_names
from agentv.extensions.agents.workspaces.changes.planted_modules import plants_modules
from agentv.extensions.agents.workspaces.changes.protected import changed_paths, changed_protected, matching, without
from agentv.extensions.agents.workspaces.changes.runner_config import (
    changed_test_config,
    is_in_part,
    parts,
    with_parts_of,
)
from agentv.extensions.agents.workspaces.changes.snapshot import LINK, REGULAR, Snapshot, content, take
from agentv.extensions.agents.workspaces.commands import run_confined, run_hooks
from agentv.extensions.agents.workspaces.directories import grading
from agentv.extensions.agents.workspaces.environment import SAFE_PATH
from agentv.extensions.agents.workspaces.files.placing import place_files, remove_file, write_file
from agentv.extensions.agents.workspaces.files.removing import make_writable, remove_directory
from agentv.extensions.agents.workspaces.files.without_secrets import remove_secrets
from agentv.extensions.agents.workspaces.quota import Quota
from agentv.extensions.agents.workspaces.sandboxes.choice import ConfinedPrograms
from agentv.extensions.agents.workspaces.sandboxes.launcher import GRACE_S
from agentv.extensions.agents.workspaces.sandboxes.places import Places
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.workspace import CopiedFiles, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.changes import WorkspaceChanges
from agentv.model.values.path_globs import matches
from agentv.model.values.response import Failure
from agentv.ports import FailingTests, ProgramResult, Sandbox

REMOVED_SECRETS = "removed-secrets.txt"
"""Beside a kept workspace: the files that a secret was taken out of."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state just before the agent starts.

    Attributes:
        commit: in the repository of baselines.
    """

    snapshot: Snapshot
    commit: str


@dataclass(frozen=True, slots=True)
class RunStorage:
    """What the workspaces of one run have in common.

    Attributes:
        baselines: the repository of all baselines.
        kept_directory: where workspaces go that are kept.
        redactor: takes secrets out of them.
    """

    baselines: Baselines
    kept_directory: str
    redactor: Redactor


class LocalWorkspace:
    """A workspace on this machine.

    Args:
        spec: of the case.
        places: its directories.
        sandbox: what confines the agent.
        baseline: what the diff is against.
        storage: of the run.
        env: what the suite sets, for hooks and graders.
    """

    def __init__(
        self,
        *,
        spec: WorkspaceSpec,
        places: Places,
        sandbox: ConfinedPrograms,
        baseline: Baseline,
        storage: RunStorage,
        env: Mapping[str, str],
    ) -> None:
        self._spec = spec
        self._places = places
        self._sandbox = sandbox
        self._baseline = baseline
        self._storage = storage
        self._env = env
        self._plants_modules = False
        self._graded = False
        self._test_config: tuple[bytes, ...] = ()
        self._quota = Quota(places, spec.max_mb, sandbox.end, watched=spec.existing is None)

    @property
    def path(self) -> str:
        """Absolute path of the directory that the agent works in."""
        return self._places.workspace

    @property
    def sandbox(self) -> Sandbox:
        """What confines the agent."""
        return self._sandbox

    async def finish(self) -> WorkspaceChanges | Failure:
        """End all processes of the agent, compare with the baseline, then copy the hidden files in."""
        if not await asyncio.to_thread(self._sandbox.end, GRACE_S):
            return Failure("workspace-failed", "processes of the agent could not be ended, even by SIGKILL")
        too_large = await self._quota.exceeded()
        if too_large is not None:
            return too_large
        try:
            now = await asyncio.to_thread(self._final)
        except OSError as error:
            return Failure("workspace-failed", f"the workspace cannot be read: {error.strerror}")
        changes = await self._changes(now)
        if isinstance(changes, Failure):
            return changes
        self._test_config = await self._changed_test_config(now)
        self._plants_modules = plants_modules(self._baseline.snapshot, now, self._test_config)
        failure = await asyncio.to_thread(place_files, self._spec.hidden, self.path)
        if failure is not None:
            return failure
        links = await asyncio.to_thread(self._links_to_hidden, now)
        return replace(
            changes,
            protected=tuple(dict.fromkeys((*changes.protected, *links))),
            test_config=tuple(map(shown_path, self._test_config)),
        )

    async def _changed_test_config(self, now: Snapshot) -> tuple[bytes, ...]:
        """The files that the agent changed which decide how hidden and protected tests run."""
        before = self._baseline.snapshot
        hidden = [path for one in self._spec.hidden for path in placed_paths(one)]
        found = []
        for path in changed_test_config(hidden, matching(self._spec.protected, before), before, now):
            if is_in_part(path):
                earlier = await self._earlier(path)
                if parts(path, earlier) == parts(path, await asyncio.to_thread(_text, self.path, path, now)):
                    continue
            found.append(path)
        return tuple(found)

    async def _earlier(self, path: bytes) -> str:
        """The text of a file at the baseline; empty where there was none."""
        there = path in self._baseline.snapshot.files
        return await self._storage.baselines.text(self._baseline.commit, path) if there else ""

    async def restore_test_config(self, allowed: Sequence[str]) -> tuple[str, ...] | Failure:
        """Undo what the agent changed in how tests run, except in files that some globs name; the paths."""
        restored = []
        for path in self._test_config:
            shown = shown_path(path)
            if any(matches(glob, shown) for glob in allowed):
                continue
            earlier, name = await self._earlier(path), os.fsdecode(path)
            try:
                await asyncio.to_thread(self._restore, path, name, earlier)
            except OSError as error:
                return Failure("workspace-failed", f"cannot restore {shown} before its tests run: {error.strerror}")
            restored.append(shown)
        return tuple(restored)

    def _restore(self, path: bytes, name: str, earlier: str) -> None:
        state, place = self._baseline.snapshot.files.get(path), Path(self.path, name)
        mode = REGULAR if state is None else state.mode
        if is_in_part(path) and place.is_file() and not place.is_symlink():
            text = content(self.path, path).decode(errors="replace")
            write_file(self.path, name, with_parts_of(path, text, earlier).encode(), mode)
        elif state is None:
            remove_file(self.path, name)
        else:
            write_file(self.path, name, earlier.encode(), mode)

    async def run_failing_tests(self, command: WorkspaceCommand) -> FailingTests | Failure | None:
        """Run a command once more with hidden tests that must fail; None: it loads none that can be made to."""
        mark = f".agentv-{token_hex(8)}"
        try:
            names = await asyncio.to_thread(self._place_failing, mark)
            ended = await self.run(command, replaces_hidden=False) if names is not None else None
            loaded = await asyncio.to_thread(self._removed_mark, mark, command.cwd)
        except OSError as error:
            return Failure("workspace-failed", f"cannot write tests that must fail: {error.strerror}")
        failure = await asyncio.to_thread(place_files, self._spec.hidden, self.path)
        if isinstance(ended, Failure):
            return ended
        if failure is not None or ended is None:
            return failure
        return FailingTests(ended, names or frozenset()) if loaded else None

    def _place_failing(self, mark: str) -> frozenset[str] | None:
        """Write the failing tests in place of the hidden ones; their names, or None without any."""
        names: set[str] = set()
        found = False
        for path in (path for one in self._spec.hidden for path in placed_paths(one)):
            text = content(self.path, os.fsencode(path)).decode(errors="replace")
            changed = failing(path, text, mark)
            if changed is not None:
                write_file(self.path, path, changed.encode(), "100644")
                names |= {f"{Path(path).stem}::{name}" for name in failing_names(text)}
                found = True
        return frozenset(names) if found else None

    def _removed_mark(self, mark: str, cwd: str) -> bool:
        """Whether the failing tests were loaded."""
        hidden = (path for one in self._spec.hidden for path in placed_paths(one))
        folders = {cwd, *(str(Path(path).parent) for path in hidden)}
        found = [place for one in folders if (place := Path(self.path, one, mark)).exists()]
        for place in found:
            place.unlink()
        return bool(found)

    def _links_to_hidden(self, now: Snapshot) -> tuple[str, ...]:
        """Links of the agent that lead to hidden files: whoever reads them takes the hidden files for its work."""
        root = os.path.realpath(self.path)
        hidden = {os.path.realpath(f"{root}/{path}") for one in self._spec.hidden for path in placed_paths(one)}
        found = []
        for path in changed_paths(self._baseline.snapshot, now):
            if path in now.files and now.files[path].mode == LINK:
                target = os.path.realpath(f"{root}/{os.fsdecode(path)}")
                if target != root and any(one == target or one.startswith(f"{target}/") for one in hidden):
                    found.append(shown_path(path))
        return tuple(sorted(found))

    async def run(
        self, command: WorkspaceCommand, stdin: bytes = b"", *, replaces_hidden: bool = True
    ) -> ProgramResult | Failure:
        """Run a grader's command in the final workspace, confined as the agent was, without the agent's HOME."""
        if (
            self._graded and self._spec.hidden and replaces_hidden
        ):  # what an earlier command ran may have written to them
            failure = await asyncio.to_thread(place_files, self._spec.hidden, self.path)
            if failure is not None:
                return failure
        self._graded = True
        try:
            places = await asyncio.to_thread(grading, self._places)
        except OSError as error:
            return Failure("workspace-failed", f"cannot run a command in the workspace: {error.strerror}")
        planted = SAFE_PATH if self._plants_modules else {}
        sandbox = self._sandbox.for_grading(places, {**planted, **self._env, **self._spec.env})
        ended = await run_confined(command, sandbox, self.path, {}, stdin)
        await asyncio.to_thread(self._sandbox.end, 0.0)
        return ended

    def hidden(self) -> frozenset[str]:
        """The paths of the hidden files."""
        return frozenset(os.path.normpath(path) for one in self._spec.hidden for path in placed_paths(one))

    def read(self, path: str) -> bytes | None:
        """The content of a file, or the target of a link; None if it is missing or behind a link."""
        try:
            return content(self.path, os.fsencode(path))
        except OSError:
            return None

    def write(self, path: str, content: bytes | None, mode: str = "") -> None:
        """Write a file or a link in place of what stands there; None: remove it."""
        if content is None:
            remove_file(self.path, path)
        else:
            write_file(self.path, path, content, mode)

    async def close(self, *, keep: bool) -> str | Failure | None:
        """Run the hooks that come last, and remove it; the path where it is kept."""
        await self._quota.stop()
        failure = await run_hooks(self._spec.hooks.after_each, self._sandbox, self.path, self._env)
        return failure or await asyncio.to_thread(self._leave, keep)

    async def discard(self) -> None:
        """Remove it without hooks."""
        await self._quota.stop()
        await asyncio.to_thread(self._leave, False)

    def _final(self) -> Snapshot:
        """The state of the workspace now. One that was deleted, or replaced, is an empty directory."""
        place = Path(self.path)
        if place.is_symlink() or not place.is_dir():
            remove_directory(self.path)
            place.mkdir(parents=True)
        place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)
        return take(self.path, self._baseline.snapshot)

    async def _changes(self, now: Snapshot) -> WorkspaceChanges | Failure:
        before, spec = self._baseline.snapshot, self._spec
        protected = changed_protected(spec.protected, before, now)
        shown, earlier = without(spec.ignore, now), without(spec.ignore, before)
        final = await self._storage.baselines.store(self.path, shown, self._baseline.commit, earlier)
        if isinstance(final, Failure):
            return final
        if final == self._baseline.commit:
            return WorkspaceChanges(protected=protected)
        changes = await self._storage.baselines.changes(self._baseline.commit, final, now)
        if isinstance(changes, Failure):
            return changes
        return replace(changes, protected=protected)

    def _leave(self, keep: bool) -> str | Failure | None:
        """Remove the directories of the trial, and keep the workspace where it is asked for."""
        self._sandbox.end(0.0)
        kept: str | Failure | None = None
        if keep:
            kept = self._spec.existing or self._keep()
        remove_directory(self._places.trial)
        return kept

    def _keep(self) -> str | Failure:
        try:
            Path(self._storage.kept_directory).mkdir(parents=True, exist_ok=True)
            kept = mkdtemp(prefix=f"{Path(self._places.trial).name}-", dir=self._storage.kept_directory)
            place = os.path.join(kept, "workspace")  # noqa: PTH118  # as text
            make_writable(self.path)
            try:
                Path(self.path).rename(place)
            except OSError:  # another file system
                with suppress(shutil.Error):  # pipes and devices are left out
                    shutil.copytree(self.path, place, symlinks=True)
            removed = _without_secrets(place, self._storage.redactor)
            if removed:
                Path(kept, REMOVED_SECRETS).write_text("".join(f"{one}\n" for one in removed), errors="replace")
        except OSError as error:
            return Failure("workspace-failed", f"the workspace cannot be kept: {error.strerror}")
        return place


def _text(directory: str, path: bytes, now: Snapshot) -> str:
    """The text of a regular file; empty if it is missing."""
    if path not in now.files:
        return ""
    try:
        return content(directory, path).decode(errors="replace")
    except OSError:
        return ""


def _without_secrets(place: str, redactor: Redactor) -> list[str]:
    """Take the secrets out of a kept workspace; one in which that is impossible is not kept.

    Raises:
        OSError: that is impossible.
    """
    try:
        return remove_secrets(place, redactor)
    except OSError:
        remove_directory(place)
        raise


def placed_paths(copied: CopiedFiles) -> tuple[str, ...]:
    """The paths in the workspace of the files that are copied."""
    source = Path(copied.source)
    if not source.is_dir():
        return (copied.path or source.name,)
    files = (one.relative_to(source) for one in source.rglob("*") if not one.is_dir())
    return tuple(f"{copied.path}/{one}" if copied.path else str(one) for one in files)
