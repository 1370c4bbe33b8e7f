"""`llm-rubric`: a judge grades the answer by a rubric, in prose or as a checklist (SPEC section 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from agentv.assertions.prompt_code import CodeWriter
from agentv.model.context import AssertionContext
from agentv.model.grade import Check, Grade, reaches
from agentv.model.response import Failure
from agentv.model.rubric import (
    JUDGED_VARIABLES,
    MODE_VARIABLES,
    PROMPT_VARIABLES,
    RUBRIC_MARK,
    JudgeFailure,
    Rubric,
    RubricItem,
    RubricMode,
    Verdict,
)
from agentv.model.suite import JUDGE_TIMEOUT_S
from agentv.model.values import EMPTY, Json
from agentv.registry.fields import Between, DeclaredAssertion, Doc, Document, Fault, Nonempty, Older, PromptCode, Text
from agentv.templating import RenderError, undeclared

OWN_PROMPT = "a judge prompt of your own, inline or a path, or code that writes it; it shows {{ output }}"


@dataclass(frozen=True, slots=True)
class RubricEntry:
    """One item of a checklist, as authored."""

    outcome: Annotated[Text, Nonempty(), Older(("expected_outcome",)), Doc("what the answer must do")]
    id: Annotated[Text | None, Doc("its name in the judge's reply; r1, r2, … by its place where none is given")] = None
    weight: Annotated[float, Between(0), Doc("its share of the score")] = 1.0
    required: Annotated[bool, Doc("whether the grade fails, with score 0, when the item does")] = True
    operator: Annotated[
        Literal["correctness", "contradiction"],
        Doc("correctness: the answer must do it; contradiction: the answer must not contradict it"),
    ] = "correctness"
    score_ranges: Annotated[Json, Doc("points 0 to 10 → what earns them")] = None
    min_score: Annotated[float | None, Older(("required_min_score",)), Doc("points that the item must reach")] = None


@dataclass(frozen=True, slots=True)
class LlmRubric(DeclaredAssertion):
    """A judge model grades the answer by a rubric."""

    value: Annotated[
        Text | tuple[RubricEntry | Text, ...] | None,
        Older(("rubrics", "criteria")),
        Doc("the rubric: prose, or a list of sentences or items; without it the case's criteria"),
    ] = None
    prompt: Annotated[PromptCode | Document | None, Doc(OWN_PROMPT)] = None
    judge: Annotated[
        str | None,
        Older(("target", "judge_target", "provider", "model")),
        Doc("the target that judges; without it the judge in force"),
    ] = None
    temperature: Annotated[float, Between(0, 2), Doc("how freely the judge chooses its words")] = 0.0
    votes: Annotated[int, Between(1), Doc("how many verdicts are asked for")] = 1
    scale: Annotated[Json, Doc("lowest and highest points, as in 1-5")] = None
    pass_threshold: Annotated[int | None, Doc("points of the scale at which the answer passes")] = None

    short: ClassVar[str | None] = "value"
    needs_judge: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S

    def label(self) -> str:
        """The rubric's first words."""
        if isinstance(self.value, tuple):
            more = f" (+{len(self.value) - 1})" if len(self.value) > 1 else ""
            return _brief(_outcome(self.value[0])) + more if self.value else ""
        if self.value is not None:
            return _brief(self.value)
        if isinstance(self.prompt, PromptCode):
            return _brief(self.prompt.name)
        if self.prompt is not None and self.prompt.path is not None:
            return self.prompt.path.rpartition("/")[2]
        return _brief(self.prompt.text) if self.prompt is not None else "criteria"

    def faults(self) -> Iterable[Fault]:
        """Empty rubrics, doubled ids, weightless lists, prompts that cannot work, and what is not built yet."""
        yield from self._not_yet()
        yield from _value_faults(self.value)
        if isinstance(self.prompt, Document):
            yield from prompt_faults(self.prompt.text)
            yield from _unshown(self.prompt.text, self.value)

    def rubric(self, criteria: str | None) -> Rubric | None:
        """The question to the judge; None where value, prompt and criteria are all missing.

        Args:
            criteria: the case's, which stand in where there is no value.
        """
        items = _items(self.value) if isinstance(self.value, tuple) else ()
        text = self.value if isinstance(self.value, str) else "" if items else (criteria or "")
        if not items and not text.strip() and self.prompt is None:
            return None
        return Rubric(
            mode="checklist" if items else "freeform",
            text=text,
            items=items,
            **prompt_of(self.prompt),
            temperature=self.temperature,
        )

    async def grade(self, context: AssertionContext) -> Grade:
        """Ask the judge. Without an answer, a rubric or a verdict the grade is errored."""
        rubric = self.rubric(context.criteria)
        if rubric is None:
            return Grade.errored("nothing-to-judge", "llm-rubric has no value and no prompt, and the case no criteria")
        if context.output is None:
            return Grade.errored("no-output", "there is no answer to judge")
        verdict = await context.services.judge(self.judge).assess(rubric, context)
        return unjudged(verdict) if isinstance(verdict, Failure) else _judged(verdict, self.label())

    def _not_yet(self) -> Iterator[Fault]:
        if self.votes != 1:
            yield _later("votes other than 1", "votes")
        if self.scale is not None:
            yield _later("a scale", "scale")
        if self.pass_threshold is not None:
            yield _later("'pass_threshold'", "pass_threshold")
        for place, item in enumerate(self.value if isinstance(self.value, tuple) else ()):
            if isinstance(item, RubricEntry) and item.score_ranges is not None:
                yield _later("score ranges", "value", place, "score_ranges")
            if isinstance(item, RubricEntry) and item.min_score is not None:
                yield _later("an item's 'min_score'", "value", place, "min_score")


