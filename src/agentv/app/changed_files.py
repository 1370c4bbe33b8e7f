"""Detection of changes to grading files and to targets' own code: a changed file is never used silently.

A target can write into the repository, and so into the code that grades its answers. Files are hashed when they are
loaded (`Suite.graders`, `TargetSpec.files`). Python that grades is imported before the first call. Files that are
opened later, by a program or by an import inside a function, are compared each time they are used.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from functools import partial

from agentv.app.recorded_code import code_of
from agentv.authoring.code.code_imports import is_code
from agentv.authoring.code.fingerprints import (
    bears_files,
    code_behind,
    commands_of,
    digest_of,
    files_behind,
    functions_behind,
    modules_behind,
)
from agentv.authoring.code.written_files import written_by
from agentv.authoring.source.files import shown
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.grader_files import GraderFiles
from agentv.model.suite.search_paths import SearchPaths, search_paths
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Embedder, Executor, Target, TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.functions.bytecode import Bytecode
from agentv.user_code.functions.functions import import_user_module, load_module
from agentv.user_code.functions.guard import ForeignError, foreign_code

CHANGED = "grader-changed"
_LEFT = "if an earlier run wrote it as an answer, delete it before each run: otherwise it could be graded for this run"


class ImportedCode:
    """The Python files that this process imported unchanged: later changes on disk have no effect."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._modules = 0
        self._bytecode = Bytecode()

    def __contains__(self, path: str) -> bool:
        return bool(self._files) and os.path.realpath(path) in self._files

    async def load(self, suites: Iterable[Suite], executor: Executor) -> None:
        """Import grading code, so that no target can change it afterwards.

        If an import fails or takes too long, this is reported where the code is used.
        """
        known = [suite.graders for suite in suites if suite.graders is not None]
        self.forget_bytecode(path for files in known for path in files.digests)
        graders = [files for files in known if files.functions]
        limits: dict[tuple[str | None, str | None], float] = {}
        for files in graders:
            for place, limit in files.functions.items():
                limits[place] = max(limit, limits.get(place, 0.0))
        await asyncio.gather(*(_loaded(executor, place, limit) for place, limit in limits.items()))
        for files in graders:
            self._modules = 0
            self.note(files.digests)

    def forget_bytecode(self, paths: Iterable[str]) -> None:
        """Have Python compile what it has not imported yet from the files that are compared."""
        self._bytecode.remove(path for path in paths if path not in self._files)

    def note(self, known: Mapping[str, str]) -> None:
        """Record unchanged files that were imported in the meantime."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        files = {path: os.path.realpath(path) for path in known}
        imported = _files_of_modules({os.path.basename(real) for real in files.values() if real not in self._files})  # noqa: PTH119
        for path, real in files.items():
            if real in imported and real not in self._files and digest_of(path) == known[path]:
                self._files.add(real)


def _files_of_modules(names: Collection[str]) -> set[str]:
    """The files of imported modules that have one of the names, without symbolic links."""
    if not names:
        return set()
    files = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    return {
        os.path.realpath(file)
        for file in files
        if isinstance(file, str) and (os.path.basename(file) in names or os.path.islink(file))  # noqa: PTH114, PTH119  # hot: once a module
    }


async def _loaded(executor: Executor, place: tuple[str | None, str | None], limit_s: float) -> None:
    """Import code, and stop waiting for it after a time: what uses it then errs, by its own time limit."""
    await asyncio.wait([asyncio.ensure_future(executor.call(partial(_load, *place)))], timeout=limit_s)


def _load(path: str | None, module: str | None) -> None:
    try:
        if path is not None:
            load_module(path)
        elif module:
            with foreign_code("cannot-load", module):
                import_user_module(module)
    except ForeignError:
        return  # it is reported where it is used


class SuiteFiles:
    """Change detection for the files that the entries of one suite depend on."""

    def __init__(self, files: GraderFiles, imported: ImportedCode, own: tuple[str, ...] = ()) -> None:
        self._files = files
        self._imported = imported
        self._own = own
        self._written: dict[Command, frozenset[str]] = {}
        self._under_way: Counter[str] = Counter()
        self._left: dict[str, str | None] = {}

    def begin(self, entry: AssertionEntry) -> Failure | None:
        """Why the entry must not grade; None if its files are unchanged, or changed only by grading."""
        refused = self._refused(entry)
        if refused is None:
            self._under_way.update(self._written_by(entry))
        return refused

    def end(self, entry: AssertionEntry) -> Failure | None:
        """Likewise when it has graded. A data file that its script has changed meanwhile is the script's own."""
        refused = self._refused(entry)
        for path in self._written_by(entry):
            self._under_way[path] -= 1
            digest = digest_of(path)
            if digest != self._files.digests.get(path):
                self._left[path] = digest
        return refused

    def notes(self) -> Iterator[str]:
        """Files that grading scripts wrote to, besides their output."""
        if self._left:
            named = ", ".join(sorted(map(shown, self._left)))
            yield f"changed while scripts were grading, so treated as written by them: {named}"

    def _written_by(self, entry: AssertionEntry) -> frozenset[str]:
        """The data files that an entry's script may write itself, of those that were there at first."""
        code = code_of(entry.assertion)
        found: frozenset[str] = frozenset()
        for command in commands_of(code) if code is not None else ():
            if command not in self._written:
                written = written_by(command, self._files.search or search_paths(os.environ))
                self._written[command] = frozenset(path for path in written if path in self._files.digests)
            found |= self._written[command]
        return found

    def _is_written(self, entry: AssertionEntry, path: str) -> bool:
        """Whether a change of a file is one of those that its own script made."""
        if path not in self._written_by(entry):
            return False
        return self._under_way[path] > 0 or (path in self._left and digest_of(path) == self._left[path])

    def _refused(self, entry: AssertionEntry) -> Failure | None:
        code = code_of(entry.assertion)
        bearing = [one for one in (code, entry.settings) if one is not None and bears_files(type(one))]
        found = (path for options in bearing for path in self._changed(options))
        changed = next((path for path in found if not self._is_written(entry, path)), None)
        if changed is not None:
            return _failure(changed)
        if bearing:
            self._imported.forget_bytecode(self._opened(bearing))
        if self._files.functions and bearing:
            self._imported.note(self._files.digests)
        return None

    def _opened(self, bearing: Iterable[object]) -> Iterator[str]:
        found = (one for options in bearing for one in code_behind(options, self._files.search))
        return (path for root, closure in found if root in self._files.digests for path in closure)

    def _changed(self, options: object) -> Iterator[str]:
        found = changed_files(options, self._files.digests, self._imported, search=self._files.search)
        yield from (path for root, path in found if not self._is_answer(root, path))
        if self._files.reread:
            yield from (path for path in files_behind(options, self._files.search) if path in self._files.reread)

    def _is_answer(self, root: str, path: str) -> bool:
        """Whether a file is what a target writes where it runs: all but code that the entry itself names."""
        return path.startswith(self._own) and not (path == root and is_code(root)) if self._own else False


