"""Baselines of workspaces and diffs against them, in a separate git repository.

The repository is outside the workspaces, and git never reads a workspace: this module reads the files, without
following links, and streams them into `git fast-import`. Attributes, filters, hooks and configuration that an agent
leaves have no effect. A binary file is stored as one line with its size and hash.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path

from agentv.extensions.agents.workspaces.snapshot import FileState, Snapshot, content
from agentv.model.values.path_globs import glob_pattern
from agentv.model.values.response import Failure
from agentv.model.values.trace import ChangeKind, FileChange, WorkspaceChanges
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import Finished, run_program

PATCH_LIMIT = 5_000_000
"""Maximum length of a patch in characters."""

_COMMON = ("diff-tree", "-r", "-M", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color")
_KINDS: dict[bytes, ChangeKind] = {b"A": "added", b"D": "deleted", b"R": "renamed"}


def shown_path(path: bytes) -> str:
    """Return a path as text. Bytes that are not UTF-8 are escaped."""
    return path.decode("utf-8", "backslashreplace")


def _change(word: bytes, words: Iterator[bytes]) -> tuple[ChangeKind, bytes, bytes | None]:
    """Parse a change in the output of `git diff-tree`: its kind, its path, and the old path of a rename."""
    status = word.rpartition(b" ")[2][:1]
    first = next(words)
    if status in {b"R", b"C"}:
        return "renamed", next(words), first
    return _KINDS.get(status, "modified"), first, None


def _file_change(
    kind: ChangeKind, path: bytes, old_path: bytes | None, lines: tuple[int, ...], now: Snapshot
) -> FileChange:
    state = now.get(path)
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


def changed_protected(globs: Collection[str], before: Snapshot, now: Snapshot) -> tuple[str, ...]:
    """Return the paths of protected files that were changed, deleted, added, or replaced by something else.

    A renamed file counts as deleted at its old path. If a directory was replaced with a link, the files below it
    count as deleted, and files behind the link are ignored.
    """
    changed = sorted(changed_paths(before, now)) if globs else ()
    return tuple(map(shown_path, matching(globs, changed)))


def matching(globs: Collection[str], paths: Iterable[bytes], *, parents: bool = True) -> Iterator[bytes]:
    """Return the paths that match a glob; with `parents`, also those at a parent directory of such a path."""
    patterns = tuple(glob_pattern(glob, below=True, parents=parents) for glob in globs)
    return (path for path in paths if any(one.fullmatch(shown_path(path)) for one in patterns))


def without(globs: Collection[str], snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the files that match a glob."""
    left_out = set(matching(globs, snapshot, parents=False))
    return {path: state for path, state in snapshot.items() if path not in left_out} if left_out else snapshot


def changed_paths(before: Snapshot, now: Snapshot) -> Iterator[bytes]:
    """Yield the paths of all files that were changed, deleted or added, in no particular order."""
    for path, state in before.items():
        after = now.get(path)
        if after is None or not after.is_like(state):
            yield path
    yield from (path for path in now if path not in before)


GIT_S = 300.0
OUTPUT_LIMIT = 100_000_000
SHOWN_LIMIT = 20_000_000
"""Total bytes of changed text files that the diff shows in full; of further files it shows size and hash."""

_CONFIG = (
    "core.compression=0",
    "pack.compression=0",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "gc.auto=0",
    "diff.renameLimit=1000",
)
_ESCAPED = re.compile(rb'[\x00-\x1f"\\\x7f]')
_HEAD = b"committer agentv <agentv> 0 +0000\ndata 0\n"


