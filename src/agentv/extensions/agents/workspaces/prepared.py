"""Workspaces made once for all trials that begin with the same files: template, repositories, files and setup."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from agentv.extensions.agents.workspaces.changes.baseline import Baselines
from agentv.extensions.agents.workspaces.changes.snapshot import TICK_S, Snapshot, take
from agentv.extensions.agents.workspaces.commands import run_setup
from agentv.extensions.agents.workspaces.directories import RunDirectory
from agentv.extensions.agents.workspaces.files.copying import copy_directory
from agentv.extensions.agents.workspaces.files.placing import place_files
from agentv.extensions.agents.workspaces.files.relocating import files_naming, relocate
from agentv.extensions.agents.workspaces.repositories import Checkouts
from agentv.extensions.agents.workspaces.sandboxes.choice import ConfinedPrograms
from agentv.extensions.agents.workspaces.sandboxes.docker import Docker, copy_workdir
from agentv.extensions.agents.workspaces.sandboxes.places import Places
from agentv.model.suite.workspace import CopiedFiles, Variant, WorkspaceSpec
from agentv.model.values.response import Failure

MakeSandbox = Callable[[Places], ConfinedPrograms]


@dataclass(frozen=True, slots=True)
class PreparedWorkspace:
    """A workspace that trials are copied from; nothing changes it.

    Attributes:
        commit: its state in the repository of baselines.
        hidden: what is copied in after the agent has ended, with the files of patches in place of these.
        naming_itself, home_naming_itself: files of the workspace and of HOME that contain the path of this one.
    """

    places: Places
    snapshot: Snapshot
    commit: str
    hidden: tuple[CopiedFiles, ...] = ()
    naming_itself: tuple[bytes, ...] = ()
    home_naming_itself: tuple[bytes, ...] = ()

    async def copy_to(self, places: Places, *, with_home: bool) -> Failure | None:
        """Copy it into the directories of a trial; why it failed."""
        own = self.places
        failure = await copy_directory(own.workspace, places.workspace)
        if failure is None and with_home and await asyncio.to_thread(_holds_files, own.home):
            failure = await copy_directory(own.home, places.home)
        if failure is None and (self.naming_itself or self.home_naming_itself):
            await asyncio.to_thread(self._relocate, places, with_home=with_home)
        return failure

    def _relocate(self, places: Places, *, with_home: bool) -> None:
        relocate(places.workspace, self.naming_itself, self.places.trial, places.trial)
        if with_home:
            relocate(places.home, self.home_naming_itself, self.places.trial, places.trial)

    @property
    def copied(self) -> Snapshot:
        """The state of what is the same in a copy."""
        if not self.naming_itself:
            return self.snapshot
        changed = set(self.naming_itself)
        return Snapshot({path: state for path, state in self.snapshot.files.items() if path not in changed})


class PreparedWorkspaces:
    """All prepared workspaces of a run. One that failed is not tried again."""

    def __init__(self, run: RunDirectory, baselines: Baselines, checkouts: Checkouts) -> None:
        self._run = run
        self._baselines = baselines
        self._checkouts = checkouts
        self._made: dict[str, asyncio.Task[PreparedWorkspace | Failure]] = {}

    async def get(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str], make_sandbox: MakeSandbox
    ) -> PreparedWorkspace | Failure:
        """The workspace that a trial begins with, made by the first one that asks. A cancelled trial does not stop it.

        Args:
            spec: of the case.
            variant: whose `ref` applies.
            env: what the suite sets, for setup.
            make_sandbox: what confines setup.
        """
        ref = variant.ref if variant is not None else None
        digest = _digest(spec, ref, env)
        if digest not in self._made:
            self._made[digest] = asyncio.ensure_future(self._make(spec, ref, env, make_sandbox))
        return await asyncio.shield(self._made[digest])

    async def close(self) -> None:
        """Stop those that are still being made."""
        for task in self._made.values():
            task.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)

    async def _make(
        self, spec: WorkspaceSpec, ref: str | None, env: Mapping[str, str], make_sandbox: MakeSandbox
    ) -> PreparedWorkspace | Failure:
        try:
            places = await asyncio.to_thread(self._run.prepared)
            return await self._fill(places, spec, ref, env, make_sandbox)
        except OSError as error:
            return Failure("workspace-failed", f"cannot prepare a workspace: {error.strerror}")

    async def _fill(
        self, places: Places, spec: WorkspaceSpec, ref: str | None, env: Mapping[str, str], make_sandbox: MakeSandbox
    ) -> PreparedWorkspace | Failure:
        sandbox = make_sandbox(places)
        failure = await self._template(spec, ref, places.workspace)
        if isinstance(sandbox, Docker) and sandbox.recipe.workdir and not (spec.template or spec.repositories):
            failure = failure or await copy_workdir(sandbox)
        failure = failure or await asyncio.to_thread(self._check_out, spec, places.workspace)
        failure = failure or await asyncio.to_thread(place_files, spec.files, places.workspace)
        if failure is None and spec.setup:
            failure = await run_setup(spec.setup, sandbox, places.workspace, env)
        if failure is not None:
            return failure
        hidden = await asyncio.to_thread(self._hidden, spec, places)
        if isinstance(hidden, Failure):
            return hidden
        await asyncio.sleep(TICK_S)
        snapshot = await asyncio.to_thread(take, places.workspace, Snapshot())
        commit = await self._baselines.store(places.workspace, snapshot)
        if isinstance(commit, Failure):
            return commit
        naming = [
            await asyncio.to_thread(files_naming, one, places.trial) if spec.setup else ()
            for one in (places.workspace, places.home)
        ]
        return PreparedWorkspace(places, snapshot, commit, hidden, *naming)

    def _hidden(self, spec: WorkspaceSpec, places: Places) -> tuple[CopiedFiles, ...] | Failure:
        """What is hidden, with the files of patches in place of these, kept outside of the workspace."""
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
            return await asyncio.to_thread(self._at_ref, spec, ref, workspace)
        place = Path(workspace) / spec.template.path
        if not await asyncio.to_thread(_is_ready, spec.template.source, place):
            return Failure("workspace-failed", f"the template {spec.template.source} is not a directory")
        return await copy_directory(spec.template.source, str(place))

    def _at_ref(self, spec: WorkspaceSpec, ref: str, workspace: str) -> Failure | None:
        assert spec.template is not None  # noqa: S101  # for the type checker: asked before
        with TemporaryDirectory(dir=self._run.path) as room:
            return self._checkouts.write_template(spec.template, ref, workspace, Path(room))

    def _check_out(self, spec: WorkspaceSpec, workspace: str) -> Failure | None:
        for one in spec.repositories:
            with TemporaryDirectory(dir=self._run.path) as room:
                failure = self._checkouts.check_out(one, workspace, Path(room))
            if failure is not None:
                return failure
        return None


def _holds_files(directory: str) -> bool:
    return bool(os.listdir(directory))  # noqa: PTH208  # names alone


def _is_ready(template: str, place: Path) -> bool:
    place.mkdir(parents=True, exist_ok=True)
    return Path(template).is_dir()


def _digest(spec: WorkspaceSpec, ref: str | None, env: Mapping[str, str]) -> str:
    """What determines the files, as a name."""
    patches = tuple(one for one in spec.hidden if one.is_patch)
    parts = (spec.template, spec.repositories, spec.files, spec.setup, spec.sandbox, spec.docker, spec.max_mb, ref)
    variables = (sorted(spec.env.items()), sorted(env.items())) if spec.setup else ()
    return hashlib.sha256(repr((parts, patches, variables)).encode(errors="surrogatepass")).hexdigest()[:20]
