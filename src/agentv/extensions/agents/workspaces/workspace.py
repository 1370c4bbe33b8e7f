"""The workspace of one trial, from its baseline to its removal."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp

from msgspec.structs import replace

from agentv.extensions.agents.workspaces.baseline import (
    Baselines,
    changed_paths,
    changed_protected,
    matching,
    shown_path,
    without,
)
from agentv.extensions.agents.workspaces.commands import run_confined, run_hooks
from agentv.extensions.agents.workspaces.copies import digest_of, disarm, remove_secrets
from agentv.extensions.agents.workspaces.directories import grader_places
from agentv.extensions.agents.workspaces.launcher import GRACE_S
from agentv.extensions.agents.workspaces.placing import (
    copy_directory,
    make_writable,
    place_files,
    remove_directory,
    remove_file,
    write_file,
)
from agentv.extensions.agents.workspaces.process_group import SAFE_PATH, ProcessGroup
from agentv.extensions.agents.workspaces.runner_config import (
    CHEATS,
    changed_test_config,
    failing_names,
    is_checked_bytecode,
    is_mixed_config,
    parts_about_tests,
    plants_modules,
    with_failures,
    with_parts_about_tests,
)
from agentv.extensions.agents.workspaces.snapshot import LINK, REGULAR, TEXT_LIMIT, Snapshot, content, take
from agentv.model.redaction import Redactor
from agentv.model.suite.workspace import CopiedFiles, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.path_globs import matches
from agentv.model.values.response import Failure
from agentv.model.values.trace import WorkspaceChanges
from agentv.ports import FailingTests, JudgeWorkspace, ProgramResult

REPORT_LIMIT = 10_000_000
"""Bytes to read of the report of failing tests, at most."""

REMOVED_SECRETS = "removed-secrets.txt"
"""Name of the list, beside a kept workspace, of the files from which secrets were removed."""


@dataclass(eq=False)
class LocalWorkspace:
    """A workspace on this machine.

    Attributes:
        spec: specification by the case.
        sandbox: sandbox of the agent.
        env: the suite's environment variables, for hooks and graders.
        baseline: the state just before the agent starts.
        commit: commit of the baseline in `baselines`.
        baselines: repository of the baselines of the run.
        kept_directory: parent directory of kept workspaces.
        redactor: removes secrets from kept workspaces.
    """

    spec: WorkspaceSpec
    sandbox: ProcessGroup
    env: Mapping[str, str]
    baseline: Snapshot
    commit: str
    baselines: Baselines
    kept_directory: str
    redactor: Redactor
    _plants_modules: bool = False
    _graded: bool = False
    _test_config: tuple[bytes, ...] = ()
    _saved: Path | None = None

    @property
    def path(self) -> str:
        """Absolute path of the directory that the agent works in."""
        return self.sandbox.places.workspace

    @cached_property
    def _hidden(self) -> dict[str, Path]:
        """Path in the workspace → source, for each hidden file."""
        return {path: source for one in self.spec.hidden for path, source in _copied_files(one)}

    async def finish(self) -> WorkspaceChanges | Failure:
        """End all processes of the agent, compare with the baseline, then copy in the hidden files."""
        if not await asyncio.to_thread(self.sandbox.end, GRACE_S):
            return Failure("workspace-failed", "processes of the agent could not be ended, even by SIGKILL")
        try:
            now = await asyncio.to_thread(self._final_state)
        except OSError as error:
            return Failure("workspace-failed", f"the workspace cannot be read: {error.strerror}")
        changes = await self._changes(now)
        if isinstance(changes, Failure):
            return changes
        self._test_config = await self._changed_test_config(now)
        self._plants_modules = plants_modules(self.baseline, now, self._test_config)
        failure = await asyncio.to_thread(place_files, self.spec.hidden, self.path)
        if failure is not None:
            return failure
        links = await asyncio.to_thread(self._links_to_hidden, now)
        protected, test_config = dict.fromkeys((*changes.protected, *links)), map(shown_path, self._test_config)
        return replace(changes, protected=tuple(protected), test_config=tuple(test_config))

    async def _changed_test_config(self, now: Snapshot) -> tuple[bytes, ...]:
        """Return the changed files that configure how hidden and protected tests run."""
        before = self.baseline
        hidden = await asyncio.to_thread(lambda: {path: _text(source) for path, source in self._hidden.items()})
        found = []
        guarded = map(shown_path, matching(self.spec.protected, before))
        for path in changed_test_config(hidden, guarded, before, now):
            if path in before and before[path].binary:  # its content is not stored
                continue
            head = await asyncio.to_thread(self.read, os.fsdecode(path), 8)
            if is_checked_bytecode(path, head or b""):
                continue
            if is_mixed_config(path):
                earlier = await self._baseline_text(path)
                text = (await asyncio.to_thread(self.read, os.fsdecode(path)) if path in now else None) or b""
                if parts_about_tests(path, earlier) == parts_about_tests(path, text.decode(errors="surrogateescape")):
                    continue
            found.append(path)
        return tuple(found)

    async def _baseline_text(self, path: bytes) -> str:
        """Return the text of a file at the baseline, or an empty string if it did not exist."""
        there = path in self.baseline
        return await self.baselines.text(self.commit, path) if there else ""

    async def restore_test_config(self, allowed: Sequence[str]) -> tuple[str, ...] | Failure:
        """Undo the agent's changes to the tests' configuration, except in files that match a glob; return the paths."""
        restored = []
        for path in self._test_config:
            shown = shown_path(path)
            if any(matches(glob, shown) for glob in allowed):
                continue
            earlier, name = await self._baseline_text(path), os.fsdecode(path)
            try:
                await asyncio.to_thread(self._restore, path, name, earlier)
            except OSError as error:
                return Failure("workspace-failed", f"cannot restore {shown} before its tests run: {error.strerror}")
            restored.append(shown)
        return await self._save_for_failing_tests() or tuple(restored)

    def _restore(self, path: bytes, name: str, earlier: str) -> None:
        state, place = self.baseline.get(path), Path(self.path, name)
        mode = REGULAR if state is None else state.mode
        if is_mixed_config(path) and place.is_file() and not place.is_symlink():
            text = with_parts_about_tests(path, content(self.path, path).decode(errors="surrogateescape"), earlier)
            write_file(self.path, name, text.encode(errors="surrogateescape"), mode)
        elif state is None:
            remove_file(self.path, name)
        else:
            write_file(self.path, name, earlier.encode(errors="surrogateescape"), mode)

    async def run_failing_tests(
        self, command: WorkspaceCommand, reports: Sequence[str]
    ) -> FailingTests | Failure | None:
        """Run a command again, in the state before its first run, with hidden tests that must fail; None without tests.

        What it writes is discarded, so that the workspace stays as the first run left it.
        """
        if self._saved is None:
            return None
        now, mark = Path(self.sandbox.places.trial, "after"), f".agentv-{token_hex(8)}"
        try:
            await asyncio.to_thread(Path(self.path).rename, now)
            await asyncio.to_thread(self._saved.rename, self.path)
            try:
                for path in reports:
                    await asyncio.to_thread(remove_file, self.path, path)
                names = await asyncio.to_thread(_place_failing, self.path, self._hidden, mark)
                ended = await self.run(command, replaces_hidden=False)
                noted = await asyncio.to_thread(_created_marks, self.path, self._hidden, mark, command.cwd)
                written = [await asyncio.to_thread(self.read, path, REPORT_LIMIT) for path in reports]
            finally:
                await asyncio.to_thread(remove_directory, self.path)
                await asyncio.to_thread(now.rename, self.path)
                self._saved = None
        except OSError as error:
            return Failure("workspace-failed", f"cannot write tests that must fail: {error.strerror}")
        if isinstance(ended, Failure):
            return ended
        report = next((one for one in written if one is not None), None)
        cheated = next((cheat for suffix, cheat in CHEATS.items() if suffix in noted), "")
        return FailingTests(ended, names, loaded="" in noted, report=report, cheated=cheated)

    async def _save_for_failing_tests(self) -> Failure | None:
        """Copy the workspace for `run_failing_tests`, if any hidden test can be made to fail."""
        before, self._saved = Path(self.sandbox.places.trial, "before"), None
        await asyncio.to_thread(remove_directory, str(before))
        if not any(with_failures(path, _text(source), "") for path, source in self._hidden.items()):
            return None
        self._saved = before
        await asyncio.to_thread(before.mkdir)
        return await copy_directory(self.path, str(before))

    def _links_to_hidden(self, now: Snapshot) -> tuple[str, ...]:
        """Return links of the agent that lead to hidden files, since a reader would take those for the agent's work."""
        root = os.path.realpath(self.path)
        hidden = {os.path.realpath(f"{root}/{path}") for path in self._hidden}
        found = []
        for path in changed_paths(self.baseline, now):
            if path in now and now[path].mode == LINK:
                target = os.path.realpath(f"{root}/{os.fsdecode(path)}")
                if target != root and any(one == target or one.startswith(f"{target}/") for one in hidden):
                    found.append(shown_path(path))
        return tuple(sorted(found))

    async def run(
        self, command: WorkspaceCommand, stdin: bytes = b"", *, replaces_hidden: bool = True
    ) -> ProgramResult | Failure:
        """Run a grader's command in the final workspace, confined as the agent was, without the agent's HOME."""
        # an earlier command may have changed the hidden files
        if self._graded and self.spec.hidden and replaces_hidden:
            failure = await asyncio.to_thread(place_files, self.spec.hidden, self.path)
            if failure is not None:
                return failure
        self._graded = True
        try:
            places = await asyncio.to_thread(grader_places, self.sandbox.places)
        except OSError as error:
            return Failure("workspace-failed", f"cannot run a command in the workspace: {error.strerror}")
        planted = SAFE_PATH if self._plants_modules else {}
        sandbox = self.sandbox.for_grading(places, {**planted, **self.env, **self.spec.env})
        ended = await run_confined(command, sandbox, self.path, {}, stdin)
        await asyncio.to_thread(self.sandbox.end, 0.0)
        return ended

    async def copy_for_judge(self) -> JudgeWorkspace | Failure:
        """Return a copy of the final workspace with its own HOME, in the agent's sandbox, on the host's network."""
        try:
            places = await asyncio.to_thread(grader_places, self.sandbox.places)
            before = await asyncio.to_thread(take, self.path, self.baseline)
            place = await asyncio.to_thread(mkdtemp, prefix="work-", dir=Path(places.home).parent)
            failure = await copy_directory(self.path, place)
            if failure is not None:
                return failure
            await asyncio.to_thread(disarm, place)
        except OSError as error:
            return Failure("workspace-failed", f"the workspace cannot be copied for a judge: {error.strerror}")
        sandbox = self.sandbox.for_grading(dataclasses.replace(places, workspace=place), {})
        sandbox = dataclasses.replace(sandbox, network="host")  # the judge calls its model
        return JudgeWorkspace(place, sandbox, digest_of(before))

    async def has_hash(self, sha256: str) -> bool:
        """End the judge's processes; return whether the workspace still has the hash of its copy."""
        await asyncio.to_thread(self.sandbox.end, 0.0)
        try:
            now = await asyncio.to_thread(take, self.path, self.baseline)
        except OSError:
            return False
        return digest_of(now) == sha256

    def read(self, path: str, limit: int = TEXT_LIMIT) -> bytes | None:
        """Return the content of a file, or the target of a link; None if it is missing or behind a link."""
        try:
            return content(self.path, os.fsencode(path), limit)
        except OSError:
            return None

    async def close(self, *, keep: bool) -> str | Failure | None:
        """Run the `after_each` hooks and remove the workspace; return its path if it is kept."""
        failure = await run_hooks(self.spec.hooks.after_each, self.sandbox, self.path, self.env)
        return failure or await asyncio.to_thread(self._remove, keep)

    async def discard(self) -> None:
        """Remove the workspace without running hooks."""
        await asyncio.to_thread(self._remove, False)

    def _final_state(self) -> Snapshot:
        """Return the current state of the workspace. Recreate it, empty, if it was deleted or replaced."""
        place = Path(self.path)
        if place.is_symlink() or not place.is_dir():
            remove_directory(self.path)
            place.mkdir(parents=True)
        place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)
        return take(self.path, self.baseline)

    async def _changes(self, now: Snapshot) -> WorkspaceChanges | Failure:
        before, spec = self.baseline, self.spec
        protected = changed_protected(spec.protected, before, now)
        shown, earlier = without(spec.ignore, now), without(spec.ignore, before)
        final = await self.baselines.store(self.path, shown, self.commit, earlier)
        if isinstance(final, Failure):
            return final
        if final == self.commit:
            return WorkspaceChanges(protected=protected)
        changes = await self.baselines.changes(self.commit, final, now)
        return changes if isinstance(changes, Failure) else replace(changes, protected=protected)

    def _remove(self, keep: bool) -> str | Failure | None:
        """Remove the directories of the trial. With `keep`, keep the workspace and return its path."""
        self.sandbox.end(0.0)
        kept = (self.spec.existing or self._keep()) if keep else None
        remove_directory(self.sandbox.places.trial)
        return kept

    def _keep(self) -> str | Failure:
        try:
            Path(self.kept_directory).mkdir(parents=True, exist_ok=True)
            kept = mkdtemp(prefix=f"{Path(self.sandbox.places.trial).name}-", dir=self.kept_directory)
            place = os.path.join(kept, "workspace")  # noqa: PTH118  # as text
            make_writable(self.path)
            try:
                Path(self.path).rename(place)
            except OSError:  # another file system
                with suppress(shutil.Error):  # pipes and devices are skipped
                    shutil.copytree(self.path, place, symlinks=True)
            try:
                removed = remove_secrets(place, self.redactor)
            except OSError:  # do not keep a workspace that may still contain a secret
                remove_directory(place)
                raise
            if removed:
                Path(kept, REMOVED_SECRETS).write_text("".join(f"{one}\n" for one in removed), errors="replace")
        except OSError as error:
            return Failure("workspace-failed", f"the workspace cannot be kept: {error.strerror}")
        return place


