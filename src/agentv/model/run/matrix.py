"""Matrix of results over the targets, prompts and variants of one run, and the comparisons between these."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.values.values import always

Resource = Literal["cost_usd", "tokens", "turns", "duration_ms"]
RESOURCES: tuple[Resource, ...] = get_args(Resource)


class CaseUsage(NamedTuple):
    """Mean usage over a case's graded samples. None, never 0, if unknown for any of them."""

    cost_usd: float | None = None
    tokens: float | None = None
    turns: float | None = None
    duration_ms: float | None = None


class UsageDifference(Struct, frozen=True):
    """Paired difference in the usage of one resource.

    Attributes:
        cases: number of compared cases for which it is known on both sides.
        unknown: number of the other compared cases.
        before, after: means of base and candidate over `cases`; None if none exist.
        delta: `after` minus `before`.
        interval: interval of `delta` at `confidence`, by Student's t over independent clusters; None with only one.
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
"""What is shown about a candidate; `equivalent`: any difference is at most the margin; `non-inferior`: it is not worse
by more than the margin, and may be better."""

Withheld = Literal["errors", "measures", "settings"]
"""Why the verdict that the graded cases show is not given: `errors`: it might not hold if the errored cases had been
graded; `measures`: one measure is better and the other worse; `settings`: the runs decided cases by different rules."""

Measure = Literal["mean score", "pass rate", "share of cases that passed"]
"""What is compared: the mean scores of cases, the shares of their samples that passed, or, if sampling may stop early,
the share of cases that passed."""


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
    """The totals of one suite, target, prompt, variant or tag; the attributes are as in `Summary`."""

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
        """Return the totals without intervals, which are invalid if results stopped the run."""
        return replace(self, pass_rate_interval=None, rule_pass_rate_interval=None, mean_score_interval=None)


Dimension = Literal["target", "prompt", "variant"]
"""What is compared within a run; paired cases are the same in everything else."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class GroupUsage(Struct, frozen=True):
    """Cost and latency of a part of a run.

    Attributes:
        cost_usd, judge_cost_usd: cost of targets and judges in this run, in US dollars, as in the totals of the run;
            None if no call reported a price.
        unpriced_trials: trials whose calls reported tokens but no price; `cost_usd` does not include them.
        reused: trials whose answer was not paid for in this run.
        answers: trials with an answer that was graded or shown, to which the following attributes refer.
        priced_answers: answers with a known price.
        cost_per_answer_usd: mean price of these, including reused answers; None if no price is known.
        latency_ms: median duration of the answers, as recorded when they were made; None without answers.
        latency_p95_ms: 95th percentile of the duration; None with fewer than 20 answers.
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
        prompt: None for cases with their own input.
        variant: None for suites without variants.
    """

    target: str
    prompt: str | None
    variant: str | None
    totals: GroupTotals
    usage: GroupUsage


class MatrixGroup(Struct, frozen=True):
    """Results of one target, prompt or variant over the whole run. `name` is None as in `MatrixCell`."""

    name: str | None
    totals: GroupTotals
    usage: GroupUsage


class ComparedMeasure(Struct, frozen=True):
    """One measure of a comparison.

    Attributes:
        before, after: values of base and candidate over the compared cases, 0..1.
        delta: `after` minus `before`, -1..1.
        interval: interval of `delta` at `confidence`; None with fewer than six clusters.
        p_value: two-sided p-value, corrected for all tests of the matrix; None likewise.
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
        verdict: verdict on the candidate; None if no case was graded with both.
        withheld: why the verdict that the graded cases show is not given.
        cases: number of distinct cases that are compared.
        pairs: number of compared pairs: a case with two prompts gives two pairs when targets are compared.
        clusters: number of independent clusters of pairs; all pairs of a case are in one cluster.
        errored: pairs with an errored sample, including those that could not be compared at all.
        measures: the pass rate comes first, if the rates can be compared; empty without a verdict.
        shown_by: the measures that show the verdict; empty if nothing is shown.
        only_base, only_candidate: number of results of cases that ran with only one of them.
        unfinished: pairs that did not run, or were not checked, with one of them.
        passed: numbers of compared pairs that passed with the base and with the candidate.
        usage: differences in usage per case, for each known resource.
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
        cells: cells with at least one finished trial, ordered by prompt, then target, then variant.
        by_target, by_prompt, by_variant: totals of each, in the same order; empty if there is only one.
        comparisons: each target, prompt and variant compared with the first one that has cases in common with it; None
            if the run was stopped because of its results, which makes comparisons invalid.
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
        """Return the matrix without intervals and comparisons, which are invalid if results stopped the run."""
        cells = tuple(replace(one, totals=one.totals.cut_short()) for one in self.cells)
        groups = {
            f"by_{by}": tuple(replace(one, totals=one.totals.cut_short()) for one in self.groups(by))
            for by in DIMENSIONS
        }
        return replace(self, cells=cells, comparisons=None, **groups)

    def groups(self, by: Dimension) -> tuple[MatrixGroup, ...]:
        """Return the totals of each target, prompt or variant."""
        return {"target": self.by_target, "prompt": self.by_prompt, "variant": self.by_variant}[by]

    def names(self, by: Dimension) -> tuple[str | None, ...]:
        """Return the names of the targets, prompts or variants."""
        return {"target": self.targets, "prompt": self.prompts, "variant": self.variants}[by]