class Baselines:
    """The baselines of all workspaces of a run.

    Args:
        directory: path of the repository, which does not exist yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)
        self._started: asyncio.Future[Finished | Failure] | None = None

    async def store(
        self, directory: str, now: Snapshot, base: str = "", earlier: Snapshot | None = None
    ) -> str | Failure:
        """Store the state of a directory as a commit; return the name of the commit.

        Args:
            directory: directory of the files.
            now: their state.
            base: commit to base the new one on; empty for none.
            earlier: state that was stored as `base`.
        """
        if self._started is None:
            self._started = asyncio.ensure_future(self._git("init", "--quiet", "--bare", "--template="))
        started = await asyncio.shield(self._started)
        if isinstance(started, Failure):
            return started
        paths = set(changed_paths(earlier or {}, now))
        if base and not paths:
            return base
        changed = {path: state for path, state in now.items() if path in paths}
        commit = f"refs/heads/state-{next(self._numbers)}"
        stream = _stream(directory, changed, paths - changed.keys(), commit.encode(), base.encode())
        stored = await self._git("fast-import", "--quiet", "--force", stdin=stream)
        return stored if isinstance(stored, Failure) else commit

    async def changes(self, base: str, final: str, now: Snapshot) -> WorkspaceChanges | Failure:
        """Return the changes between two commits.

        Args:
            base: the commit of the baseline.
            final: the commit of the final state.
            now: the final state.
        """
        names = await self._git(*_COMMON, "--raw", "--numstat", "-z", base, final)
        if isinstance(names, Failure):
            return names
        patch = await self._git(*_COMMON, "--patch", "--text", base, final)
        if isinstance(patch, Failure):
            return patch
        words = iter(names.stdout.split(b"\0"))
        changes: list[tuple[ChangeKind, bytes, bytes | None]] = []
        lines: dict[bytes, tuple[int, ...]] = {}
        for word in words:
            if word.startswith(b":"):
                changes.append(_change(word, words))
            elif word:
                added, deleted, path = word.split(b"\t", 2)
                if not path:  # a rename: both paths follow
                    next(words)
                    path = next(words)
                lines[path] = tuple(int(one) if one.isdigit() else 0 for one in (added, deleted))
        files = tuple(_file_change(*one, lines.get(one[1], (0, 0)), now) for one in changes)
        text = patch.stdout.decode(errors="replace")
        if len(text) <= PATCH_LIMIT:
            return WorkspaceChanges(files, text)
        kept = text[:PATCH_LIMIT].rpartition("\n")[0]
        return WorkspaceChanges(files, f"{kept}\n… {len(text) - len(kept):,} more characters are not shown\n", cut=True)

    async def text(self, commit: str, path: bytes) -> str:
        """Return the text of a file in a commit, or "" if it is missing. Bytes that are not UTF-8 become surrogates."""
        blob = await self._git("cat-file", "blob", f"{commit}:{os.fsdecode(path)}")
        return "" if isinstance(blob, Failure) else blob.stdout.decode(errors="surrogateescape")

    async def _git(self, *arguments: str, stdin: bytes = b"") -> Finished | Failure:
        flags = [word for setting in _CONFIG for word in ("-c", setting)]
        argv = ("git", f"--git-dir={self._directory}", *flags, *arguments)
        command = Command(argv=argv, cwd=str(self._directory.parent))
        ended = await run_program(command, stdin=stdin, env=_environment(), timeout_s=GIT_S, limit=OUTPUT_LIMIT)
        if isinstance(ended, Failure):
            return Failure("workspace-failed", f"the diff of a workspace failed: {ended.message}")
        if ended.status:
            is_full = any(words in ended.stderr for words in (b"Out of diskspace", b"No space left"))
            reason = "no space is left on the disk" if is_full else f"git says: {tail(ended.stderr)}"
            return Failure("workspace-failed", f"the diff of a workspace failed: {reason}")
        return ended


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "HOME": os.devnull,
        "LC_ALL": "C",
    }


def _stream(
    directory: str, changed: Mapping[bytes, FileState], gone: Iterable[bytes], commit: bytes, base: bytes
) -> bytes:
    """Return a commit with these files as input of `git fast-import`. Text beyond `SHOWN_LIMIT` is left out.

    The largest files are left out first, since tests and their configuration, which are restored from here, are small.
    """
    lines = bytearray(b"commit %b\n%b" % (commit, _HEAD))
    if base:
        lines += b"from %b^0\n" % base
    for path in gone:
        lines += b"D %b\n" % _quoted(path)
    shown = 0
    for path, state in sorted(changed.items(), key=lambda item: item[1].size):
        text = _stored(directory, path, state, shown)
        shown += 0 if state.binary else state.size
        lines += b"M %b inline %b\ndata %d\n%b\n" % (state.mode.encode(), _quoted(path), len(text), text)
    return bytes(lines)


def _stored(directory: str, path: bytes, state: FileState, shown: int) -> bytes:
    if state.special:
        return f"{state.special}\n".encode()
    if state.binary or shown > SHOWN_LIMIT:
        kind = "binary file" if state.binary else "text file"
        return f"{kind}, {state.size} bytes, sha256 {state.sha256}\n".encode()
    return content(directory, path)


def _quoted(path: bytes) -> bytes:
    """Quote a path as git does."""
    return b'"' + _ESCAPED.sub(lambda found: b"\\%03o" % ord(found[0]), path) + b'"'
