"""Grade the passing answers of a stored run and their mutants, with the code that grades answers in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.app.results.stored import StoredRun
from agentv.app.stored_answers import with_output
from agentv.authoring.loading.load import load_entry
from agentv.engine.grading import grade_entries
from agentv.engine.trial import RunContext, is_empty, ready_to_grade
from agentv.errors import UsageError
from agentv.extensions.mutate.mutants import Answer, Line, Mutant, Operator, is_json, named_by, phrases_of
from agentv.extensions.mutate.operators import mutants_of
from agentv.extensions.mutate.reporting import OperatorCount
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.run.verdict import Combined, combined, counts
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite
from agentv.model.values.response import STRUCTURED, TargetResponse

TrialName = tuple[str, str, str, str | None, str | None, int]


class Graders(Struct, frozen=True):
    """The assertions of a case that grade mutants, and the number of those left out.

    Attributes:
        entries: assertions that grade.
        judged: number left out because they call a model; `--judge` includes them.
        comparing: number left out because they compare answers with each other.
    """

    entries: tuple[AssertionEntry, ...]
    judged: int
    comparing: int

    @property
    def lacking(self) -> str | None:
        """The kind of case, for notes, if no assertion is left; otherwise None."""
        if self.entries:
            return None
        if self.judged:
            return "cases that only a model grades (--judge includes them)"
        return "cases that only compare answers" if self.comparing else "cases without checks"


def passing_trials(run: StoredRun) -> frozenset[TrialName]:
    """Return the names of the trials that passed in a run.

    Raises:
        UsageError: no trial passed.
        StoreError: a row cannot be read.
    """
    found = {name_of(one.trial): one for one in run.results()}
    passed = frozenset(name for name, one in found.items() if one.status == "passed")
    if not passed:
        why = "no case passed" if found else "it has no finished trials"
        raise UsageError(f"{nothing_to_mutate(run.run_id)}: {why}", "mutants are made of passing answers")
    return passed


def nothing_to_mutate(run_id: str) -> str:
    """Return the start of a message that says why a run has nothing to mutate."""
    return f"the run {run_id} has nothing to mutate"


def name_of(trial: Trial) -> TrialName:
    """Return what identifies a trial in its run, independent of its assertions, which may have changed since."""
    case = trial.case
    return (trial.suite.name, case.id, trial.target.name, case.prompt_id, trial.variant_name, trial.sample)


def graders_of(trial: Trial, *, judge: bool) -> Graders:
    """Return the assertions of a trial that grade its mutants.

    Args:
        trial: trial of the run.
        judge: include assertions that call a model.
    """
    kept, judged, comparing = [], 0, 0
    for entry in trial.case.assertions:
        if _has_trait(entry, "compares"):
            comparing += 1
        elif not judge and calls_model(entry):
            judged += 1
        else:
            kept.append(entry)
    return Graders(tuple(kept), judged, comparing)


def calls_model(entry: AssertionEntry) -> bool:
    """Whether an assertion, or one nested in it, calls a judge or computes embeddings."""
    return _has_trait(entry, "needs_judge") or _has_trait(entry, "needs_embedder")


def _has_trait(entry: AssertionEntry, trait: str) -> bool:
    return any(getattr(one.assertion, trait, False) for one in entry.nested())


class Graded(Struct, frozen=True):
    """An answer with its grades. `context`: None if the case's `transform` failed."""

    verdict: Combined
    scores: tuple[Score, ...]
    context: AssertionContext | None = None

    @property
    def lacks_judge(self) -> bool:
        """Whether there is no verdict because a model gave none."""
        return self.is_unknown and any(is_unknown(score) and calls_model(score.entry) for score in self.scores)

    @property
    def is_unknown(self) -> bool:
        """Whether there is no verdict, or one that depends on an assertion without a verdict."""
        return self.verdict.error is not None or any(map(is_unknown, self.scores))


class Original(Struct, frozen=True):
    """A passing answer to mutate.

    Attributes:
        graders: the assertions that grade its mutants.
    """

    trial: Trial
    answer: TargetResponse
    graders: Graders
    graded: Graded


class Survival(Struct, frozen=True):
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


