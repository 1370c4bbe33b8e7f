"""`agentv validate` and `--fix`: report every mistake in every file, and rewrite older spellings. Nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agentv.app.authored.rewriting import REWRITTEN, Rewriting, fixed_counts, write_all
from agentv.app.registries import registries
from agentv.authoring.dialects.recognition import Dialect
from agentv.authoring.loading.load import LoadRequest, check_file, eval_files, load, unused_in
from agentv.authoring.source.boundary import boundary_around
from agentv.authoring.source.files import TABLES, repository_root
from agentv.authoring.source.masking import secrets_in_line
from agentv.errors import Diagnostic
from agentv.model.values.values import lazy_pattern


class Checked(Struct, frozen=True):
    """A file and its diagnostics, sorted by position; `note` says which tool the file is for, if not agentv.

    Mistakes in a shared file, such as a template, are reported with the first file that uses it.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]
    note: str | None = None


class Validation:
    """The eval files in paths. Iterating checks them one by one, so that the first mistake is reported at once.

    Raises:
        UsageError: a path does not exist, or a directory contains no eval file.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        process_env: Mapping[str, str],
        *,
        allow_outside: bool = False,
        trust_data: bool = False,
    ) -> None:
        self.files = tuple(dict.fromkeys(eval_files(paths)))
        self._request = LoadRequest(
            paths, process_env=process_env, allow_outside=allow_outside, trust_data=trust_data, for_run=False
        )

    def __iter__(self) -> Iterator[Checked]:
        """Check the files in order, then look for unused files if no file is invalid."""
        known = registries()
        reported: set[tuple[object, ...]] = set()
        read: set[str] = set()
        failed = False
        for path in self.files:
            checked = check_file(path, self._request, known)
            read |= checked.read
            failed = failed or any(one.severity == "error" for one in checked.diagnostics)
            fresh = [one for one in checked.diagnostics if (one.code, one.span, one.message) not in reported]
            reported.update((one.code, one.span, one.message) for one in fresh)
            yield Checked(path, tuple(fresh), checked.dialect and Dialect.note(path, checked.dialect))
        if known.warnings:
            yield Checked("", known.warnings)
        if not failed:  # includes of an invalid file may not have been read
            for one in unused_in(self._request.paths, read):
                yield Checked(one.span.file if one.span else "", (one,))


_NAME = lazy_pattern(r"\s*(?:export\s+)?[A-Z_][A-Z0-9_.-]*\s*=")
"""The name in a line of a `.env`. Uppercase only, as other text before a `=` may be the end of a base64 key."""


def source_of(path: str) -> str | None:
    """Return the text of an authored file for excerpts, with secrets hidden, or None for any other file."""
    if not Path(path).is_file() or path.endswith(TABLES) or _lies_elsewhere(path):
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
    return "\n".join(map(_masked if Path(path).name.startswith(".env") else _hidden, text.split("\n")))


def _lies_elsewhere(path: str) -> bool:
    """Whether a path in a repository is a link to a file outside."""
    directory = str(Path(path).parent)
    return not boundary_around(directory, repository_root(directory)).holds(path)


def _masked(line: str) -> str:
    """Hide the value in a line of a `.env`, or the whole line if it has no name, as either may be a secret."""
    name = _NAME.match(line)
    return f"{name[0]}…" if name else "…" if line.strip() else ""


def _hidden(line: str) -> str:
    """Hide secrets in a line of another file, keeping its length, so that a caret below it stays in place."""
    if "://" in line or "=" in line or ":" in line:
        for found in secrets_in_line(line):
            line = line.replace(found, "*" * len(found))
    return line


class Fixed(Struct, frozen=True):
    """Result of `--fix`.

    Attributes:
        files: absolute path → number of spellings rewritten in it.
        left: older spellings that remain, since a rewrite would change a suite or they are not in block style.
    """

    files: Mapping[str, int]
    left: tuple[Diagnostic, ...]


def fix(paths: tuple[str, ...], process_env: Mapping[str, str]) -> Fixed:
    """Rewrite older spellings in the files; each file is written completely or not at all.

    Raises:
        LoadError: a file is invalid, so its meaning is unknown. Nothing was written.
        UsageError: a path does not exist, or a directory contains no eval file.
        OSError: a file cannot be written.
    """
    request = LoadRequest(paths, process_env=process_env, for_run=False)
    before = load(request, registries())
    older = [found for found in before.diagnostics if found.rename is not None and found.span is not None]
    rewriting = Rewriting(process_env)
    for suite in before.suites:
        rewriting.add(suite.path, (suite,))
    rewriting.rename_in_place(found for found in older if found.span and found.span.file.endswith(REWRITTEN))
    write_all(rewriting.edits)
    left = tuple(found for found in load(request, registries()).diagnostics if found.rename is not None)
    return Fixed(fixed_counts(older, left), left)
