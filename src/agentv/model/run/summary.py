"""Totals of a run. Always computed from its rows, so they cannot disagree with them (SPEC section 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agentv.model.run.activation import Activation
from agentv.model.run.budget import BudgetUse
from agentv.model.run.gates import GateResult
from agentv.model.run.group_totals import Counts, GroupTotals, Interval
from agentv.model.run.labelled.corrected import CorrectedRates
from agentv.model.run.matrix import DIMENSIONS, RunMatrix
from agentv.model.run.samples import Samples
from agentv.model.run.sampling import EarlyStops
from agentv.model.run.sequential import SequentialComparison
from agentv.model.run.trial import SCHEMA_VERSION
from agentv.model.suite.suite import Aggregate
from agentv.model.values.formatting import plural
from agentv.model.values.usage import TokenUsage, total_cost
from agentv.model.values.values import Json

Cut = Literal["fail-fast", "max-errors", "decided"]
"""Reasons to stop a run because of its results: the cases that ran are not a random part of all."""

_GROUPED = ("by_suite", "by_target", "by_prompt", "by_tag")
_OF_THE_RULE = ("rule_judged", "rule_pass_rate", "rule_pass_rate_interval", "rule_pass_rate_bounds", "rule")


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


class Summary(Struct, frozen=True):
    """The totals of a run.

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
    judge_token_usage: TokenUsage | None = None
    unpriced_trials: int = 0
    judge_unpriced_trials: int = 0
    processes: int = 1
    pass_rate_bounds: Interval | None = None
    pass_rate_interval_of_all: Interval | None = None
    judged: int = 0
    interval_clusters: int | None = None
    clustered_by: tuple[str, ...] = ()
    rule_pass_rate: float | None = None
    rule_pass_rate_interval: Interval | None = None
    rule_pass_rate_bounds: Interval | None = None
    rule_judged: int | None = None
    rule: CaseRule | None = None
    mean_score_interval: Interval | None = None
    by_suite: Mapping[str, GroupTotals] = field(default_factory=dict)
    by_target: Mapping[str, GroupTotals] = field(default_factory=dict)
    by_prompt: Mapping[str, GroupTotals] = field(default_factory=dict)
    by_tag: Mapping[str, GroupTotals] = field(default_factory=dict)
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
        without = {
            "pass_rate_interval": None,
            "pass_rate_interval_of_all": None,
            "rule_pass_rate_interval": None,
            "mean_score_interval": None,
        }
        matrix = None if self.matrix is None else self.matrix.cut_short()
        return replace(self, cut=cut, matrix=matrix, **without, **groups)

    def as_json(self) -> dict[str, Json]:
        """The object of `summary.json`, always with its keys in the same order; some only where they are known."""
        found = to_builtins(self)
        for name in ("held_back", "judges", "gates", "activation", "by_variant", "user_unpriced_trials"):
            if not found[name]:
                del found[name]
        for name in (
            "pass_rate_interval_of_all",
            "samples",
            "budget",
            "early_stops",
            "against",
            "cut",
            "matrix",
            "partial",
            "corrected",
            "user_cost_usd",
            "user_token_usage",
        ):
            if found[name] is None:
                del found[name]
        groups = (group for name in _GROUPED for group in found.get(name, {}).values())
        for one in (found, *groups, *_totals_in(found.get("matrix") or {})):
            for name in _OF_THE_RULE:
                if one.get(name, 0) is None:
                    del one[name]
        return {"schema_version": SCHEMA_VERSION, **found}


def _totals_in(matrix: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The totals of the cells and groups of a matrix, as objects."""
    return (one["totals"] for name in ("cells", *(f"by_{by}" for by in DIMENSIONS)) for one in matrix.get(name, ()))
