"""Selection of trials of a stored run, and the answers to one case side by side."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agentv.model.run.trial import Status, TrialResult


class Selection(Struct, frozen=True):
    """Filters for trials. Values of the same kind are ORed, different kinds are ANDed; an empty filter matches all.

    Attributes:
        statuses: outcomes.
        cases, suites, targets, tags: names, or patterns as in a shell (`*`, `?`, `[a-z]`), case-sensitive.
    """

    statuses: tuple[Status, ...] = ()
    cases: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


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