class Mutated(Struct):
    """Outcomes of the mutants of one answer.

    Attributes:
        outcomes: (operator, field of `OperatorCount`) → number of mutants.
        survivors: mutants that pass.
        graded, failed: name of an assertion → number of mutants that it graded, and that it failed.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    survivors: list[Survival] = field(default_factory=list)
    graded: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


async def grade(
    trial: Trial, answer: TargetResponse, entries: Sequence[AssertionEntry], run_context: RunContext
) -> Graded:
    """Grade an answer to a trial, with the same checks of files and the same limits as in a run."""
    found = await ready_to_grade(trial, run_context, answer, answer.duration_ms or 0.0)
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
    for operator, mutant in mutants_of(operator_input(original, others), operators):
        answer = mutant_answer(original.answer, mutant)
        if answer.metadata.get(STRUCTURED) and not is_json(answer.output or ""):
            continue  # the target returns JSON values, so it cannot give this text
        if is_empty(answer, original.trial):
            made.outcomes[operator.name, "caught"] += 1
            continue
        graded = await grade(original.trial, answer, original.graders.entries, run_context)
        outcome = _outcome(original, graded, mutant)
        made.outcomes[operator.name, outcome] += 1
        for score in graded.scores:
            if not is_unknown(score):
                made.graded[score.entry.name] += 1
                made.failed[score.entry.name] += not score.grade.passed
        if outcome.endswith("survived"):
            # drop the context, to save memory if there are thousands of survivors
            made.survivors.append(Survival(original, operator.name, mutant, Graded(graded.verdict, graded.scores)))
    return made


def operator_input(original: Original, others: tuple[str, ...] = ()) -> Answer:
    """Return the input of the operators. Assertions that do not grade contribute to the named words too."""
    case, answer = original.trial.case, original.answer
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
    """Return an answer with the changes of a mutant."""
    if mutant.messages is not None:
        return replace(answer, messages=mutant.messages, trace=mutant.trace)
    return with_output(answer, mutant.output)


def counts_of(outcomes: Counter[tuple[str, str]], operators: Sequence[Operator]) -> dict[str, OperatorCount]:
    """Return the counts by operator, in the given order."""
    found: dict[str, dict[str, int]] = {operator.name: {} for operator in operators}
    for (name, outcome), number in outcomes.items():
        found[name][outcome] = number
    return {name: OperatorCount(**numbers) for name, numbers in found.items()}


def is_unknown(score: Score) -> bool:
    """Whether an assertion that counts gave no verdict: it errored, or its judge's reply has none."""
    return counts(score) and (score.grade.error is not None or score.grade.undecided)


def _outcome(original: Original, graded: Graded, mutant: Mutant) -> str:
    """Return the outcome of a mutant, a field of `OperatorCount`. It needs a verdict unless the mutant fails anyway."""
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


def failing_checks(graded: Graded) -> Iterator[str]:
    """Yield the error of an answer, or the names of the assertions that it fails."""
    if graded.verdict.error is not None:
        yield f"{graded.verdict.error.message} [{graded.verdict.error.code}]"
        return
    for score in graded.scores:
        if not score.grade.passed:
            yield score.entry.name


LONGEST = 200
"""Maximum number of characters in a proposed line. A longer one would quote the answer."""


class Proposer:
    """Finds lines of YAML that fail survivors.

    Args:
        run_context: context in which lines are tried.
    """

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context
        self._registries = registries()
        self._loaded: dict[tuple[str, str], AssertionEntry | None] = {}

    async def line(self, survival: Survival, line_count: int) -> str | None:
        """Return the first line with which the original passes and the mutant fails, or None.

        Args:
            survival: the mutant.
            line_count: number of lines that the case may get, this one included.
        """
        trial = survival.original.trial
        original = await self._with_context(survival.original.answer, survival.original.graded, trial)
        answer = mutant_answer(survival.original.answer, survival.mutant)
        mutant = await self._with_context(answer, survival.graded, trial)
        if original is None or mutant is None:
            return None
        for text in _lines_to_try(survival, line_count):
            entry = self._entry(text, trial.suite)
            if entry is None or not await self._passes(entry, original, trial.threshold):
                continue
            if await self._passes(entry, mutant, trial.threshold) is False:
                return text
        return None

    async def _with_context(self, answer: TargetResponse, graded: Graded, trial: Trial) -> Graded | None:
        """Return the grades with the context that assertions need, or None if the answer cannot be graded."""
        if graded.context is not None:
            return graded
        found = await ready_to_grade(trial, self._run_context, answer, answer.duration_ms or 0.0)
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
        """Load the assertion in a line as from the eval file; return None if it is wrong."""
        directory = str(Path(suite.path).parent)
        key = (text, directory)
        if key not in self._loaded:
            (item,) = yaml.safe_load(text)
            entry, _ = load_entry(item, directory, self._registries, dict(suite.env))
            self._loaded[key] = entry
        return self._loaded[key]


def _lines_to_try(survival: Survival, line_count: int) -> Iterator[str]:
    """Yield the lines to try: plain ones if one failed assertion fails the case, and gates, which always do."""
    original = survival.original
    weight = sum(score.entry.settings.weight for score in original.graded.scores) + line_count
    outvoted = weight > 0 and (weight - 1) / weight >= original.trial.threshold
    for line in survival.mutant.lines:
        texts = [as_yaml(line, gate=True)]
        if not original.graders.judged and not outvoted:
            texts.insert(0, as_yaml(line))
        yield from (text for text in texts if len(text) <= LONGEST and "{{" not in text and "{%" not in text)


def as_yaml(line: Line, *, gate: bool = False) -> str:
    """Return an assertion as YAML on one line.

    Args:
        line: the assertion.
        gate: make it required with weight 0, so that it does not change the weight of other assertions.
    """
    whole = {**_typed(line), "required": True, "weight": 0} if gate else line
    if None in whole.values():
        whole = _typed(whole)
    dumped = yaml.safe_dump(dict(whole), default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    text = str(dumped).strip()
    return f"- {text if len(whole) > 1 else text[1:-1]}"


def _typed(line: Line) -> Line:
    """Return an assertion in its long form, with `type`."""
    if "type" in line:
        return line
    ((name, value),) = line.items()
    return {"type": name} if value is None else {"type": name, "value": value}
