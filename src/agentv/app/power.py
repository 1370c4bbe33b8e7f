"""`agentv power`: what a planned comparison of two runs can show; what an earlier run tells of its noise."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentv.errors import UsageError
from agentv.model.trial import TrialResult
from agentv.stats.classification import Measured
from agentv.stats.clustered import MeanInterval, mean_interval
from agentv.stats.flakiness import mean_disagreement
from agentv.stats.planning import LEAST_CASES, USUAL_CASES, Assumed, Plan
from agentv.stats.proportion import USUAL
from agentv.stats.unseen import alike_interval
from agentv.stats.variance import Noise, split

BOUNDS = (0.0, 1.0)
"""Of a score."""
NO_WIDTH = 1e-9
"""Of an interval: less is rounding."""


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """What a person wrote. None: not written.

    Attributes:
        earlier: a run that the rate and its spread are taken from: an id, a directory, or `last`.
        detect: the drop of the pass rate that matters.
    """

    cases: int | None = None
    repeat: int | None = None
    detect: float | None = None
    rate: float | None = None
    alike: float | None = None
    shared: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    earlier: str | None = None


@dataclass(frozen=True, slots=True)
class Pilot:
    """What an earlier run tells.

    Attributes:
        cases: with a judged sample. Those of a conversation are one, and so is a case on several targets or prompts:
            `compare` counts them as one.
        repeat: the most samples that a case had on one target.
        passed, judged: trials; where none passed, or all, the rate is not planned with.
        mean: of the scores of its trials; samples of a case are one cluster.
        disagreement: the chance that two samples of a case disagree; None where no case had two.
        verdicts, scores: where their noise comes from. The scores are those of single votes where a judge gave several.
    """

    run_id: str
    cases: int
    repeat: int
    passed: int
    judged: int
    mean: MeanInterval
    disagreement: Measured | None
    verdicts: Noise
    scores: Noise

    @property
    def rate(self) -> float | None:
        """The share that passed; None where all did, or none: cases cannot show that there is no noise."""
        return self.passed / self.judged if 0 < self.passed < self.judged else None

    @property
    def nearest_rate(self) -> float:
        """Where all passed, or none, what to assume: as if half of one more case had ended otherwise."""
        return (self.cases + 0.5) / (self.cases + 1) if self.passed else 0.5 / (self.cases + 1)

    @property
    def alike(self) -> float | None:
        """How much of the variance of verdicts lies between the cases; None where the run does not tell."""
        between, within = self.verdicts.cases, self.verdicts.target
        if between is None or within is None or between + within == 0:
            return None
        return between / (between + within)


Source = Literal["given", "run", "assumed"]


@dataclass(frozen=True, slots=True)
class Planned:
    """What is planned, and what it stands on.

    Attributes:
        cases_given: someone said how many cases there will be; else they are the pilot's, or a usual number.
        rate_from, alike_from: where the pass rate, and the part of its variance between cases, come from.
    """

    plan: Plan
    detect: float | None
    pilot: Pilot | None
    cases_given: bool
    rate_from: Source
    alike_from: Source


def plan(asked: PlanAsked) -> Planned:
    """Fill in what was not said.

    Raises:
        UsageError: what is asked for cannot be planned, or the earlier run cannot be used.
        StoreError: its files cannot be read.
    """
    _check(asked)
    pilot = None if asked.earlier is None else _pilot(asked.earlier)
    usual = Assumed()
    guessed = usual.rate if pilot is None or pilot.rate is not None else pilot.nearest_rate
    rate, rate_from = _first(asked.rate, pilot.rate if pilot else None, guessed)
    alike, alike_from = _first(asked.alike, pilot.alike if pilot else None, usual.alike)
    shared = usual.shared if asked.shared is None else asked.shared
    if asked.detect is not None and asked.detect > rate:
        raise UsageError(
            f"--detect {asked.detect:g}: a pass rate of {rate:g} cannot drop by so much",
            f"at most by {rate:g}; of a rise, --rate is the rate after it: it is seen as often as a drop from there",
        )
    cases = asked.cases or (pilot.cases if pilot else USUAL_CASES)
    repeat = asked.repeat or (pilot.repeat if pilot else 1)
    planned = Plan(cases, repeat, Assumed(rate, alike, shared, asked.alpha, asked.power))
    sized = asked.cases is not None or pilot is not None
    return Planned(planned, asked.detect, pilot, sized, rate_from, alike_from)


def _first(given: float | None, found: float | None, guessed: float) -> tuple[float, Source]:
    """What a person says goes before what a run shows, and that before a guess."""
    if given is not None:
        return given, "given"
    return (guessed, "assumed") if found is None else (found, "run")


def _check(asked: PlanAsked) -> None:
    if asked.detect is not None and not 0 < asked.detect < 1:
        near = f"did you mean {asked.detect / 100:g}?" if 1 < asked.detect < 100 else "such as 0.05, five points in 100"
        raise UsageError(f"--detect {asked.detect:g}: a drop of the pass rate lies between 0 and 1", near)
    if asked.cases is not None and asked.cases < LEAST_CASES:
        raise UsageError(f"--cases {asked.cases}: a comparison needs {LEAST_CASES} cases at least")
    for name, share in (("rate", asked.rate), ("alpha", asked.alpha), ("power", asked.power)):
        if share is not None and not 0 < share < 1:
            raise UsageError(f"--{name} {share:g}: it lies between 0 and 1, both left out")
    if asked.power <= asked.alpha:
        raise UsageError(f"--power {asked.power:g}: it lies above --alpha, which is {asked.alpha:g}")


def _pilot(named: str) -> Pilot:
    from agentv.app.results.stored import open_run

    run = open_run(named, doing="plan from")
    judged = []
    for result in run.results():
        _refuse_early_ends(result, run.run_id)
        if result.status in ("passed", "failed"):
            judged.append(_Judged.of(result))
    clusters = [one.cluster for one in judged]
    if (cases := len(set(clusters))) < LEAST_CASES:
        found = "no trial of it was judged" if not judged else "it has one case, which does not tell how cases differ"
        raise UsageError(f"nothing can be planned from {run.run_id}: {found}", "take a run of two cases at least")
    votes = [vote for one in judged for vote in one.votes] or [(one.case, one.sample, one.score) for one in judged]
    return Pilot(
        run_id=run.run_id,
        cases=cases,
        repeat=max(one.sample for one in judged),
        passed=sum(one.passed for one in judged),
        judged=len(judged),
        mean=_mean([one.score for one in judged], clusters),
        disagreement=mean_disagreement(_counted(judged)),
        verdicts=split((one.case, one.sample, float(one.passed)) for one in judged),
        scores=split(votes),
    )


def _refuse_early_ends(result: TrialResult, run_id: str) -> None:
    """Samples that end as soon as they look good, or bad, have a mean that lies off the truth."""
    if result.trial.alpha is not None and result.trial.repeat > 1:
        raise UsageError(
            f"nothing can be planned from {run_id}: its samples ended as soon as a case was decided (until: decided),"
            " so that its rates and their noise lie off the truth",
            "take a run with a fixed repeat",
        )


def _mean(scores: Sequence[float], clusters: Sequence[Hashable]) -> MeanInterval:
    """With an interval that has a width where all cases have one mean too: spread that did not show is not none."""
    found = mean_interval(scores, clusters, bounds=BOUNDS)
    if found.high - found.low > NO_WIDTH:
        return found
    return MeanInterval(found.mean, *alike_interval(found.mean, found.clusters, USUAL, BOUNDS), found.clusters)


def _counted(judged: Iterable[_Judged]) -> list[tuple[int, int]]:
    """Of each case how many samples were judged, and how many of them passed."""
    counted: dict[tuple[object, ...], list[int]] = {}
    for one in judged:
        count = counted.setdefault(one.case, [0, 0])
        count[0] += 1
        count[1] += one.passed
    return [(samples, passed) for samples, passed in counted.values()]


Vote = tuple[tuple[object, ...], int, float]


@dataclass(frozen=True, slots=True)
class _Judged:
    """Of a judged trial what its noise is reckoned from; a million of them fit."""

    case: tuple[object, ...]
    cluster: tuple[object, ...]
    sample: int
    passed: bool
    score: float
    votes: tuple[Vote, ...]

    @classmethod
    def of(cls, result: TrialResult) -> _Judged:
        trial = result.trial
        case = (trial.suite.path, trial.suite.name, trial.case.id, trial.case.prompt_id, trial.target.name)
        cluster = (trial.suite.path, trial.suite.name, trial.case.conversation_id or trial.case.id)
        votes = tuple(_votes(result, case))
        return cls(case, cluster, trial.sample, result.status == "passed", result.score or 0.0, votes)


def _votes(result: TrialResult, case: tuple[object, ...]) -> Iterator[Vote]:
    """The votes of judges that gave several: each assertion is a case of its own."""
    for number, score in enumerate(result.scores):
        votes = score.grade.details.get("votes")
        if isinstance(votes, Iterable) and not isinstance(votes, str):
            for vote in votes:
                if isinstance(vote, int | float):
                    yield (*case, number), result.trial.sample, float(vote)
