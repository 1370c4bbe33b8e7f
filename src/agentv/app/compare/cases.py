"""The trials of a run, gathered into cases: what a comparison needs of each, and no more."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agentv.model.cases import Gate, Sample, case_verdict
from agentv.model.comparison import CaseKey, CaseOutcome
from agentv.model.suite import Aggregate
from agentv.model.trial import Score, Trial, TrialResult


class Place(NamedTuple):
    """Where a trial belongs: its case, in its file, on its target, with its prompt."""

    suite: str
    path: str
    case_id: str
    prompt: str | None
    target: str

    @classmethod
    def of(cls, trial: Trial) -> Place:
        """Of a trial."""
        case = trial.case
        return cls(trial.suite.name, trial.suite.path, case.id, case.prompt_id, trial.target.name)

    def key(self, shared: Container[str]) -> CaseKey:
        """The case's key; with its file where several suites share the name."""
        suite = f"{self.suite} ({self.path})" if self.suite in shared else self.suite
        return CaseKey(suite, self.case_id, self.prompt, self.target)


@dataclass(slots=True)
class _Gathered:
    """The samples of one case so far. A plan gives all of them the same settings."""

    sha256: str
    threshold: float
    repeat: int
    aggregate: Aggregate
    tags: tuple[str, ...]
    cluster: str | None
    input: int
    checks: int = 0
    samples: list[Sample] = field(default_factory=list)


def cases_of(results: Iterable[TrialResult], cluster: str | None = None) -> dict[Place, CaseOutcome]:
    """The cases of a run.

    Args:
        results: its finished trials.
        cluster: a key of the metadata that says which cases hang together; None: those of one conversation do.
    """
    gathered: dict[Place, _Gathered] = {}
    for result in results:
        case = gathered.get(place := Place.of(result.trial))
        if case is None:
            case = gathered[place] = _begun(result, cluster)
        if result.scores:
            case.checks = hash(tuple(map(_asked, result.scores)))
        case.samples.append(Sample(result.status, result.score, tuple(_gates(result.scores))))
    return {place: _outcome(case) for place, case in gathered.items()}


def shared_names(runs: Iterable[Iterable[Place]]) -> frozenset[str]:
    """The names that several suites of a run share."""
    return frozenset(name for run in runs for name in _shared_in(run))


def _shared_in(run: Iterable[Place]) -> Iterator[str]:
    paths: dict[str, set[str]] = {}
    for place in run:
        paths.setdefault(place.suite, set()).add(place.path)
    return (name for name, found in paths.items() if len(found) > 1)


def _begun(result: TrialResult, cluster: str | None) -> _Gathered:
    trial = result.trial
    case = trial.case
    talk = f"{trial.suite.name}/{case.conversation_id}" if case.conversation_id else None
    return _Gathered(
        case.sha256,
        trial.threshold,
        trial.repeat,
        trial.aggregate,
        case.tags,
        talk if cluster is None else _value(result.metadata, cluster) or talk,
        # what a conversation sent holds its answers, which differ without an edit
        0 if result.turns else hash(tuple(map(repr, result.input))),
    )


def _value(metadata: Mapping[str, object], name: str) -> str | None:
    """A value of the metadata as text that tells it from others; None where there is none."""
    value = metadata.get(name)
    return None if value is None else json.dumps(value, sort_keys=True)


def _asked(score: Score) -> tuple[object, ...]:
    """What an assertion asked for, as far as a row says it."""
    entry, settings = score.entry, score.entry.settings
    return (entry.name, entry.type, settings.weight, settings.required)


def _gates(scores: Iterable[Score]) -> Iterator[Gate]:
    for score in scores:
        gate = Gate.of(score.entry.settings.required, score.grade.score, score.grade.passed)
        if gate is not None:
            yield gate


def _outcome(case: _Gathered) -> CaseOutcome:
    samples = case.samples
    status = case_verdict(samples, repeat=case.repeat, threshold=case.threshold, aggregate=case.aggregate)
    scores = [one.score for one in samples if one.score is not None]
    judged = status in ("passed", "failed") and scores
    return CaseOutcome(
        status=status,
        score=sum(scores) / len(scores) if judged else None,
        samples=len(scores),
        threshold=case.threshold,
        sha256=case.sha256,
        input=case.input,
        checks=case.checks,
        tags=case.tags,
        cluster=case.cluster,
    )
