"""The grades of an original answer and of its mutants, by the path that grades answers in a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from agentv.app.stored_answers import with_output
from agentv.engine.grading import grade_entries
from agentv.engine.run_context import RunContext
from agentv.engine.trial import answered, is_empty
from agentv.extensions.mutate.operators.catalogue import mutants_of
from agentv.extensions.mutate.operators.mutant import Answer, Mutant, Operator
from agentv.extensions.mutate.operators.named import named_by, phrases_of
from agentv.extensions.mutate.originals import Graders, calls_model
from agentv.extensions.mutate.result import OperatorCount
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.run.verdict import Combined, combined, counts
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.response import STRUCTURED, TargetResponse


@dataclass(frozen=True, slots=True)
class Graded:
    """An answer with its grades. `context`: None if the case's `transform` failed."""

    verdict: Combined
    scores: tuple[Score, ...]
    context: AssertionContext | None = None

    @property
    def lacks_judge(self) -> bool:
        """Whether there is no verdict since a model gave none."""
        return self.is_unknown and any(is_unknown(score) and calls_model(score.entry) for score in self.scores)

    @property
    def is_unknown(self) -> bool:
        """Whether there is no verdict, or one that follows from a reply of a judge without a verdict."""
        return self.verdict.error is not None or any(map(is_unknown, self.scores))


@dataclass(frozen=True, slots=True)
class Original:
    """A passing answer, to be made worse.

    Attributes:
        graders: the assertions that grade its mutants.
    """

    trial: Trial
    answer: TargetResponse
    graders: Graders
    graded: Graded

    @property
    def entries(self) -> tuple[AssertionEntry, ...]:
        """The assertions that grade its mutants."""
        return self.graders.entries


@dataclass(frozen=True, slots=True)
class Survival:
    """A mutant that passes, with its grades."""

    original: Original
    operator: str
    mutant: Mutant
    graded: Graded

    @property
    def outvoted(self) -> tuple[str, ...]:
        """Names of the assertions that pass the original and fail the mutant, without failing the case."""
        pairs = zip(self.original.graded.scores, self.graded.scores, strict=True)
        return tuple(now.entry.name for then, now in pairs if then.grade.passed and not now.grade.passed)


@dataclass(slots=True)
class Mutated:
    """What became of the mutants of one answer.

    Attributes:
        outcomes: (operator, field of `OperatorCount`) → mutants.
        graded, failed: name of an assertion → mutants that it graded, and that it failed.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    survivors: list[Survival] = field(default_factory=list)
    graded: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


async def grade(
    trial: Trial,
    answer: TargetResponse,
    entries: Sequence[AssertionEntry],
    run_context: RunContext,
) -> Graded:
    """The grades of an answer to a trial, with the checks of files and the limits of a run."""
    found = await answered(trial, run_context, answer, answer.duration_ms or 0.0)
    if isinstance(found, TrialResult):
        return Graded(Combined(0.0, False, found.error), ())
    check = run_context.check(trial.suite)
    scores = await grade_entries(entries, found.context, run_context.clock, check)
    return Graded(combined(scores, trial.threshold), scores, found.context)


async def mutated(
    original: Original, operators: Sequence[Operator], others: tuple[str, ...], run_context: RunContext
) -> Mutated:
    """Grade the mutants of an answer."""
    made = Mutated()
    for operator, mutant in mutants_of(seen(original, others), operators):
        answer = mutant_answer(original.answer, mutant)
        if answer.metadata.get(STRUCTURED) and not _is_value(answer.output):
            continue  # such a target returns values: it cannot give this text
        if is_empty(answer, original.trial):
            made.outcomes[operator.name, "caught"] += 1
            continue
        _add(made, original, operator, mutant, await grade(original.trial, answer, original.entries, run_context))
    return made


def _add(made: Mutated, original: Original, operator: Operator, mutant: Mutant, graded: Graded) -> None:
    outcome = _outcome(original, graded, mutant)
    made.outcomes[operator.name, outcome] += 1
    for score in graded.scores:
        if not is_unknown(score):
            made.graded[score.entry.name] += 1
            made.failed[score.entry.name] += not score.grade.passed
    if outcome.endswith("survived"):
        # without the context, which would be held for each of many thousand survivors
        made.survivors.append(Survival(original, operator.name, mutant, Graded(graded.verdict, graded.scores)))


def seen(original: Original, others: tuple[str, ...] = ()) -> Answer:
    """The answer as operators see it. What it names includes the assertions that do not grade now."""
    trial, answer = original.trial, original.answer
    case = trial.case
    return Answer(
        case=case.id,
        output=answer.output or "",
        messages=answer.messages,
        trace=answer.trace,
        others=others,
        named=named_by(case, case.assertions),
        phrases=phrases_of(case, case.assertions),
    )


def mutant_answer(answer: TargetResponse, mutant: Mutant) -> TargetResponse:
    """The answer that a mutant is."""
    if mutant.messages is not None:
        return replace(answer, messages=mutant.messages, trace=mutant.trace)
    return with_output(answer, mutant.output)


def counts_of(outcomes: Counter[tuple[str, str]], operators: Sequence[Operator]) -> dict[str, OperatorCount]:
    """The counts by operator, in the given order."""
    found: dict[str, dict[str, int]] = {operator.name: {} for operator in operators}
    for (name, outcome), number in outcomes.items():
        found[name][outcome] = number
    return {name: OperatorCount(**numbers) for name, numbers in found.items()}


def is_unknown(score: Score) -> bool:
    """Whether an assertion that counts gave no verdict: it errored, or its judge's reply has none."""
    return counts(score) and (score.grade.error is not None or score.grade.undecided)


def _outcome(original: Original, graded: Graded, mutant: Mutant) -> str:
    """What became of a mutant. An error is no verdict: without one that fails it all the same, nothing is known."""
    if graded.is_unknown and not _fails_anyway(original, graded):
        if graded.lacks_judge:
            return "not_graded"
        return "errored" if mutant.counts else "others_errored"
    outcome = "survived" if graded.verdict.passed else "killed"
    return outcome if mutant.counts else f"others_{outcome}"


def _fails_anyway(original: Original, graded: Graded) -> bool:
    """Whether a mutant fails even if every assertion without a verdict had passed."""
    passing = Grade(1.0, True)
    scores = [replace(score, grade=passing) if is_unknown(score) else score for score in graded.scores]
    return bool(scores) and not combined(scores, original.trial.threshold).passed


def _is_value(output: str | None) -> bool:
    try:
        json.loads(output or "")
    except ValueError:
        return False
    return True


def failing_checks(graded: Graded) -> Iterator[str]:
    """What an answer fails by."""
    if graded.verdict.error is not None:
        yield f"{graded.verdict.error.message} [{graded.verdict.error.code}]"
        return
    for score in graded.scores:
        if not score.grade.passed:
            yield score.entry.name
