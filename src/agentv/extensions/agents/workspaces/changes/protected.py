"""Files that an agent must not change, by globs, and those that the diff leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.extensions.agents.workspaces.changes.diff import shown_path
from agentv.extensions.agents.workspaces.changes.snapshot import Snapshot
from agentv.model.values.path_globs import glob_pattern


def changed_protected(globs: Iterable[str], before: Snapshot, now: Snapshot) -> tuple[str, ...]:
    """The paths of protected files that were changed, deleted, added, or replaced by something else.

    A file that was renamed is deleted at its old path. One below a directory that was replaced by a link is deleted,
    and one that is reached through that link is not looked for.
    """
    patterns = tuple(glob_pattern(glob, below=True, parents=True) for glob in globs)
    if not patterns:
        return ()
    return tuple(
        shown_path(path)
        for path in sorted(changed_paths(before, now))
        if any(pattern.fullmatch(shown_path(path)) for pattern in patterns)
    )


def matching(globs: Iterable[str], snapshot: Snapshot) -> Iterator[str]:
    """The paths of a snapshot that some globs name."""
    patterns = tuple(glob_pattern(glob, below=True, parents=True) for glob in globs)
    paths = map(shown_path, snapshot.files) if patterns else ()
    return (path for path in paths if any(pattern.fullmatch(path) for pattern in patterns))


def without(globs: Iterable[str], snapshot: Snapshot) -> Snapshot:
    """A snapshot without the files that some globs name."""
    patterns = tuple(glob_pattern(glob, below=True) for glob in globs)
    if not patterns:
        return snapshot
    kept = {
        path: state
        for path, state in snapshot.files.items()
        if not any(pattern.fullmatch(shown_path(path)) for pattern in patterns)
    }
    return Snapshot(kept)


def changed_paths(before: Snapshot, now: Snapshot) -> Iterator[bytes]:
    """The paths of all files that were changed, deleted or added, in no order."""
    for path, state in before.files.items():
        after = now.files.get(path)
        if after is None or not after.is_like(state):
            yield path
    yield from (path for path in now.files if path not in before.files)
