"""Exports of a run to files: allowed paths, and writing (SPEC section 13)."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from agentv.app.export_formats import (
    EXPORTS,
    Choice,
    Exported,
    Renderer,
    everything,
    known_suffixes,
    renderer_of,
)
from agentv.app.results.stored import StoredRun
from agentv.authoring.source.files import is_directory
from agentv.errors import StoreError, UsageError
from agentv.registry.extensions import EXPORT_FORMATS, HOW_TO_GET, lacking
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED, RUN, SUMMARY
from agentv.store.files.whole_file import check_place, write_whole

_OWN = frozenset({RUN, INDEX, JOURNAL, SUMMARY, HISTORY, REJECTED})
"""What a run keeps in its directory: an export must not take the place of it."""


def is_export(path: str) -> bool:
    """Whether a value of `--out` names an export instead of a run directory."""
    suffix = Path(path).suffix.lower()
    if path.endswith("/") or len(suffix) < 2:
        return False
    return suffix in EXPORTS or suffix in known_suffixes()


def write_export(run: StoredRun, path: Path, chosen: Choice = everything) -> None:
    """Write a run to a file, in the format of its suffix. The file is written completely or not at all.

    Args:
        run: a run that has ended, or that may be partial.
        path: of the file; an existing file is replaced.
        chosen: which of its trials.

    Raises:
        UsageError: the suffix names no format, or the path cannot be an export.
        StoreError: the run cannot be read, or the system refuses to write.
    """
    write_as(path.suffix, Exported(run, chosen), path)


def write_as(suffix: str, exported: Exported, path: Path) -> None:
    """Write a file as `write_export` does, in the format of a suffix that need not be its own.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    check_export(path, exported.run.path, suffix=suffix)
    write_whole(path, rendered(suffix, exported))


def export_text(run: StoredRun, suffix: str, chosen: Choice = everything) -> Iterator[str]:
    """The content that `write_export` writes, in pieces.

    Raises:
        UsageError, StoreError: as `rendered`.
    """
    return rendered(suffix, Exported(run, chosen))


def rendered(suffix: str, exported: Exported) -> Iterator[str]:
    """The text of an export, piece by piece, in the format that a suffix names.

    Raises:
        UsageError: it names none, or there is nothing to report.
        StoreError: as the pieces are taken: the run cannot be read.
    """
    return _renderer(suffix)(exported)


def write_exports(run: StoredRun, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write a run to several files; the paths that were written, and the errors of the others.

    The run is already saved, so a failed export affects neither it nor the other exports.
    """
    written: list[str] = []
    errors: list[str] = []
    for path in paths:
        try:
            write_export(run, Path(path))
        except (StoreError, UsageError) as error:
            errors.append(str(error))
        else:
            written.append(path)
    return tuple(written), tuple(errors)


def check_exports(paths: Sequence[str], run: str | None, read: Container[str]) -> None:
    """Refuse what cannot be written when a run has ended, before it begins.

    Args:
        paths: of the exports.
        run: its directory, where that was named.
        read: absolute paths of the files that the run reads.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    for path in paths:
        check_export(Path(path), None if run is None else Path(run))
        if os.path.realpath(path) in read:
            raise UsageError(f"{path} is an input of this run", "give the export another name")


def check_export(path: Path, run: Path | None, *, suffix: str | None = None) -> None:
    """Refuse what an export cannot be written to, before anything is run or paid for.

    Args:
        path: of the export.
        run: directory of the run, which may be yet to make; None: one below `.agentv/results`.
        suffix: as for `write_export`.

    Raises:
        UsageError, StoreError: as `write_export`.
    """
    _renderer(suffix or path.suffix, path)
    inside = run is not None and os.path.realpath(path.parent) == os.path.realpath(run)
    there = is_directory(str(path.parent))
    if path.name in _OWN and (inside or (there and (path.parent / RUN).is_file())):
        raise UsageError(f"{path} is one of the run's own files", "give the export another name")
    if inside and not there:
        return  # the run makes it
    if not there:
        raise UsageError(f"cannot write {path}: the directory {path.parent} does not exist", f"mkdir -p {path.parent}")
    check_place(path)


def _renderer(suffix: str, path: Path | str = "it") -> Renderer:
    found = renderer_of(suffix)
    if found is not None:
        return found
    if needs := lacking(EXPORT_FORMATS, suffix.lower()):
        raise UsageError(f"cannot export to {path}: '{suffix}' {needs}", HOW_TO_GET)
    raise UsageError(f"cannot export to {path}: unknown suffix", f"known are {', '.join(known_suffixes())}")
