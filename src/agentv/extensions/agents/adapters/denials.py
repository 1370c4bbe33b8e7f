"""Success after a permission was denied: it counts only where the agent has done something."""

from __future__ import annotations

from agentv.extensions.agents.adapters.workspace_files import changed_since
from agentv.model.values.trace import Trace


def did_nothing(trace: Trace, root: str, moment: float) -> bool:
    """Whether the agent has changed nothing since a moment: no file of its workspace, nothing by an MCP tool.

    Times of change are read here, which any program can make new; the comparison of the workspace with its baseline
    decides again once the agent has ended.
    """
    return not trace.worked_elsewhere and not changed_since(root, moment)
