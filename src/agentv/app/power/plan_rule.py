"""Power of `agentv compare` by simulation: its own decision rule over simulated runs."""

from __future__ import annotations

from functools import lru_cache

from agentv.app.compare.judging import verdict_of
from agentv.app.compare.measuring import Measurement
from agentv.model.run.compared.verdicts import Verdict
from agentv.model.run.comparison import ComparisonSettings
from agentv.stats.comparison.difference import Differences
from agentv.stats.power.power_simulation import Rehearsal, Rehearsed

WORK = 60_000
"""Cases that are drawn for one number, of verdicts; tests of scores take longer."""
MOST_ROUNDS = 400
FEWEST_ROUNDS = 40

_NOT_WORSE: frozenset[Verdict] = frozenset({"non-inferior", "equivalent", "better"})


@lru_cache(maxsize=256)
def chance_shown(plan: Rehearsal, alpha: float, margin: float = 0.0) -> float:
    """Probability that `compare` shows a run as worse; without a difference, that it shows it as non-inferior.

    Estimated from a few hundred simulated comparisons, accurate to 2 to 5 points. The same plan gives the same number.

    Args:
        plan: the two runs and the true rates.
        alpha: as in `compare`.
        margin: as in `compare`; above 0 if there is no true difference.
    """
    wanted = frozenset({"worse"}) if plan.difference else _NOT_WORSE
    rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, WORK // plan.cases // (1 if plan.deviation is None else 6)))
    question = ComparisonSettings(margin=margin, alpha=alpha)
    return sum(verdict_of(_measurements(runs), question) in wanted for runs in plan.runs(rounds)) / rounds


def _measurements(runs: Rehearsed) -> list[Measurement]:
    """The mean score, and the pass rate where that is another measure: as `compare` measures pairs."""
    scores = _differences(runs.before, runs.after, runs.clusters)
    rates = _differences(runs.passed_before, runs.passed_after, runs.clusters)
    measures = [Measurement("mean score", scores)]
    as_one = scores.values == rates.values and scores.before == rates.before
    return measures if as_one else [*measures, Measurement("pass rate", rates)]


def _differences(before: list[float], after: list[float], clusters: list[int]) -> Differences:
    return Differences([new - old for old, new in zip(before, after, strict=True)], before, clusters)
