"""Hand-made entries of a run list."""

from agentv.model.run.matrix import Counts
from agentv.model.run.runs import ListedRun
from agentv.model.run.summary import Summary

SUMMARY = Summary(
    run_id="r",
    cases=Counts(20, 17, 2, 1, 0),
    trials=Counts(40, 34, 4, 2, 0),
    pass_rate=17 / 19,
    pass_rate_interval=(0.686, 0.971),
    mean_score=0.9,
    cost_usd=1.5,
    judge_cost_usd=0.25,
    token_usage=None,
    duration_ms=61_000,
    unpriced_trials=1,
    judged=38,
)


def listed(**given) -> ListedRun:
    """Return a finished run of two suites; keywords set its fields."""
    fields = {"suites": ("refunds", "orders"), "targets": ("gpt",), "done": 40, "planned": 40, "summary": SUMMARY}
    return ListedRun("20261121T140322Z-7f3a", "/repo/r", **{"state": "finished", **fields, **given})
