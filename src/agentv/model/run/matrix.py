"""Targets, prompts and variants of one run side by side: a matrix of results, and the comparisons of its columns."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.compared.usage import UsageDifference
from agentv.model.run.compared.verdicts import Measure, Verdict, Withheld
from agentv.model.run.group_totals import GroupTotals, Interval

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
