"""Survivors as a report has them: without secrets."""

from __future__ import annotations

from agentv.extensions.mutate.grading import Survival
from agentv.extensions.mutate.result import Survivor
from agentv.model.secrets.redaction import Redactor


class Survivors:
    """Survivors of a run.

    Args:
        redactor: of the suites' secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.found: list[Survivor] = []
        self._redact = redactor.redact

    def add(self, survival: Survival, line: str | None) -> None:
        """Add one, with the line that would fail it. A line with a secret is left out."""
        trial, redact = survival.original.trial, self._redact
        self.found.append(
            Survivor(
                suite=trial.suite.name,
                case=redact(trial.case.id),
                target=trial.target.name,
                prompt_id=trial.case.prompt_id,
                variant=trial.variant_name,
                sample=trial.sample,
                operator=survival.operator,
                change=redact(survival.mutant.change),
                counts=survival.mutant.counts,
                outvoted=tuple(map(redact, survival.outvoted)),
                line=line if line is None or redact(line) == line else None,
            )
        )
