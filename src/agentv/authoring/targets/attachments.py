"""Pictures and PDFs that the targets of a case cannot be sent, told before they are asked."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.authoring.source.nodes import Node
from agentv.authoring.source.report import Report
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Message
from agentv.registry.types import ProviderSettings


def check_attachments(messages: Iterable[Message], targets: Iterable[TargetSpec], node: Node, report: Report) -> None:
    """Report, at what a case is asked, what a target has no place for: once for each target. Runs for every case."""
    blocks = [block for one in messages if isinstance(one.content, tuple) for block in one.content]
    for spec in targets if blocks else ():
        settings = spec.settings
        found = (settings.refuses(block) for block in blocks) if isinstance(settings, ProviderSettings) else ()
        why = next(filter(None, found), None)
        if why is not None:
            report.error("bad-value", node, f"target '{spec.name}' {why}")
