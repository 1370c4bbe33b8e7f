"""Changes that an agent made to its workspace, against the baseline."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ChangeKind = Literal["added", "modified", "deleted", "renamed"]


class FileChange(Struct, frozen=True):
    """One changed file.

    Attributes:
        path: relative to the workspace, with `/`.
        old_path: before a rename.
        added_lines, deleted_lines: None for a binary file.
        size, sha256: of the file as it is now; None where it was deleted.
    """

    path: str
    kind: ChangeKind
    old_path: str | None = None
    added_lines: int | None = None
    deleted_lines: int | None = None
    size: int | None = None
    sha256: str | None = None
    binary: bool = False


class WorkspaceChanges(Struct, frozen=True):
    """All changes of one trial.

    Attributes:
        patch: unified diff in git's format, UTF-8 with replacement characters; binary files by size and sha256.
        protected: paths of protected files that were changed.
        test_config: paths of changed files that decide how hidden tests run, such as a `conftest.py`.
        cut: the patch is longer than what is shown of it.
    """

    files: tuple[FileChange, ...] = ()
    patch: str = ""
    protected: tuple[str, ...] = ()
    cut: bool = False
    test_config: tuple[str, ...] = ()
