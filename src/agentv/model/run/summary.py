"""Totals of a run. Always computed from its rows, so they cannot disagree with them (SPEC section 13)."""

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
    """A pass rate by a judge, and what labels make of it.

    Attributes:
        by_judge: share that passes by the judge's verdicts.
        rate: share that people would pass.
        interval: its 95 % interval.
        labels: labelled answers that it is of.
        transferred: whether answers of other runs were labelled, so that it assumes the same errors here as there.
    """

    by_judge: float
    rate: float
    interval: Interval
    labels: int
    transferred: bool = False


class AssertionRate(Struct, frozen=True):
    """How often a judge passes the answers by one assertion. `corrected` is None without labels that count."""

    assertion: str
    judge: str
    model: str
    by_judge: float
    corrected: CorrectedRate | None = None


class CorrectedRates(Struct, frozen=True):
    """What labels say of the pass rates of a run. Computed for each view, since labels are given after a run.

    Attributes:
        run: of judged samples, by their verdicts; None if it cannot be computed.
        reason: why it cannot be computed; also None if no answer is labelled.
        assertions: of each assertion that a judge grades.
        unchecked: names of judges without any label that counts.
        outdated: those among them with labels for another model, prompt or rubric.
    """

    run: CorrectedRate | None = None
    reason: str | None = None
    assertions: tuple[AssertionRate, ...] = ()
    unchecked: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


NOT_DRAWN = "not-drawn"
"""The code of trials that were not run since the comparison was decided before their case was drawn."""

SequentialVerdict = Literal["better", "worse", "non-inferior", "inconclusive"]


class SequentialComparison(Struct, frozen=True):
    """What the cases that were drawn show of a run against its base. Rates are those of samples that passed.

    Attributes:
        base: the id of the run that it is compared with.
        verdict: the first claim that was shown; `inconclusive`: none was.
        difference: of the pass rates, candidate less base, over the cases that count, at its worst and at its best:
            they differ where something errored, which may have passed or failed.
        interval: of that difference; right at all looks at once with a chance of 1 − alpha at least.
        alpha: the chance, at most, that a claim is wrong, however often was looked.
        margin: a loss up to this does not matter; 0: none was named.
        drawn: how many cases count: those that were drawn up to the claim.
        clusters: how many groups of dependent cases these make; as many as `drawn` where every case stands alone.
        cases: how many both runs have in common.
        unpaired: cases of this run that are new, or edited since; they are in no number.
        errored: how many of those that count are known within bounds only.
        seed: of the order in which cases are drawn.
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
        judged, passed: numbers of samples; errored and skipped ones are not included.
        pass_rate_interval: Wilson's, at 95%.
        flaky: some samples passed, and some failed.
        pass_at_k, pass_hat_k: k → probability that at least one of k samples passes, and that all do. If fewer than k
            samples failed (or passed), the estimate is 1 (or 0) for any rate: then only the interval is informative.
        pass_at_k_interval, pass_hat_k_interval: k → their 95% intervals, Wilson's of the rate transformed.
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
    """Totals of the cases with several samples, without those whose samples may end early.

    Attributes:
        cases: number of cases with a graded sample.
        compared: number of cases with at least two, so that they can disagree.
        flaky: number of cases whose samples disagree.
        flaky_share_interval: 95% interval of flaky among compared, by the clusters of the cases; None if
            nothing was compared, or if all are one cluster.
        always_passed: number of graded samples → number of cases with so many that passed all of them.
        pass_at_k, pass_hat_k: k → mean over the complete cases; k goes up to their number of samples.
        pass_at_k_interval, pass_hat_k_interval: k → their 95% intervals over the clusters of the cases; k is missing
            if all cases are one cluster.
        by_case: flaky ones first, then by pass rate, the lowest first; a limited number.
        omitted: number of further cases.
        complete: number of cases with as many graded samples as most cases have, or more.
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
"""Of every case that `activation` makes, and the type of its assertion."""


class SkillShares(Struct, frozen=True):
    """How well the queries of one skill are distinguished from all others.

    Attributes:
        true_positives, false_positives: queries that loaded it, rightly and wrongly.
        false_negatives, true_negatives: queries that did not load it, wrongly and rightly.
        precision, recall, f1: None where they are undefined.
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
    """How many queries that should load `expected` loaded `loaded`; None: no skill."""

    expected: str | None
    loaded: str | None
    queries: int


class Activation(Struct, frozen=True):
    """What the queries of a suite came to with one target and variant, each query counted once.

    A query with several samples loads a skill if at least half of its judged samples did.

    Attributes:
        judged, errored, not_run: numbers of queries; those that were not judged are in no share.
        right: queries that loaded what they should, and nothing else.
        skills: the measures of each skill.
        confusion: cells above 0. A query that loaded several skills is in the cell of each.
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
        """All of them."""
        return self.judged + self.errored + self.not_run


class GateResult(Struct, frozen=True):
    """What a gate came to.

    Attributes:
        gate: `corrected`: the corrected pass rate; `judge`: how well the judge agrees with people; `activation`: how
            well the queries of each skill are distinguished.
        why: what was found, and what is required.
        warning: what speaks against a gate that passed.
        failed: failed cases whose verdicts it decides instead.
    """

    gate: Literal["corrected", "judge", "activation"]
    suite: str
    passed: bool
    why: str
    warning: str | None = None
    failed: int = 0

    @property
    def title(self) -> str:
        """What it decides by."""
        return "corrected pass rate" if self.gate == "corrected" else self.gate