def prompt_of(prompt: PromptCode | Document | None) -> dict[str, Any]:
    """The fields of a Rubric that say where its prompt comes from."""
    if isinstance(prompt, PromptCode):
        return {"writer": CodeWriter(prompt), "prompt_path": prompt.name}
    return {} if prompt is None else {"prompt": prompt.text, "prompt_path": prompt.path}


def prompt_faults(text: str, mode: RubricMode = "freeform") -> list[Fault]:
    """What is wrong with the text of a judge prompt of a mode: syntax, names, nothing to judge in it."""
    try:
        names = _names(text)
    except RenderError as error:
        return [Fault(("prompt",), error.message, code=error.code)]
    added = MODE_VARIABLES.get(mode, ())
    faults = [_unknown(name, added) for name in sorted(names - _KNOWN.union(added))]
    for shown in JUDGED_VARIABLES.get(mode, ("output",)):
        if shown not in _canonical(names) | names:
            what = "answer" if shown == "output" else shown
            hint = f"put {{{{ {shown} }}}} where the judge shall read it"
            message = f"the judge prompt never shows the {what}"
            faults.append(Fault(("prompt",), message, code="judge-prompt-without-output", hint=hint))
    return faults


def _judged(verdict: Verdict, label: str) -> Grade:
    score = 0.0 if verdict.satisfied is False else verdict.score
    passed = reaches(score, RUBRIC_MARK)
    return Grade(
        score=score,
        passed=passed,
        checks=verdict.checks or (Check(verdict.reason or label, passed),),
        reason=verdict.reason,
        token_usage=verdict.token_usage,
        cost_usd=verdict.cost_usd,
    )


def unjudged(failure: Failure) -> Grade:
    """The errored grade of a judge that gave no verdict, with what it said instead."""
    said = failure if isinstance(failure, JudgeFailure) else JudgeFailure(failure.code, failure.message)
    return Grade(
        score=0.0,
        passed=False,
        reason=failure.message,
        details={"judge_reply": said.reply} if said.reply else EMPTY,
        error=Failure(failure.code, failure.message, failure.retryable),
        token_usage=said.token_usage,
        cost_usd=said.cost_usd,
    )


def _items(entries: tuple[RubricEntry | str, ...]) -> tuple[RubricItem, ...]:
    return tuple(_item(entry, f"r{place}") for place, entry in enumerate(entries, 1))


def _item(entry: RubricEntry | str, default: str) -> RubricItem:
    if isinstance(entry, str):
        return RubricItem(default, entry)
    return RubricItem(entry.id or default, entry.outcome, entry.weight, entry.required, entry.operator)


def _outcome(entry: RubricEntry | str) -> str:
    return entry if isinstance(entry, str) else entry.outcome


def _brief(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59].rstrip() + "…"


def _later(what: str, *path: str | int) -> Fault:
    return Fault(path, f"{what} in a rubric: not built yet", code="not-yet")


def _value_faults(value: str | tuple[RubricEntry | str, ...] | None) -> Iterator[Fault]:
    if value is None:
        return
    if isinstance(value, str):
        if not value.strip():
            yield Fault(("value",), "the rubric is empty", code="missing-value")
        return
    if not value:
        yield Fault(("value",), "the checklist has no items", code="missing-value")
    for place, entry in enumerate(value):
        if not _outcome(entry).strip():
            yield Fault(("value", place), "the item is empty", code="missing-value")
    items = _items(value)
    if items and not any(item.weight for item in items):
        yield Fault(("value",), "every item weighs 0, so there is no score", hint="give one of them a weight")
    yield from _doubled(items)


def _doubled(items: tuple[RubricItem, ...]) -> Iterator[Fault]:
    counts = Counter(item.id for item in items)
    for place, item in enumerate(items):
        if counts[item.id] > 1:
            first = next(other for other, one in enumerate(items) if one.id == item.id)
            if place > first:
                message = f"items {first + 1} and {place + 1} have the same id '{item.id}'"
                yield Fault(("value", place), message, code="duplicate-id")


_KNOWN = frozenset((*PROMPT_VARIABLES, "vars", "env"))

_names = lru_cache(maxsize=64)(undeclared)
"""A prompt of the suite's is checked once, not for each of its cases."""


def _unknown(name: str, added: tuple[str, ...] = ()) -> Fault:
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    distance = DamerauLevenshtein.normalized_similarity
    found = extractOne(name, [*PROMPT_VARIABLES, *added], scorer=distance, score_cutoff=0.6)
    hint = f"did you mean '{found[0]}'?" if found else "the case's own variables are under 'vars'"
    known = ", ".join((*PROMPT_VARIABLES, *added))
    return Fault(("prompt",), f"'{name}' is not known in a judge prompt; there are {known}", "undefined-variable", hint)


def _unshown(prompt: str, value: str | tuple[RubricEntry | str, ...] | None) -> Iterator[Fault]:
    """A value that the prompt leaves out would be ignored in silence."""
    if value is None:
        return
    try:
        shown = _canonical(_names(prompt))
    except RenderError:  # reported already
        return
    if not shown & ({"rubrics"} if isinstance(value, tuple) else {"rubrics", "criteria"}):
        message = "the judge prompt never shows the rubric that 'value' gives"
        hint = "put {{ rubrics }} where the judge shall read it"
        yield Fault(("prompt",), message, code="judge-prompt-without-rubric", hint=hint)


def _canonical(names: Iterable[str]) -> set[str]:
    return {PROMPT_VARIABLES[name] for name in names if name in PROMPT_VARIABLES}