def _place_failing(root: str, hidden: Mapping[str, Path], mark: str) -> frozenset[str]:
    """Replace the hidden tests with failing ones; return the names of the Python tests."""
    names: set[str] = set()
    for path, source in hidden.items():
        changed = with_failures(path, text := _text(source), mark)
        if changed is not None:
            write_file(root, path, changed.encode(), REGULAR)
            names |= {f"{Path(path).stem}::{name}" for name in failing_names(text)}
    return frozenset(names)


def _created_marks(root: str, hidden: Mapping[str, Path], mark: str, cwd: str) -> frozenset[str]:
    """Return the suffixes of the marks that failing tests created: "" if they were loaded, others for cheats."""
    folders = {cwd, *(str(Path(path).parent) for path in hidden)}
    marks = {suffix: f"{mark}{suffix}" for suffix in ("", *CHEATS)}
    return frozenset(one for one, name in marks.items() if any(Path(root, at, name).exists() for at in folders))


def _text(file: Path) -> str:
    """Return the text of a file, or an empty string if it is too large or cannot be read."""
    try:
        return file.read_text(errors="replace") if file.is_file() and file.stat().st_size <= TEXT_LIMIT else ""
    except OSError:
        return ""


def _copied_files(copied: CopiedFiles) -> Iterator[tuple[str, Path]]:
    """Yield the path in the workspace and the source of each copied file."""
    source = Path(copied.source)
    if not source.is_dir():
        yield copied.path or source.name, source
    for one in source.rglob("*"):
        if not one.is_dir():
            yield str(Path(copied.path, one.relative_to(source))), one
