"""Workspaces prepared once for all trials that start from the same template, repositories, files and setup."""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.extensions.agents.workspaces.baseline import Baselines
from agentv.extensions.agents.workspaces.commands import run_hooks
from agentv.extensions.agents.workspaces.directories import RunDirectory
from agentv.extensions.agents.workspaces.docker import Docker, copy_workdir
from agentv.extensions.agents.workspaces.placing import copy_directory, place_files
from agentv.extensions.agents.workspaces.process_group import Places, ProcessGroup
from agentv.extensions.agents.workspaces.repositories import Checkouts
from agentv.extensions.agents.workspaces.snapshot import TICK_S, Snapshot, take
from agentv.model.suite.workspace import CopiedFiles, Variant, WorkspaceSpec
from agentv.model.values.response import Failure

_WORKSPACE_PREFIX = b"workspace/"

MakeSandbox = Callable[[Places], ProcessGroup]


@dataclass(frozen=True, slots=True)
class PreparedWorkspace:
    """A workspace that is copied for each trial and never changes.

    Attributes:
        commit: commit of its state in the repository of baselines.
        hidden: files to copy in after the agent has ended; each patch is replaced by the files that it changes.
        self_references: files of the workspace and HOME that contain the path `places.trial`, relative to it.
    """

    places: Places
    snapshot: Snapshot
    commit: str
    hidden: tuple[CopiedFiles, ...] = ()
    self_references: tuple[bytes, ...] = ()

    async def copy_to(self, places: Places, *, with_home: bool) -> Failure | None:
        """Copy the workspace into the directories of a trial."""
        own = self.places
        failure = await copy_directory(own.workspace, places.workspace)
        if failure is None and with_home and await asyncio.to_thread(lambda: any(Path(own.home).iterdir())):
            failure = await copy_directory(own.home, places.home)
        files = [one for one in self.self_references if with_home or one.startswith(_WORKSPACE_PREFIX)]
        if failure is None and files:
            await asyncio.to_thread(relocate, files, own.trial, places.trial)
        return failure

    @property
    def copied(self) -> Snapshot:
        """The state of the files that are identical in every copy."""
        changed = {one.removeprefix(_WORKSPACE_PREFIX) for one in self.self_references}
        return {path: state for path, state in self.snapshot.items() if path not in changed}


