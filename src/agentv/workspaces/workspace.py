"""The workspace of one trial, from its baseline to its removal."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from agentv.lazy_dataclass import dataclass
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.workspace import CopiedFiles, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.changes import WorkspaceChanges
from agentv.model.values.response import Failure
from agentv.ports import ProgramResult, Sandbox
from agentv.workspaces.changes.baseline import Baselines
from agentv.workspaces.changes.diff import shown_path
from agentv.workspaces.changes.planted_modules import plants_modules
from agentv.workspaces.changes.protected import changed_paths, changed_protected, without
from agentv.workspaces.changes.runner_config import changed_test_config, has_sections, sections
from agentv.workspaces.changes.snapshot import LINK, Snapshot, content, take
from agentv.workspaces.commands import run_confined, run_hooks
from agentv.workspaces.directories import grading
from agentv.workspaces.environment import SAFE_PATH
from agentv.workspaces.files.placing import place_files
from agentv.workspaces.files.removing import make_writable, remove_directory
from agentv.workspaces.files.without_secrets import remove_secrets
from agentv.workspaces.quota import Quota
from agentv.workspaces.sandboxes.choice import ConfinedPrograms
from agentv.workspaces.sandboxes.launcher import GRACE_S
from agentv.workspaces.sandboxes.places import Places

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
        self._plants_modules = plants_modules(self._baseline.snapshot, now)
        changes = await self._changes(now)
        if isinstance(changes, Failure):
            return changes
        config = await self._test_config(now)
        failure = await asyncio.to_thread(place_files, self._spec.hidden, self.path)
        if failure is not None or not self._spec.hidden:
            return failure or changes
        links = await asyncio.to_thread(self._links_to_hidden, now)
        return replace(changes, protected=tuple(dict.fromkeys((*changes.protected, *links))), test_config=config)

    async def _test_config(self, now: Snapshot) -> tuple[str, ...]:
        """The files that the agent changed which decide how hidden tests run. They are not copied in yet."""
        if not self._spec.hidden:
            return ()
        before = self._baseline
        found = []
        for path in changed_test_config(
            (path for one in self._spec.hidden for path in placed_paths(one)), before.snapshot, now
        ):
            if has_sections(path):
                there = path in before.snapshot.files
                earlier = await self._storage.baselines.text(before.commit, path) if there else ""
                if sections(earlier) == sections(await asyncio.to_thread(_text, self.path, path, now)):
                    continue
            found.append(shown_path(path))
        return tuple(found)

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

    async def run(self, command: WorkspaceCommand, stdin: bytes = b"") -> ProgramResult | Failure:
        """Run a grader's command in the final workspace, confined as the agent was, without the agent's HOME."""
        if self._graded and self._spec.hidden:  # what an earlier command ran may have written to them
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
    """The text of a regular file; empty where there is none."""
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
