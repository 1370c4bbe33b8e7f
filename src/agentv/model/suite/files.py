"""Files behind a suite: those that its grades depend on, as they were when it was loaded, and those of git hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct, field


class GraderFiles(Struct):
    """What the files behind the assertions of a suite held when each was first read.

    A long file of cases is read again while they run; what was seen first is what counts.

    Attributes:
        digests: absolute path → sha256, in hex.
        reread: files that held something else when they were read again.
        unfollowed: what starts programs of which no file is known, as it is shown.
        starts: whether a program is started, of which no file need be known.
        functions: (file, module) of the Python code that is imported into this process, one of the two None → seconds
            that its import may take: the longest time limit of the entries that use it.
        search: where the suite's environment has code looked for; None: as this process.
    """

    digests: dict[str, str] = field(default_factory=dict)
    reread: set[str] = field(default_factory=set)
    starts: bool = False
    functions: dict[tuple[str | None, str | None], float] = field(default_factory=dict)
    unfollowed: dict[str, None] = field(default_factory=dict)
    search: SearchPaths | None = None

    def note(self, path: str, digest: str) -> None:
        """Remember what a file holds."""
        if self.digests.setdefault(path, digest) != digest:
            self.reread.add(path)


class SearchPaths(Struct, frozen=True):
    """The variables of an environment that say where code lies, as they are written.

    Attributes:
        programs: `PATH`.
        python: `PYTHONPATH`.
        node: `NODE_PATH`.
        options: `NODE_OPTIONS`, which may name code that is loaded first.
    """

    programs: str = os.defpath
    python: str = ""
    node: str = ""
    options: str = ""

    def homes(self, cwd: str = "") -> tuple[str, ...]:
        """The directories for modules; relative ones count from where the command runs, and need one."""
        return tuple(dict.fromkeys(_directories(f"{self.python}{os.pathsep}{self.node}", cwd)))

    def programs_in(self, cwd: str = "") -> tuple[str, ...]:
        """The directories for programs, likewise."""
        return tuple(_directories(self.programs, cwd))


def search_paths(env: Mapping[str, str]) -> SearchPaths:
    """Those of an environment."""
    return SearchPaths(
        env.get("PATH", os.defpath), env.get("PYTHONPATH", ""), env.get("NODE_PATH", ""), env.get("NODE_OPTIONS", "")
    )


def _directories(listed: str, cwd: str) -> Iterator[str]:
    for one in listed.split(os.pathsep):
        if one and (cwd or os.path.isabs(one)):  # noqa: PTH117  # for every command of every suite
            yield os.path.normpath(os.path.join(cwd, one))  # noqa: PTH118  # as above


class RepositoryFile(Struct, frozen=True):
    """A file that a URL of a git host names (SPEC section 5).

    Attributes:
        host: `github.com`.
        repository: `acme/evals`.
        rest: the parts of `REF/PATH`. A branch may hold slashes, so only the repository knows where the path begins.
        kind: `heads` or `tags` where the URL says which of them the ref is, else empty.
    """

    host: str
    repository: str
    rest: tuple[str, ...]
    kind: str = ""

    @property
    def name(self) -> str:
        """What a message calls the repository."""
        return f"{self.host}/{self.repository}"


class Checkout(Struct, frozen=True):
    """One commit of a repository as plain files.

    Attributes:
        tree: the directory that holds them; it never changes.
        path: of the file that was asked for, below `tree`. It need not exist.
        ref: the branch, tag or commit, as it was asked for.
        outside: links of the commit that lead out of it, which were left out.
        age_s: None, or since when the ref was last looked up, in seconds: it cannot be read now.
        reason: why it cannot, as a sentence.
    """

    tree: str
    path: str
    ref: str
    outside: frozenset[str] = frozenset()
    age_s: float | None = None
    reason: str = ""


class Unavailable(Struct, frozen=True):
    """Why there is no checkout.

    Attributes:
        code: a slug of `agentv.codes.FILES`.
        reason: what is behind it, as a sentence.
        known: the branches and tags that there are, where the one that was asked for is not among them.
    """

    code: str
    message: str
    reason: str = ""
    known: tuple[str, ...] = ()
