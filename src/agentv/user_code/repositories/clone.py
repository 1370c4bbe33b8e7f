"""The commits of one repository on disk, shared by all processes of a user.

Beside each other lie, for a repository R:

    R@<sha>/             the files of a commit; complete, and never changed
    R@<sha>.outside      its links that lead out of it, and were left out
    R@git/               the clone, bare and shallow, that commits are fetched into and their files written out of
    R@refs/<ref>         the commit that a branch or tag last stood for; its time of change says when
    R@new-…/             where a commit is being fetched
    R@lock               held by who fetches

No host allows `@` in a name, so that nothing of two repositories ever has the same path.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote, unquote

from agentv.user_code.home import agentv_home
from agentv.user_code.repositories.git import FULL_SHA

LOCK_S = 600.0
"""Seconds to wait for another process that fetches from the same repository."""

_POLL_S = 0.05


def cache_home(env: Mapping[str, str]) -> Path:
    """Where repositories are kept: `$AGENTV_HOME/cache/repos`, else below `~/.agentv`."""
    return agentv_home(env) / "cache" / "repos"


class RepositoryClone:
    """Everything that is kept of one repository. `base` is the path of R."""

    def __init__(self, base: Path, *, lock_s: float = LOCK_S) -> None:
        self.base = base
        self._lock_s = lock_s

    def tree(self, sha: str) -> Path | None:
        """The directory of a commit, if it is here."""
        path = self._beside(sha)
        return path if path.is_dir() else None

    def outside(self, sha: str) -> frozenset[str]:
        """The links that were left out of a commit."""
        try:
            text = self._beside(f"{sha}.outside").read_bytes().decode(errors="surrogateescape")
        except FileNotFoundError:
            return frozenset()
        return frozenset(text.split("\0"))

    def note(self, ref: str, sha: str) -> None:
        """Store the commit of a ref, for use without a network."""
        folder = self._beside("refs")
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{os.getpid()}"
        with suppress(OSError):  # a name that is too long for a file: then it is not kept
            part.write_text(sha, encoding="ascii")
            part.replace(folder / quote(ref, safe=""))
        part.unlink(missing_ok=True)

    def noted(self) -> dict[str, tuple[str, float]]:
        """Ref → the commit that it last stood for, and when that was seen, in seconds since the epoch."""
        found = {}
        folder = self._beside("refs")
        for path in folder.iterdir() if folder.is_dir() else ():
            with suppress(OSError, UnicodeDecodeError):
                sha = path.read_text(encoding="ascii")
                if FULL_SHA.fullmatch(sha) and not path.name.startswith("."):
                    found[unquote(path.name)] = sha, path.stat().st_mtime
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with this repository. The lock of a process that was killed is free at once.

        Raises:
            TimeoutError: another process has held it for too long.
            OSError: there is no directory to lock, or it cannot be written.
        """
        import fcntl

        deadline = time.monotonic() + self._lock_s
        with self._beside("lock").open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError from None
                    time.sleep(_POLL_S)
            yield

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """An empty directory that is gone at the end. What a killed process left is gone too: it held the lock."""
        for stale in self.base.parent.glob(f"{self.base.name}@new-*"):
            shutil.rmtree(stale, ignore_errors=True)
        room = Path(mkdtemp(prefix=f"{self.base.name}@new-", dir=self.base.parent))
        try:
            yield room
        finally:
            shutil.rmtree(room, ignore_errors=True)

    def clone(self) -> Path | None:
        """The clone of the repository, if there is one, without what a killed git left in it. Asked under the lock."""
        path = self._beside("git")
        if not (path / "HEAD").is_file():
            return None
        stale = (*path.rglob("*.lock"), *path.glob("objects/pack/tmp_*"), path / "index")
        for one in stale:  # an index is of files that were moved away since
            one.unlink(missing_ok=True)
        return path

    def keep_clone(self, made: Path) -> None:
        """Put a clone where the next fetch finds it, in the place of one that could not be used."""
        path = self._beside("git")
        with suppress(OSError):  # then the next fetch clones again
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            made.rename(path)

    def place(self, tree: Path, sha: str) -> None:
        """Put the finished files of a commit on the shelf, in one step. Links out of it are left out first."""
        outside = _without_ways_out(tree)
        if outside:
            text = "\0".join(outside).encode(errors="surrogateescape")
            self._beside(f"{sha}.outside").write_bytes(text)
        tree.rename(self._beside(sha))

    def _beside(self, what: str) -> Path:
        return self.base.with_name(f"{self.base.name}@{what}")


def _without_ways_out(tree: Path) -> list[str]:
    """Take every link away that leads out of a directory; their paths below it."""
    top = os.path.realpath(tree)
    walked = os.walk(top)
    every = (Path(folder) / name for folder, directories, files in walked for name in (*directories, *files))
    links = [path for path in every if path.is_symlink()]
    ways_out = [path for path in links if not os.path.realpath(path).startswith(top + os.sep)]
    for path in ways_out:
        path.unlink()
    return [str(path.relative_to(top)) for path in ways_out]