class PreparedWorkspaces:
    """The prepared workspaces of a run. A failed preparation is not retried."""

    def __init__(self, run: RunDirectory, baselines: Baselines, checkouts: Checkouts) -> None:
        self._run = run
        self._baselines = baselines
        self._checkouts = checkouts
        self._made: dict[str, asyncio.Task[PreparedWorkspace | Failure]] = {}

    async def get(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str], make_sandbox: MakeSandbox
    ) -> PreparedWorkspace | Failure:
        """Return the workspace that a trial starts from, prepared on first use even if that trial is cancelled.

        Args:
            spec: workspace of the case.
            variant: variant whose `ref` applies.
            env: the suite's environment variables, for setup.
            make_sandbox: returns the sandbox that setup runs in.
        """
        ref = variant.ref if variant is not None else None
        patches = tuple(one for one in spec.hidden if one.is_patch)
        parts = (spec.template, spec.repositories, spec.files, spec.setup, spec.sandbox, spec.docker, ref)
        variables = (sorted(spec.env.items()), sorted(env.items())) if spec.setup else ()
        digest = hashlib.sha256(repr((parts, patches, variables)).encode(errors="surrogatepass")).hexdigest()[:20]
        if digest not in self._made:
            self._made[digest] = asyncio.ensure_future(self._make(spec, ref, env, make_sandbox))
        return await asyncio.shield(self._made[digest])

    async def close(self) -> None:
        """Cancel the preparations that are still running."""
        for task in self._made.values():
            task.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)

    async def _make(
        self, spec: WorkspaceSpec, ref: str | None, env: Mapping[str, str], make_sandbox: MakeSandbox
    ) -> PreparedWorkspace | Failure:
        try:
            places = await asyncio.to_thread(self._run.places, "setups")
            sandbox = make_sandbox(places)
            failure = await self._template(spec, ref, places.workspace)
            if isinstance(sandbox, Docker) and sandbox.recipe.workdir and not (spec.template or spec.repositories):
                failure = failure or await copy_workdir(sandbox)
            for one in spec.repositories:
                failure = failure or await asyncio.to_thread(self._checkouts.check_out, one, places.workspace)
            failure = failure or await asyncio.to_thread(place_files, spec.files, places.workspace)
            if failure is None and spec.setup:
                failure = await run_hooks(spec.setup, sandbox, places.workspace, env, setup=True)
            if failure is not None:
                return failure
            hidden = await asyncio.to_thread(self._hidden, spec, places)
            if isinstance(hidden, Failure):
                return hidden
            await asyncio.sleep(TICK_S)
            snapshot = await asyncio.to_thread(take, places.workspace, {})
            commit = await self._baselines.store(places.workspace, snapshot)
            if isinstance(commit, Failure):
                return commit
            references = await asyncio.to_thread(files_containing_path, places) if spec.setup else ()
            return PreparedWorkspace(places, snapshot, commit, hidden, references)
        except OSError as error:
            return Failure("workspace-failed", f"cannot prepare a workspace: {error.strerror}")

    def _hidden(self, spec: WorkspaceSpec, places: Places) -> tuple[CopiedFiles, ...] | Failure:
        """Return the hidden files, with patches replaced by the files that they change, kept outside the workspace."""
        found = []
        for number, one in enumerate(spec.hidden):
            kept = Path(places.trial, "hidden", str(number))
            failure = self._checkouts.write_patched(one.source, places.workspace, kept) if one.is_patch else None
            if failure is not None:
                return failure
            found.append(replace(one, source=str(kept), is_patch=False) if one.is_patch else one)
        return tuple(found)

    async def _template(self, spec: WorkspaceSpec, ref: str | None, workspace: str) -> Failure | None:
        if spec.template is None:
            return None
        if ref is not None:
            return await asyncio.to_thread(self._checkouts.write_template, spec.template, ref, workspace)
        place = Path(workspace) / spec.template.path
        await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
        if not await asyncio.to_thread(Path(spec.template.source).is_dir):
            return Failure("workspace-failed", f"the template {spec.template.source} is not a directory")
        return await copy_directory(spec.template.source, str(place))


def files_containing_path(places: Places) -> tuple[bytes, ...]:
    """Return the files and links of a workspace and HOME that contain `places.trial`, relative to it. Blocks."""
    wanted, found = os.fsencode(places.trial), []
    for top in (places.workspace, places.home):
        for folder, directories, files in os.walk(os.fsencode(top)):
            for name in (*directories, *files):
                path = os.path.join(folder, name)  # noqa: PTH118  # as bytes, in a hot loop
                if _contains(path, wanted):
                    found.append(os.path.relpath(path, wanted))
    return tuple(found)


def relocate(files: Iterable[bytes], old: str, new: str) -> None:
    """Replace `old` with `new`, a path of the same length, in files copied to `new`, and keep their times. Blocks.

    Raises:
        OSError: a file cannot be written.
    """
    before, after = os.fsencode(old), os.fsencode(new)
    for name in files:
        path = os.path.join(after, name)  # noqa: PTH118  # as bytes
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(path)  # noqa: PTH115  # as bytes
            os.unlink(path)  # noqa: PTH108  # as bytes
            os.symlink(target.replace(before, after), path)  # noqa: PTH211  # as bytes
        else:
            mode = stat.S_IMODE(found.st_mode)
            os.chmod(path, mode | stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101  # as bytes
            with open(path, "r+b") as file:  # noqa: PTH123  # as bytes
                data = file.read().replace(before, after)
                file.seek(0)
                file.write(data)
            os.chmod(path, mode)  # noqa: PTH101  # as bytes
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)


def _contains(path: bytes, wanted: bytes) -> bool:
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return wanted in os.readlink(path)  # noqa: PTH115  # as bytes
        if not stat.S_ISREG(found.st_mode) or found.st_size < len(wanted):
            return False
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:  # noqa: PTH123  # as bytes
            return data.find(wanted) >= 0
    except OSError:
        return False
