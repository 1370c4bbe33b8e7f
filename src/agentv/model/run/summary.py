"""Totals of a run, always computed from its rows so that they agree with these (SPEC section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agentv.model.run.matrix import Counts, GroupTotals, Interval, MeasuredShare, RunMatrix
from agentv.model.run.trial import SCHEMA_VERSION, EarlyStops
from agentv.model.suite.suite import Aggregate
from agentv.model.values.formatting import plural
from agentv.model.values.usage import BudgetUse, TokenUsage, total_cost
from agentv.model.values.values import Json, always


class CorrectedRate(Struct, frozen=True):
    """A pass rate by a judge, and the rate after correction by human labels.

    Attributes:
        by_judge: share of answers that pass by the judge's verdicts.
        rate: estimated share that people would pass.
        interval: 95% interval of `rate`.
        labels: number of labelled answers used.
        transferred: whether answers of other runs were labelled, so that the judge is assumed to make the same errors
            in this run.
    """

    by_judge: float
    rate: float
    interval: Interval
    labels: int
    transferred: bool = False


class AssertionRate(Struct, frozen=True):
    """Pass rate of one assertion graded by a judge. `corrected` is None without applicable labels."""

    assertion: str
    judge: str
    model: str
    by_judge: float
    corrected: CorrectedRate | None = None


class CorrectedRates(Struct, frozen=True):
    """Pass rates of a run corrected by labels. Computed for each view, because labels are given after a run.

    Attributes:
        run: rate of the run, over its graded samples; None if it cannot be computed.
        reason: why it cannot be computed; also None if no answer is labelled.
        assertions: rates of the assertions that judges grade.
        unchecked: names of judges without applicable labels.
        outdated: those of `unchecked` with labels for another model, prompt or rubric.
    """

    run: CorrectedRate | None = None
    reason: str | None = None
    assertions: tuple[AssertionRate, ...] = ()
    unchecked: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


NOT_DRAWN = "not-drawn"
"""Code of trials that did not run because the comparison was decided before their case was drawn."""

SequentialVerdict = Literal["better", "worse", "non-inferior", "inconclusive"]


class SequentialComparison(Struct, frozen=True):
    """Sequential comparison of a run with its base, over the cases drawn so far, by the pass rates of samples.

    Attributes:
        base: id of the run that it is compared with.
        verdict: the first verdict that was shown, or `inconclusive`.
        difference: (lowest, highest) difference of the pass rates, candidate minus base, over the drawn cases; the two
            differ if something errored, which might have passed or failed.
        interval: interval of that difference, valid at all looks simultaneously with probability at least 1 − alpha.
        alpha: maximum probability of a wrong verdict, however often the results are looked at.
        margin: largest loss that does not matter; 0 if none was set.
        drawn: number of cases that were drawn until the verdict.
        clusters: number of independent clusters of these; equal to `drawn` if all cases are independent.
        cases: number of cases that both runs have in common.
        unpaired: number of cases that are new or were edited since the base; not counted otherwise.
        errored: number of drawn cases whose results are only known within bounds.
        seed: seed of the order in which cases are drawn.
    """

    base: str
    verdict: SequentialVerdict
    difference: tuple[float, float]
    interval: tuple[float, float]
    alpha: float
    margin: float
    drawn: int
    clusters: int
    cases: int
    unpaired: int
    errored: int
    seed: int


class SampledCase(Struct, frozen=True):
    """One case with several samples on one target, at least one of which was graded.

    Attributes:
        judged, passed: numbers of samples, without errored and skipped ones.
        pass_rate_interval: Wilson interval at 95%.
        flaky: whether some samples passed and some failed.
        pass_at_k, pass_hat_k: k → probability that at least one of k samples passes, and that all do. If fewer than k
            samples failed (or passed), the estimate is 1 (or 0) for any rate: then only the interval is informative.
        pass_at_k_interval, pass_hat_k_interval: k → 95% intervals, transformed from the Wilson interval of the rate.
    """

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    judged: int
    passed: int
    pass_rate: float
    pass_rate_interval: Interval
    flaky: bool
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]
    pass_at_k_interval: Mapping[int, Interval] = field(default_factory=dict)
    pass_hat_k_interval: Mapping[int, Interval] = field(default_factory=dict)


class Samples(Struct, frozen=True):
    """Totals of the cases with several samples, without those whose sampling may stop early.

    Attributes:
        cases: number of cases with a graded sample.
        compared: number of cases with at least two graded samples, which can disagree.
        flaky: number of cases whose samples disagree.
        flaky_share_interval: 95% interval of flaky / compared, by the clusters of the cases; None if nothing was
            compared, or if all cases are in one cluster.
        always_passed: n → number of cases with n graded samples that all passed.
        pass_at_k, pass_hat_k: k → mean over the complete cases, for k up to their number of samples.
        pass_at_k_interval, pass_hat_k_interval: k → 95% intervals over the clusters of the cases; k is missing if all
            cases are in one cluster.
        by_case: flaky cases first, then by ascending pass rate; a limited number.
        omitted: number of cases that are not in `by_case`.
        complete: number of cases with at least as many graded samples as most cases have.
    """

    cases: int
    compared: int
    flaky: int
    flaky_share_interval: Interval | None
    always_passed: Mapping[int, int]
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]
    by_case: tuple[SampledCase, ...]
    complete: int
    omitted: int = 0
    pass_at_k_interval: Mapping[int, Interval] = field(default_factory=dict)
    pass_hat_k_interval: Mapping[int, Interval] = field(default_factory=dict)


TAG = "activation"
"""Tag of every case that `activation` generates, and type of its assertion."""


class SkillShares(Struct, frozen=True):
    """How well the queries of one skill are distinguished from all others.

    Attributes:
        true_positives, false_positives: numbers of queries that loaded it, rightly and wrongly.
        false_negatives, true_negatives: numbers of queries that did not load it, wrongly and rightly.
        precision, recall, f1: None if undefined.
    """

    skill: str
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: MeasuredShare | None
    recall: MeasuredShare | None
    f1: MeasuredShare | None


class ConfusionCell(Struct, frozen=True):
    """Number of queries that should load `expected` and loaded `loaded`; None stands for no skill."""

    expected: str | None
    loaded: str | None
    queries: int


class Activation(Struct, frozen=True):
    """Results of the queries of a suite with one target and variant, each query counted once.

    A query with several samples loads a skill if at least half of its graded samples did.

    Attributes:
        judged, errored, not_run: numbers of queries; shares only include the graded ones.
        right: number of queries that loaded what they should and nothing else.
        skills: measures of each skill.
        confusion: cells above 0; a query that loaded several skills is in the cell of each.
    """

    suite: str
    judged: int
    right: int
    skills: tuple[SkillShares, ...]
    confusion: tuple[ConfusionCell, ...] = ()
    errored: int = 0
    not_run: int = 0
    target: str | None = None
    variant: str | None = None

    @property
    def queries(self) -> int:
        """Number of all queries."""
        return self.judged + self.errored + self.not_run


class GateResult(Struct, frozen=True):
    """The result of a gate.

    Attributes:
        gate: `corrected`: the corrected pass rate; `judge`: how well the judge agrees with people; `activation`: how
            well the queries of each skill are distinguished.
        why: the result, and what is required.
        warning: a reason to doubt a gate that passed.
        failed: number of failed cases whose verdicts are replaced by the gate's.
    """

    gate: Literal["corrected", "judge", "activation"]
    suite: str
    passed: bool
    why: str
    warning: str | None = None
    failed: int = 0

    @property
    def title(self) -> str:
        """Name of the gate for users."""
        return "corrected pass rate" if self.gate == "corrected" else self.gate


Cut = Literal["fail-fast", "max-errors", "decided"]
"""Reasons to stop a run that depend on its results, so that the cases that ran are not a random sample of all."""

_INTERVALS = ("pass_rate_interval", "pass_rate_interval_of_all", "rule_pass_rate_interval", "mean_score_interval")
_GROUPED = ("by_suite", "by_target", "by_prompt", "by_tag")


class PartialRun(Struct, frozen=True):
    """The part of its suites that a run selected.

    Attributes:
        cases, trials: numbers of selected cases and trials.
        of, of_trials: numbers of cases and trials of the whole suites.
        why: names of the options that made the selection, without dashes.
    """

    cases: int
    of: int
    why: tuple[str, ...]
    trials: int
    of_trials: int

    @property
    def badge(self) -> str:
        """Short text: `1 of 12 cases`, or `12 of 24 trials` if all cases ran, but not with all prompts or variants."""
        if self.cases < self.of:
            return f"{self.cases:,} of {plural(self.of, 'case', ',')}"
        return f"{self.trials:,} of {plural(self.of_trials, 'trial', ',')}"


class CaseRule(Struct, frozen=True):
    """How the verdict of a case follows from its samples, if the rule is the same for all cases."""

    repeat: int
    aggregate: Aggregate
    threshold: float


class Summary(Struct, frozen=True, omit_defaults=True):
    """The totals of a run. `summary.json` has the fields in this order, without those that equal their default.

    Attributes:
        cases: distinct cases; one passes if it passes with every target, prompt and variant.
        pass_rate: mean over cases of the share of their graded samples that passed, where a case counts once with each
            target, prompt and variant. If sampling could stop early, an unbiased estimate replaces a case's share
            (`stats.stopped`). Cases without a graded sample are not counted. None if nothing was graded.
        judged: number of samples that the pass rate is based on; if sampling could stop early, number of cases.
        pass_rate_interval: 95% interval (`stats.design_effect`), by the clusters counted in `interval_clusters`; None
            if nothing was graded, or if several samples form a single cluster.
        pass_rate_bounds: the rate if all errored samples had failed, and if all had passed, over all cases with a
            graded or an errored sample.
        pass_rate_interval_of_all: 95% interval of the pass rate of all cases from which `--sample` drew; None without
            `--sample`, and if a case has several results or its sampling could stop early.
        interval_clusters: number of clusters of the graded samples; None if nothing was graded.
        clustered_by: what forms the clusters: `case`, `conversation_id`, or the key of `cluster`; several if suites
            differ.
        rule_pass_rate: passed cases / graded cases, by the rule for several samples; None if no case has several.
        rule_pass_rate_interval, rule_pass_rate_bounds: as those of `pass_rate`.
        rule_judged: number of results that `rule_pass_rate` is based on, if cases have several, by target, prompt or
            variant.
        rule: the rule, if it is the same for all cases with several samples.
        mean_score: mean over cases of the mean score of their graded samples; None if nothing was graded, or if
            sampling could stop early. The same holds for each group.
        mean_score_interval: 95% interval of the mean score, by the same clusters.
        cost_usd, judge_cost_usd, user_cost_usd: cost of targets, judges and simulated users, in US dollars; None if no
            call reported its price.
        token_usage, judge_token_usage, user_token_usage: tokens of targets, judges and simulated users.
        budget: how much of the budget was used; None without a budget.
        against: comparison with an earlier run, if this one was to stop when it is decided; else None.
        cut: reason why the run was stopped because of its results; the intervals of its rates are then invalid.
        early_stops: results of the cases whose sampling may stop early; None if none exist.
        partial: which part of the suites ran; None for all.
        duration_ms: duration of all processes of the run together, without the time between them.
        processes: number of processes: 1, plus one for each time the run was resumed.
        unpriced_trials, judge_unpriced_trials, user_unpriced_trials: trials whose calls reported tokens but no price;
            the costs exclude them.
        matrix: results by target, prompt and variant; None if there is only one of each.
        samples: totals of the cases with several samples, without those whose sampling may stop early; None if no case
            has several.
        held_back: number of trials that did not run because a dependency did not pass.
        judges: names of the judges that graded.
        gates: results of gates, which decide the run in addition to the verdicts of its cases, by the labels from
            before the run started.
        activation: which skills the queries of `activation` loaded.
        corrected: rates corrected by labels at the time of viewing; never stored. None if no judge graded.
    """

    run_id: str
    cases: Counts
    trials: Counts
    pass_rate: float | None
    pass_rate_interval: Interval | None
    mean_score: float | None
    cost_usd: float | None
    judge_cost_usd: float | None
    token_usage: TokenUsage | None
    duration_ms: float
    judge_token_usage: TokenUsage | None = always(None)
    unpriced_trials: int = always(0)
    judge_unpriced_trials: int = always(0)
    processes: int = always(1)
    pass_rate_bounds: Interval | None = always(None)
    pass_rate_interval_of_all: Interval | None = None
    judged: int = always(0)
    interval_clusters: int | None = always(None)
    clustered_by: tuple[str, ...] = always(())
    rule_pass_rate: float | None = None
    rule_pass_rate_interval: Interval | None = None
    rule_pass_rate_bounds: Interval | None = None
    rule_judged: int | None = None
    rule: CaseRule | None = None
    mean_score_interval: Interval | None = always(None)
    by_suite: Mapping[str, GroupTotals] = always({})
    by_target: Mapping[str, GroupTotals] = always({})
    by_prompt: Mapping[str, GroupTotals] = always({})
    by_tag: Mapping[str, GroupTotals] = always({})
    by_variant: Mapping[str, GroupTotals] = field(default_factory=dict)
    samples: Samples | None = None
    budget: BudgetUse | None = None
    early_stops: EarlyStops | None = None
    against: SequentialComparison | None = None
    cut: Cut | None = None
    matrix: RunMatrix | None = None
    partial: PartialRun | None = None
    held_back: int = 0
    judges: tuple[str, ...] = ()
    gates: tuple[GateResult, ...] = ()
    corrected: CorrectedRates | None = None
    user_cost_usd: float | None = None
    user_token_usage: TokenUsage | None = None
    user_unpriced_trials: int = 0
    activation: tuple[Activation, ...] = ()

    @property
    def is_empty_shard(self) -> bool:
        """Whether there were more shards than selected cases, and this one has none."""
        return self.partial is not None and not self.partial.trials

    @property
    def spent_usd(self) -> float | None:
        """Cost of all calls, including those of judges and simulated users, in US dollars; None if unknown."""
        return total_cost(self.cost_usd, self.judge_cost_usd, self.user_cost_usd)

    @property
    def unpriced(self) -> int:
        """Minimum number of trials that have calls without a price."""
        return max(self.unpriced_trials, self.judge_unpriced_trials, self.user_unpriced_trials)

    def cut_short(self, cut: Cut) -> Summary:
        """Return the totals of a run that was stopped because of its results, without intervals, which are invalid."""
        groups = {name: {key: group.cut_short() for key, group in getattr(self, name).items()} for name in _GROUPED}
        without = dict.fromkeys(_INTERVALS)
        matrix = None if self.matrix is None else self.matrix.cut_short()
        return replace(self, cut=cut, matrix=matrix, **without, **groups)

    def as_json(self) -> dict[str, Json]:
        """Return the object of `summary.json`."""
        return {"schema_version": SCHEMA_VERSION, **to_builtins(self)}
