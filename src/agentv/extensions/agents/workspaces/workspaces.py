"""Workspaces of a run on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.baseline import Baselines
from agentv.extensions.agents.workspaces.bubblewrap import Bubblewrap
from agentv.extensions.agents.workspaces.choice import capabilities, chosen_sandbox
from agentv.extensions.agents.workspaces.commands import run_hooks
from agentv.extensions.agents.workspaces.directories import RunDirectory, remove_dead_runs
from agentv.extensions.agents.workspaces.docker import Docker, build_image
from agentv.extensions.agents.workspaces.placing import place_files, remove_directory
from agentv.extensions.agents.workspaces.prepared import PreparedWorkspace, PreparedWorkspaces
from agentv.extensions.agents.workspaces.process_group import Places, ProcessGroup, end_processes
from agentv.extensions.agents.workspaces.repositories import Checkouts
from agentv.extensions.agents.workspaces.snapshot import TICK_S, Snapshot, take
from agentv.extensions.agents.workspaces.workspace import LocalWorkspace
from agentv.model.suite.workspace import DockerImage, Variant, WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.user_code.repositories import cache_home


class LocalWorkspaces:
    """Creates the workspaces of a run. The first `open` creates its directory and removes those of dead runs."""

    def __init__(self, settings: WorkspaceSettings) -> None:
        self._settings = settings
        self._starting = asyncio.Lock()
        self._run: _Run | None = None

    async def open(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str]
    ) -> LocalWorkspace | Failure:
        """Create a workspace and store its baseline.

        Args:
            spec: workspace of the case.
            variant: variant whose overlays and ref apply.
            env: the suite's environment variables, for setup and hooks.
        """
        try:
            async with self._starting:
                if self._run is None:

                    def start() -> RunDirectory:
                        remove_dead_runs(self._settings.place)
                        capabilities()
                        return RunDirectory(self._settings.place)

                    self._run = _Run(self._settings, await asyncio.to_thread(start))
            return await self._run.open(spec, variant, env)
        except OSError as error:
            return Failure("workspace-failed", f"cannot make a workspace: {error.strerror}")

    async def close(self) -> tuple[Failure, ...]:
        """Run the `after_all` hooks and remove all directories; return the failures."""
        return await self._run.close() if self._run is not None else ()


class _Run:
    """The state of a run: its directory, prepared workspaces, docker images and hooks."""

    def __init__(self, settings: WorkspaceSettings, directory: RunDirectory) -> None:
        self._settings = settings
        self._directory = directory
        self._baselines = Baselines(directory.baselines)
        cache = Path(settings.repositories) if settings.repositories else cache_home(os.environ)
        checkouts = Checkouts(cache, dict(os.environ), str(directory.path))
        self._prepared = PreparedWorkspaces(directory, self._baselines, checkouts)
        self._images: dict[str, asyncio.Task[str | Failure]] = {}
        self._before_all: dict[str, asyncio.Task[Failure | None]] = {}
        self._after_all: list[Callable[[], Awaitable[Failure | None]]] = []

    async def open(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str]
    ) -> LocalWorkspace | Failure:
        """Create a workspace and store its baseline."""
        if spec.existing and spec.hidden:
            return Failure("workspace-failed", "hidden files cannot be copied into a directory of your own")
        places = _with_user_directories(spec, await asyncio.to_thread(self._directory.places, "trials"))
        opened: LocalWorkspace | Failure | None = None
        try:
            opened = await self._opened(spec, variant, env, places)
            return opened
        finally:
            if not isinstance(opened, LocalWorkspace):
                await asyncio.to_thread(_discard, places)

    async def _opened(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str], places: Places
    ) -> LocalWorkspace | Failure:
        own = variant.env if variant is not None else {}
        sandbox = await self._sandbox(spec, places, {**env, **spec.env, **own})
        if isinstance(sandbox, Failure):
            return sandbox
        failed = await self._run_before_all(spec, sandbox, env)
        prepared = failed or await self._copy_prepared(spec, variant, env, sandbox)
        if isinstance(prepared, Failure):
            return prepared
        overlays = variant.overlays if variant is not None else ()
        failure = await asyncio.to_thread(place_files, overlays, places.workspace) if overlays else None
        failure = failure or await run_hooks(spec.hooks.before_each, sandbox, places.workspace, env)
        baseline = failure or await self._baseline(places.workspace, prepared, copied=not spec.hooks.before_each)
        if isinstance(baseline, Failure):
            return baseline
        kept = self._settings.kept_directory or str(Path(self._settings.place) / "agentv-kept")
        spec = structs.replace(spec, hidden=prepared.hidden) if prepared is not None else spec
        state, commit = baseline
        return LocalWorkspace(
            spec=spec,
            sandbox=sandbox,
            env=env,
            baseline=state,
            commit=commit,
            baselines=self._baselines,
            kept_directory=kept,
            redactor=self._settings.redactor,
        )

    async def close(self) -> tuple[Failure, ...]:
        """Run the `after_all` hooks and remove all directories; return the failures."""
        await self._prepared.close()
        failures = [await end() for end in self._after_all]
        await asyncio.to_thread(end_processes, str(self._directory.path))
        await asyncio.to_thread(self._directory.remove)
        return tuple(one for one in failures if one is not None)

    async def _sandbox(self, spec: WorkspaceSpec, places: Places, env: Mapping[str, str]) -> ProcessGroup | Failure:
        """Return the sandbox for the agent of a case. A docker image is built once.

        Args:
            spec: workspace of the case.
            places: directories that programs may write to.
            env: variables of all programs.
        """
        found, run = capabilities(), str(self._directory.path)
        name = await asyncio.to_thread(chosen_sandbox, spec.sandbox, spec.network, found)
        if isinstance(name, Failure):
            return name
        if name == "docker" and found.docker:
            recipe, mounts = spec.docker or DockerImage(), spec.mounts
            key = repr(recipe)
            if key not in self._images:
                self._images[key] = asyncio.ensure_future(build_image(found.docker, recipe))
            image = await asyncio.shield(self._images[key])
            if isinstance(image, Failure):
                return image
            root = next((path for path, below in mounts.items() if not below), "")
            recipe = structs.replace(recipe, workdir=recipe.workdir or root)
            return Docker(
                places, env, spec.network, program=found.docker, image=image, recipe=recipe, run=run, mounts=mounts
            )
        if name == "bwrap" and found.bwrap:
            hidden = (one.source for one in spec.hidden)
            template = spec.template.source if spec.template else ""
            private = (*self._settings.private, *hidden, self._settings.kept_directory, template, run)
            return Bubblewrap(
                places,
                env,
                spec.network,
                program=found.bwrap,
                user_namespace=found.user_namespaces,
                private=tuple(filter(None, private)),
                mounts=spec.mounts,
            )
        return ProcessGroup(places, env)

    async def _run_before_all(
        self, spec: WorkspaceSpec, sandbox: ProcessGroup, env: Mapping[str, str]
    ) -> Failure | None:
        """Run the `before_all` hooks, once for all trials with the same hooks and environment."""
        hooks = spec.hooks
        if not hooks.before_all and not hooks.after_all:
            return None
        key = repr((hooks, sorted(env.items())))
        if key not in self._before_all:
            directory = str(self._directory.path)
            self._after_all.append(lambda: run_hooks(hooks.after_all, sandbox, directory, env))
            begin = run_hooks(hooks.before_all, sandbox, directory, env)
            self._before_all[key] = asyncio.ensure_future(begin)
        return await asyncio.shield(self._before_all[key])

    async def _copy_prepared(
        self, spec: WorkspaceSpec, variant: Variant | None, env: Mapping[str, str], sandbox: ProcessGroup
    ) -> PreparedWorkspace | Failure | None:
        """Copy the prepared workspace into the directories of a trial; return it, or None for a user's directory."""
        if spec.existing:
            return None

        def for_setup(places: Places) -> ProcessGroup:  # on the host's network
            return replace(sandbox, places=places, env={**env, **spec.env}, network="host")

        prepared = await self._prepared.get(spec, variant, env, for_setup)
        if isinstance(prepared, Failure):
            return prepared
        failure = await prepared.copy_to(sandbox.places, with_home=spec.home == "fresh")
        return failure or prepared

    async def _baseline(
        self, workspace: str, prepared: PreparedWorkspace | None, *, copied: bool
    ) -> tuple[Snapshot, str] | Failure:
        """Return the state of a workspace and its commit. Files that are as they were copied are not read again."""
        base, earlier = (prepared.commit, prepared.snapshot) if prepared is not None else ("", {})
        known = prepared.copied if prepared is not None else earlier
        snapshot = await asyncio.to_thread(take, workspace, known, copied=copied)
        commit = await self._baselines.store(workspace, snapshot, base, earlier)
        await asyncio.sleep(TICK_S)  # so that files the agent writes differ in time from those just copied
        return commit if isinstance(commit, Failure) else (snapshot, commit)


def _with_user_directories(spec: WorkspaceSpec, places: Places) -> Places:
    """Return the directories of a trial, with the user's HOME or directory if the spec asks for it."""
    if spec.home == "host":
        places = replace(places, home=os.path.expanduser("~"), host_home=True)  # noqa: PTH111  # as text
    return replace(places, workspace=os.path.realpath(spec.existing)) if spec.existing else places


def _discard(places: Places) -> None:
    """Remove the directories of a trial that did not start."""
    end_processes(places.trial, 0.0)
    remove_directory(places.trial)
