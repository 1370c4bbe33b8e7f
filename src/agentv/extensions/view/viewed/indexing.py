"""A finished trial as the index of cases takes it in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.extensions.view.index.case_entries import CaseGroup, IndexedTrial
from agentv.extensions.view.pages.entries import state, teaser
from agentv.extensions.view.pages.whole import whole
from agentv.model.run.cases import TrialCluster, cluster_of, key_of_cluster, sample_of
from agentv.model.run.trial import TrialResult
from agentv.model.values.hashes import text_hash

_NOT_SEARCHED = frozenset({"sha256", "key", "timestamp", "role", "path", "source", "aggregate"})
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
        result.spent_usd,
        [(score.entry.shown_type, score.entry.name, state(score)) for score in result.scores],
        teaser(result),
        text_hash("\0".join(cluster_of(row))),
        text_hash(f"{trial.suite.path}\0{trial.suite.name}\0{case.id}"),
        case.position,
        "\n".join(_texts(whole(result, "")))[:_SEARCHED],
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if name not in _NOT_SEARCHED:
                yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
