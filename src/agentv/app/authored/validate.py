"""`agentv validate`: every mistake in every file, without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentv.app.registries import registries
from agentv.authoring.dialects.recognition import Dialect
from agentv.authoring.fields.request import Registries
from agentv.authoring.loading.load import FileCheck, LoadRequest, check_file, eval_files, unused_in
from agentv.authoring.source.files import repository_root
from agentv.errors import Diagnostic
from agentv.model.values.values import Span
from agentv.user_code.load_limit import within_limits


@dataclass(frozen=True, slots=True)
class Checked:
    """One requested file and its diagnostics, sorted by position; `note` says which tool's file it is, if another's.

    Mistakes in a shared file, such as a template, are reported with the first file that uses it.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]
    note: str | None = None


class Validation:
    """The files that paths mean, each checked when it is its turn, so that the first mistake is reported at once.

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
        """The files in their order."""
        known = registries()
        reported: set[tuple[object, ...]] = set()
        read: set[str] = set()
        failed = False
        for path in self.files:
            checked = self._check(path, known)
            read |= checked.read
            failed = failed or any(one.severity == "error" for one in checked.diagnostics)
            fresh = [one for one in checked.diagnostics if (one.code, one.span, one.message) not in reported]
            reported.update((one.code, one.span, one.message) for one in fresh)
            yield Checked(path, tuple(fresh), checked.dialect and Dialect.note(path, checked.dialect))
        if known.warnings:
            yield Checked("", known.warnings)
        if not failed:  # a file that is wrong may not have come to its includes
            for one in unused_in(self._request.paths, read):
                yield Checked(one.span.file if one.span else "", (one,))

    def _check(self, path: str, known: Registries) -> FileCheck:
        """What is wrong with a file; that it asks for too much, where it does."""
        checked = within_limits(lambda: check_file(path, self._request, known))
        if isinstance(checked, FileCheck):
            return checked
        file, line = checked.place or (path, 1)
        begun = " at the case that starts here" if checked.place else ""
        message = f"this file {checked.reason}, so checking stopped{begun}"
        return FileCheck((Diagnostic("too-large", message, Span(file, line, 1, line, 2)),), frozenset())


def validate(
    paths: tuple[str, ...], process_env: Mapping[str, str], *, allow_outside: bool = False
) -> tuple[Diagnostic, ...]:
    """All diagnostics, sorted by file and position.

    Raises:
        UsageError: a path does not exist, or a directory contains no eval file.
    """
    found = (
        one for checked in Validation(paths, process_env, allow_outside=allow_outside) for one in checked.diagnostics
    )
    return tuple(sorted(found, key=lambda one: one.order))


def root_of(directory: str) -> str:
    """The root of the repository that a directory is in."""
    return repository_root(directory)
