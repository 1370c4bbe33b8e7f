"""Files behind a suite: those that its grades depend on, with their hashes, and those fetched from git hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct, field


class GraderFiles(Struct):
    """The files that a suite's assertions depend on, with the hash that each had when it was first read.

    A long file of cases is read again during the run; the first hash counts.

    Attributes:
        digests: absolute path → sha256 in hex.
        reread: files whose content had changed when they were read again.
        unfollowed: labels of the assertions that start programs whose files are not known.
        starts_programs: whether an assertion starts a program, whether or not its files are known.
        functions: Python code to import: (file, None) or (None, module) → seconds that the import may take, the longest
            time limit of the entries that use it.
        search: where the suite's environment looks for code; None for the search paths of this process.
    """

    digests: dict[str, str] = field(default_factory=dict)
    reread: set[str] = field(default_factory=set)
    starts_programs: bool = False
    functions: dict[tuple[str | None, str | None], float] = field(default_factory=dict)
    unfollowed: dict[str, None] = field(default_factory=dict)
    search: SearchPaths | None = None

    def note(self, path: str, digest: str) -> None:
        """Record the hash of a file, or that the file changed since it was first read."""
        if self.digests.setdefault(path, digest) != digest:
            self.reread.add(path)


class SearchPaths(Struct, frozen=True):
    """The variables of an environment that say where to look for code, unparsed.

    Attributes:
        programs: `PATH`.
        python: `PYTHONPATH`.
        node: `NODE_PATH`.
        options: `NODE_OPTIONS`, which may name code to preload.
    """

    programs: str = os.defpath
    python: str = ""
    node: str = ""
    options: str = ""

    def module_directories(self, cwd: str = "") -> tuple[str, ...]:
        """Return the directories of modules; relative ones are resolved against `cwd`, or left out if it is empty."""
        return tuple(dict.fromkeys(_directories(f"{self.python}{os.pathsep}{self.node}", cwd)))

    def program_directories(self, cwd: str = "") -> tuple[str, ...]:
        """Return the directories of programs; relative ones are resolved against `cwd`, or left out if it is empty."""
        return tuple(_directories(self.programs, cwd))


def search_paths(env: Mapping[str, str]) -> SearchPaths:
    """Return the search paths of an environment."""
    return SearchPaths(
        env.get("PATH", os.defpath), env.get("PYTHONPATH", ""), env.get("NODE_PATH", ""), env.get("NODE_OPTIONS", "")
    )


def _directories(listed: str, cwd: str) -> Iterator[str]:
    for one in listed.split(os.pathsep):
        # `os.path`, because `pathlib` is slower and this runs for every command of every suite
        if one and (cwd or os.path.isabs(one)):  # noqa: PTH117
            yield os.path.normpath(os.path.join(cwd, one))  # noqa: PTH118


class RepositoryFile(Struct, frozen=True):
    """A file named by the URL of a git host (SPEC section 5).

    Attributes:
        host: such as `github.com`.
        repository: such as `acme/evals`.
        rest: the parts of `REF/PATH`. A branch name may contain slashes, so only the repository's refs tell where the
            path begins.
        kind: `heads` or `tags` if the URL says which of them the ref is, else empty.
    """

    host: str
    repository: str
    rest: tuple[str, ...]
    kind: str = ""

    @property
    def name(self) -> str:
        """Name of the repository in messages."""
        return f"{self.host}/{self.repository}"


class Checkout(Struct, frozen=True):
    """The files of one commit of a repository.

    Attributes:
        tree: the directory with the files; its content never changes.
        path: path of the requested file, below `tree`. The file need not exist.
        ref: the branch, tag or commit, as requested.
        outside: symlinks that lead out of the commit; they were left out.
        age_s: seconds since the ref was last resolved, if it cannot be resolved now; else None.
        reason: why it cannot be resolved, as a sentence.
    """

    tree: str
    path: str
    ref: str
    outside: frozenset[str] = frozenset()
    age_s: float | None = None
    reason: str = ""


class Unavailable(Struct, frozen=True):
    """The reason why a commit cannot be checked out.

    Attributes:
        code: a slug of `agentv.codes.FILES`.
        reason: the underlying cause, as a sentence.
        known: the existing branches and tags, if the requested one does not exist.
    """

    code: str
    message: str
    reason: str = ""
    known: tuple[str, ...] = ()
