"""Workspaces and variants as declared by suites and cases (AGENTS.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.values import EMPTY, JsonObject, Span

SandboxName = Literal["none", "bwrap", "docker"]
DEFAULT_SANDBOXES: tuple[SandboxName, ...] = ("bwrap", "none")
"""Sandboxes to try, in order, if a suite does not set `sandbox`."""

SYSTEM_DIRECTORIES = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr")
"""Directories under `/` that hold the system; a sandbox mounts them unchanged."""

Network = Literal["host", "loopback", "none"]
KeepWorkspaces = Literal["none", "failed", "all"]
Home = Literal["fresh", "host"]

SETUP_TIMEOUT_S = 600.0
WORKSPACE = "{WORKSPACE}"
"""Placeholder for the path of the workspace in a command."""


class WorkspaceCommand(Struct, frozen=True):
    """A command of `setup`, a hook or a solution: a list of arguments, or a shell command line.

    `{WORKSPACE}` in the arguments, `shell`, `stdin` and the values of `env` stands for the path of the workspace.

    Attributes:
        cwd: working directory, relative to the workspace; empty for the workspace itself.
        directory: absolute working directory in place of the workspace; AgentV's hooks run in their file's directory.
        stdin: text for standard input.
    """

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str = ""
    directory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = SETUP_TIMEOUT_S
    stdin: str = ""

    def __str__(self) -> str:
        """The command as one line."""
        return self.shell if self.shell is not None else " ".join(self.argv)

    def in_workspace(self, workspace: str) -> WorkspaceCommand:
        """Return the command with `{WORKSPACE}` replaced by a path."""
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
        path: destination, relative to the workspace; empty to copy a directory's content into the workspace itself.
        sha256: hash of the content when the suite was loaded.
        is_patch: whether the file is a patch; the patched files are then copied instead of it.
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
        path: destination, relative to the workspace; empty for the workspace itself.
        commit: a commit, branch or tag; empty for the default branch.
        ancestor: number of first parents to go back from `commit`.
        sparse: directories to check out; empty for all.
    """

    repository: str
    path: str = ""
    commit: str = ""
    ancestor: int = 0
    sparse: tuple[str, ...] = ()


class Hooks(Struct, frozen=True):
    """Commands before and after all trials of a suite and each trial; a failure before a trial is an error of it."""

    before_all: tuple[WorkspaceCommand, ...] = ()
    before_each: tuple[WorkspaceCommand, ...] = ()
    after_each: tuple[WorkspaceCommand, ...] = ()
    after_all: tuple[WorkspaceCommand, ...] = ()


class DockerImage(Struct, frozen=True):
    """Image for `sandbox: docker`: its name, or the directory to build it from."""

    image: str = ""
    context: str = ""
    dockerfile: str = ""
    workdir: str = ""
    mounts: tuple[str, ...] = ()


class WorkspaceSpec(Struct, frozen=True):
    """The content of the workspaces of a case's trials, and the sandbox of the agent.

    Attributes:
        template: directory to copy; None to start with an empty workspace.
        setup: commands that run once for all trials with the same workspace; each trial gets a copy of the result.
        hidden: files copied in after the agent has ended and before grading, so that the agent never sees them.
        protected: globs of files that the agent must not change.
        ignore: globs of files that are left out of the diff.
        existing: absolute path of a directory of the user to work in directly (`--workspace-path`).
        sandbox: sandboxes to try, in order; the first that works is used. If none works, nothing runs.
        mounts: absolute path in the sandbox → directory of the workspace mounted there; empty for the workspace itself.
        sha256: hash of this specification and of the files that it names.
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
    sandbox: tuple[SandboxName, ...] = DEFAULT_SANDBOXES
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
    """A known good result of a case, applied to a new workspace in the order of the attributes.

    Attributes:
        patch: patch in git's format; empty for none.
        files: files to copy over the workspace.
        commands: commands to run in it.
        calls: calls of scripted tools.
    """

    patch: str = ""
    files: tuple[CopiedFiles, ...] = ()
    commands: tuple[WorkspaceCommand, ...] = ()
    calls: tuple[ToolUse, ...] = ()


class WorkspaceUse(Struct, frozen=True):
    """The sandboxes and existing directories that the cases of a suite need.

    Attributes:
        sandboxes: pairs of sandboxes to try and the required network.
        existing: the user's directories in which agents work directly.
    """

    sandboxes: frozenset[tuple[tuple[SandboxName, ...], Network]] = frozenset()
    existing: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether any case has a workspace."""
        return bool(self.sandboxes)


class WorkLimits(Struct, frozen=True):
    """Limits of an agent in one trial; None for no limit.

    Attributes:
        on_limit: `error`: a trial whose agent reaches a limit has no verdict. `grade`: its work so far is graded.
        budget_usd: maximum cost of its model calls through the gateway.
    """

    max_turns: int | None = None
    max_tool_calls: int | None = None
    on_limit: Literal["error", "grade"] | None = None
    budget_usd: float | None = None


NO_WORK_LIMITS = WorkLimits()


class Variant(Struct, frozen=True):
    """One configuration of the same agent: an axis of the matrix, like targets and prompts.

    Attributes:
        overlays: files copied over the workspace before the baseline of the diff.
        ref: git ref of the template's repository from which the template is taken.
        sha256: hash of the name and of the files.
    """

    name: str
    overlays: tuple[CopiedFiles, ...] = ()
    ref: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    span: Span | None = None
