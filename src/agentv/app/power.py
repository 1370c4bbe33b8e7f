"""`agentv power`: what a planned comparison of two runs can show, and the noise of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from statistics import stdev
from sys import intern

from msgspec import Struct

from agentv.errors import UsageError
from agentv.model.run.cases import TrialCluster, cluster_of
from agentv.model.run.trial import TrialResult
from agentv.reports.power import PilotShown, PlanShown, Source
from agentv.stats.intervals.means import MeanInterval
from agentv.stats.power import LEAST_CASES, USUAL_CASES, Assumptions, ComparisonPlan, Noise, split
from agentv.stats.samples.case_samples import mean_disagreement

MAX_DEVIATION_SHARE = 0.98
"""Largest standard deviation taken from a run, as a share of the maximum for the mean, which `--rate` may change."""
DEFAULT_CORRELATION = 0.3
"""Intra-cluster correlation to assume if it is not known."""


class PlanRequest(Struct, frozen=True):
    """Options of `agentv power`; None means not given.

    Attributes:
        earlier: the run to take the rate and its noise from: an id, a directory, or `last`.
        detect: smallest difference of the pass rate or mean score to detect.
        margin: loss that is ignored; without `detect`, plan for non-inferiority.
        cluster_size, icc: cases per cluster, and their intra-cluster correlation.
        deviation: standard deviation of a score; plan for scores instead of verdicts.
    """

    cases: int | None = None
    repeat: int | None = None
    detect: float | None = None
    rate: float | None = None
    alike: float | None = None
    shared: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    margin: float | None = None
    cluster_size: int | None = None
    icc: float | None = None
    deviation: float | None = None
    earlier: str | None = None


class Pilot(PilotShown, frozen=True):
    """Estimates from an earlier run, including those that are not shown.

    Attributes:
        clusters: number of clusters of dependent cases.
        correlation: within clusters; None if no cluster has two cases.
        deviation: standard deviation of the trials' scores; None if every score is a verdict or all are equal.
        pass_rate: as reported; not used if no trial passed, or all did.
        verdicts: variance components of the verdicts.
    """

    clusters: int
    correlation: float | None
    deviation: float | None
    pass_rate: float
    verdicts: Noise

    @property
    def rate(self) -> float | None:
        """The pass rate or mean score; None if no trial or all trials passed, which does not prove a rate of 0 or 1."""
        if self.deviation is not None:
            return self.mean.mean
        passed, judged = self.trials
        return self.pass_rate if 0 < passed < judged else None

    @property
    def assumed_rate(self) -> float:
        """The rate to assume if all or none passed: as if half of one additional case had had the other result."""
        return (self.cases + 0.5) / (self.cases + 1) if self.trials[0] else 0.5 / (self.cases + 1)

    @property
    def alike(self) -> float | None:
        """Share of the variance of verdicts that is between cases; None if the run does not show it."""
        noise = self.verdicts if self.deviation is None else self.scores
        between, within = noise.cases, noise.target
        if between is None or within is None or between + within == 0:
            return None
        return between / (between + within)


def plan(request: PlanRequest) -> PlanShown:
    """Plan a comparison, taking options that were not given from the earlier run or from defaults.

    Raises:
        UsageError: the request cannot be planned, or the earlier run cannot be used.
        StoreError: its files cannot be read.
    """
    _check(request)
    pilot = None if request.earlier is None else _pilot(request.earlier)
    usual = Assumptions()
    guessed = usual.rate if pilot is None or pilot.rate is not None else pilot.assumed_rate
    rate, rate_from = _preferred(request.rate, pilot.rate if pilot else None, guessed)
    alike, alike_from = _preferred(request.alike, pilot.alike if pilot else None, usual.alike)
    shared = usual.shared if request.shared is None else request.shared
    if request.detect is not None and request.detect > max(rate, 1 - rate):
        what = f"--detect {request.detect:g}: a pass rate of {rate:g} cannot drop or rise that far"
        raise UsageError(what, f"the maximum is {max(rate, 1 - rate):g}")
    cases = request.cases or (pilot.cases if pilot else USUAL_CASES)
    repeat = request.repeat or (pilot.repeat if pilot else 1)
    most = (rate * (1 - rate)) ** 0.5  # of scores that are all 0 or 1
    deviation = request.deviation
    if deviation is not None and not 0 < deviation < most:
        raise UsageError(
            f"scores with the mean {rate:g} cannot have the standard deviation {deviation:g}",
            f"--deviation below {most:.3g}",
        )
    if deviation is None and pilot is not None and pilot.deviation is not None:
        deviation = min(pilot.deviation, MAX_DEVIATION_SHARE * most)
    size = request.cluster_size
    if size is None:
        size = 1 if pilot is None else round(pilot.cases / pilot.clusters)
    icc = request.icc
    if icc is None and pilot is not None:
        icc = pilot.correlation
    if icc is None:
        icc = DEFAULT_CORRELATION
    margin, correlation = request.margin or 0.0, icc if size > 1 else 0.0
    assumed = Assumptions(rate, alike, shared, request.alpha, request.power, margin, size, correlation, deviation)
    planned = ComparisonPlan(cases, repeat, assumed)
    sized = request.cases is not None or pilot is not None
    return PlanShown(planned, request.detect, pilot, rate_from, alike_from, sized)


def _preferred(given: float | None, found: float | None, guessed: float) -> tuple[float, Source]:
    """Return the given value, else the one found in a run, else the guess, with its source."""
    if given is not None:
        return given, "given"
    return (guessed, "assumed") if found is None else (found, "run")


def _check(request: PlanRequest) -> None:
    if request.detect is not None and not 0 < request.detect < 1:
        near = (
            f"did you mean {request.detect / 100:g}?"
            if 1 < request.detect < 100
            else "such as 0.05, 5 percentage points"
        )
        raise UsageError(f"--detect {request.detect:g}: must be between 0 and 1", near)
    if request.cases is not None and request.cases < LEAST_CASES:
        raise UsageError(f"--cases {request.cases}: a comparison needs at least {LEAST_CASES} cases")
    for name, share in (("rate", request.rate), ("alpha", request.alpha), ("power", request.power)):
        if share is not None and not 0 < share < 1:
            raise UsageError(f"--{name} {share:g}: must be above 0 and below 1")
    if request.margin is not None and not 0 < request.margin < 1:
        raise UsageError(f"--margin {request.margin:g}: must be between 0 and 1", "such as 0.05")
    if request.detect is not None and request.margin is not None and request.detect <= request.margin:
        what = f"--detect {request.detect:g} is not larger than --margin {request.margin:g}, the loss that is ignored"
        raise UsageError(what, "to plan for non-inferiority, omit --detect")
    if request.icc is not None and request.cluster_size is None and request.earlier is None:
        raise UsageError("--icc is the correlation within a cluster", "add the cluster size: --cluster-size 5")
    if request.power <= request.alpha:
        raise UsageError(f"--power {request.power:g}: must be above --alpha, which is {request.alpha:g}")


def _pilot(named: str) -> Pilot:
    from agentv.app.results.stored import open_run, refuse_decided
    from agentv.store.rows.reading import read_rows
    from agentv.store.totals.summary import PlannedCounts, summarize

    run = open_run(named, action="plan from")
    refuse_decided(run, "plan from")
    judged = []
    for result in run.results():
        if result.trial.alpha is not None and result.trial.repeat > 1:
            raise UsageError(
                f"cannot plan from {run.run_id}: it stopped sampling each case once decided (until: decided), so its "
                "rates and their noise are biased",
                "use a run with a fixed repeat",
            )
        if result.status in ("passed", "failed"):
            judged.append(_Judged.of(result))
    clusters = [one.cluster for one in judged]
    groups = len(set(clusters))
    if groups < LEAST_CASES:
        found = "no trial was graded" if not judged else "it has one case, so the variance between cases is unknown"
        raise UsageError(f"cannot plan from {run.run_id}: {found}", "use a run with at least two cases")
    totals = summarize(read_rows(run.index), run_id=run.run_id, planned=PlannedCounts(), duration_ms=0.0)
    votes = [vote for one in judged for vote in one.votes] or [(one.case, one.sample, one.score) for one in judged]
    counted: dict[tuple[object, ...], list[int]] = {}
    for one in judged:
        count = counted.setdefault(one.case, [0, 0])
        count[0] += 1
        count[1] += one.passed
    deviation = None  # each score is its verdict, or all are equal
    if any(one.score != one.passed for one in judged) and len(judged) >= LEAST_CASES:
        deviation = stdev(one.score for one in judged) or None
    return Pilot(
        run_id=run.run_id,
        cases=len({one.identity for one in judged}),
        clusters=groups,
        correlation=_correlation(judged),
        deviation=deviation,
        repeat=max(one.sample for one in judged),
        trials=(sum(one.passed for one in judged), len(judged)),
        pass_rate=totals.pass_rate or 0.0,
        mean=MeanInterval(totals.mean_score or 0.0, *(totals.mean_score_interval or (-inf, inf)), groups),
        disagreement=mean_disagreement([(samples, passed) for samples, passed in counted.values()]),
        verdicts=split((one.case, one.sample, float(one.passed)) for one in judged),
        scores=split(votes),
    )


def _correlation(judged: Sequence[_Judged]) -> float | None:
    """Return the intra-cluster correlation: the share of the variance of cases' means that is between clusters."""
    means: dict[tuple[object, ...], list[float]] = {}
    clusters = {}
    for one in judged:
        means.setdefault(one.identity, []).append(one.score)
        clusters[one.identity] = one.cluster
    noise = split(
        (clusters[case], number, sum(found) / len(found)) for number, (case, found) in enumerate(means.items())
    )
    if noise.cases is None or noise.target is None or noise.cases + noise.target <= 0:
        return None
    return noise.cases / (noise.cases + noise.target)


