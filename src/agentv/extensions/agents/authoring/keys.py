"""Keys of a suite, a case and the command line about workspaces, unread."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.authoring.source.nodes import NOWHERE, Node, Scalar
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName
from agentv.registry.types import ChooseSandbox

if TYPE_CHECKING:
    from agentv.authoring.fields.reading import Reading
    from agentv.model.suite.suite import TargetSpec


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


def directory_of_agents(targets: Iterable[TargetSpec], reading: Reading) -> Node | None:
    """Return the `cwd` of the agents, which is the workspace of a suite that names none; None if they have none."""
    agents = [one for one in targets if getattr(one.settings, "is_agent", False)]
    named = {getattr(one.settings, "cwd", None): one.span or NOWHERE for one in agents}
    if len(named) > 1:
        message = "the agents have different directories in 'cwd', or only some of them have one"
        hint = "write 'workspace: {template: …}' in the eval file, which holds for all of them"
        reading.report.error("bad-value", next(iter(named.values())), message, hint=hint)
        return None
    directory, at = next(iter(named.items()), (None, NOWHERE))
    if directory is None:
        return None
    path = f"/{os.path.relpath(directory, reading.places.root)}"
    return Scalar(path, path, at)


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
