"""Facts about a case whose samples may end early, for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentv.model.run.cases import Sample
from agentv.stats.samples.deciding import Rule, stopped_by


def early_facts(samples: Sequence[Sample], rule: Rule) -> dict[str, Any] | None:
    """How the samples of a case ended, and what its pass rate is without the bias of that.

    No bounds and no rate where some are to come. None: of a case whose samples do not end early.
    """
    if rule.alpha is None:
        return None
    stopped = stopped_by(samples, rule)
    if stopped is None:
        return {"alpha": rule.alpha, "why": None, "bounds": None, "rate": None}
    from agentv.stats.samples.stopped import unbiased_rate  # few runs end samples early

    rate = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
    bounds = [stopped.low, stopped.high] if stopped.samples else None
    return {"alpha": rule.alpha, "why": stopped.why, "bounds": bounds, "rate": rate}
