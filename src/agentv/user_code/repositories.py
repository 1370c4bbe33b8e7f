"""Files from repositories on git hosts. Each commit is fetched once and stored as plain files (SPEC section 5)."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote, unquote

from msgspec.structs import replace

from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.response import Failure
from agentv.user_code.files import agentv_home
from agentv.user_code.processes import Finished, run_program

LIST_S = 60.0
"""Time limit in seconds to list the branches and tags of a repository."""

FETCH_S = 300.0
"""Time limit in seconds to fetch one commit, or to check it out."""

OUTPUT_LIMIT = 100_000_000

RunGit = Callable[[Sequence[str], str, Mapping[str, str], float], "Finished | Failure"]
"""(arguments, working directory, environment, time limit in seconds) → git's result, or a Failure."""

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",  # can name a program
    "core.askPass=",
    "core.bare=false",
    "core.symlinks=true",
    "core.autocrlf=false",
    "credential.interactive=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.lowSpeedLimit=1",  # ends git even if this process was killed
    "http.lowSpeedTime=60",
)
"""Settings that override every git config file. The user's protocols, proxies, URL rewriting and credentials stay."""

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty: use no program
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",  # its messages are parsed
}
_REMOVED_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_SHALLOW_FILE",
        "GIT_TEMPLATE_DIR",
        "GIT_WORK_TREE",
        "SSH_ASKPASS",
    }
)
"""Variables to remove: git sets them for a hook, which may run agentv, and SSH_ASKPASS can open a window."""

RAW = "* -filter -text -ident !eol !working-tree-encoding\n"
"""Git attributes with the highest precedence, so that files have the committed bytes and no filter runs."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_ERROR_LINE = re.compile(r"(?:fatal|error|remote):\s*(.+)")


def run_git(arguments: Sequence[str], cwd: str, env: Mapping[str, str], timeout_s: float) -> Finished | Failure:
    """Run git and wait for it, whether or not an event loop is running.

    Args:
        arguments: the arguments of git.
        cwd: the working directory. Repositories in its parent directories are ignored.
        env: the environment of the process.
        timeout_s: time limit in seconds, after which git and its descendants are killed.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from agentv.registry.fields import Command

    own = {name: value for name, value in env.items() if name not in _REMOVED_VARIABLES}
    own |= {**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(Path(cwd).parent)}
    flags = [word for setting in _CONFIG for word in ("-c", setting)]
    command = Command(argv=("git", *flags, *arguments), cwd=cwd)

    def run() -> Finished | Failure:
        return asyncio.run(run_program(command, stdin=b"", env=own, timeout_s=timeout_s, limit=OUTPUT_LIMIT))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:  # event loops cannot be nested
        return pool.submit(run).result()


def reason_of(ended: Finished | Failure) -> str:
    """Return why git failed: the first error line of its output, without credentials, or the Failure's message."""
    if isinstance(ended, Failure):
        return ended.message
    lines = [line.strip() for line in ended.stderr.decode(errors="replace").splitlines() if line.strip()]
    telling = [match[1] for line in lines if (match := _ERROR_LINE.match(line))]
    chosen = (*telling, *lines[-1:], f"it ended with status {ended.status}")[0]
    return f"git says: {_CREDENTIALS.sub('', chosen)}"


FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF_LINE = re.compile(
    r"(?P<sha>[0-9a-f]{40,64})\t(?P<ref>HEAD|refs/(?:heads|tags)/[^\x00-\x20\x7f:*?\[\\^~]+)(?:\^\{\})?"
)
"""A line of `git ls-remote`. It accepts only valid ref names, because they become part of a command line."""


@dataclass(frozen=True, slots=True)
class RefMatch:
    """A ref that matches a URL. Its name consists of the first `parts` parts of the URL's path."""

    ref: str
    sha: str
    parts: int

    @property
    def short(self) -> str:
        """The name without `refs/heads/` or `refs/tags/`."""
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def refs_in(output: bytes) -> dict[str, str]:
    """Return ref → commit from the output of `git ls-remote`. An annotated tag maps to the commit that it tags."""
    found: dict[str, str] = {}
    for line in output.decode(errors="surrogateescape").splitlines():
        match = _REF_LINE.fullmatch(line)
        if match:
            found[match["ref"]] = match["sha"]  # the commit of an annotated tag follows the tag object
    return found


