"""Detection of changes to grading files and to targets' own code: a changed file is never used silently.

A target can write into the repository, and so into the code that grades its answers. Files are hashed when they are
loaded (`Suite.graders`, `TargetSpec.files`). Python that grades is imported before the first call. Files that are
opened later, by a program or by an import inside a function, are compared each time they are used.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from agentv.authoring.code.fingerprints import (
    code_behind,
    commands_of,
    digest_of,
    files_behind,
    may_name_files,
    pytest_settings_behind,
    written_by,
)
from agentv.authoring.source.files import is_code, shown
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.files import GraderFiles, SearchPaths, search_paths
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import CodeCall, Embedder, Executor, Role, Target, TargetRequest
from agentv.registry.fields import Command

CHANGED = "grader-changed"
_DELETE_HINT = (
    "if an earlier run wrote it as an answer, delete it before each run: otherwise it could be graded for this run"
)


class ImportedCode(Struct):
    """Digests of watched files when workers loaded them; workers do not see later changes on disk."""

    _digests: dict[tuple[Role, str], set[str | None]] = {}
    _paths: dict[str, set[str]] = {}

    def watch(self, paths: Iterable[str]) -> None:
        """Record the digest of these files when a worker loads them."""
        for path in paths:
            self._paths.setdefault(os.path.realpath(path), set()).add(path)

    def note(self, role: Role, files: Iterable[str]) -> None:
        """Record that a worker of a role has loaded files."""
        for file in files:
            for path in self._paths.get(os.path.realpath(file), ()):
                self._digests.setdefault((role, path), set()).add(digest_of(path))

    def loaded(self, role: Role, path: str) -> set[str | None]:
        """Return the sha256 of a file at each time when a worker of a role loaded it."""
        return self._digests.get((role, path), set())

    async def load(self, suites: Iterable[Suite], executor: Executor) -> None:
        """Import grading code in workers, so that no target can change it afterwards.

        A failure or a timeout is not reported here, but when the code is used.
        """
        loading = []
        for suite in suites:
            if suite.graders is None:
                continue
            self.watch(suite.graders.digests)
            for (path, module), limit_s in suite.graders.functions.items():
                call = CodeCall(
                    "grading",
                    "agentv.user_code.workers.adapters:load_module",
                    {"file": path, "module": module},
                    code="cannot-load",
                    what=path or module or "",
                    directory=os.path.dirname(path) if path else "",  # noqa: PTH120
                    env=suite.env or None,
                )
                loading.append(asyncio.wait([asyncio.ensure_future(executor.python(call))], timeout=limit_s))
        await asyncio.gather(*loading)


class SuiteFiles:
    """Change detection for the files that the entries of one suite depend on."""

    def __init__(self, files: GraderFiles, imported: ImportedCode, own: tuple[str, ...] = ()) -> None:
        self._files = files
        self._loaded = partial(imported.loaded, "grading")
        self._target_directories = own
        self._written: dict[Command, frozenset[str]] = {}
        self._running: Counter[str] = Counter()
        self._script_changes: dict[str, str | None] = {}

    def begin(self, entry: AssertionEntry) -> Failure | None:
        """Return why the entry must not grade, or None if its files are unchanged or changed only by grading."""
        refused = self._refused(entry)
        if refused is None:
            self._running.update(self._written_by(entry))
        return refused

    def end(self, entry: AssertionEntry) -> Failure | None:
        """Check again after grading. A data file that the entry's own script changed meanwhile is accepted."""
        refused = self._refused(entry)
        for path in self._written_by(entry):
            self._running[path] -= 1
            digest = digest_of(path)
            if digest != self._files.digests.get(path):
                self._script_changes[path] = digest
        return refused

    def notes(self) -> Iterator[str]:
        """Yield a note about files that grading scripts changed."""
        if self._script_changes:
            named = ", ".join(sorted(map(shown, self._script_changes)))
            yield f"changed while scripts were grading, so treated as written by them: {named}"

    def _written_by(self, entry: AssertionEntry) -> frozenset[str]:
        """Return the data files that an entry's script may write, if they existed when the suite was loaded."""
        found: frozenset[str] = frozenset()
        for command in commands_of(entry.assertion):
            if command not in self._written:
                written = written_by(command, self._files.search or search_paths(os.environ))
                self._written[command] = frozenset(path for path in written if path in self._files.digests)
            found |= self._written[command]
        return found

    def _is_written(self, entry: AssertionEntry, path: str) -> bool:
        """Whether a file was changed by the entry's own script."""
        if path not in self._written_by(entry):
            return False
        return self._running[path] > 0 or (
            path in self._script_changes and digest_of(path) == self._script_changes[path]
        )

    def _refused(self, entry: AssertionEntry) -> Failure | None:
        with_files = [one for one in (entry.assertion, entry.settings) if may_name_files(type(one))]
        found = (path for options in with_files for path in self._changed(options))
        changed = next((path for path in found if not self._is_written(entry, path)), None)
        return None if changed is None else _failure(changed)

    def _changed(self, options: object) -> Iterator[str]:
        found = changed_files(options, self._files.digests, self._loaded, search=self._files.search)
        for root, path in found:
            # files that a target writes in its directory are answers, except code that the entry itself names
            is_answer = path.startswith(self._target_directories) and not (path == root and is_code(root))
            if not (self._target_directories and is_answer):
                yield path
        if self._files.reread:
            yield from (path for path in files_behind(options, self._files.search) if path in self._files.reread)


