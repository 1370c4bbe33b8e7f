"""What is left of an agent's work when its trial has ended: what it did, what it changed, and where that lies."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from agentv.model.suite.workspace import SandboxName
from agentv.model.values.changes import WorkspaceChanges
from agentv.model.values.trace import Trace
from agentv.model.values.values import JsonObject


class AgentWork(Struct, frozen=True):
    """The work of one trial.

    Attributes:
        sandbox: what confined the agent; None: there was no workspace.
        trace: all that it did, with the calls that our tool servers saw; None: nothing is known of it.
        changes: what it changed in its workspace; None: there was none, or it could not be compared.
        logs: name → what its program printed.
        kept: absolute path of the workspace, where it is kept.
        ignored: globs of files that the changes leave out.
        tool_state: scripted MCP server → the state that its functions kept; None: it had none.
    """

    sandbox: SandboxName | None = None
    trace: Trace | None = None
    changes: WorkspaceChanges | None = None
    logs: Mapping[str, bytes] = field(default_factory=dict)
    kept: str | None = None
    ignored: tuple[str, ...] = ()
    tool_state: JsonObject | None = None

    @property
    def agent_version(self) -> str:
        """The version that the agent reports; empty where it reports none."""
        return self.trace.agent_version if self.trace is not None else ""


class StoredWork(Struct, frozen=True):
    """What a row says of the work of its agent.

    Attributes:
        sandbox: what confined the agent; None: it had no workspace.
        agent_version: as the agent reports it.
        agent_turns: calls of its model; where it reports none, its messages.
        trace_path, diff_path, native_path, workspace_path: relative to the directory of the run; None if not stored.
        work_path, work_sha256: of what a later run needs to grade the work again, hashes of the others among it.
    """

    sandbox: SandboxName | None = None
    agent_version: str | None = None
    agent_turns: int | None = None
    trace_path: str | None = None
    diff_path: str | None = None
    native_path: str | None = None
    workspace_path: str | None = None
    work_path: str | None = None
    work_sha256: str | None = None
