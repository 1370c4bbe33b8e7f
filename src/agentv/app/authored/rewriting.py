"""Rewriting of files to canonical spellings, in memory, checking that no suite changes its meaning."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.convert.rewriting import Rename, rewritten
from agentv.authoring.fields.request import Registries
from agentv.authoring.loading.load import LoadRequest, check_file, load
from agentv.errors import Diagnostic, LoadError
from agentv.model.suite.suite import Suite

REWRITTEN = (".yaml", ".yml", ".jsonl")
"""Suffixes of files that can be rewritten."""


class Rewriting(Struct):
    """Files that are rewritten in memory.

    Attributes:
        edits: absolute path → bytes to write.
        meanings: eval file → meaning of its suites before any edit.
        reads: eval file → all files that are read for it.
        error_counts: other file → number of its errors before any edit.
        known: file → its current diagnostics, as far as computed.
    """

    process_env: Mapping[str, str]
    edits: dict[str, bytes] = field(default_factory=dict)
    meanings: dict[str, object] = field(default_factory=dict)
    reads: dict[str, Collection[str]] = field(default_factory=dict)
    error_counts: Counter[str] = field(default_factory=Counter)
    known: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    registries: Registries = field(default_factory=registries)

    def add(self, path: str, suites: Collection[Suite]) -> None:
        """Record the meaning of an eval file before it is edited; a template has no suites."""
        self.meanings[path] = [meaning(suite) for suite in suites]
        self.reads[path] = {file for suite in suites for file in suite.files}

    def request(self, path: str, edits: Mapping[str, bytes] | None = None) -> LoadRequest:
        """Return the request to load a file with the current edits or with others."""
        edits = self.edits if edits is None else edits
        return LoadRequest((path,), process_env=self.process_env, edits=edits, for_run=False)

    def errors(self, path: str, edits: Mapping[str, bytes] | None = None) -> list[Diagnostic]:
        """Return the errors in a file."""
        found = check_file(path, self.request(path, edits), self.registries).diagnostics
        return [one for one in found if one.severity == "error"]

    def text(self, path: str) -> str:
        """Return the current text of a file."""
        data = self.edits.get(path)
        return (Path(path).read_bytes() if data is None else data).decode()

    def take(self, path: str, text: str) -> bool:
        """Replace the text of a file, if every suite keeps its meaning and no shared file gets a new error.

        Returns:
            Whether the text was replaced.
        """
        if text == self.text(path):
            return False
        edits = {**self.edits, path: text.encode()}
        is_shared = path not in self.meanings
        try:
            for one in self.meanings:
                if one == path or path in self.reads[one]:
                    suites = load(self.request(one, edits), self.registries).suites
                    if [meaning(suite) for suite in suites] != self.meanings[one]:
                        return False
        except LoadError:
            return False
        if path in self.error_counts and len(self.errors(path, edits)) > self.error_counts[path]:
            return False
        self.edits = edits
        self.known = {} if is_shared else {one: diagnostics for one, diagnostics in self.known.items() if one != path}
        return True

    def rename_in_place(self, found: Iterable[Diagnostic]) -> None:
        """Rename keys in place: all of a file at once, or if that fails, one spelling at a time."""
        by_file: dict[str, dict[tuple[str, str], list[Rename]]] = {}
        for one in found:
            if one.span is not None and one.rename is not None:
                groups = by_file.setdefault(one.span.file, {})
                groups.setdefault(one.rename, []).append(Rename(one.span, *one.rename))
        for path, groups in by_file.items():
            text = self.text(path)
            if self.take(path, rewritten(text, [one for group in groups.values() for one in group])):
                continue
            kept: list[Rename] = []
            for group in groups.values():
                if self.take(path, rewritten(text, [*kept, *group])):
                    kept += group


def fixed_counts(before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> dict[str, int]:
    """Return file → number of its diagnostics that are gone, if any."""
    counts = Counter(one.span.file for one in before if one.span is not None)
    counts.subtract(one.span.file for one in after if one.span is not None)
    return {path: count for path, count in counts.items() if count > 0}


def write_all(edits: Mapping[str, bytes]) -> None:
    """Write files atomically, and none of them if one cannot be written. Links are followed, not replaced.

    New content is first written to files beside the old ones, so that no file is torn if the process is killed.

    Args:
        edits: path → new bytes.

    Raises:
        OSError: a directory cannot be written, or the disk is full.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for real, data in {Path(path).resolve(): data for path, data in edits.items()}.items():
            beside = real.with_name(f".{real.name}.agentv-fix")
            staged.append((beside, real))
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.chmod(real.stat().st_mode & 0o7777)
        for beside, real in staged:
            os.replace(beside, real)  # noqa: PTH105
    finally:
        for beside, _ in staged:
            beside.unlink(missing_ok=True)
