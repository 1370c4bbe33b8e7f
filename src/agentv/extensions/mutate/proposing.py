"""The line of YAML that would fail a surviving mutant. Nothing is proposed that was not tried on both answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from agentv.app.registries import registries
from agentv.authoring.loading.load import load_entry
from agentv.engine.grading import grade_entries
from agentv.engine.run_context import RunContext
from agentv.engine.trial import answered
from agentv.extensions.mutate.grading import Graded, Survival, mutant_answer
from agentv.extensions.mutate.operators.mutant import Line
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.run.verdict import combined
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite
from agentv.model.values.response import TargetResponse

LONGEST = 200
"""Characters of a proposed line, at most: a longer one quotes the answer."""


class Proposer:
    """Finds lines for survivors.

    Args:
        run_context: in which they are tried.
    """

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context
        self._registries = registries()
        self._loaded: dict[tuple[str, str], AssertionEntry | None] = {}

    async def line(self, survival: Survival, beside: int) -> str | None:
        """The first line that passes the case with its original and fails it with the mutant; None: no line does.

        Args:
            survival: the mutant.
            beside: number of lines that the case may get, this one included.
        """
        trial = survival.original.trial
        original = await self._with_context(survival.original.answer, survival.original.graded, trial)
        answer = mutant_answer(survival.original.answer, survival.mutant)
        mutant = await self._with_context(answer, survival.graded, trial)
        if original is None or mutant is None:
            return None
        for text in _texts(survival, beside):
            entry = self._entry(text, trial.suite)
            if entry is None or not await self._passes(entry, original, trial.threshold):
                continue
            if await self._passes(entry, mutant, trial.threshold) is False:
                return text
        return None

    async def _with_context(self, answer: TargetResponse, graded: Graded, trial: Trial) -> Graded | None:
        """The grades with what an assertion sees now; None: it sees nothing."""
        if graded.context is not None:
            return graded
        found = await answered(trial, self._run_context, answer, answer.duration_ms or 0.0)
        return None if isinstance(found, TrialResult) else Graded(graded.verdict, graded.scores, found.context)

    async def _passes(self, entry: AssertionEntry, graded: Graded, threshold: float) -> bool | None:
        """Whether an answer passes with one more assertion; None if unknown."""
        if graded.context is None:
            return None
        added = await grade_entries([entry], graded.context, self._run_context.clock)
        if added[0].grade.error is not None:
            return None
        return combined((*graded.scores, *added), threshold).passed

    def _entry(self, text: str, suite: Suite) -> AssertionEntry | None:
        """The assertion in a line, read as from the eval file, or None."""
        directory = str(Path(suite.path).parent)
        key = (text, directory)
        if key not in self._loaded:
            (item,) = yaml.safe_load(text)
            entry, _ = load_entry(item, directory, self._registries, dict(suite.env))
            self._loaded[key] = entry
        return self._loaded[key]


def _texts(survival: Survival, beside: int) -> Iterator[str]:
    """The lines to try: plain ones where one failed assertion fails the case, and gates, which no score outvotes."""
    original = survival.original
    weight = sum(score.entry.settings.weight for score in original.graded.scores) + beside
    outvoted = weight > 0 and (weight - 1) / weight >= original.trial.threshold
    for line in survival.mutant.lines:
        texts = [written(line, gate=True)]
        if not original.graders.judged and not outvoted:
            texts.insert(0, written(line))
        yield from (text for text in texts if len(text) <= LONGEST and "{{" not in text and "{%" not in text)


def written(line: Line, *, gate: bool = False) -> str:
    """A line as an eval file has it, on one line.

    Args:
        line: the assertion.
        gate: it has to pass, and is not part of the score, so that it makes no other assertion count less.
    """
    whole = {**_typed(line), "required": True, "weight": 0} if gate else line
    if None in whole.values():
        whole = _typed(whole)
    dumped = yaml.safe_dump(dict(whole), default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    text = str(dumped).strip()
    return f"- {text if len(whole) > 1 else text[1:-1]}"


def _typed(line: Line) -> Line:
    """The same with `type`."""
    if "type" in line:
        return line
    ((name, value),) = line.items()
    return {"type": name} if value is None else {"type": name, "value": value}
