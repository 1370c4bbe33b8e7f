"""Targets, prompts and variants of one run side by side: a matrix of results, and the comparisons of its columns."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.values.values import always

Resource = Literal["cost_usd", "tokens", "turns", "duration_ms"]
RESOURCES: tuple[Resource, ...] = get_args(Resource)


class CaseUsage(NamedTuple):
    """Mean of a case's graded samples. None: unknown for one of them; a cost that is not known is never 0."""

    cost_usd: float | None = None
    tokens: float | None = None
    turns: float | None = None
    duration_ms: float | None = None


class UsageDifference(Struct, frozen=True):
    """Paired difference of one resource.

    Attributes:
        cases: number of compared cases in which it is known on both sides.
        unknown: number of the others.
        before, after: mean of these cases, of base and candidate; None: it is known in none.
        delta: `after` less `before`.
        interval: of `delta`, at `confidence`, by Student's t over independent clusters; None: there is only one.
    """

    resource: Resource
    cases: int
    unknown: int
    before: float | None = None
    after: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float = 0.95


Verdict = Literal["better", "worse", "equivalent", "non-inferior", "inconclusive"]
"""What is shown of a candidate; `equivalent`: any difference is at most the margin; `non-inferior`: it is not worse by
more than the margin, and may be better."""

Withheld = Literal["errors", "measures", "settings"]
"""Why a verdict that the judged cases show is not given: it would not hold if the errored ones had failed, or passed;
one measure is better and the other worse; or the runs decided cases by different rules."""

Measure = Literal["mean score", "pass rate", "share of cases that passed"]
"""The pass rate is that of samples; the share of passed cases is compared where samples may end early."""
"""What decides: the mean scores of cases, and the shares of their samples that passed."""


class Counts(Struct, frozen=True):
    """Number of each outcome."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    shown: int = 0


Interval = tuple[float, float]


class MeasuredShare(Struct, frozen=True):
    """A share and its confidence interval, in 0..1."""

    value: float
    interval: Interval


class GroupTotals(Struct, frozen=True, omit_defaults=True):
    """The totals of one suite, target, prompt, variant or tag; its attributes are as those of `Summary`."""

    cases: Counts
    pass_rate: float | None
    mean_score: float | None
    pass_rate_interval: Interval | None = always(None)
    pass_rate_bounds: Interval | None = always(None)
    judged: int = always(0)
    interval_clusters: int | None = always(None)
    clustered_by: tuple[str, ...] = always(())
    rule_pass_rate: float | None = None
    rule_pass_rate_interval: Interval | None = None
    rule_pass_rate_bounds: Interval | None = None
    mean_score_interval: Interval | None = always(None)

    def cut_short(self) -> GroupTotals:
        """Without intervals: none is valid for a run that stopped because of its results."""
        return replace(self, pass_rate_interval=None, rule_pass_rate_interval=None, mean_score_interval=None)


Dimension = Literal["target", "prompt", "variant"]
"""What is compared within a run; cases are paired with everything else alike."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class GroupUsage(Struct, frozen=True):
    """Cost and latency of a part of a run.

    Attributes:
        cost_usd, judge_cost_usd: spent in this run on targets and judges, US dollars, as in the totals of the run; None
            if no call reported a price.
        unpriced_trials: trials whose calls reported tokens but no price; `cost_usd` does not include them.
        reused: trials whose answer was not paid for in this run.
        answers: trials with an answer that was graded, or shown: those of the numbers below.
        priced_answers: those with a known price.
        cost_per_answer_usd: mean price of these, also of reused answers; None if no price is known.
        latency_ms: median duration of the answers as recorded when they were made; None without answers.
        latency_p95_ms: 95th percentile; None with fewer than 20 answers.
    """

    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    unpriced_trials: int = 0
    reused: int = 0
    answers: int = 0
    priced_answers: int = 0
    cost_per_answer_usd: float | None = None
    latency_ms: float | None = None
    latency_p95_ms: float | None = None


class MatrixCell(Struct, frozen=True):
    """Results of one prompt on one target with one variant.

    Attributes:
        prompt: None: cases with their own input.
        variant: None: suites without variants.
    """

    target: str
    prompt: str | None
    variant: str | None
    totals: GroupTotals
    usage: GroupUsage


