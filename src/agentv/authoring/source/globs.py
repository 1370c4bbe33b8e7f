"""The files that `fingerprint:` names: what a command starts and agentv cannot see."""

from __future__ import annotations

from glob import escape, iglob
from itertools import islice
from os.path import normpath

from agentv.authoring.source.files import is_file
from agentv.registry.fields import FileGlobs

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