Vote = tuple[tuple[object, ...], int, float]


class _Judged(Struct, frozen=True):
    """The facts of a judged trial that its noise is computed from, small enough for a million trials."""

    case: tuple[object, ...]
    cluster: tuple[object, ...]
    sample: int
    passed: bool
    score: float
    votes: tuple[Vote, ...]

    @property
    def identity(self) -> tuple[object, ...]:
        """The case, regardless of its prompt, target and variant."""
        return self.case[:3]

    @classmethod
    def of(cls, result: TrialResult) -> _Judged:
        trial = result.trial
        names: tuple[str | None, ...]
        names = (trial.suite.path, trial.suite.name, trial.case.id, trial.case.prompt_id, trial.target.name)
        names = (*names, trial.variant_name) if trial.variant is not None else names
        case = tuple(one if one is None else intern(one) for one in names)
        kind, *parts = cluster_of(TrialCluster.of(trial))
        cluster = (kind, *map(intern, parts))
        votes = tuple(_votes(result, case))
        return cls(case, cluster, trial.sample, result.status == "passed", result.score or 0.0, votes)


def _votes(result: TrialResult, case: tuple[object, ...]) -> Iterator[Vote]:
    """Yield the votes of judges that voted several times, treating each assertion as its own case."""
    for number, score in enumerate(result.scores):
        votes = score.grade.details.get("votes")
        if isinstance(votes, Iterable) and not isinstance(votes, str):
            for vote in votes:
                if isinstance(vote, int | float):
                    yield (*case, number), result.trial.sample, float(vote)