class MatrixGroup(Struct, frozen=True):
    """Results of one target, prompt or variant over the whole run. `name` is None as in a cell."""

    name: str | None
    totals: GroupTotals
    usage: GroupUsage


class ComparedMeasure(Struct, frozen=True):
    """One measure of a comparison.

    Attributes:
        before, after: of base and candidate, over the compared cases, 0..1.
        delta: `after` less `before`, -1..1.
        interval: of that, at `confidence`; None with fewer than six clusters.
        p_value: two-sided, corrected for all tests of the matrix; None as above.
        bounds: the difference if all errored samples of the candidate had failed and those of the base had passed, and
            the other way round; None without errors.
    """

    measure: Measure
    before: float
    after: float
    delta: float
    interval: Interval | None
    confidence: float
    p_value: float | None
    bounds: Interval | None = None


class MatrixComparison(Struct, frozen=True):
    """Paired comparison of two targets, prompts or variants of one run.

    Attributes:
        verdict: of the candidate; None: no case was graded with both.
        withheld: why a verdict that the graded cases show is not given.
        cases: number of distinct cases that are compared.
        pairs: number of compared pairs: a case with two prompts gives two for a pair of targets.
        clusters: number of independent clusters that the pairs form; all pairs of a case are in one.
        errored: pairs with an errored sample, including those that could not be compared at all.
        measures: the pass rate first, if the rates can be compared; empty without a verdict.
        shown_by: the measures that show the verdict; empty if nothing is shown.
        only_base, only_candidate: number of results that only one of them has: the case ran with it alone.
        unfinished: pairs that did not run, or were not checked, with one of them.
        passed: of the compared pairs, those that passed with the base and with the candidate.
        usage: what a case took, of each resource that is known.
    """

    by: Dimension
    base: str
    candidate: str
    verdict: Verdict | None
    withheld: Withheld | None = None
    cases: int = 0
    pairs: int = 0
    clusters: int = 0
    errored: int = 0
    measures: tuple[ComparedMeasure, ...] = ()
    shown_by: tuple[Measure, ...] = ()
    only_base: int = 0
    only_candidate: int = 0
    unfinished: int = 0
    passed: tuple[int, int] = (0, 0)
    usage: tuple[UsageDifference, ...] = ()


class RunMatrix(Struct, frozen=True):
    """A run with several targets, prompts or variants.

    Attributes:
        targets, prompts, variants: in the order of the run; the first is the base of comparisons.
        cells: those with at least one finished trial, by prompt, then target, then variant.
        by_target, by_prompt, by_variant: totals of each, in the same order; empty where there is only one.
        comparisons: of each target, prompt and variant with the first one that has cases in common with it; None: they
            were not made, because the run was cut short by its results.
        tests: number of tests that p-values and intervals are corrected for, by Holm's method.
        alpha: error rate of all comparisons together.
    """

    targets: tuple[str, ...]
    prompts: tuple[str | None, ...]
    variants: tuple[str | None, ...]
    cells: tuple[MatrixCell, ...]
    by_target: tuple[MatrixGroup, ...] = ()
    by_prompt: tuple[MatrixGroup, ...] = ()
    by_variant: tuple[MatrixGroup, ...] = ()
    comparisons: tuple[MatrixComparison, ...] | None = None
    tests: int = 1
    alpha: float = 0.05

    def cut_short(self) -> RunMatrix:
        """Without intervals and comparisons: none is valid for a run that stopped because of its results."""
        cells = tuple(replace(one, totals=one.totals.cut_short()) for one in self.cells)
        groups = {
            f"by_{by}": tuple(replace(one, totals=one.totals.cut_short()) for one in self.groups(by))
            for by in DIMENSIONS
        }
        return replace(self, cells=cells, comparisons=None, **groups)

    def groups(self, by: Dimension) -> tuple[MatrixGroup, ...]:
        """The totals of each target, prompt or variant."""
        return {"target": self.by_target, "prompt": self.by_prompt, "variant": self.by_variant}[by]

    def names(self, by: Dimension) -> tuple[str | None, ...]:
        """The targets, prompts or variants."""
        return {"target": self.targets, "prompt": self.prompts, "variant": self.variants}[by]