def directories_of_targets(suite: Suite) -> tuple[str, ...]:
    """Directories in which the suite's targets run, if separate from it; files written there are answers."""
    found = (getattr(spec.settings, "cwd", None) for spec in suite.targets)
    named = (os.path.join(cwd, "") for cwd in found if isinstance(cwd, str) and cwd)  # noqa: PTH118  # it ends with a slash
    return tuple(cwd for cwd in named if not suite.path.startswith(cwd) and not f"{suite.root}{os.sep}".startswith(cwd))


def changed_files(
    options: object,
    known: Mapping[str, str],
    imported: ImportedCode,
    *,
    code_only: bool = False,
    search: SearchPaths | None = None,
) -> Iterator[tuple[str, str]]:
    """Files that are opened when the options are used and that have changed, each after the file that names it.

    A file that did not exist at first is not included, such as one that an answer is written to; a module that is found
    in place of another one is.

    Args:
        options: of an assertion or a target.
        known: path → sha256 at first.
        imported: files that are not opened again.
        code_only: data files may change, such as the memory of an agent.
        search: where programs look for code; None: as in this process.
    """
    for root, closure in code_behind(options, search):
        if root in known and (is_code(root) or not code_only):
            yield from ((root, path) for path in closure if _differs(path, known, imported))
    yield from (
        (path, path) for path in modules_behind(options, search) if path not in known and digest_of(path) is not None
    )


def _differs(path: str, known: Mapping[str, str], imported: ImportedCode) -> bool:
    return digest_of(path) != known.get(path) and path not in imported


def _failure(path: str) -> Failure:
    message = f"{shown(path)} was changed during the run and is not used"
    return Failure(CHANGED, message if is_code(path) else f"{message}; {_LEFT}")


class UnchangedTarget:
    """A target that is not asked any more once its code is another."""

    def __init__(self, wrapped: Target, spec: TargetSpec, imported: ImportedCode, *, code_only: bool) -> None:
        self._wrapped = wrapped
        self._spec = spec
        self._imported = imported
        self._code_only = code_only
        self._imports = any(True for _ in functions_behind(spec.settings))
        imported.forget_bytecode(spec.files)

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Ask, unless a file of the target's has changed."""
        path = next(self._changed(), None)
        if path is not None:
            return _failure(path)
        return self._noted(request) if self._imports else self._wrapped.answer(request)

    def _changed(self) -> Iterator[str]:
        spec, known = self._spec, self._spec.files
        found = changed_files(spec.settings, known, self._imported, code_only=self._code_only, search=spec.search)
        yield from (path for _, path in found)
        looked_at = (path for path in known if is_code(path) or not self._code_only)
        yield from (path for path in looked_at if _differs(path, known, self._imported))

    async def _noted(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask code that is imported at its first call, and is not read again."""
        given = self._wrapped.answer(request)
        answer = given if isinstance(given, TargetResponse | Failure) else await given
        self._imported.note(self._spec.files)
        return answer

    async def close(self) -> None:
        """Release the resources of the target."""
        await self._wrapped.close()


def unchanged(target: Target, spec: TargetSpec, imported: ImportedCode, *, code_only: bool) -> Target:
    """The target, guarded against changes of its files where it has some."""
    reads_none = isinstance(target, Embedder) or not spec.files
    return target if reads_none else UnchangedTarget(target, spec, imported, code_only=code_only)
