"""Git repositories on disk that stand in for those on git hosts, through git's URL rewriting."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

DATED = "2026-01-01T00:00:00Z"
"""Date of every commit, so that the same files always give the same commit."""

_PERSON = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"), ("DATE", DATED))}  # fmt: skip


class Hosts:
    """A directory whose `github.com/acme/evals.git` replaces `https://github.com/acme/evals.git`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "agentv-home"

    @property
    def env(self) -> dict[str, str]:
        """The environment of a process that finds the hosts here and reads no other git configuration."""
        hosts = ("github.com", "gitlab.com", "bitbucket.org")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "AGENTV_HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": str(len(hosts)),
        }
        for number, host in enumerate(hosts):
            env[f"GIT_CONFIG_KEY_{number}"] = f"url.file://{self.folder}/{host}/.insteadOf"
            env[f"GIT_CONFIG_VALUE_{number}"] = f"https://{host}/"
        return env

    def a_day_passes(self) -> None:
        """Make the cached branch records a day older."""
        for note in self.home.glob("cache/repos/**/*@refs/*"):
            os.utime(note, (note.stat().st_mtime - 90_000,) * 2)

    def repository(self, name: str, files: Mapping[str, str | bytes]) -> Remote:
        """Create a repository such as `github.com/acme/evals` with one commit on `main`."""
        made = Remote(self.folder / f"{name}.git")
        made.folder.mkdir(parents=True)
        made.git("init", "--quiet", "--initial-branch=main")
        made.commit(files)
        return made

    def kept(self) -> list[str]:
        """The names in the cache of repositories."""
        repos = self.home / "cache" / "repos"
        return sorted(str(path.relative_to(repos)) for path in repos.rglob("*@*")) if repos.is_dir() else []


class Remote:
    """One repository, with a work tree to commit from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str) -> str:
        """Run git in the work tree and return its output."""
        env = {**_PERSON, "PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        command = ("git", "-c", "commit.gpgsign=false", "-c", "advice.detachedHead=false", *arguments)
        done = subprocess.run(command, cwd=self.folder, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes] | None = None, *, branch: str | None = None) -> str:
        """Write files, commit all changes and return the commit's hash."""
        if branch is not None:
            self.git("checkout", "--quiet", "-B", branch)
        for name, content in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=more")
        return self.git("rev-parse", "HEAD")
