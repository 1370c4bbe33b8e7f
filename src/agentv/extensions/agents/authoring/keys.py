"""Keys of a suite, a case and the command line about workspaces, unread."""

from __future__ import annotations

from msgspec import Struct

from agentv.authoring.source.nodes import Node
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName
from agentv.registry.types import ChooseSandbox


class WorkspaceKeys(Struct, frozen=True):
    """What one place says of workspaces: the suite, or a case."""

    workspace: Node | None = None
    sandbox: Node | None = None
    environment: Node | None = None
    extensions: Node | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those that are written."""
        keys = (self.workspace, self.sandbox, self.environment, self.extensions)
        return tuple(one for one in keys if one is not None)


class Overrides(Struct, frozen=True):
    """What the command line says over all files, and this machine of sandboxes.

    Attributes:
        existing: a directory of the user's that is used as it is.
        choose: what is run in; None: nothing is run.
    """

    existing: str | None = None
    sandbox: SandboxName | None = None
    keep: KeepWorkspaces | None = None
    choose: ChooseSandbox | None = None
