"""AgentV's `trials` and `repeat` mappings: how many samples of a case, and how they make its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredTrials
from agentv.authoring.source.nodes import MapNode, Node
from agentv.model.suite.suite import Aggregate

_KEYS = frozenset(shape_of(AuthoredTrials).rules)
_AGGREGATES: Mapping[str, Aggregate] = {
    "pass_at_k": "pass_any",
    "pass_any": "pass_any",
    "pass_all": "pass_all",
    "mean": "mean",
    "confidence_interval": "mean",
}
"""AgentV's strategies, and how samples are combined here."""


class TrialSettings(Struct, frozen=True):
    """Settings from a `trials` mapping; `aggregate`: None if the block sets it itself."""

    repeat: int
    aggregate: Aggregate | None
    cost_limit_usd: float | None = None


def read_trials(run: Mapping[str, Node], reading: Reading) -> Any:
    """The trials of a `run:` block; None where `repeat` is said otherwise, INVALID where it is wrong: reported.

    Args:
        run: the block by its canonical keys.
        reading: of the suite.
    """
    node = run.get("repeat")
    if not isinstance(node, MapNode) or node.items.keys().isdisjoint(_KEYS):
        return None
    name = reading.report.spelled(node, "repeat")
    read = shape_of(AuthoredTrials).decode(node.items, node, reading, f"'{name}'")
    if read is INVALID:
        return INVALID
    if "aggregate" in run and "strategy" in node.items:
        message = "'strategy' is another spelling of 'aggregate', which is set too; keep one of them"
        reading.report.error("two-spellings", node.keys["strategy"], message)
        return INVALID
    _report_ignored(read, node, reading)
    aggregate = None if "aggregate" in run else _AGGREGATES[read.strategy]
    return TrialSettings(read.count, aggregate, read.cost_limit_usd)


def _report_ignored(read: AuthoredTrials, node: MapNode, reading: Reading) -> None:
    """Say what of it is not applied."""
    report = reading.report
    if read.strategy == "confidence_interval":
        message = "the mean of the samples decides, not the lower end of its confidence interval"
        report.warning("not-applied", node.items["strategy"], message, hint="write 'aggregate: mean' or 'pass_all'")
    if read.early_exit:
        message = "'early_exit' is not applied: all samples of a case run, with the same verdict"
        report.remark("not-applied", node.keys["early_exit"], message)