def matching_refs(wanted: RepositoryFile, refs: Mapping[str, str]) -> list[RefMatch]:
    """Return the refs that match the start of the URL's path: several only if branches and tags have the same name."""
    if wanted.rest[0] == "HEAD" and "HEAD" in refs:
        return [RefMatch("HEAD", refs["HEAD"], 1)]
    kinds = (wanted.kind,) if wanted.kind else ("heads", "tags")
    explicit = wanted.rest[:2] in {("refs", "heads"), ("refs", "tags")}
    begins = [""] if explicit else [f"refs/{kind}/" for kind in kinds]
    names = {begin + "/".join(wanted.rest[:parts]): parts for parts in range(1, len(wanted.rest)) for begin in begins}
    return [RefMatch(ref, refs[ref], parts) for ref, parts in names.items() if ref in refs]


_REFUSED = re.compile(
    r"not found|does not exist|not appear to be a git repository|could not read (?:Username|Password)"
    r"|Authentication failed|Permission denied|access denied|returned error: 40[134]",
    re.IGNORECASE,
)
"""Messages of a host that denies access or has no such repository."""

_NO_SUCH_COMMIT = re.compile(r"not our ref|unadvertised object|couldn't find remote ref", re.IGNORECASE)
_WANTED = "refs/agentv/wanted"
_KEPT = "refs/agentv/kept/"
"""Prefix of a ref for every commit that was fetched, so that git keeps its objects and later fetches are smaller."""


