"""The program `git`, without prompts or code of repositories and with a time limit; and the refs that it lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentv.model.suite.files import RepositoryFile
from agentv.model.values.response import Failure
from agentv.user_code.processes import Finished, run_program

LIST_S = 60.0
"""Seconds to list the branches and tags of a repository."""

FETCH_S = 300.0
"""Seconds to fetch one commit, or to write it out."""

OUTPUT_LIMIT = 100_000_000

RunGit = Callable[[Sequence[str], str, Mapping[str, str], float], "Finished | Failure"]
"""(arguments, working directory, environment, seconds) → what git printed, or why it did not end by itself."""

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",  # names a program
    "core.askPass=",
    "core.bare=false",
    "core.symlinks=true",
    "core.autocrlf=false",
    "credential.interactive=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.lowSpeedLimit=1",  # so that it ends even where this process was killed and cannot end it
    "http.lowSpeedTime=60",
)
"""What wins over every file of configuration. Protocols, proxies, URL rewriting and credentials stay the user's own."""

_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # set and empty: none at all
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",  # its messages are distinguished
}
_NOT_THEIRS = frozenset(
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
"""What a hook that starts agentv has set for its own repository, and what would open a window."""

RAW = "* -filter -text -ident !eol !working-tree-encoding\n"
"""Attributes of every file, in the place that wins: bytes as they were committed, no filter started."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_TELLING = re.compile(r"(?:fatal|error|remote):\s*(.+)")


def run_git(arguments: Sequence[str], cwd: str, env: Mapping[str, str], timeout_s: float) -> Finished | Failure:
    """Run git and wait for it, whether or not an event loop runs here.

    Args:
        arguments: what follows `git`.
        cwd: where it runs; a repository above is not seen.
        env: the environment of the process.
        timeout_s: it is killed then, with all that it started.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from agentv.registry.fields import Command

    own = {name: value for name, value in env.items() if name not in _NOT_THEIRS}
    own |= {**_OURS, "GIT_CEILING_DIRECTORIES": str(Path(cwd).parent)}
    flags = [word for setting in _CONFIG for word in ("-c", setting)]
    command = Command(argv=("git", *flags, *arguments), cwd=cwd)

    def run() -> Finished | Failure:
        return asyncio.run(run_program(command, stdin=b"", env=own, timeout_s=timeout_s, limit=OUTPUT_LIMIT))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as beside:  # a loop cannot run in a loop
        return beside.submit(run).result()


def reason_of(ended: Finished | Failure) -> str:
    """Why git did not do it: the most telling line of what it says, without credentials; or why it did not end."""
    if isinstance(ended, Failure):
        return ended.message
    lines = [line.strip() for line in ended.stderr.decode(errors="replace").splitlines() if line.strip()]
    telling = [match[1] for line in lines if (match := _TELLING.match(line))]
    chosen = (*telling, *lines[-1:], f"it ended with status {ended.status}")[0]
    return f"git says: {_CREDENTIALS.sub('', chosen)}"


FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF_LINE = re.compile(
    r"(?P<sha>[0-9a-f]{40,64})\t(?P<ref>HEAD|refs/(?:heads|tags)/[^\x00-\x20\x7f:*?\[\\^~]+)(?:\^\{\})?"
)
"""What git allows in a name and no more: it becomes part of a command line."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A ref that a URL may mean. `parts`: so many of the URL's parts are its name."""

    ref: str
    sha: str
    parts: int

    @property
    def short(self) -> str:
        """As people call it."""
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def refs_in(output: bytes) -> dict[str, str]:
    """Ref → commit, out of what `git ls-remote` prints. A tag that is an object stands for what it tags."""
    found: dict[str, str] = {}
    for line in output.decode(errors="surrogateescape").splitlines():
        match = _REF_LINE.fullmatch(line)
        if match:
            found[match["ref"]] = match["sha"]  # the peeled one follows and wins
    return found


def fitting_refs(wanted: RepositoryFile, refs: Mapping[str, str]) -> list[Fit]:
    """Every ref that the URL may mean and that leaves a path: one, but where a branch and a tag are in the way."""
    if wanted.rest[0] == "HEAD" and "HEAD" in refs:
        return [Fit("HEAD", refs["HEAD"], 1)]
    kinds = (wanted.kind,) if wanted.kind else ("heads", "tags")
    explicit = wanted.rest[:2] in {("refs", "heads"), ("refs", "tags")}
    begins = [""] if explicit else [f"refs/{kind}/" for kind in kinds]
    names = {begin + "/".join(wanted.rest[:parts]): parts for parts in range(1, len(wanted.rest)) for begin in begins}
    return [Fit(ref, refs[ref], parts) for ref, parts in names.items() if ref in refs]
