"""The trials of a run, gathered into cases: what a comparison needs of each, and no more."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agentv.model.cases import Gate, Sample
from agentv.model.comparison import CaseKey, CaseOutcome
from agentv.stats.deciding import Rule, verdict_over
from agentv.store.outcomes import OutcomeRow


class Place(NamedTuple):
    """Where a trial belongs: its case, in its file, on its target, with its prompt."""

    suite: str
    path: str | None
    case_id: str
    prompt: str | None
    target: str

    def key(self, shared: Container[str]) -> CaseKey:
        """The case's key; with its file where several suites share the name."""
        suite = f"{self.suite} ({self.path})" if self.suite in shared else self.suite
        return CaseKey(suite, self.case_id, self.prompt, self.target)


@dataclass(slots=True)
class _Gathered:
    """The samples of one case so far. A plan gives all of them the same settings."""

    sha256: str
    rule: Rule
    tags: tuple[str, ...]
    cluster: str | None
    input: int
    checks: int = 0
    places: list[int] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


def cases_of(rows: Iterable[tuple[int, OutcomeRow]], cluster: str | None = None) -> dict[Place, CaseOutcome]:
    """The cases of a run.

    Args:
        rows: its finished trials, each with the place where its row begins.
        cluster: a key of the metadata that says which cases hang together; None: those of one conversation do.
    """
    gathered: dict[Place, _Gathered] = {}
    for at, row in rows:
        place = Place(row.suite, row.eval_path, row.test_id, row.prompt_id, row.target)
        case = gathered.get(place)
        if case is None:
            case = gathered[place] = _begun(row, cluster)
        if row.scores:
            case.checks = hash(tuple((one.name, one.type, one.weight, one.required) for one in row.scores))
        case.places.append(at)
        case.samples.append(Sample(row.status, row.score, tuple(_gates(row))))
    return {place: _outcome(case) for place, case in gathered.items()}


def shared_names(runs: Iterable[Iterable[Place]]) -> frozenset[str]:
    """The names that several suites of a run share."""
    return frozenset(name for run in runs for name in _shared_in(run))


def _shared_in(run: Iterable[Place]) -> Iterator[str]:
    paths: dict[str, set[str | None]] = {}
    for place in run:
        paths.setdefault(place.suite, set()).add(place.path)
    return (name for name, found in paths.items() if len(found) > 1)


def _begun(row: OutcomeRow, cluster: str | None) -> _Gathered:
    talk = f"{row.suite}/{row.conversation_id}" if row.conversation_id else None
    return _Gathered(
        row.case_sha256,
        Rule(row.repeat, row.threshold, row.aggregate, row.alpha),
        row.tags,
        talk if cluster is None else _value(row, cluster) or talk,
        # what a conversation sent holds its answers, which differ without an edit
        0 if row.turns else hash(bytes(row.input)),
    )


def _value(row: OutcomeRow, name: str) -> str | None:
    """A value of the metadata as text that tells it from others; None where there is none."""
    value = json.loads(bytes(row.metadata)).get(name)
    return None if value is None else json.dumps(value, sort_keys=True)


def _gates(row: OutcomeRow) -> Iterator[Gate]:
    for score in row.scores:
        gate = Gate.of(score.required, score.score or 0.0, score.passed or False)
        if gate is not None:
            yield gate


def _outcome(case: _Gathered) -> CaseOutcome:
    samples = case.samples
    status = verdict_over(samples, case.rule)
    scores = [one.score for one in samples if one.score is not None]
    judged = status in ("passed", "failed") and scores
    return CaseOutcome(
        status=status,
        score=sum(scores) / len(scores) if judged else None,
        samples=len(scores),
        threshold=case.rule.threshold,
        sha256=case.sha256,
        input=case.input,
        checks=case.checks,
        tags=case.tags,
        cluster=case.cluster,
        places=tuple(case.places),
        repeat=case.rule.repeat,
        aggregate=case.rule.aggregate,
        alpha=case.rule.alpha,
    )
