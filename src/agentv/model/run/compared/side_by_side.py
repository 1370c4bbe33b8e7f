"""Answers to the same case side by side."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agentv.model.run.trial import TrialResult

Place = tuple[str, str | None, str | None]
"""Target, prompt and variant of an answer."""


class CaseAnswers(Struct, frozen=True):
    """All answers to one case.

    Attributes:
        path: absolute, of its eval file.
        answers: target, prompt and variant → its samples; what did not run is not there.
    """

    suite: str
    path: str
    case_id: str
    answers: Mapping[Place, tuple[TrialResult, ...]]


class SideBySide(Struct, frozen=True):
    """Cases of a run with their answers.

    Attributes:
        matching: number of cases that match the selection, shown or not.
        targets, prompts, variants: of the shown answers, in the order of the run.
    """

    cases: tuple[CaseAnswers, ...]
    matching: int
    targets: tuple[str, ...]
    prompts: tuple[str | None, ...]
    variants: tuple[str | None, ...]