def directories_of_targets(suite: Suite) -> tuple[str, ...]:
    """Return the targets' working directories that do not contain the suite; files written there are answers."""
    found = (getattr(spec.settings, "cwd", None) for spec in suite.targets)
    named = (os.path.join(cwd, "") for cwd in found if isinstance(cwd, str) and cwd)  # noqa: PTH118  # adds a final slash
    return tuple(cwd for cwd in named if not suite.path.startswith(cwd) and not f"{suite.root}{os.sep}".startswith(cwd))


def changed_files(
    options: object,
    known: Mapping[str, str],
    loaded: Callable[[str], set[str | None]],
    *,
    code_only: bool = False,
    search: SearchPaths | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield (root, path) for each changed file that using the options opens; `root` is the file that leads to `path`.

    Files that did not exist when the suite was loaded are ignored, as answers are written to such files; new files that
    configure pytest are included.

    Args:
        options: of an assertion or a target.
        known: path → sha256 when the suite was loaded.
        loaded: path → its sha256 each time when a worker loaded it; workers do not read a loaded file again.
        code_only: ignore data files, such as an agent's memory.
        search: where programs look for code; None: as in this process.
    """
    for root, closure in code_behind(options, search):
        if root in known and (is_code(root) or not code_only):
            yield from ((root, path) for path in closure if _differs(path, known, loaded))
    yield from (
        (path, path) for path in pytest_settings_behind(options) if path not in known and digest_of(path) is not None
    )


def _differs(path: str, known: Mapping[str, str], loaded: Callable[[str], set[str | None]]) -> bool:
    return (loaded(path) or {digest_of(path)}) != {known.get(path)}


def _failure(path: str) -> Failure:
    message = f"{shown(path)} was changed during the run and is not used"
    return Failure(CHANGED, message if is_code(path) else f"{message}; {_DELETE_HINT}")


class UnchangedTarget:
    """A target that is no longer called once its files have changed."""

    def __init__(self, wrapped: Target, spec: TargetSpec, imported: ImportedCode, *, code_only: bool) -> None:
        self._wrapped = wrapped
        self._spec = spec
        self._loaded = partial(imported.loaded, "tested")
        self._code_only = code_only
        imported.watch(spec.files)

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Call the target, or return a Failure if one of its files has changed."""
        path = next(self._changed(), None)
        return self._wrapped.answer(request) if path is None else _failure(path)

    def _changed(self) -> Iterator[str]:
        spec, known = self._spec, self._spec.files
        found = changed_files(spec.settings, known, self._loaded, code_only=self._code_only, search=spec.search)
        yield from (path for _, path in found)
        looked_at = (path for path in known if is_code(path) or not self._code_only)
        yield from (path for path in looked_at if _differs(path, known, self._loaded))

    async def close(self) -> None:
        """Release the resources of the target."""
        await self._wrapped.close()


def unchanged(target: Target, spec: TargetSpec, imported: ImportedCode, *, code_only: bool) -> Target:
    """Return the target, wrapped in `UnchangedTarget` if it has files."""
    reads_none = isinstance(target, Embedder) or not spec.files
    return target if reads_none else UnchangedTarget(target, spec, imported, code_only=code_only)
