"""Check out git repositories into workspaces, from the user's cache or from a local repository.

A workspace contains the history up to its commit and nothing later, since a later commit may contain the solution. The
checkout uses no hooks, filters or configuration of the user or the repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from agentv.extensions.agents.workspaces.snapshot import take
from agentv.model.suite.workspace import CopiedFiles, WorkspaceRepository
from agentv.model.values.response import Failure
from agentv.user_code.processes import Finished
from agentv.user_code.repositories import FETCH_S, FULL_SHA, RAW, RepositoryClone, reason_of, run_git

_COMMIT = re.compile(r"(?!-)[^\x00-\x20\x7f:*?\[\\]*")
"""Valid names of commits. They become part of a command line, so they must not look like options."""

_ON_GITHUB = re.compile(r"[\w.-]+/[\w.-]+")
_KEPT = "refs/agentv/kept/"
_WANTED = "refs/agentv/wanted"
_NO_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class _GitError(Exception):
    """A git command failed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Checks out repositories into workspaces. All methods block.

    Attributes:
        cache: directory of cached clones.
        env: environment of git commands, with the user's proxies and credentials.
        temporary: directory for temporary repositories.
    """

    cache: Path
    env: Mapping[str, str]
    temporary: str

    def check_out(self, wanted: WorkspaceRepository, workspace: str) -> Failure | None:
        """Check out a repository into its path in a workspace.

        Args:
            wanted: the repository, its commit and its path.
            workspace: absolute path of the workspace.
        """
        place = Path(workspace) / wanted.path
        if not _COMMIT.fullmatch(wanted.commit):
            return Failure("workspace-failed", f"'{wanted.commit}' cannot be the name of a commit")
        try:
            place.mkdir(parents=True, exist_ok=True)
            if Path(wanted.repository).is_absolute():  # a local repository
                with self._shared(wanted.repository) as source:
                    sha = self._resolved(Path(wanted.repository), wanted.commit or "HEAD", wanted.ancestor)
                    self._write(source, sha, place, wanted.sparse)
            else:
                self._write_cached(wanted, place)
        except (_GitError, TimeoutError, OSError) as error:
            reason = str(error) or "another process has held its cache for too long"
            return Failure("workspace-failed", f"cannot check out {wanted.repository}: {reason}")
        return None

    def write_template(self, template: CopiedFiles, ref: str, workspace: str) -> Failure | None:
        """Write a template's files as of a git ref of its repository, instead of those in the working tree."""
        start = Path(os.path.realpath(template.source))
        top = next((one for one in (start, *start.parents) if (one / ".git").exists()), None)
        if top is None:
            return Failure("workspace-failed", f"{template.source} is in no git repository, so it has no ref '{ref}'")
        try:
            sha = self._resolved(top, ref, 0)
            below = os.path.relpath(os.path.realpath(template.source), os.path.realpath(top))
            tree = f"{sha}:" if below == "." else f"{sha}:{below}"
            place = Path(workspace) / template.path
            place.mkdir(parents=True, exist_ok=True)
            with self._shared(str(top)) as source:
                (source / "info").mkdir(exist_ok=True)
                (source / "info" / "attributes").write_text(RAW, encoding="ascii")
                git = (f"--git-dir={source}", f"--work-tree={place}")
                self._git(*git, "read-tree", tree, cwd=place, without_config=True)
                self._git(*git, "checkout-index", "--all", "--force", cwd=place, without_config=True)
        except (_GitError, OSError) as error:
            return Failure("workspace-failed", f"cannot read {template.source} at '{ref}': {error}")
        return None

    def write_patched(self, patch: str, workspace: str, kept: Path) -> Failure | None:
        """Copy the patched versions of the files that a patch changes into a directory, not into the workspace."""
        before = take(workspace, {})
        try:
            self._git("apply", "--whitespace=nowarn", "--", patch, cwd=Path(workspace), without_config=True)
            after = take(workspace, before)
            for path, state in after.items():
                if before.get(path) != state:
                    place = kept / os.fsdecode(path)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(Path(workspace, os.fsdecode(path)), place, follow_symlinks=False)
            self._git(
                "apply", "--whitespace=nowarn", "--reverse", "--", patch, cwd=Path(workspace), without_config=True
            )
        except (_GitError, OSError) as error:
            return Failure("workspace-failed", f"the hidden files of {patch} do not fit the workspace: {error}")
        return None

    @contextmanager
    def _shared(self, repository: str) -> Iterator[Path]:
        """Yield a temporary bare clone that shares a local repository's objects, without its configuration."""
        with TemporaryDirectory(dir=self.temporary) as temporary:
            flags = ("--quiet", "--bare", "--shared", "--template=")
            self._git("clone", *flags, "--", repository, f"{temporary}/source.git", cwd=Path(temporary))
            yield Path(temporary, "source.git")

    def _resolved(self, repository: Path, ref: str, ancestor: int) -> str:
        name = f"{ref}~{ancestor}^{{commit}}"
        ended = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", name, cwd=repository, required=False)
        sha = ended.stdout.decode(errors="replace").strip()
        if not FULL_SHA.fullmatch(sha):
            raise _GitError(f"it has no commit '{ref}'" + (f" with {ancestor} ancestors" if ancestor else ""))
        return sha

    def _write_cached(self, wanted: WorkspaceRepository, place: Path) -> None:
        url = wanted.repository
        if _ON_GITHUB.fullmatch(url):
            url = f"https://github.com/{url}.git"
        clone = RepositoryClone(self.cache / _cache_name(url))
        clone.base.parent.mkdir(parents=True, exist_ok=True)
        with clone.locked(), clone.temporary_directory() as temporary:
            source = clone.clone()
            if source is None:
                self._git("init", "--quiet", "--bare", "--template=", "--", str(temporary / "git"), cwd=temporary)
                clone.keep_clone(temporary / "git")
                source = clone.clone() or temporary / "git"
            sha = self._fetched(source, url, wanted)
            self._write(source, sha, place, wanted.sparse)

    def _fetched(self, source: Path, url: str, wanted: WorkspaceRepository) -> str:
        """Return the hash of the wanted commit in a cached clone. Fetch the commit if it is missing."""
        git = (f"--git-dir={source}",)
        commit, behind = wanted.commit or "HEAD", f"~{wanted.ancestor}^{{commit}}"
        known = f"{_KEPT}{commit.lower()}{behind}"
        if FULL_SHA.fullmatch(commit.lower()) and (sha := self._verified(git, known)):
            return sha
        fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--force")
        depth = f"--depth={wanted.ancestor + 1}"
        ended = self._git(*git, *fetch, depth, "--", url, f"+{commit}:{_WANTED}", cwd=source, required=False)
        start = _WANTED
        if ended.status:  # an abbreviated hash, which git resolves only in the full history
            every = [f"+refs/{kind}/*:refs/agentv/all/{kind}/*" for kind in ("heads", "tags")]
            whole = ("--unshallow",) if (source / "shallow").exists() else ()
            self._git(*git, *fetch, *whole, "--", url, *every, cwd=source)
            start = commit
        first, sha = self._verified(git, f"{start}^{{commit}}"), self._verified(git, f"{start}{behind}")
        if not sha or not first:
            raise _GitError(f"it has no commit '{commit}'" + (" with so many ancestors" if wanted.ancestor else ""))
        for one in {sha, first}:
            self._git(*git, "update-ref", _KEPT + one, one, cwd=source)
        return sha

    def _verified(self, git: tuple[str, ...], name: str) -> str:
        ended = self._git(*git, "rev-parse", "--verify", "--quiet", name, cwd=self.cache, required=False)
        sha = ended.stdout.decode(errors="replace").strip()
        return sha if FULL_SHA.fullmatch(sha) else ""

    def _write(self, source: Path, sha: str, place: Path, sparse: tuple[str, ...]) -> None:
        """Check out a commit with its ancestors and no other history."""
        form = ("--object-format=sha256",) if len(sha) > 40 else ()
        self._git("init", "--quiet", "--template=", *form, "--", str(place), cwd=place, without_config=True)
        fetch = ("fetch", "--quiet", "--no-tags", "--update-shallow", "--no-write-fetch-head")
        # protocol version 2 allows fetching a commit by its hash
        self._git("-c", "protocol.version=2", *fetch, "--", str(source), sha, cwd=place, without_config=True)
        if sparse:
            self._git("sparse-checkout", "set", "--cone", "--", *sparse, cwd=place, without_config=True)
        self._git("checkout", "--quiet", "--force", "--detach", sha, cwd=place, without_config=True)

    def _git(self, *arguments: str, cwd: Path, without_config: bool = False, required: bool = True) -> Finished:
        env = {**self.env, **_NO_CONFIG} if without_config else self.env
        ended = run_git(arguments, str(cwd), env, FETCH_S)
        if isinstance(ended, Failure):
            raise _GitError("git is not installed" if ended.code == "cannot-start" else ended.message)
        if required and ended.status:
            raise _GitError(reason_of(ended))
        return ended


def _cache_name(url: str) -> str:
    """Return the path of a repository in the cache: `HOST/PATH` for a plain https URL, otherwise a hash of the URL."""
    parts = urlsplit(url)
    path = parts.path.strip("/").removesuffix(".git")
    plain = re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+", path) and ".." not in path.split("/")
    if parts.scheme == "https" and parts.hostname and not parts.port and plain:
        return f"{parts.hostname}/{path}"
    return f"other/{hashlib.sha256(url.encode()).hexdigest()[:20]}"
