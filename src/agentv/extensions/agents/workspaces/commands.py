"""Run commands of setup, hooks and graders: sandboxed in a workspace, or in the directory of their suite."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentv.extensions.agents.workspaces.process_group import allowed
from agentv.model.suite.workspace import WorkspaceCommand
from agentv.model.values.response import Failure
from agentv.ports import ProgramResult, Sandbox
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import Finished, run_program

OUTPUT_LIMIT = 10_000_000
_FOR_HOOKS = ("HOME", "USER", "LOGNAME", "SHELL", "XDG_RUNTIME_DIR", "DOCKER_HOST")


async def run_confined(
    written: WorkspaceCommand, sandbox: Sandbox, workspace: str, env: Mapping[str, str], stdin: bytes = b""
) -> ProgramResult | Failure:
    """Run a command in the sandbox of a workspace.

    Args:
        written: the command.
        sandbox: the sandbox to run it in.
        workspace: absolute path of the workspace, against which the command's `cwd` is resolved.
        env: variables in addition to those of the sandbox.
        stdin: input of a command that does not set `stdin`.
    """
    command = written.in_workspace(workspace)
    cwd = await asyncio.to_thread(_directory, workspace, command.cwd)
    if isinstance(cwd, Failure):
        return cwd
    words = ("/bin/sh", "-c", command.shell) if command.shell is not None else command.argv
    started = Command(argv=sandbox.argv(words, cwd))
    environment = sandbox.environment({**env, **command.env})
    return await _run(command, started, environment, stdin)


async def run_hooks(
    hooks: Iterable[WorkspaceCommand], sandbox: Sandbox, workspace: str, env: Mapping[str, str], *, setup: bool = False
) -> Failure | None:
    """Run hooks, or the commands of `setup`, in order, and stop at the first that fails."""
    for command in hooks:
        if command.directory:
            # code of the suite's author: runs in the suite's directory, with the user's permissions
            placed = command.in_workspace(workspace)
            given = {**env, "AGENTV_WORKSPACE_PATH": workspace, **placed.env}
            cwd = str(Path(placed.directory) / placed.cwd)
            started = Command(argv=placed.argv, shell=placed.shell, cwd=cwd)
            ended = await _run(placed, started, {**allowed(os.environ, _FOR_HOOKS), **given})
        else:
            ended = await run_confined(command, sandbox, workspace, env)
        why = ""
        if isinstance(ended, Failure):
            why = f"failed: {ended.message}"
        elif ended.status:
            why = f"ended with status {ended.status}: {tail(ended.stderr or ended.stdout) or 'no message'}"
        if why and setup:
            return Failure("setup-failed", f"the setup command '{command}' {why}")
        if why:
            return Failure("hook-failed", f"the hook '{command}' {why}")
    return None


def _directory(workspace: str, inside: str) -> str | Failure:
    """Return a directory of a workspace, or a Failure if it leads out, since an agent may have made it a link."""
    cwd, root = os.path.realpath(Path(workspace) / inside), os.path.realpath(workspace)
    if cwd != root and not cwd.startswith(root + os.sep):
        return Failure("workspace-failed", f"the directory '{inside}' leads out of the workspace")
    return cwd if Path(cwd).is_dir() else Failure("workspace-failed", f"the workspace has no directory '{inside}'")


async def _run(
    command: WorkspaceCommand, started: Command, env: Mapping[str, str], stdin: bytes = b""
) -> ProgramResult | Failure:
    stdin = command.stdin.encode(errors="surrogateescape") or stdin
    ended = await run_program(started, stdin=stdin, env=env, timeout_s=command.timeout_s, limit=OUTPUT_LIMIT)
    if isinstance(ended, Finished):
        return ProgramResult(ended.status, ended.stdout, ended.stderr)
    if ended.code == "timeout":
        return Failure("timeout", f"it did not end within {command.timeout_s:g} s")
    return ended
