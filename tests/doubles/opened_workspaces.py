"""Workspaces for tests: opened, changed by a shell script in place of an agent, and finished."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.workspace import LocalWorkspace
from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces
from agentv.model.redaction import Redactor
from agentv.model.suite.workspace import CopiedFiles, SandboxName, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.model.values.trace import WorkspaceChanges
from agentv.ports import ProgramResult
from agentv.registry.fields import Command
from agentv.user_code.processes import Finished, run_program
from needs import needs, require

SANDBOXES = [pytest.param("bwrap", marks=needs("bwrap")), "none"]


@dataclass
class Trial:
    """The result of one trial."""

    agent: Finished | Failure | None = None
    changes: WorkspaceChanges | Failure | None = None
    graded: ProgramResult | Failure | None = None
    closed: str | Failure | None = None
    path: str = ""
    opened: Failure | None = None

    @property
    def patch(self) -> str:
        assert isinstance(self.changes, WorkspaceChanges), self.changes
        return self.changes.patch

    @property
    def kinds(self) -> dict[str, str]:
        """Path → kind of change."""
        assert isinstance(self.changes, WorkspaceChanges), self.changes
        return {one.path: one.kind for one in self.changes.files}


@dataclass
class Place:
    """A directory with a template and the workspaces made from it."""

    root: Path
    sandbox: SandboxName = "none"
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("template", "workspaces"):
            (self.root / name).mkdir(exist_ok=True)

    @property
    def settings(self) -> WorkspaceSettings:
        return WorkspaceSettings(
            directory=str(self.root / "workspaces"),
            kept_directory=str(self.root / "kept"),
            repositories=str(self.root / "cache"),
            private=(str(self.root / "project"),),
            redactor=Redactor(self.secrets),
        )

    def file(self, path: str, text: str | bytes) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    def spec(self, **keys: Any) -> WorkspaceSpec:
        template = CopiedFiles(str(self.root / "template"))
        return WorkspaceSpec(**{"template": template, "sandbox": (self.sandbox,), **keys})

    def trial(
        self, script: str, *, grade: str = "", grades: int = 1, keep: bool = False, timeout_s: float = 30, **keys: Any
    ) -> Trial:
        """Open a workspace, run a script in it, and finish it."""

        async def work(workspaces: LocalWorkspaces) -> Trial:
            variant = keys.pop("variant", None)
            workspace = await workspaces.open(self.spec(**keys), variant, self.env)
            if isinstance(workspace, Failure):
                return Trial(opened=workspace)
            trial = Trial(path=workspace.path)
            trial.agent = await agent(workspace, script, timeout_s)
            trial.changes = await workspace.finish()
            for _ in range(grades if grade else 0):
                trial.graded = await workspace.run(WorkspaceCommand(shell=grade, timeout_s=60))
            trial.closed = await workspace.close(keep=keep)
            return trial

        return self.run(work)

    def run(self, work: Callable[[LocalWorkspaces], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            workspaces = LocalWorkspaces(self.settings)
            try:
                return await work(workspaces)
            finally:
                assert await workspaces.close() == ()

        found = asyncio.run(run())
        assert list((self.root / "workspaces").iterdir()) == []
        return found


async def agent(workspace: LocalWorkspace, script: str, timeout_s: float = 30) -> Finished | Failure:
    """Run a script as an agent."""
    command = Command(argv=workspace.sandbox.argv(("/bin/sh", "-c", script)))
    return await run_program(command, stdin=b"", env=workspace.sandbox.environment({}), timeout_s=timeout_s)


def printed(ended: Finished | ProgramResult | Failure | None) -> str:
    assert isinstance(ended, Finished | ProgramResult), ended
    assert ended.status == 0, ended
    return ended.stdout.decode(errors="replace")


def git(directory: Path, *arguments: str) -> str:
    """Run git without the user's configuration."""
    named = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false")
    require("git")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(("git", *named, *arguments), cwd=directory, env=env, check=True, capture_output=True)
    return ended.stdout.decode().strip()


def command_lines() -> str:
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(one.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)
