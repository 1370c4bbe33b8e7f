"""`agentv convert DIR`: rewrite an AgentV project with canonical spellings, without changing any suite's meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.authored.rewriting import REWRITTEN, Rewriting, fixed_counts, write_all
from agentv.app.planning.default_paths import check_output, copy_project, eval_files_in, project_files
from agentv.authoring.convert.rewriting import Rename, rewritten, without_key
from agentv.authoring.dialects.recognition import by_name
from agentv.authoring.loading.load import check_file, load
from agentv.errors import Diagnostic, LoadError, UsageError

MOST_REWRITTEN = 10_000
"""Maximum number of spellings that are rewritten one by one."""

_KEPT = frozenset({"not-yet", "not-applied"})


class ConvertedProject(Struct, frozen=True):
    """The result of converting a project.

    Attributes:
        directory: of the converted project.
        files: path relative to it → number of older spellings rewritten in it.
        count: number of eval files.
        invalid: number of eval files that cannot be converted.
        dropped: key without effect → the files that it was removed from.
        left: older spellings that remain.
        kept: keys that are recognized but have no effect yet, once per message.
        wrong: errors in the files that cannot be converted.
        excluded: directories and links that were not copied.
        written: whether files were written; in place, nothing is written unless every file can be converted.
    """

    directory: Path
    files: Mapping[str, int]
    count: int
    invalid: int
    dropped: Mapping[str, tuple[str, ...]]
    left: tuple[Diagnostic, ...]
    kept: tuple[Diagnostic, ...]
    wrong: tuple[Diagnostic, ...]
    excluded: tuple[str, ...]
    written: bool = True


def convert_project(source: Path, out: Path | None, process_env: Mapping[str, str]) -> ConvertedProject:
    """Rewrite a project, in place or in a new directory, skipping rewrites that would change a suite.

    In place, nothing is written if a file is invalid. In a new directory, an invalid file is copied unchanged.

    Args:
        source: the directory of the project.
        out: the new directory; None: in place.
        process_env: the environment of the process.

    Raises:
        UsageError: there is no project, or the new directory cannot be used.
        OSError: a file cannot be read or written.
    """
    if not eval_files_in(source, process_env) and not project_files(source):
        hint = "a project has a directory .agentv, or eval files (*.eval.yaml)"
        raise UsageError(f"{source} contains no AgentV project", hint)
    with ExitStack() as undo:
        excluded: tuple[str, ...] = ()
        if out is not None:
            check_output(source, out)
            excluded = copy_project(source, out, undo)
        done = _Project(process_env, directory=out or source).converted(excluded, all_or_nothing=out is None)
        undo.pop_all()
    return done


class _Project(Rewriting, kw_only=True):
    """The files of a project that are rewritten in memory."""

    directory: Path

    def converted(self, excluded: tuple[str, ...], *, all_or_nothing: bool) -> ConvertedProject:
        """Rewrite the files and write them. With `all_or_nothing`, write nothing if a file is invalid."""
        wrong: list[Diagnostic] = []
        found = eval_files_in(self.directory, self.process_env)
        files = [path for path in found if by_name(path) is None]  # files of other tools have their own spellings
        for path in files:
            try:
                self.add(path, load(self.request(path), self.registries).suites)
            except LoadError as error:
                wrong += error.diagnostics
        shared = project_files(self.directory)
        for path in shared:
            errors = self.errors(path)
            self.error_counts[path] = len(errors)
            wrong += errors
        wrong = [*dict.fromkeys(one for one in wrong if one.severity == "error")]
        if all_or_nothing and wrong:
            count = len(files)
            invalid = count - len(self.meanings)
            return ConvertedProject(self.directory, {}, count, invalid, {}, (), (), tuple(wrong), (), written=False)
        paths = [*self.meanings, *shared]
        before = self._renames(paths)
        self.rename_in_place(before)
        self._rewrite_one_by_one(paths)
        dropped = self._drop(paths)
        write_all(self.edits)
        self.known = {}
        after = self._diagnostics(paths)
        left = tuple(found for found in after if found.rename is not None)
        return ConvertedProject(
            directory=self.directory,
            files={self._shown(path): count for path, count in fixed_counts(before, left).items()},
            count=len(files),
            invalid=len(files) - len(self.meanings),
            dropped=dropped,
            left=left,
            kept=_grouped_by_message(found for found in after if found.code in _KEPT),
            wrong=tuple(wrong),
            excluded=excluded,
        )

    def _diagnostics(self, paths: Iterable[str]) -> list[Diagnostic]:
        found: dict[tuple[object, ...], Diagnostic] = {}
        for path in paths:
            if path not in self.known:
                self.known[path] = check_file(path, self.request(path), self.registries).diagnostics
            for one in self.known[path]:
                found.setdefault((one.code, one.span, one.message), one)
        return list(found.values())

    def _renames(self, paths: Iterable[str]) -> list[Diagnostic]:
        """Return the older spellings in files of the project."""
        found = (one for one in self._diagnostics(paths) if one.rename is not None and one.span is not None)
        return [one for one in found if one.span is not None and self._is_own(one.span.file)]

    def _is_own(self, path: str) -> bool:
        inside = Path(path).resolve().is_relative_to(self.directory.resolve())
        return inside and path.endswith(REWRITTEN)

    def _rewrite_one_by_one(self, paths: list[str]) -> None:
        """Rewrite keys that move or whose values change, one at a time, since each changes the lines below it."""
        tried: set[tuple[str, str, str]] = set()
        for _ in range(MOST_REWRITTEN):
            found = next((one for one in self._renames(paths) if self._key(one) not in tried), None)
            if found is None or found.span is None or found.rename is None:
                return
            text = self.text(found.span.file)
            made = rewritten(text, [Rename(found.span, *found.rename)])
            if not self.take(found.span.file, made):
                tried.add(self._key(found))

    def _key(self, found: Diagnostic) -> tuple[str, str, str]:
        """Return an identity of an older spelling that is stable when its line moves."""
        span = found.span
        lines = self.text(span.file).split("\n") if span is not None else []
        line = lines[span.line - 1] if span is not None and span.line <= len(lines) else ""
        return span.file if span is not None else "", str(found.rename), line

    def _drop(self, paths: list[str]) -> dict[str, tuple[str, ...]]:
        """Remove keys without effect; return key → the files that it was removed from."""
        dropped: dict[str, dict[str, None]] = {}
        for found in self._diagnostics(paths):
            path = found.span.file if found.span is not None else ""
            if found.code != "no-effect" or not path or not self._is_own(path):
                continue
            for key in _NAMES.findall(found.message):
                name = key.rpartition(".")[2]  # the last part of a dotted key
                while any(self.take(path, made) for made in without_key(self.text(path), name)):
                    dropped.setdefault(name, {})[self._shown(path)] = None
        return {name: tuple(files) for name, files in dropped.items()}

    def _shown(self, path: str) -> str:
        real, home = Path(path), self.directory.absolute()
        return str(real.relative_to(home)) if real.is_relative_to(home) else path


_NAMES = re.compile(r"'([^']+)'(?=[,' ]*(?:(?:'[^']+')[, ]*)*(?:has|have) no effect)")


def _grouped_by_message(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the first diagnostic of each message, with a note about the number of others."""
    first: dict[str, Diagnostic] = {}
    counts: Counter[str] = Counter()
    for one in found:
        first.setdefault(one.message, one)
        counts[one.message] += 1
    return tuple(
        one if counts[message] == 1 else replace(one, notes=(*one.notes, f"and at {counts[message] - 1} more places"))
        for message, one in first.items()
    )


def groups_of(dropped: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a line about each dropped key and its files."""
    for name, files in sorted(dropped.items()):
        yield f"'{name}' in {', '.join(files[:3])}{f' and {len(files) - 3} more' if len(files) > 3 else ''}"
