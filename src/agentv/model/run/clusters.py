"""Clusters of cases that depend on each other (SPEC section 3, `cluster`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from agentv.model.run.trial import Trial

CONVERSATION = "conversation_id"
"""The key by which cases form clusters where no suite says another one."""

CASE = "case"
"""What forms a cluster where no key does."""

ClusterId = tuple[str, ...]
"""The common key of trials whose outcomes are not independent."""


class Clustered(Protocol):
    """The keys of a row that determine its cluster.

    Attributes:
        cluster_key: the `cluster:` of its suite or of the command line; None if neither sets one.
        cluster: its case's value for that key.
    """

    test_id: str
    suite: str
    eval_path: str | None
    conversation_id: str | None
    cluster_key: str | None
    cluster: str | None


class TrialCluster(Struct):
    """The data of a planned trial that determine its cluster; the same as in its row."""

    test_id: str
    suite: str
    eval_path: str | None
    conversation_id: str | None
    cluster_key: str | None
    cluster: str | None

    @classmethod
    def of(cls, trial: Trial, eval_path: str | None = None) -> TrialCluster:
        """The cluster data of a trial; `eval_path` as in its row, else the suite's own path."""
        case, suite = trial.case, trial.suite
        path = suite.path if eval_path is None else eval_path
        return cls(case.id, suite.name, path, case.conversation_id, case.cluster_key, case.cluster)


def cluster_of(row: Clustered) -> ClusterId:
    """The cluster of a trial: by its suite's `cluster`, else its conversation, else its case.

    All samples of a case on all targets and with all prompts are in one cluster. Two suites with the same `cluster` key
    share their clusters, because a customer is the same in both; conversations and cases belong to their file.
    """
    if row.cluster_key is not None and row.cluster is not None:
        return ("cluster", row.cluster_key, row.cluster)
    home = (row.eval_path or "", row.suite)
    if row.conversation_id is not None:
        return ("conversation", *home, row.conversation_id)
    return ("case", *home, row.test_id)


def key_of_cluster(row: Clustered) -> str | None:
    """What forms the cluster of a trial: a key, `conversation_id`, or None if its case does."""
    if row.cluster_key is not None and row.cluster is not None:
        return row.cluster_key
    return CONVERSATION if row.conversation_id is not None else None
