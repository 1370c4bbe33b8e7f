"""Types that ask a judge a fixed question, such as `factuality`, and `select-best`, which compares answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import excerpt, quoted, with_quotations
from agentv.assertions.judged.rubric import (
    OWN_PROMPT,
    JudgeName,
    Temperature,
    grade_of_verdict,
    prompt_issues,
    prompt_of,
    unjudged,
)
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, reaches
from agentv.model.run.rubric import RUBRIC_MARK, Choice, Rubric, RubricMode, Verdict
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.registry.fields import (
    Alias,
    DeclaredAssertion,
    Doc,
    Document,
    FileText,
    Fraction,
    Issue,
    Nonempty,
    PromptCode,
    Text,
)

OwnPrompt = Annotated[PromptCode | Document | None, Doc(OWN_PROMPT)]
Threshold = Annotated[Fraction, Doc("minimum score to pass")]
Query = Annotated[Text | None, Nonempty(), Doc("the question; default: the variable `query`, else the input")]


class Judged(DeclaredAssertion):
    """Base class of the types with a fixed question.

    Attributes:
        mode: mode of its rubrics.
        needs_answer: whether a missing answer gives an errored grade.
    """

    __slots__ = ()

    mode: ClassVar[RubricMode]
    needs_answer: ClassVar[bool] = True
    needs_judge: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S

    prompt: OwnPrompt
    judge: JudgeName
    temperature: Temperature

    def label(self) -> str:
        """The text of `value`, if there is one."""
        value = getattr(self, "value", None)
        return quoted(value)[1:-1] if value is not None else ""

    def validate(self) -> Iterable[Issue]:
        """Report prompts that cannot work."""
        if isinstance(self.prompt, Document):
            yield from prompt_issues(self.prompt, self.mode)

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:  # noqa: ARG002  # most overrides use it
        """Return the question about an answer, or an errored grade if an input is missing."""
        return self.build_rubric()

    async def grade(self, context: AssertionContext) -> Grade:
        """Ask the judge. Without an answer, a question or a verdict, the grade is errored."""
        if self.needs_answer and context.output is None:
            return Grade.errored("no-output", "there is no answer to grade")
        rubric = await self.rubric(context)
        if isinstance(rubric, Grade):
            return rubric
        verdict = await context.services.judge(self.judge).assess(rubric, self.judge_context(context))
        return (
            unjudged(verdict) if isinstance(verdict, Failure) else with_quotations(self.graded(verdict), context.output)
        )

    def judge_context(self, context: AssertionContext) -> AssertionContext:
        """Return the context that the judge sees."""
        return context

    def graded(self, verdict: Verdict) -> Grade:
        """Return the grade of a verdict. A score above 0 passes, unless the type has a threshold."""
        return grade_of_verdict(verdict, verdict.score > 0, verdict.checks)

    def build_rubric(self, **question: object) -> Rubric:
        """Return a rubric with this type's mode and this entry's prompt."""
        return replace(Rubric(self.mode, temperature=self.temperature, **prompt_of(self.prompt)), **question)


@dataclass(frozen=True, slots=True)
class CategoryScores:
    """The score of each category of `factuality`."""

    subset: Annotated[Fraction, Doc("A: a subset of the reference, consistent with it")] = 1.0
    superset: Annotated[Fraction, Doc("B: a superset of the reference, consistent with it")] = 1.0
    equal: Annotated[Fraction, Alias(("agree",)), Doc("C: says the same as the reference")] = 1.0
    disagree: Annotated[Fraction, Doc("D: disagrees with the reference")] = 0.0
    differ: Annotated[Fraction, Alias(("differButFactual",)), Doc("E: differs, but not in facts")] = 1.0

    @property
    def by_category(self) -> tuple[tuple[str, float], ...]:
        """(letter, score) of each category."""
        scores = (self.subset, self.superset, self.equal, self.disagree, self.differ)
        return tuple(zip("ABCDE", scores, strict=True))


@dataclass(frozen=True, slots=True)
class Factuality(Judged):
    """A judge compares the facts of the answer with those of a reference."""

    value: Annotated[FileText | None, Nonempty(), Doc("the reference; default: the expected output")] = None
    scores: Annotated[CategoryScores | None, Doc("score of each category; a score above 0 passes")] = None
    prompt: OwnPrompt = None
    judge: JudgeName = None
    temperature: Temperature = 0.0

    mode: ClassVar[RubricMode] = "factuality"

    @property
    def _score_by_category(self) -> tuple[tuple[str, float], ...]:
        return (self.scores or CategoryScores()).by_category

    def validate(self) -> Iterator[Issue]:
        """Report scores with which all categories pass or fail, and prompts that cannot work."""
        yield from Judged.validate(self)
        scores = [score for _, score in self._score_by_category]
        if all(scores) or not any(scores):
            every = "passes" if all(scores) else "fails"
            yield Issue(("scores",), f"every category {every}, so this checks nothing", hint="a category fails at 0")

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterator[Issue]:
        """Report a missing reference."""
        del variables, criteria
        if self.value is None and not reference:
            message = "'factuality' needs 'value', or 'expected_output' of the case, to compare the answer with"
            yield Issue((), message, "missing-key")

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:
        """Return the question about the value, else about the expected output; an errored grade without either."""
        if self.value is None and not (context.reference or "").strip():
            return Grade.errored("no-reference", "there is neither a value nor an expected output to compare with")
        return self.build_rubric(text=self.value or "", category_scores=self._score_by_category)

    def judge_context(self, context: AssertionContext) -> AssertionContext:
        """Return the context with the value in place of the expected output."""
        if self.value is None:
            return context
        return replace(context, expected_output=(Message("assistant", self.value),))


@dataclass(frozen=True, slots=True)
class ClosedQa(Judged):
    """A judge decides whether the answer meets a criterion: yes or no."""

    value: Annotated[FileText, Doc("the criterion")]
    prompt: OwnPrompt = None
    judge: JudgeName = None
    temperature: Temperature = 0.0

    mode: ClassVar[RubricMode] = "closed-qa"

    async def rubric(self, context: AssertionContext) -> Rubric:
        """Return the question about the criterion."""
        del context
        return self.build_rubric(text=self.value)


@dataclass(frozen=True, slots=True)
class GoalSuccess(Judged):
    """A judge decides whether an agent achieved its goal, based on its actions and its answer."""

    value: Annotated[FileText | None, Nonempty(), Doc("the goal; default: the case's criteria, else its input")] = None
    prompt: OwnPrompt = None
    judge: JudgeName = None
    temperature: Temperature = 0.0

    mode: ClassVar[RubricMode] = "goal-success"

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:
        """Return the question about the goal, or an errored grade if none exists."""
        goal = self.value or (context.criteria or "").strip() or context.prompt
        return self.build_rubric(text=goal) if goal.strip() else Grade.errored("nothing-to-judge", "there is no goal")


@dataclass(frozen=True, slots=True)
class Proportion(Judged):
    """Base class of the types whose score is a share, with their own threshold."""

    threshold: Threshold = RUBRIC_MARK
    query: Query = None
    prompt: OwnPrompt = None
    judge: JudgeName = None
    temperature: Temperature = 0.0

    def validate(self) -> Iterator[Issue]:
        """Report a threshold that every share reaches, and prompts that cannot work."""
        yield from Judged.validate(self)
        if self.threshold == 0:
            hint = "weight: 0 reports the score without counting it"
            yield Issue(("threshold",), "every answer scores at least 0, so this checks nothing", hint=hint)

    def graded(self, verdict: Verdict) -> Grade:
        """Return the grade of a verdict, which passes if its score reaches the threshold."""
        grade = grade_of_verdict(verdict, reaches(verdict.score, self.threshold), verdict.checks)
        return replace(grade, has_own_threshold=True, needs=self.threshold)

    def judge_context(self, context: AssertionContext) -> AssertionContext:
        """Return the context with the question in place of the input, if an option or a variable sets it."""
        given = self.query if self.query is not None else context.vars.get("query")
        if not isinstance(given, str) or not given.strip():
            return context
        return replace(context, input=(Message("user", given),))


@dataclass(frozen=True, slots=True)
class AnswerRelevance(Proportion):
    """A judge breaks the answer down into statements: the score is the share that helps to answer the question."""

    mode: ClassVar[RubricMode] = "answer-relevance"
    short: ClassVar[str | None] = "threshold"


NOTHING_TO_COMPARE = Grade.errored("nothing-to-choose", "there is only one answer, so there is nothing to choose from")


@dataclass(frozen=True, slots=True)
class SelectBest(DeclaredAssertion):
    """A judge chooses this answer as the best of the answers from all prompts and targets."""

    value: Annotated[FileText, Alias(("criteria",)), Doc("the criterion to choose the best answer by")]
    judge: JudgeName = None

    needs_judge: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = 2 * JUDGE_TIMEOUT_S  # the judge is asked twice

    def label(self) -> str:
        """The criterion."""
        return quoted(self.value)

    def grade(self, context: AssertionContext) -> Grade:
        """Return an errored grade, because a single answer has nothing to be compared with."""
        del context
        return NOTHING_TO_COMPARE

    async def choose(self, contexts: Sequence[AssertionContext]) -> tuple[Grade, ...]:
        """Return the grades of the answers, in order. The best one passes; in a tie, none does.

        Only the first grade includes the cost of the judge.
        """
        if len(contexts) < 2:  # a single answer is no choice
            return (NOTHING_TO_COMPARE,) * len(contexts)
        choice = await contexts[0].services.judge(self.judge).choose(self.value, contexts)
        if isinstance(choice, Failure):
            first = unjudged(choice)
            other = replace(first, token_usage=None, cost_usd=None)  # the cost counts once for all answers
            return (first, *[other] * (len(contexts) - 1))
        return tuple(self._graded(choice, place) for place in range(len(contexts)))

    def _graded(self, choice: Choice, place: int) -> Grade:
        votes = choice.best.count(place)
        passed = votes == len(choice.best)
        tied = len(set(choice.best)) > 1
        reasons = [
            why
            for best, why in zip(choice.best, choice.reasons, strict=True)
            if why and (tied or best == place or not votes)
        ]
        reason = excerpt(" / ".join(dict.fromkeys(reasons)), 1_000) or None
        if tied:
            reason = f"a tie: in the opposite order, the judge chose another answer{f': {reason}' if reason else ''}"
        first = place == 0
        return Grade(
            score=votes / len(choice.best),
            passed=passed,
            checks=(Check(f"is the best answer: {quoted(self.value)}", passed, f"chosen in {votes} of 2 orders"),),
            reason=reason,
            has_own_threshold=True,
            cost_usd=choice.cost_usd if first else None,
            token_usage=choice.token_usage if first else None,
        )
