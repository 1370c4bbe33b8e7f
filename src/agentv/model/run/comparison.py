"""Comparison of two runs of the same cases, or of parts of one run: results per case, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.run.grade import TOLERANCE
from agentv.model.run.matrix import (
    CaseUsage,
    ComparedMeasure,
    Dimension,
    Interval,
    MatrixComparison,
    Measure,
    UsageDifference,
    Verdict,
    Withheld,
)
from agentv.model.run.trial import Status
from agentv.model.suite.suite import Aggregate

Errored = Literal["bounds", "fail", "drop"]
"""How errored samples count: `bounds`: a verdict must hold whether they would have failed or passed; `fail`: as failed,
in both runs; `drop`: cases with errored samples are left out."""

Requirement = Literal["better", "non-inferior", "not-worse"]
"""The verdict that is required of a candidate; `not-worse`: anything except `worse`."""

Change = Literal["input", "checks", "threshold", "text"]
"""What differs in an edited case, as far as rows show; `text`: something that is not in the rows."""

Loss = Literal["failed", "errored", "skipped", "shown", "missing"]
"""Result in the candidate of a case that passed in the base; `missing`: the candidate lacks the case."""


Fill = Literal[0, 1]
"""Score that an errored sample is assumed to have had."""


class CaseKey(NamedTuple):
    """Identity of a case in a run: suite, case, target, prompt and variant.

    Attributes:
        suite: name of the suite, with its file if a run has several suites of that name.
        prompt: None if the case has its own input.
    """

    suite: str
    case_id: str
    prompt: str | None
    target: str
    variant: str | None = None


class CaseOutcome(Struct, frozen=True):
    """Result of one case in one run.

    Attributes:
        status: the verdict over all samples.
        score: mean over the graded samples, 0..1; None if none was graded, or one did not run. In a pair of which one
            side was sampled until decided: 1 if the case passed, else 0, because stopping early biases the mean.
        rate: share of the graded samples that passed; None in the same cases as `score`.
        samples: number of graded samples.
        text, input, checks: hashes of everything authored for the case, of its input, and of its checks. The first
            shows that the case was edited, the others what was changed.
        cluster: the cluster that it belongs to, such as its conversation; None if none exists.
        places: byte offsets of its rows in the run's `index.jsonl`.
        repeat: number of planned samples; the maximum if `alpha` is set.
        alpha: error rate of sampling until decided; None if all samples ran.
        usage: mean usage of a graded sample.
    """

    status: Status
    score: float | None
    samples: int
    threshold: float
    text: int
    input: int
    checks: int
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    places: tuple[int, ...] = ()
    repeat: int = 1
    aggregate: Aggregate = "mean"
    alpha: float | None = None
    rate: float | None = None
    usage: CaseUsage = CaseUsage()

    @property
    def missing(self) -> int:
        """Number of samples that errored, or did not run because another errored."""
        return max(0, self.repeat - self.samples) if self.status == "errored" else 0

    def filled(self, value: Fill) -> CaseOutcome:
        """Return the case as if each errored sample had scored `value`, and failed or passed accordingly."""
        if self.status != "errored":
            return self
        score, rate = (
            (self.samples * (one or 0.0) + self.missing * value) / max(self.repeat, self.samples)
            for one in (self.score, self.rate)
        )
        return replace(self, status="passed" if value else "failed", score=score, rate=rate)

    @property
    def judged(self) -> bool:
        """Whether it has a verdict and a score."""
        return self.status in ("passed", "failed") and self.score is not None


class CasePair(Struct, frozen=True):
    """A case that was graded in both runs."""

    before_key: CaseKey
    after_key: CaseKey
    before: CaseOutcome
    after: CaseOutcome

    @property
    def delta(self) -> float:
        """The candidate's score minus the base's, -1..1; exactly 0 if they differ only by rounding."""
        delta = (self.after.score or 0.0) - (self.before.score or 0.0)
        return delta if abs(delta) > TOLERANCE else 0.0

    @property
    def fixed(self) -> bool:
        """Whether the case failed and now passes."""
        return (self.before.status, self.after.status) == ("failed", "passed")

    @property
    def broken(self) -> bool:
        """Whether the case passed and now fails."""
        return (self.before.status, self.after.status) == ("passed", "failed")

    @property
    def rates(self) -> tuple[float, float]:
        """Shares of samples that passed, before and after; with sampling until decided, the verdicts as 1 or 0."""
        if self.by_verdict:
            return float(self.before.status == "passed"), float(self.after.status == "passed")
        return self.before.rate or 0.0, self.after.rate or 0.0

    @property
    def comparable(self) -> bool:
        """Whether both sides have a score, even if some of their samples errored."""
        return self.before.score is not None and self.after.score is not None

    @property
    def errored(self) -> bool:
        """Whether the case errored in one of the runs."""
        return "errored" in (self.before.status, self.after.status)

    def filled(self, before: Fill, after: Fill) -> CasePair:
        """Return the pair as if errored samples had scored these values."""
        if not self.errored:
            return self
        return replace(self, before=self.before.filled(before), after=self.after.filled(after))

    @property
    def by_verdict(self) -> bool:
        """Whether verdicts are compared instead of mean scores, because one side was sampled until decided."""
        return self.before.alpha is not None or self.after.alpha is not None

    @property
    def moved(self) -> bool:
        """Whether the score or the verdict changed."""
        return self.delta != 0.0 or self.before.status != self.after.status

    @property
    def outcome(self) -> Literal["win", "loss", "tie"]:
        """Outcome for the candidate, by score."""
        return "win" if self.delta > 0 else "loss" if self.delta < 0 else "tie"


class SampleEvidence(Struct, frozen=True):
    """Answer and result of one sample of a case that moved."""

    status: Status
    score: float | None
    output: str | None
    sample: int
    repeat: int


class CheckChange(Struct, frozen=True):
    """An assertion whose result differs between the runs.

    Attributes:
        before, after: its scores; None if it errored or did not exist.
        passed_before, passed_after: its verdicts; None likewise.
        evidence: evidence from the candidate's answer.
    """

    name: str
    type: str
    before: float | None
    after: float | None
    passed_before: bool | None
    passed_after: bool | None
    evidence: str | None = None


class MovedCase(Struct, frozen=True):
    """A case whose score or verdict changed, with the samples that show the change best."""

    pair: CasePair
    before: SampleEvidence
    after: SampleEvidence
    changes: tuple[CheckChange, ...] = ()


class Level(Struct, frozen=True):
    """Totals of one run over the compared cases.

    Attributes:
        score: mean score.
        passed: number of cases that passed, over all their samples.
        rate: mean share of samples that passed.
    """

    score: float
    passed: int
    rate: float


class Moves(Struct, frozen=True):
    """Numbers of cases that changed, by direction.

    Attributes:
        wins, losses, ties: numbers of cases by score.
        fixed, broken: numbers of cases that now pass, and that now fail.
        same_rule: whether both runs decided verdicts by the same rule; if not, fixed and broken cases are not reported.
    """

    wins: int
    losses: int
    ties: int
    fixed: int
    broken: int
    same_rule: bool = True


class MeasureResult(Struct, frozen=True):
    """Result of a comparison by one measure.

    Attributes:
        delta: mean difference, candidate minus base, -1..1.
        interval: confidence interval of `delta` at `level`, for this measure alone.
        p: two-sided p-value, corrected for the measures and comparisons that are tested together; it decides.
        p_of_claim: p-value of the verdict, tested at the margin; corrected likewise.
        level: confidence level of the interval: 1 - alpha.
        tests: number of tests that `p` is corrected for.
        plain: Student's t interval of the same differences, which makes no allowance for kinds of cases that were not
            sampled; None with only one cluster.
        bounds: the difference if all errored samples of the candidate had failed and those of the base had passed, and
            the other way round; None without errors.
    """

    measure: Measure
    delta: float
    interval: Interval
    p: float
    p_of_claim: float
    verdict: Verdict
    level: float
    tests: int = 1
    plain: Interval | None = None
    bounds: Interval | None = None


class Judgement(Struct, frozen=True):
    """Statistical result of one comparison.

    Attributes:
        pairs: number of compared pairs: a case with two targets gives two.
        cases: number of distinct cases in them.
        clusters: number of independent clusters; equal to `pairs` if all of them are independent.
        score: result for the mean score, or for the pass rate if every pair is compared by its verdicts.
        rate: result for the pass rate; None if every score moved exactly as its verdict did, so that both are one
            measure, or if the rates of the two runs cannot be compared.
        verdict: verdict of both measures; inconclusive if one is better and the other worse.
        shown_by: the measures that show the verdict; empty if it is inconclusive.
        tested: number of tests that their p-values are corrected for.
        detectable: for an inconclusive comparison, the smallest difference in either direction that this many such
            cases show with 80% power; inf if none. None for other verdicts, or if no plan was requested.
        needed: number of such cases that would show the observed difference with 80% power; None likewise, or if it is
            unrealistically large, or if the difference is more likely due to chance.
        rates_compare: whether both runs decided verdicts by the same rule.
        errored: number of cases with an errored sample, including those that could not be compared at all.
        withheld: why the verdict that the graded cases show is not given.
        usage: differences in usage per case, for each known resource.
    """

    pairs: int
    cases: int
    clusters: int
    before: Level
    after: Level
    moves: Moves
    score: MeasureResult
    rate: MeasureResult | None
    verdict: Verdict
    shown_by: tuple[Measure, ...]
    tested: int = 1
    detectable: float | None = None
    needed: int | None = None
    rates_compare: bool = True
    errored: int = 0
    withheld: Withheld | None = None
    usage: tuple[UsageDifference, ...] = ()

    @property
    def measures(self) -> tuple[MeasureResult, ...]:
        """The deciding measures, one or two."""
        return (self.score,) if self.rate is None else (self.score, self.rate)

    @property
    def deciding(self) -> MeasureResult:
        """The measure by which the verdict is reported: the mean score, unless only the pass rate shows it."""
        if self.rate is not None and self.shown_by == ("pass rate",):
            return self.rate
        return self.score

    def between(self, by: Dimension, base: str, candidate: str) -> MatrixComparison:
        """Return the result for a matrix, with the names of both sides.

        The pass rate comes first if it can be compared. If scores moved exactly as verdicts did, the two measures were
        tested as one. If sampling may stop early, the share of passed cases is the only measure.
        """
        score, before, after = self.score, self.before, self.after
        found = [(score, before.score, after.score)]
        as_one = self.rate is None and self.rates_compare and score.measure == "mean score"
        if self.rate is not None or as_one:
            found.insert(0, (replace(self.rate or score, measure="pass rate"), before.rate, after.rate))
        return MatrixComparison(
            by,
            base,
            candidate,
            self.verdict,
            self.withheld,
            self.cases,
            self.pairs,
            self.clusters,
            self.errored,
            tuple(
                ComparedMeasure(one.measure, old, new, one.delta, one.interval, one.level, one.p, one.bounds)
                for one, old, new in found
            ),
            ("pass rate", "mean score") if as_one and self.shown_by else self.shown_by,
            passed=(before.passed, after.passed),
            usage=self.usage,
        )

    @property
    def p_of_claim(self) -> float:
        """The p-value of the verdict."""
        return self.deciding.p_of_claim

    @property
    def shown_worse(self) -> bool:
        """Whether a measure is shown to be worse, even if the other is better."""
        return self.verdict == "worse" or self.withheld == "measures"


class RunLabel(Struct, frozen=True):
    """Identification of a run, or of a part of it, in a comparison.

    Attributes:
        path: absolute path of its directory.
        targets: the compared targets.
        cases: number of cases.
        missing: number of planned cases without a row, because the run was interrupted or is in progress.
        variants: the compared variants; empty if the run has none.
        prompts: the compared prompt, if prompts of one run are compared.
    """

    run_id: str
    path: str
    targets: tuple[str, ...]
    cases: int = 0
    missing: int = 0
    variants: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()


class LeftOut(Struct, frozen=True):
    """Cases that are left out of a comparison, by reason.

    Attributes:
        only_base, only_candidate: cases that the other run lacks.
        edited: cases whose input or checks differ between the runs → what differs.
        errored, unfinished: cases that errored, or did not run, in one of the runs.
    """

    only_base: tuple[CaseKey, ...] = ()
    only_candidate: tuple[CaseKey, ...] = ()
    edited: Mapping[CaseKey, tuple[Change, ...]] = field(default_factory=dict)
    errored: tuple[CaseKey, ...] = ()
    unfinished: tuple[CaseKey, ...] = ()


class GroupComparison(Struct, frozen=True):
    """The comparison of one group of cases, such as a suite or a tag."""

    name: str
    judgement: Judgement


class ComparisonSettings(Struct, frozen=True):
    """Settings of a comparison.

    Attributes:
        margin: largest difference of the mean score that does not matter, 0..1.
        alpha: false-positive rate; intervals have confidence 1 - alpha.
        cluster: metadata key; cases with equal values are not independent.
        by: groups to also compare separately.
        edited: whether to include cases whose text differs.
        limit: number of moved cases to show.
        errored: how errored samples count.
        plan: whether to simulate how many cases would decide an inconclusive comparison.
    """

    margin: float = 0.0
    alpha: float = 0.05
    cluster: str | None = None
    by: Literal["suite", "tag", "target", "prompt", "variant"] | None = None
    edited: bool = False
    limit: int = 20
    errored: Errored = "bounds"
    plan: bool = False


_MEETS: Mapping[Requirement, frozenset[Verdict]] = {
    "better": frozenset({"better"}),
    "non-inferior": frozenset({"better", "equivalent", "non-inferior"}),
    "not-worse": frozenset({"better", "equivalent", "non-inferior", "inconclusive"}),
}


def meets(verdict: Verdict, requirement: Requirement) -> bool:
    """Whether a verdict meets a requirement."""
    return verdict in _MEETS[requirement]


class Comparison(Struct, frozen=True):
    """Comparison of a candidate with a base.

    Attributes:
        whole: result over all pairs; None if none exist.
        same: whether both are the same run.
        pairs: all compared cases, worst first.
        moved: the worst of the moved cases, with evidence.
        edited: number of included pairs whose text differs.
        lost: cases that passed in the base but not in the candidate, whether or not they are compared → their result in
            the candidate.
        notes: other differences between the runs, such as their judges.
    """

    base: RunLabel
    candidate: RunLabel
    question: ComparisonSettings
    whole: Judgement | None
    pairs: Sequence[CasePair]
    left_out: LeftOut
    groups: tuple[GroupComparison, ...] = ()
    moved: tuple[MovedCase, ...] = ()
    same: bool = False
    edited: int = 0
    notes: tuple[str, ...] = ()
    lost: Mapping[CaseKey, Loss] = field(default_factory=dict)

    @property
    def against_base(self) -> tuple[Comparison, ...]:
        """The comparisons of candidates with the base, which is only this one."""
        return (self,)

    def meets(self, requirement: Requirement) -> bool:
        """Whether the verdict of the whole meets the requirement; groups only count in `shown_worse`."""
        return meets(self.whole.verdict if self.whole is not None else "inconclusive", requirement)

    @property
    def shown_worse(self) -> bool:
        """Whether the whole or a group is shown to be worse."""
        judged = [one.judgement for one in self.groups]
        return any(one.shown_worse for one in (*judged, *((self.whole,) if self.whole else ())))


class Matrix(Struct, frozen=True):
    """Pairwise comparisons of more than two runs.

    Attributes:
        comparisons: (index of the earlier run, index of the later one), in the order of the command → comparison; the
            p-values are corrected for the number of comparisons.
        scores: case → its score in each run, or None; only cases whose scores differ, largest difference first.
        omitted: number of such cases that are not in `scores`.
    """

    runs: tuple[RunLabel, ...]
    comparisons: Mapping[tuple[int, int], Comparison]
    scores: Mapping[CaseKey, tuple[float | None, ...]]
    omitted: int = 0

    @property
    def against_base(self) -> tuple[Comparison, ...]:
        """The comparisons of all candidates with the base, the first run of the command."""
        return tuple(one for (base, _), one in self.comparisons.items() if base == 0)


class RunComparison(Struct, frozen=True):
    """Comparison of the parts of one run, each with the first part that has cases in common with it.

    Attributes:
        tests: number of tests that p-values and intervals are corrected for.
        lost: for each comparison, the cases that passed with the base but not with the candidate.
    """

    run: RunLabel
    question: ComparisonSettings
    comparisons: tuple[MatrixComparison, ...]
    tests: int = 1
    lost: tuple[Mapping[CaseKey, Loss], ...] = ()

    @property
    def graded(self) -> bool:
        """Whether every comparison has a verdict."""
        return all(one.verdict is not None for one in self.comparisons)

    @property
    def shown_worse(self) -> bool:
        """Whether a part is shown to be worse than its base."""
        return any(one.verdict == "worse" or one.withheld == "measures" for one in self.comparisons)

    def meets(self, requirement: Requirement) -> bool:
        """Whether every verdict meets the requirement."""
        return all(meets(one.verdict, requirement) for one in self.comparisons if one.verdict is not None)