Cut = Literal["fail-fast", "max-errors", "decided"]
"""Reasons to stop a run because of its results: the cases that ran are not a random part of all."""

_INTERVALS = ("pass_rate_interval", "pass_rate_interval_of_all", "rule_pass_rate_interval", "mean_score_interval")
_GROUPED = ("by_suite", "by_target", "by_prompt", "by_tag")


class PartialRun(Struct, frozen=True):
    """A run of a part of its suites.

    Attributes:
        cases, trials: how many were selected.
        of, of_trials: number of cases and of trials of the whole suites.
        why: names of the options that selected them, without dashes.
    """

    cases: int
    of: int
    why: tuple[str, ...]
    trials: int
    of_trials: int

    @property
    def badge(self) -> str:
        """`1 of 12 cases`; `12 of 24 trials` if all cases ran, with some of the prompts or variants."""
        if self.cases < self.of:
            return f"{self.cases:,} of {plural(self.of, 'case', ',')}"
        return f"{self.trials:,} of {plural(self.of_trials, 'trial', ',')}"


class CaseRule(Struct, frozen=True):
    """How the samples of a case become its verdict, where all cases have the same rule."""

    repeat: int
    aggregate: Aggregate
    threshold: float


class Summary(Struct, frozen=True, omit_defaults=True):
    """The totals of a run. `summary.json` has the fields in this order, those with a default where they differ from it.

    Attributes:
        cases: distinct cases; one passes if it passes with every target, prompt and variant.
        pass_rate: the mean over cases of the share of their judged samples that passed, each case with each target,
            prompt and variant counted once; where its samples could end early, of an unbiased estimate of its rate
            (`stats.stopped`). A case without a judged sample is not counted. None where none was judged.
        judged: how many samples that is the rate of; where samples could end early, how many cases.
        pass_rate_interval: its 95 % interval (`stats.design_effect`), by the clusters that `interval_clusters` counts;
            None where none was judged, or where several samples are a single cluster.
        pass_rate_bounds: what the rate would be if all errored samples had failed, and if all had passed, over all
            cases with a judged or an errored sample.
        pass_rate_interval_of_all: the 95 % interval of the pass rate of all cases that `--sample` drew these from; None
            where it drew none, and where a case has several results or samples that end early.
        interval_clusters: how many clusters the judged samples form; None where none was judged.
        clustered_by: what forms them: `case`, `conversation_id`, or the key of `cluster`; several where suites differ.
        rule_pass_rate: passed cases / judged cases, by the rule for several samples; None where no case has several.
        rule_pass_rate_interval, rule_pass_rate_bounds: as those of `pass_rate`.
        rule_judged: number of results that `rule_pass_rate` is of, where a case has several: of targets, prompts or
            variants.
        rule: the rule, where all cases with several samples have one and the same.
        mean_score: the mean over cases of the mean score of their judged samples; None where none was judged, and where
            samples of a case could end early. So it is in each group.
        mean_score_interval: its 95 % interval, by the same clusters.
        cost_usd, judge_cost_usd, user_cost_usd: of targets, judges and simulated users, US dollars; None where no call
            said its price.
        token_usage, judge_token_usage, user_token_usage: of the same.
        budget: what became of it; None: there was none.
        against: what the run shows against an earlier one, where it was to end when that is decided; None: it was not.
        cut: what ended the run by how its cases ended, before all of them ran; no interval of its rates holds then.
        early_stops: how cases ended whose samples may end early; None if no case has such samples.
        partial: which part of the suites ran; None: all of them.
        duration_ms: of all processes of the run together, without the time between them.
        processes: how many there were: 1, and one more each time that it was resumed.
        unpriced_trials, judge_unpriced_trials, user_unpriced_trials: trials whose calls reported tokens but no price;
            the costs exclude them.
        matrix: targets, prompts and variants side by side; None: there is one of each.
        samples: totals of the cases with several samples, without those whose samples may end early; None if no case
            has several.
        held_back: trials that did not run because a dependency did not pass.
        judges: names of the judges that graded.
        gates: what decided the run beside the verdicts of its cases; labels are those from before it began.
        activation: which skills the queries of `activation` loaded.
        corrected: what labels say of its rates, when it is shown; never stored. None: no judge graded.
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
        """What all calls cost, those of judges and users too, US dollars; None if no price is known."""
        return total_cost(self.cost_usd, self.judge_cost_usd, self.user_cost_usd)

    @property
    def unpriced(self) -> int:
        """How many trials have calls without a price, at least."""
        return max(self.unpriced_trials, self.judge_unpriced_trials, self.user_unpriced_trials)

    def cut_short(self, cut: Cut) -> Summary:
        """The totals of a run that ended by how its cases ended: no ordinary interval holds for it."""
        groups = {name: {key: group.cut_short() for key, group in getattr(self, name).items()} for name in _GROUPED}
        without = dict.fromkeys(_INTERVALS)
        matrix = None if self.matrix is None else self.matrix.cut_short()
        return replace(self, cut=cut, matrix=matrix, **without, **groups)

    def as_json(self) -> dict[str, Json]:
        """The object of `summary.json`."""
        return {"schema_version": SCHEMA_VERSION, **to_builtins(self)}
