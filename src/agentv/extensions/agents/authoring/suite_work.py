"""Readers of the workspaces and tools of one suite, loaded when it has some: most suites have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.authoring.source.nodes import Node, is_empty
from agentv.extensions.agents.authoring.keys import Overrides, WorkspaceKeys

if TYPE_CHECKING:
    from agentv.extensions.agents.authoring.reader import WorkspaceReader
    from agentv.extensions.agents.authoring.tools import ToolReader


class SuiteWork:
    """Reads the workspaces and the tools of one suite. Nothing that reads them is loaded before one is written.

    Args:
        keys: of the suite.
        variants, tools: of the suite, as they are written.
        overrides: of the command line.
        hashes: whether the files behind a workspace are hashed.
    """

    def __init__(
        self, keys: WorkspaceKeys, variants: Node | None, tools: Node | None, overrides: Overrides, *, hashes: bool
    ) -> None:
        self._keys, self._tools_node, self._overrides, self._hashes = keys, tools, overrides, hashes
        self._varies = not is_empty(variants)
        self._workspaces: WorkspaceReader | None = None
        self._tools: ToolReader | None = None
        self.has_workspaces = bool(keys.nodes) or self._varies or overrides.existing is not None
        self.has_tools = tools is not None

    @property
    def workspaces(self) -> WorkspaceReader:
        """Reads workspaces."""
        if self._workspaces is None:
            from agentv.extensions.agents.authoring.reader import WorkspaceReader

            self._workspaces = WorkspaceReader(self._keys, self._overrides, hashes=self._hashes, varies=self._varies)
        return self._workspaces

    @property
    def tools(self) -> ToolReader:
        """Reads tools."""
        if self._tools is None:
            from agentv.extensions.agents.authoring.tools import ToolReader

            self._tools = ToolReader(self._tools_node)
        return self._tools
