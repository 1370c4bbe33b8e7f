"""Answers of judges as they are checked."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from agentv.model.run.labelled.labels import LabelKey

JudgeKey = tuple[str, str, str]
"""An assertion, and the model and the prompt of its judge."""

VerdictKey = tuple[LabelKey, bool]
"""An answer, and the verdict of the judge beside which it was drawn."""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer as it is checked: of a run, or of labels alone.

    Attributes:
        score: of the judge, on a scale; None: the rubric has none, or there are labels alone.
        found_at: target, prompt and variant of a trial with it.
        rubric: as people label by it; empty: labels alone do not say.
    """

    key: LabelKey
    judge: JudgeKey
    name: str
    passed: bool
    cluster: Hashable
    trials: float
    run: str
    suite: str
    score: float | None = None
    found_at: tuple[str | None, str | None, str | None] = (None, None, None)
    rubric: str = ""

    @property
    def verdict_key(self) -> VerdictKey:
        """What it is, and the judge's verdict on it: an answer may have both, from several trials."""
        return self.key, self.passed
