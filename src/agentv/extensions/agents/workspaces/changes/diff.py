"""Changes of files: what `git diff-tree` prints, and those that globs protect or leave out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.extensions.agents.workspaces.changes.snapshot import Snapshot
from agentv.model.values.path_globs import glob_pattern
from agentv.model.values.trace import ChangeKind, FileChange, WorkspaceChanges

PATCH_LIMIT = 5_000_000
_CUT = " more characters are not shown\n"
"""Characters of a patch that are kept."""

_COMMON = ("diff-tree", "-r", "-M", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color")
NAMES = (*_COMMON, "--raw", "--numstat", "-z")
"""Arguments of git that list the changed files between two commits, and count their lines."""

PATCH = (*_COMMON, "--patch", "--text")
"""Arguments of git that print the patch between two commits."""

_KINDS: dict[bytes, ChangeKind] = {b"A": "added", b"D": "deleted", b"R": "renamed"}


def changes_of(names: bytes, patch: bytes, now: Snapshot) -> WorkspaceChanges:
    """The changes, in the order of their paths.

    Args:
        names: what git prints for `NAMES`.
        patch: and for `PATCH`.
        now: the final state.
    """
    words = iter(names.split(b"\0"))
    changes: list[tuple[ChangeKind, bytes, bytes | None]] = []
    lines: dict[bytes, tuple[int, int]] = {}
    for word in words:
        if word.startswith(b":"):
            changes.append(_change(word, words))
        elif word:
            path, counts = _counts(word, words)
            lines[path] = counts
    files = tuple(_file_change(*one, lines.get(one[1], (0, 0)), now) for one in changes)
    text = _text(patch)
    return WorkspaceChanges(files, text, cut=len(text) > PATCH_LIMIT or text.endswith(_CUT))


def shown_path(path: bytes) -> str:
    """A path as text; bytes that are no UTF-8 are shown as escapes."""
    return path.decode("utf-8", "backslashreplace")


def _change(word: bytes, words: Iterator[bytes]) -> tuple[ChangeKind, bytes, bytes | None]:
    """Kind and path of a change, and the path before it was renamed."""
    status = word.rpartition(b" ")[2][:1]
    first = next(words)
    if status in {b"R", b"C"}:
        return "renamed", next(words), first
    return _KINDS.get(status, "modified"), first, None


def _counts(word: bytes, words: Iterator[bytes]) -> tuple[bytes, tuple[int, int]]:
    added, deleted, path = word.split(b"\t", 2)
    if not path:  # of a rename: both paths follow
        next(words)
        path = next(words)
    return path, (_number(added), _number(deleted))


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() else 0


def _file_change(
    kind: ChangeKind, path: bytes, old_path: bytes | None, lines: tuple[int, int], now: Snapshot
) -> FileChange:
    state = now.files.get(path)
    binary = state is not None and state.binary
    return FileChange(
        path=shown_path(path),
        kind=kind,
        old_path=shown_path(old_path) if old_path is not None else None,
        added_lines=None if binary else lines[0],
        deleted_lines=None if binary else lines[1],
        size=state.size if state is not None else None,
        sha256=state.sha256 if state is not None else None,
        binary=binary,
    )


def _text(patch: bytes) -> str:
    text = patch.decode(errors="replace")
    if len(text) <= PATCH_LIMIT:
        return text
    kept = text[:PATCH_LIMIT].rpartition("\n")[0]
    return f"{kept}\n… {len(text) - len(kept):,}{_CUT}"


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