class Repositories:
    """The repositories of one run. A branch is looked up once a day, and stays at one commit during the run."""

    def __init__(self, run: RunGit = run_git, now: Callable[[], float] = time.time) -> None:
        self._run = run
        self._now = now
        self._remotes: dict[Path, _Remote] = {}

    def checkout(self, wanted: RepositoryFile, env: Mapping[str, str]) -> Checkout | Unavailable:
        """Return the checkout of the commit that a URL names. It is fetched if it is not on disk."""
        base = cache_home(env) / wanted.host / wanted.repository
        remote = self._remotes.get(base)
        if remote is None:
            remote = self._remotes[base] = _Remote(wanted, RepositoryClone(base), self._run, dict(env), self._now)
        try:
            base.parent.mkdir(parents=True, exist_ok=True)  # the working directory of git
            return remote.checkout(wanted)
        except TimeoutError:
            message = f"another process has been fetching {wanted.name} for too long"
        except OSError as error:
            message = f"{wanted.name} cannot be stored in {error.filename or base}: {error.strerror}"
        return Unavailable("git-failed", message)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The refs of a repository.

    Attributes:
        refs: ref → commit.
        seen: ref → time of its last lookup; only if the host cannot be reached now.
        failure: why the host cannot be reached, so that the refs are those stored on disk; None if they are current.
    """

    refs: Mapping[str, str]
    seen: Mapping[str, float]
    failure: Unavailable | None = None


DAY_S = 86_400.0
"""Seconds before a branch is looked up again."""


class _Remote:
    """One repository on a host, for one run. Failures are cached and not retried."""

    def __init__(
        self, one: RepositoryFile, store: RepositoryClone, run: RunGit, env: Mapping[str, str], now: Callable[[], float]
    ) -> None:
        self._name = one.name
        self._url = f"https://{one.host}/{one.repository}.git"
        self._store = store
        self._run = run
        self._env = env
        self._now = now
        self._listing: dict[bool, _Listing | Unavailable] = {}
        self._commits: dict[str, str | Unavailable] = {}

    def checkout(self, wanted: RepositoryFile) -> Checkout | Unavailable:
        first = wanted.rest[0]
        if FULL_SHA.fullmatch(first.lower()):
            return self._checkout(wanted, RefMatch(first.lower(), first.lower(), 1))
        return self._stored(wanted) or self._current(wanted, head=first == "HEAD")

    def _current(self, wanted: RepositoryFile, *, head: bool) -> Checkout | Unavailable:
        """Return the checkout of the ref as the host has it now, or of the stored ref with its age if it is offline."""
        listing = self._listing.get(head)
        if listing is None:
            listing = self._listing[head] = self._looked_up(head=head)
        if isinstance(listing, Unavailable):
            return listing
        matches = matching_refs(wanted, listing.refs)
        if len({match.sha for match in matches}) > 1:
            names = " and ".join(f"'{match.ref}'" for match in matches)
            message = f"{self._name} has {names}: write the intended one in full, as '{matches[0].ref}/PATH'"
            return Unavailable("ambiguous-ref", message)
        if not matches:
            return self._unknown(wanted, listing)
        found = self._checkout(wanted, matches[-1], noted=listing.failure is None)
        if listing.failure is None:
            return found
        if isinstance(found, Unavailable):
            return listing.failure
        age_s = max(self._now() - listing.seen[matches[-1].ref], 0.0)
        return replace(found, age_s=age_s, reason=listing.failure.reason)

    def _stored(self, wanted: RepositoryFile) -> Checkout | None:
        """Return the stored checkout of a tag, or of a branch that was looked up within the last day; else None."""
        noted = self._store.noted()
        matches = matching_refs(wanted, {ref: sha for ref, (sha, _) in noted.items()})
        if len({match.sha for match in matches}) != 1 or not self._store.tree(matches[0].sha):
            return None
        moves = (match.ref for match in matches if match.ref.startswith("refs/heads/") or match.ref == "HEAD")
        if not all(0 <= self._now() - noted[ref][1] < DAY_S for ref in moves):
            return None
        found = self._checkout(wanted, matches[-1])
        return found if isinstance(found, Checkout) and Path(found.tree, found.path).exists() else None

    def _checkout(self, wanted: RepositoryFile, match: RefMatch, *, noted: bool = False) -> Checkout | Unavailable:
        """Return the checkout of a ref, from disk or from the host. If `noted`, store the ref too."""
        sha = self._commits.get(match.ref)
        if sha is None:
            sha = match.sha if self._store.tree(match.sha) else self._fetched(match)
            self._commits[match.ref] = sha
            if isinstance(sha, str) and noted:
                self._store.note(match.ref, sha)
        if isinstance(sha, Unavailable):
            return sha
        tree = self._store.tree(sha)
        path = "/".join(wanted.rest[match.parts :])
        return Checkout(str(tree), path, match.short, self._store.outside(sha))

    def _looked_up(self, *, head: bool) -> _Listing | Unavailable:
        """Return the branches and tags, or HEAD, from the host, or from disk if the host cannot be reached."""
        wanted = ("--", self._url, "HEAD") if head else ("--heads", "--tags", "--", self._url)
        ended = self._git("ls-remote", "--quiet", *wanted, within_s=LIST_S)
        if isinstance(ended, Finished) and ended.status == 0:
            return _Listing(refs_in(ended.stdout), {})
        failure = Unavailable("git-failed", f"cannot reach {self._name}", reason_of(ended))
        if isinstance(ended, Finished) and _REFUSED.search(ended.stderr.decode(errors="replace")):
            failure = self._no_repository(failure.reason)  # may come from a proxy or captive portal, so use stored refs
        noted = self._store.noted()
        if noted:
            refs = {ref: sha for ref, (sha, _) in noted.items()}
            return _Listing(refs, {ref: seen for ref, (_, seen) in noted.items()}, failure)
        return failure

    def _fetched(self, match: RefMatch) -> str | Unavailable:
        """Fetch a commit and store its files. Return its hash, which may be newer than the listed one."""
        with self._store.locked():
            if self._store.tree(match.sha):
                return match.sha  # another process has fetched it meanwhile
            with self._store.temporary_directory() as directory:
                clone = self._store.clone()
                if clone is not None:
                    return self._fetch_into(clone, directory / "tree", match)
                made = directory / "git"  # without hooks, templates and filters
                form = ("--object-format=sha256",) if len(match.sha) > 40 else ()
                self._git("init", "--quiet", "--bare", "--template=", *form, "--", str(made))
                (made / "info").mkdir(parents=True, exist_ok=True)
                (made / "info" / "attributes").write_text(RAW, encoding="ascii")
                sha = self._fetch_into(made, directory / "tree", match)
                if isinstance(sha, str):
                    self._store.keep_clone(made)
                return sha

    def _fetch_into(self, clone: Path, tree: Path, match: RefMatch) -> str | Unavailable:
        """Fetch a commit into a clone, check out its files, and return its hash."""
        git = f"--git-dir={clone}"
        fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
        ended = self._git(git, *fetch, "--", self._url, f"+{match.ref}:{_WANTED}")
        if isinstance(ended, Failure) or ended.status:
            return self._failed(ended, match)
        ended = self._git(git, "rev-parse", "--verify", "--quiet", f"{_WANTED}^{{commit}}")
        sha = ended.stdout.decode(errors="replace").strip() if isinstance(ended, Finished) else ""
        if not FULL_SHA.fullmatch(sha):
            return Unavailable("missing-ref", f"'{match.short}' of {self._name} is not a commit")
        if self._store.tree(sha):
            return sha
        tree.mkdir()
        checkout = ("checkout", "--quiet", "--force", "--no-recurse-submodules", "--detach", sha)
        ended = self._git(git, f"--work-tree={tree}", *checkout)
        if isinstance(ended, Failure) or ended.status:
            return self._failed(ended, match)
        self._git(git, "update-ref", _KEPT + sha, sha)  # see _KEPT
        self._store.place(tree, sha)
        return sha

    def _git(self, *arguments: str, within_s: float = FETCH_S) -> Finished | Failure:
        ended = self._run(arguments, str(self._store.base.parent), self._env, within_s)
        if isinstance(ended, Failure) and ended.code == "cannot-start":
            return Failure(ended.code, "git is not installed, or not on PATH", ended.retryable)
        return ended

    def _failed(self, ended: Finished | Failure, match: RefMatch) -> Unavailable:
        """Return the reason for a failed fetch."""
        complaint = "" if isinstance(ended, Failure) else ended.stderr.decode(errors="replace")
        if _NO_SUCH_COMMIT.search(complaint):
            message = f"{self._name} has no commit '{match.short}', or does not serve it by that name"
            return Unavailable("missing-ref", message, reason_of(ended))
        if _REFUSED.search(complaint):
            return self._no_repository(reason_of(ended))
        return Unavailable("git-failed", f"cannot fetch {self._name}", reason_of(ended))

    def _no_repository(self, reason: str) -> Unavailable:
        message = f"{self._name} does not exist, or git has no access to it here"
        return Unavailable("missing-repository", message, reason)

    def _unknown(self, wanted: RepositoryFile, listing: _Listing) -> Unavailable:
        if listing.failure is not None:
            return listing.failure
        known = tuple(RefMatch(ref, sha, 1).short for ref, sha in listing.refs.items())
        path = "/".join(wanted.rest)
        if path in known:
            return Unavailable("bad-git-url", f"'{path}' is a branch or tag of {self._name}, but no path follows it")
        message = f"{self._name} has no branch, tag or commit that matches the start of '{path}'"
        return Unavailable("missing-ref", message, known=known)


LOCK_S = 600.0
"""Longest wait in seconds for another process that is fetching from the same repository."""

_POLL_S = 0.05


def cache_home(env: Mapping[str, str]) -> Path:
    """Return the directory of repositories: `$AGENTV_HOME/cache/repos`, or else `~/.agentv/cache/repos`."""
    return agentv_home(env) / "cache" / "repos"


class RepositoryClone:
    """The commits of one repository on disk, shared by all processes of a user. `base` is the path of R.

    For a repository R, one directory contains:

        R@<sha>/             the files of a commit; complete and never changed
        R@<sha>.outside      its links that pointed outside of it and were removed
        R@git/               the bare, shallow clone for fetching commits and checking out their files
        R@refs/<ref>         the commit of a branch or tag at its last lookup, whose time is the file's mtime
        R@new-…/             temporary directory while a commit is fetched
        R@lock               locked by the process that fetches

    No host allows `@` in a name, so that the paths of two repositories are never equal.
    """

    def __init__(self, base: Path) -> None:
        self.base = base

    def tree(self, sha: str) -> Path | None:
        """Return the directory of a commit, or None if it is not stored."""
        path = self._path(sha)
        return path if path.is_dir() else None

    def outside(self, sha: str) -> frozenset[str]:
        """Return the links that were removed from a commit."""
        try:
            text = self._path(f"{sha}.outside").read_bytes().decode(errors="surrogateescape")
        except FileNotFoundError:
            return frozenset()
        return frozenset(text.split("\0"))

    def note(self, ref: str, sha: str) -> None:
        """Store the commit of a ref, for use without a network connection."""
        folder = self._path("refs")
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{os.getpid()}"
        with suppress(OSError):  # a ref that is too long for a file name is not stored
            part.write_text(sha, encoding="ascii")
            part.replace(folder / quote(ref, safe=""))
        part.unlink(missing_ok=True)

    def noted(self) -> dict[str, tuple[str, float]]:
        """Return ref → its commit at the last lookup, and the time of that in seconds since the epoch."""
        found = {}
        folder = self._path("refs")
        for path in folder.iterdir() if folder.is_dir() else ():
            with suppress(OSError, UnicodeDecodeError):
                sha = path.read_text(encoding="ascii")
                if FULL_SHA.fullmatch(sha) and not path.name.startswith("."):
                    found[unquote(path.name)] = sha, path.stat().st_mtime
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the repository in the body. The lock of a killed process is released at once.

        Raises:
            TimeoutError: another process has held the lock for too long.
            OSError: the lock file cannot be written.
        """
        import fcntl

        deadline = time.monotonic() + LOCK_S
        with self._path("lock").open("ab") as file:
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
    def temporary_directory(self) -> Iterator[Path]:
        """Create a temporary directory for the body. Needs the lock, because it removes those of killed processes."""
        for stale in self.base.parent.glob(f"{self.base.name}@new-*"):
            shutil.rmtree(stale, ignore_errors=True)
        directory = Path(mkdtemp(prefix=f"{self.base.name}@new-", dir=self.base.parent))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def clone(self) -> Path | None:
        """Return the clone, or None if none exists. Needs the lock, because it removes files of a killed git."""
        path = self._path("git")
        if not (path / "HEAD").is_file():
            return None
        stale = (*path.rglob("*.lock"), *path.glob("objects/pack/tmp_*"), path / "index")
        for one in stale:  # the index lists files that `place` has moved away
            one.unlink(missing_ok=True)
        return path

    def keep_clone(self, made: Path) -> None:
        """Store a clone for the next fetch."""
        with suppress(OSError):  # then the next fetch clones again
            made.rename(self._path("git"))

    def place(self, tree: Path, sha: str) -> None:
        """Store the files of a commit with one rename, after removing links that point outside of it."""
        top = os.path.realpath(tree)
        walked = os.walk(top)
        every = (Path(folder) / name for folder, directories, files in walked for name in (*directories, *files))
        links = [path for path in every if path.is_symlink()]
        outside = [path for path in links if not os.path.realpath(path).startswith(top + os.sep)]
        for path in outside:
            path.unlink()
        if outside:
            text = "\0".join(str(path.relative_to(top)) for path in outside).encode(errors="surrogateescape")
            self._path(f"{sha}.outside").write_bytes(text)
        tree.rename(self._path(sha))

    def _path(self, what: str) -> Path:
        return self.base.with_name(f"{self.base.name}@{what}")
