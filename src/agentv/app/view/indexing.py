"""A finished trial as the index of cases takes it in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentv.model.run.cases import sample_of
from agentv.model.run.clusters import TrialCluster, cluster_of, key_of_cluster
from agentv.model.run.trial import TrialResult
from agentv.model.values.hashes import text_hash
from agentv.reports.html.entries import spent, state, teaser
from agentv.reports.html.whole import whole
from agentv.store.index.case_entries import CaseGroup, IndexedTrial

_NOT_SEARCHED = frozenset({"sha256", "key", "timestamp"})
_SEARCHED = 1_000_000
"""Characters of one trial that are searched."""


def indexed_trial(place: int, result: TrialResult) -> IndexedTrial:
    """The trial whose row begins at a place, in bytes."""
    trial, case = result.trial, result.trial.case
    row = TrialCluster.of(trial)
    group = CaseGroup(
        trial.suite.name,
        trial.suite.path,
        trial.target.name,
        case.prompt_id,
        trial.variant_name,
        tuple(case.tags),
        trial.threshold,
        trial.repeat,
        trial.aggregate,
        trial.alpha,
        key_of_cluster(row),
    )
    return IndexedTrial(
        place,
        group,
        case.id,
        trial.sample,
        case.sha256[:12],
        sample_of(result),
        round(result.duration_ms, 1),
        spent(result),
        [(score.entry.shown_type, score.entry.name, state(score)) for score in result.scores],
        teaser(result),
        text_hash("\0".join(cluster_of(row))),
        text_hash(f"{trial.suite.path}\0{trial.suite.name}\0{case.id}"),
        _searched(whole(result, "")),
    )


def _searched(data: dict[str, Any]) -> str:
    """All texts of a trial."""
    found: list[str] = []
    length = 0
    for text in _texts(data):
        found.append(text[: _SEARCHED - length])
        length += len(found[-1])
        if length >= _SEARCHED:
            break
    return "\n".join(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in _NOT_SEARCHED:
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
