"""Paths that match a pattern. Below `**` no link to a directory is followed: it may lead anywhere, and in circles."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from glob import escape, has_magic, iglob
from itertools import islice
from os.path import normpath
from typing import Final

from agentv.authoring.source.files import is_file
from agentv.registry.fields import FileGlobs

EVERYWHERE: Final = "**"


def literal_part(pattern: str) -> str:
    """The directories that a pattern begins with, before its first part that is one."""
    parts = pattern.split("/")
    first = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    return "/".join(parts[:first])


def climbs(pattern: str) -> bool:
    """Whether a pattern leaves a directory after its first wildcard, so that it can lead anywhere."""
    return ".." in pattern.removeprefix(literal_part(pattern)).split("/")


def matched(pattern: str, base: str) -> list[str]:
    """The paths below a directory that match, relative to it and sorted, as `glob` has it.

    Hidden names match only a part that begins with a dot. What cannot be read matches nothing.
    """
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    return sorted({path for path in _below(base, "", tuple(parts), set()) if path})


def _below(base: str, inside: str, parts: Sequence[str], seen: set[tuple[str, int]]) -> Iterator[str]:
    key = (inside, len(parts))
    if key in seen:
        return
    seen.add(key)
    if not parts:
        yield inside
        return
    part, rest = parts[0], parts[1:]
    if part == EVERYWHERE:
        yield from _below(base, inside, rest, seen)
        for entry in _entries(os.path.join(base, inside)):  # noqa: PTH118  # texts, for every file of a tree
            if not entry.name.startswith("."):
                path = os.path.join(inside, entry.name)  # noqa: PTH118  # as above
                yield from _below(base, path, parts, seen) if _is_directory(entry) else ()
                yield from (path,) if not rest and not _is_directory(entry) else ()
    elif has_magic(part):
        for entry in _entries(os.path.join(base, inside)):  # noqa: PTH118  # as above
            if _matches(part, entry.name):
                yield from _below(base, os.path.join(inside, entry.name), rest, seen)  # noqa: PTH118  # as above
    else:
        path = os.path.join(inside, part)  # noqa: PTH118  # as above
        if os.path.lexists(os.path.join(base, path)):  # noqa: PTH118  # as above
            yield from _below(base, path, rest, seen)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory or ".") as entries:
            return list(entries)
    except OSError:
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _matches(part: str, name: str) -> bool:
    hidden = name.startswith(".") and not part.startswith(".")
    return not hidden and _compiled(part).match(name) is not None


@lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))


MOST_FILES = 10_000
"""Files that one list of patterns may name."""


def files_of_globs(globs: FileGlobs) -> tuple[str, ...]:
    """The files that the patterns name, absolute and sorted, a bounded number."""
    home = escape(globs.cwd.rstrip("/"))
    found = (
        normpath(path)
        for pattern in globs.patterns
        for path in iglob(f"{home}/{pattern.removeprefix('./')}", recursive=True)  # noqa: PTH207  # Path's follows no links
        if is_file(path)
    )
    return tuple(sorted(set(islice(found, MOST_FILES))))
