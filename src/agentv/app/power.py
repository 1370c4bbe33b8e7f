"""`agentv power`: what a planned comparison of two runs can show; what an earlier run tells of its noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from agentv.errors import UsageError
from agentv.model.trial import TrialResult
from agentv.stats.classification import Measured
from agentv.stats.clustered import MeanInterval, mean_interval
from agentv.stats.flakiness import mean_disagreement
from agentv.stats.planning import LEAST_CASES, USUAL_CASES, Assumed, Plan
from agentv.stats.variance import Noise, split

SURE = 0.01
"""How near an assumed pass rate may come to 0 and 1: at the ends there would be no noise at all."""


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """What a person wrote. None: not written.

    Attributes:
        earlier: a run that the rate and its spread are taken from: an id, a directory, or `last`.
        detect: the difference of pass rates that matters.
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
        cases: with a judged sample, each on one target.
        repeat: the most samples that one of them had.
        mean: of the scores of its trials; samples of a case are one cluster.
        disagreement: the chance that two samples of a case disagree; None where no case had two.
        verdicts, scores: where their noise comes from. The scores are those of single votes where a judge gave several.
    """

    run_id: str
    cases: int
    repeat: int
    rate: float
    mean: MeanInterval
    disagreement: Measured | None
    verdicts: Noise
    scores: Noise


@dataclass(frozen=True, slots=True)
class Planned:
    """What is planned, and what it stands on.

    Attributes:
        cases_given: someone said how many cases there will be; else they are the pilot's, or a usual number.
    """

    plan: Plan
    detect: float | None
    pilot: Pilot | None
    cases_given: bool


def plan(asked: PlanAsked) -> Planned:
    """Fill in what was not said.

    Raises:
        UsageError: what is asked for cannot be planned, or the earlier run cannot be used.
        StoreError: its files cannot be read.
    """
    _check(asked)
    pilot = None if asked.earlier is None else _pilot(asked.earlier)
    assumed = Assumed(alpha=asked.alpha, power=asked.power)
    if pilot is not None:
        assumed = replace(assumed, rate=min(max(pilot.rate, SURE), 1 - SURE), alike=_alike(pilot.verdicts, assumed))
    given = {name: getattr(asked, name) for name in ("rate", "alike", "shared") if getattr(asked, name) is not None}
    assumed = replace(assumed, **given)
    if asked.detect is not None and asked.detect > max(assumed.rate, 1 - assumed.rate):
        raise UsageError(
            f"--detect {asked.detect:g}: a pass rate of {assumed.rate:g} cannot change by so much",
            f"at most by {max(assumed.rate, 1 - assumed.rate):g}; --rate says what pass rate is expected",
        )
    cases = asked.cases or (pilot.cases if pilot else USUAL_CASES)
    repeat = asked.repeat or (pilot.repeat if pilot else 1)
    planned = Plan(max(cases, LEAST_CASES), repeat, assumed)
    return Planned(planned, asked.detect, pilot, asked.cases is not None or pilot is not None)


def _check(asked: PlanAsked) -> None:
    if asked.detect is not None and not 0 < asked.detect < 1:
        near = f"did you mean {asked.detect / 100:g}?" if 1 < asked.detect < 100 else "such as 0.05, five points in 100"
        raise UsageError(f"--detect {asked.detect:g}: a difference of pass rates lies between 0 and 1", near)
    if asked.cases is not None and asked.cases < LEAST_CASES:
        raise UsageError(f"--cases {asked.cases}: a comparison needs {LEAST_CASES} cases at least")
    for name, share in (("rate", asked.rate), ("alpha", asked.alpha), ("power", asked.power)):
        if share is not None and not 0 < share < 1:
            raise UsageError(f"--{name} {share:g}: it lies between 0 and 1, both left out")
    if asked.power <= asked.alpha:
        raise UsageError(f"--power {asked.power:g}: it lies above --alpha, which is {asked.alpha:g}")


def _alike(verdicts: Noise, assumed: Assumed) -> float:
    """How much of the variance lies between the cases; the usual guess where no case had two samples."""
    if verdicts.cases is None or verdicts.target is None or verdicts.cases + verdicts.target == 0:
        return assumed.alike
    return verdicts.cases / (verdicts.cases + verdicts.target)


def _pilot(named: str) -> Pilot:
    from agentv.app.results.stored import open_run

    run = open_run(named, doing="plan from")
    judged = [_Judged.of(result) for result in run.results() if result.status in ("passed", "failed")]
    if not judged:
        raise UsageError(f"nothing can be planned from {run.run_id}: no trial of it was judged")
    verdicts = split((one.case, one.sample, float(one.passed)) for one in judged)
    votes = [vote for one in judged for vote in one.votes] or [(one.case, one.sample, one.score) for one in judged]
    cases, trials, _ = verdicts.counts
    return Pilot(
        run_id=run.run_id,
        cases=cases,
        repeat=max(one.sample for one in judged),
        rate=sum(one.passed for one in judged) / trials,
        mean=mean_interval([one.score for one in judged], [one.case for one in judged], bounds=(0.0, 1.0)),
        disagreement=mean_disagreement(_counted(judged)),
        verdicts=verdicts,
        scores=split(votes),
    )


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
    sample: int
    passed: bool
    score: float
    votes: tuple[Vote, ...]

    @classmethod
    def of(cls, result: TrialResult) -> _Judged:
        trial = result.trial
        case = (trial.suite.path, trial.suite.name, trial.case.id, trial.case.prompt_id, trial.target.name)
        votes = tuple(_votes(result, case))
        return cls(case, trial.sample, result.status == "passed", result.score or 0.0, votes)


def _votes(result: TrialResult, case: tuple[object, ...]) -> Iterator[Vote]:
    """The votes of judges that gave several: each assertion is a case of its own."""
    for number, score in enumerate(result.scores):
        votes = score.grade.details.get("votes")
        if isinstance(votes, Iterable) and not isinstance(votes, str):
            for vote in votes:
                if isinstance(vote, int | float):
                    yield (*case, number), result.trial.sample, float(vote)
