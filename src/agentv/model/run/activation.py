"""Which skill an agent, or a judge in its place, loads for which query: what a run of such queries shows."""

from __future__ import annotations

from msgspec import Struct

from agentv.model.run.group_totals import MeasuredShare

TAG = "activation"
"""Of every case that `activation` makes, and the type of its assertion."""


class SkillShares(Struct, frozen=True):
    """How well the queries of one skill are distinguished from all others.

    Attributes:
        true_positives, false_positives: queries that loaded it, rightly and wrongly.
        false_negatives, true_negatives: queries that did not load it, wrongly and rightly.
        precision, recall, f1: None where they are undefined.
    """

    skill: str
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: MeasuredShare | None
    recall: MeasuredShare | None
    f1: MeasuredShare | None


class ConfusionCell(Struct, frozen=True):
    """How many queries that should load `expected` loaded `loaded`; None: no skill."""

    expected: str | None
    loaded: str | None
    queries: int


class Activation(Struct, frozen=True):
    """What the queries of a suite came to with one target and variant, each query counted once.

    A query with several samples loads a skill if at least half of its judged samples did.

    Attributes:
        judged, errored, not_run: numbers of queries; those that were not judged are in no share.
        right: queries that loaded what they should, and nothing else.
        skills: the measures of each skill.
        confusion: cells above 0. A query that loaded several skills is in the cell of each.
    """

    suite: str
    judged: int
    right: int
    skills: tuple[SkillShares, ...]
    confusion: tuple[ConfusionCell, ...] = ()
    errored: int = 0
    not_run: int = 0
    target: str | None = None
    variant: str | None = None

    @property
    def queries(self) -> int:
        """All of them."""
        return self.judged + self.errored + self.not_run
