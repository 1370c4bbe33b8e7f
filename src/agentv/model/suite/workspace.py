"""Workspaces and variants as a suite or a case declares them (AGENTS.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.values import EMPTY, JsonObject, Span

SandboxName = Literal["none", "bwrap", "docker"]
IF_IT_WORKS: tuple[SandboxName, ...] = ("bwrap", "none")
"""What a suite gets that asks for no sandbox."""

SYSTEM = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr")
"""Entries of `/` that hold the system; a sandbox shows them as they are."""

Network = Literal["host", "loopback", "none"]
KeepWorkspaces = Literal["none", "failed", "all"]
Home = Literal["fresh", "host"]

SETUP_TIMEOUT_S = 600.0
WORKSPACE = "{WORKSPACE}"
"""What stands for the path of the workspace in a command."""


class WorkspaceCommand(Struct, frozen=True):
    """A command of `setup`, a hook or a solution: a list of words, or a line for the shell.

    Attributes:
        cwd: relative to the workspace; empty: the workspace itself.
        directory: absolute; it runs there instead of in the workspace, as AgentV's hooks do beside their file.
        stdin: text on its standard input; `{WORKSPACE}` in this and in its words stands for the workspace's path.
    """

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str = ""
    directory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = SETUP_TIMEOUT_S
    stdin: str = ""

    def __str__(self) -> str:
        """As a person would type it."""
        return self.shell if self.shell is not None else " ".join(self.argv)

    def placed(self, workspace: str) -> WorkspaceCommand:
        """The command for the workspace at a path."""
        written = (*self.argv, self.shell or "", self.stdin, *self.env.values())
        if not any(WORKSPACE in one for one in written):
            return self
        return replace(
            self,
            argv=tuple(one.replace(WORKSPACE, workspace) for one in self.argv),
            shell=None if self.shell is None else self.shell.replace(WORKSPACE, workspace),
            stdin=self.stdin.replace(WORKSPACE, workspace),
            env={name: value.replace(WORKSPACE, workspace) for name, value in self.env.items()},
        )


class CopiedFiles(Struct, frozen=True):
    """A file or directory that is copied into a workspace.

    Attributes:
        source: absolute path.
        path: destination, relative to the workspace; empty: the content of a directory goes into the workspace itself.
        sha256: of what it held when the suite was loaded.
        is_patch: it is a patch, and the files are those that it changes.
    """

    source: str
    path: str = ""
    sha256: str = ""
    span: Span | None = None
    is_patch: bool = False


class WorkspaceRepository(Struct, frozen=True):
    """A git repository that is checked out into a workspace.

    Attributes:
        repository: `org/name` on GitHub, a URL, or an absolute path.
        path: destination, relative to the workspace; empty: the workspace itself.
        commit: a commit, branch or tag; empty: the default branch.
        ancestor: so many first parents before `commit`.
        sparse: directories that are checked out; empty: all.
    """

    repository: str
    path: str = ""
    commit: str = ""
    ancestor: int = 0
    sparse: tuple[str, ...] = ()


class Hooks(Struct, frozen=True):
    """Commands around the trials of a suite and around each trial; a failed one is an error of what it precedes."""

    before_all: tuple[WorkspaceCommand, ...] = ()
    before_each: tuple[WorkspaceCommand, ...] = ()
    after_each: tuple[WorkspaceCommand, ...] = ()
    after_all: tuple[WorkspaceCommand, ...] = ()


class DockerImage(Struct, frozen=True):
    """What `sandbox: docker` runs in: an image, or the directory that one is built from."""

    image: str = ""
    context: str = ""
    dockerfile: str = ""
    workdir: str = ""
    mounts: tuple[str, ...] = ()


class WorkspaceSpec(Struct, frozen=True):
    """What the workspace of each trial of a case is made of, and what confines the agent to it.

    Attributes:
        template: a directory that is copied; None: the workspace begins empty.
        setup: commands that run once for all trials with the same workspace, whose result is copied.
        hidden: copied in after the agent has ended, before grading; the agent never sees it.
        protected: globs of files that the agent must not change.
        ignore: globs of files that the diff leaves out.
        existing: absolute path of a directory of the user's own that is used as it is (`--workspace-path`).
        sandbox: the first of these that works here is used; where none works, nothing runs.
        mounts: absolute path in the sandbox → directory of the workspace that it leads to; empty: the workspace.
        sha256: of all of this and of the files behind it.
    """

    template: CopiedFiles | None = None
    repositories: tuple[WorkspaceRepository, ...] = ()
    files: tuple[CopiedFiles, ...] = ()
    setup: tuple[WorkspaceCommand, ...] = ()
    hidden: tuple[CopiedFiles, ...] = ()
    protected: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    hooks: Hooks = Hooks()
    keep: KeepWorkspaces = "failed"
    sandbox: tuple[SandboxName, ...] = IF_IT_WORKS
    network: Network = "host"
    home: Home = "fresh"
    env: Mapping[str, str] = field(default_factory=dict)
    docker: DockerImage | None = None
    existing: str | None = None
    mounts: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    span: Span | None = None


class ToolUse(Struct, frozen=True):
    """A call of a scripted tool: `server.tool`, with its arguments."""

    tool: str
    args: JsonObject = field(default=EMPTY)


class Solution(Struct, frozen=True):
    """A known good result of a case, in the order in which it is applied to a new workspace.

    Attributes:
        patch: in git's format; empty: none.
        files: copied over the workspace.
        commands: run in it.
        calls: of scripted tools.
    """

    patch: str = ""
    files: tuple[CopiedFiles, ...] = ()
    commands: tuple[WorkspaceCommand, ...] = ()
    calls: tuple[ToolUse, ...] = ()


class WorkspaceUse(Struct, frozen=True):
    """What the cases of a suite ask of workspaces.

    Attributes:
        sandboxes: what they ask for, with the network that the sandbox must give.
        existing: the directories of the user's own that agents work in.
    """

    sandboxes: frozenset[tuple[tuple[SandboxName, ...], Network]] = frozenset()
    existing: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether any case has a workspace."""
        return bool(self.sandboxes)


class WorkLimits(Struct, frozen=True):
    """How much an agent may do in one trial; None: there is no such limit.

    Attributes:
        on_limit: `error`: a trial whose agent reached a limit has no verdict. `grade`: its work is graded as it is.
        budget_usd: what its model calls may cost, as far as they pass the gateway.
    """

    max_turns: int | None = None
    max_tool_calls: int | None = None
    on_limit: Literal["error", "grade"] | None = None
    budget_usd: float | None = None


NO_WORK_LIMITS = WorkLimits()


class Variant(Struct, frozen=True):
    """One way to equip the same agent: an axis of the matrix, beside targets and prompts.

    Attributes:
        overlays: copied over the workspace before the baseline.
        ref: the workspace's template is taken from this git ref of its repository.
        sha256: of the name and of the files behind it.
    """

    name: str
    overlays: tuple[CopiedFiles, ...] = ()
    ref: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    span: Span | None = None
