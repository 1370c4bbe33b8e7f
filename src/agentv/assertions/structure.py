"""The structure family: assertions inside an assertion (SPEC sections 7.2 and 10)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec.structs import replace

from agentv.assertions.judged.rubric import grade_of_verdict, is_criteria, prompt_issues, unjudged
from agentv.assertions.user_code.script_and_python import aggregator_grade, script_payload
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, reaches, spent_on
from agentv.model.run.rubric import Rubric
from agentv.model.run.trial import Score
from agentv.model.run.verdict import ZERO_HINT, Combined, always_passes, combined, counts, passes_gate
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.suite import CODE_TIMEOUT_S, JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject, lazy_pattern
from agentv.registry.fields import (
    Alias,
    Between,
    CallTimeTemplate,
    Command,
    Declared,
    DeclaredAssertion,
    DirectoryPath,
    Doc,
    Document,
    Entries,
    FileGlobs,
    Fraction,
    Issue,
    Nonempty,
    Seconds,
    Text,
    ValueAlias,
)
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program


@dataclass(frozen=True, slots=True)
class AssertSet(DeclaredAssertion):
    """Several assertions that count as one: their weighted mean is compared with a threshold."""

    assert_: Annotated[
        Entries, Alias(("assertions", "evaluators")), Doc("the assertions of the set; sets can be nested to any depth")
    ]
    threshold: Annotated[Fraction | None, Doc("minimum score of the set to pass; default: the case's threshold")] = None
    aggregator: Annotated[
        Aggregator | None,
        CallTimeTemplate(),
        Doc("how the grades become one; default: their weighted mean, compared with the threshold"),
    ] = None

    short: ClassVar[str | None] = "assert"
    timeout_s: ClassVar[float | None] = math.inf  # each assertion of the set has its own limit

    @property
    def inner(self) -> tuple[AssertionEntry, ...]:
        """The assertions of the set, followed by its aggregator if that runs code or calls a judge."""
        entry = self.aggregator.entry if self.aggregator is not None else None
        known = entry is None or any(one.type == AGGREGATOR for one in self.assert_)
        return self.assert_ if known or entry is None else (*self.assert_, entry)

    def label(self) -> str:
        """The number of assertions."""
        return f"{len(self.assert_)} assertion{'s' if len(self.assert_) != 1 else ''}"

    def validate(self) -> Iterable[Issue]:
        """Report a set that checks nothing, and problems of its aggregator."""
        if not self.assert_:
            yield Issue(("assert_",), "the set is empty, so it checks nothing", "missing-value")
        elif not any(entry.settings.weight or entry.settings.required for entry in self.assert_):
            message = "every assertion of the set has weight 0 and none is required, so it checks nothing"
            yield Issue(("assert_",), message)
        if self.aggregator is not None:
            yield from self._aggregator_issues(self.aggregator)
        if always_passes(self.threshold, self.assert_):
            message = "with threshold: 0, every answer passes this set"
            yield Issue(("threshold",), message, "zero-threshold", ZERO_HINT, warning=True)

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the set's assertions, and combine them like those of a case, or by the aggregator.

        An errored assertion makes the set errored. An aggregator's score counts unchanged, unless the set has its own
        threshold or a required assertion fails.
        """
        children = tuple(entry for entry in self.inner if entry.type != AGGREGATOR)
        scores = await context.services.grade(children, context)
        threshold = context.threshold if self.threshold is None else self.threshold
        details: dict[str, Json] = {"threshold": threshold, "scores": [_score_row(score) for score in scores]}
        aggregated: Sequence[Score] = ()
        own_checks: tuple[Check, ...] = ()
        needs: float | None = threshold
        has_own = True
        if self.aggregator is None:
            whole = combined(scores, threshold)
        else:
            needs = self.threshold
            whole, check = self.aggregator.count(scores, threshold)
            own_checks = () if check is None else (check,)
            if whole.error is None:
                aggregated = await self._aggregated(self.aggregator, scores, context, threshold)
            gates_pass = all(map(passes_gate, scores))
            has_own = self.threshold is not None or not gates_pass
            for score in aggregated:
                judged = score.grade
                own_checks = judged.checks
                whole = Combined(judged.score, judged.passed and gates_pass, judged.error)
                has_own = has_own or judged.has_own_threshold
            if self.aggregator.type == "llm":
                details["aggregator"] = "llm"
        error = whole.error
        reasons = [*_notes(scores), *(score.grade.reason for score in aggregated if score.grade.reason)]
        every = (*scores, *aggregated)
        cost, usage = spent_on(score.grade for score in every)
        return Grade(
            score=whole.score,
            passed=whole.passed and (self.threshold is None or reaches(whole.score, self.threshold)),
            checks=(*own_checks, *_checks(scores)) if error is None else (),
            reason=("; ".join(reasons) or None) if error is None else error.message,
            details=details,
            error=error,
            has_own_threshold=has_own,
            cost_usd=cost,
            token_usage=usage,
            undecided=not whole.passed and any(score.grade.undecided and counts(score) for score in scores),
            needs=needs,
            note=next((f"{one.grade.note} ('{one.entry.name}')" for one in every if one.grade.note), None),
        )

    async def _aggregated(
        self, aggregator: Aggregator, scores: Sequence[Score], context: AssertionContext, threshold: float
    ) -> Sequence[Score]:
        """Return the grade of the aggregator's code or judge; empty if it only counts the grades."""
        graders = [entry for entry in self.inner if entry.type == AGGREGATOR]
        if not graders:
            return ()
        weighed = [replace(score, entry=aggregator.with_weight(score.entry)) for score in scores]
        with_results = replace(context, results=results_of(weighed), threshold=threshold)
        return await context.services.grade(graders, with_results)

    def _aggregator_issues(self, aggregator: Aggregator) -> Iterator[Issue]:
        """Report weights for unknown assertions, conflicting and all-zero weights, and a threshold without effect."""
        names = [entry.name for entry in self.assert_]
        for name in aggregator.weights or {}:
            if name not in names:
                hint = f"the set has {', '.join(repr(one) for one in names[:_SHOWN])}"
                message = f"no assertion of the set is called '{name}'"
                yield Issue(("aggregator", "weights", name), message, "unknown-key", hint)
        for place, entry in enumerate(self.assert_):
            if entry.name in (aggregator.weights or {}) and entry.settings.weight != 1:
                message = f"'{entry.name}' has a weight of its own and one in 'weights'; keep one of them"
                yield Issue(("assert_", place, "weight"), message, "two-spellings")
        weighed = [aggregator.with_weight(entry).settings for entry in self.assert_]
        if aggregator.weights and not any(one.weight or one.required for one in weighed):
            yield Issue(("aggregator", "weights"), "every assertion of the set has weight 0, so it checks nothing")
        if self.threshold is not None and aggregator.type in _COUNTING:
            message = f"'threshold' of the set has no meaning with an aggregator of type: {aggregator.type}"
            yield Issue(("threshold",), message, hint="put it under 'aggregator', with type: threshold")


_SHOWN = 10


def _checks(scores: Iterable[Score]) -> Iterator[Check]:
    for score in scores:
        name, grade = score.entry.name, score.grade
        for check in grade.checks:
            yield Check(f"{name}: {check.text}", check.passed, check.evidence, check.spans)
        if not grade.checks and grade.error is None:
            yield Check(name, grade.passed, grade.reason)


def _notes(scores: Iterable[Score]) -> Iterator[str]:
    """Yield what the checks do not say: failed gates, and errors that do not count."""
    for score in scores:
        if score.grade.error is not None:
            yield f"{score.entry.name} could not be graded: {score.grade.error.message}"
        elif not passes_gate(score):
            yield f"{score.entry.name} is required"


def _score_row(score: Score) -> dict[str, Json]:
    """Return one assertion of the set as shown in the row's details."""
    shown: dict[str, Json] = {
        "name": score.entry.name,
        "type": score.entry.shown_type,
        "weight": score.entry.settings.weight,
        "required": score.entry.settings.required,
    }
    if score.grade.error is not None:
        return {**shown, "error": {"code": score.grade.error.code, "message": score.grade.error.message}}
    return {**shown, "score": score.grade.score, "pass": score.grade.passed}


@dataclass(frozen=True, slots=True)
class CodeAggregator(DeclaredAssertion):
    """A command that aggregates the grades. It reads them under `results`, besides the usual input of a script."""

    command: Command
    config: Mapping[str, Json] = field(default=EMPTY)
    fingerprint: FileGlobs | None = None

    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The command."""
        return str(self.command)

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the command. Output other than an object with a score or a verdict gives an errored grade."""
        stdin = json.dumps(script_payload(context, self.config), default=str).encode()
        env = with_sdk(context.env)
        ended = await run_program(self.command, stdin=stdin, env=env, timeout_s=math.inf)
        if isinstance(ended, Failure):
            return Grade.errored(ended.code, ended.message)
        return aggregator_grade(ended, context.threshold)


@dataclass(frozen=True, slots=True)
class JudgeAggregator(DeclaredAssertion):
    """A judge that aggregates the grades."""

    prompt: Document | None = None
    judge: str | None = None

    needs_judge: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S

    async def grade(self, context: AssertionContext) -> Grade:
        """Ask the judge. Without a verdict, the grade is errored."""
        prompt = None if self.prompt is None else _with_new_variable(self.prompt)
        criteria, template = (context.criteria or "", prompt)
        if prompt is not None and is_criteria(prompt):
            criteria, template = prompt.text, None
        rubric = Rubric(
            "aggregate",
            text=criteria,
            prompt=None if template is None else template.text,
            prompt_path=None if template is None else template.path,
        )
        verdict = await context.services.judge(self.judge).assess(rubric, context)
        if isinstance(verdict, Failure):
            return unjudged(verdict)
        passed = reaches(verdict.score, context.threshold)
        checks = verdict.checks or (Check(verdict.reason or "the judge's score over all grades", passed),)
        return grade_of_verdict(verdict, passed, checks)


_OLDER_VARIABLE = lazy_pattern(r"(\{\{-?\s*)EVALUATOR_RESULTS_JSON(\s*-?\}\})")


def _with_new_variable(prompt: Document) -> Document:
    """Return the prompt with AgentV's variable `EVALUATOR_RESULTS_JSON` renamed to `results`."""
    return replace(prompt, text=_OLDER_VARIABLE.sub(r"\1results\2", prompt.text))


Kind: TypeAlias = Literal["weighted_average", "threshold", "all", "any", "code", "llm"]

_COUNTING: tuple[Kind, ...] = ("threshold", "all", "any")
"""Types that count the passing assertions."""

AGGREGATOR = "aggregator"
"""Type of the entry for an aggregator that runs code or calls a judge."""

_ONLY_FOR: Mapping[str, tuple[Kind, ...]] = {
    "weights": ("weighted_average",),
    "threshold": ("threshold",),
    "command": ("code",),
    "cwd": ("code",),
    "config": ("code",),
    "fingerprint": ("code",),
    "prompt": ("llm",),
    "judge": ("llm",),
    "timeout_s": ("code", "llm"),
}
"""Option → types that use it."""


@dataclass(frozen=True, slots=True)
class Aggregator(Declared):
    """How the grades of a set become one."""

    type: Annotated[
        Kind,
        ValueAlias(
            {
                "weighted-average": "weighted_average",
                **dict.fromkeys(("code-grader", "code_grader", "code-judge", "code_judge", "script"), "code"),
                **dict.fromkeys(("llm-grader", "llm_grader", "llm-judge", "llm_judge", "llm-rubric"), "llm"),
            }
        ),
        Doc(
            "weighted_average of the scores; threshold: the share of assertions that pass; all or any of them must "
            "pass; code: a command decides; llm: a judge decides"
        ),
    ]
    weights: Annotated[
        Mapping[str, Annotated[float, Between(0)]] | None,
        Nonempty(),
        Doc("weighted_average: name of an assertion → its weight; default: the assertion's own weight"),
    ] = None
    threshold: Annotated[Fraction | None, Doc("threshold: minimum share of the assertions that pass")] = None
    command: Annotated[
        Command | None,
        Alias(("path", "script")),
        Doc("code: reads the grades as JSON under `results`, prints an object with `score`"),
    ] = None
    cwd: Annotated[DirectoryPath | None, Doc("code: working directory; default: the eval file's directory")] = None
    config: Annotated[Mapping[str, Json], Doc("code: passed to the command as `config`")] = field(default=EMPTY)
    fingerprint: Annotated[FileGlobs | None, Doc("code: further files that the command depends on")] = None
    prompt: Annotated[
        Document | None,
        Nonempty(),
        Doc("llm: your own prompt, inline or a path; it must contain {{ results }}; without any placeholder, criteria"),
    ] = None
    judge: Annotated[
        Text | None,
        Alias(("target", "judge_target", "provider", "model")),
        Doc("llm: the judge; default: the judge in effect"),
    ] = None
    timeout_s: Annotated[Seconds | None, Doc("code and llm: time limit in seconds; 60 and 120")] = None

    short: ClassVar[str | None] = "type"

    def validate(self) -> Iterable[Issue]:
        """Report options of another type, missing options, and a judge prompt that cannot work."""
        for option, kinds in _ONLY_FOR.items():
            if self.type not in kinds and getattr(self, option) not in (None, EMPTY):
                yield Issue((option,), f"'{option}' requires type: {' or '.join(kinds)}, found type: {self.type}")
        for option, kind in (("threshold", "threshold"), ("command", "code")):
            if self.type == kind and getattr(self, option) is None:
                yield Issue((), f"an aggregator of type: {kind} needs '{option}'", "missing-key")
        if self.type == "threshold" and self.threshold is not None and reaches(0.0, self.threshold):
            yield Issue(("threshold",), "with threshold: 0, every answer passes this set", "zero-threshold")
        if self.type == "llm" and self.prompt is not None and not is_criteria(_with_new_variable(self.prompt)):
            yield from prompt_issues(_with_new_variable(self.prompt), "aggregate")

    @property
    def entry(self) -> AssertionEntry | None:
        """Entry whose code or judge aggregates the grades; None if they are only counted."""
        if self.type == "code" and self.command is not None:
            command = self.command if self.cwd is None else replace(self.command, cwd=self.cwd)
            return _entry(CodeAggregator(command, self.config, self.fingerprint), self.timeout_s)
        if self.type == "llm":
            return _entry(JudgeAggregator(self.prompt, self.judge), self.timeout_s)
        return None

    def with_weight(self, entry: AssertionEntry) -> AssertionEntry:
        """Return an assertion of the set with the weight that the aggregator gives it."""
        weight = (self.weights or {}).get(entry.name)
        return entry if weight is None else replace(entry, settings=replace(entry.settings, weight=weight))

    def count(self, scores: Sequence[Score], threshold: float) -> tuple[Combined, Check | None]:
        """Return the verdict by weighing or counting the grades, and its check, which is None if they are weighed.

        Assertions of weight 0 are not counted. If a required assertion fails, the verdict is a fail.
        """
        weighed = [replace(score, entry=self.with_weight(score.entry)) for score in scores]
        whole = combined(weighed, threshold)
        counted = [score for score in weighed if score.entry.settings.weight]
        if whole.error is not None or self.type not in _COUNTING or not counted:
            return whole, None
        passing = sum(score.grade.passed for score in counted)
        share = passing / len(counted)
        mark = {"all": 1.0, "any": 1 / len(counted)}.get(self.type, self.threshold or 0.0)
        passed = reaches(share, mark)
        wanted = f"threshold {mark:g}" if self.type == "threshold" else f"{self.type} must"
        text = f"{passing} of {len(counted)} assertions pass, {wanted}"
        score = share if self.type == "threshold" else float(passed)
        return Combined(score, passed and all(map(passes_gate, weighed))), Check(text, passed)


def _entry(assertion: object, timeout_s: float | None) -> AssertionEntry:
    settings = AssertionSettings(name=AGGREGATOR, timeout_s=timeout_s)
    return AssertionEntry(AGGREGATOR, assertion, settings)  # type: ignore[arg-type]  # a declared assertion


def results_of(scores: Iterable[Score]) -> JsonObject:
    """Return the grades by name of their assertions, in AgentV's format. Duplicate names get a number."""
    results: dict[str, Json] = {}
    for score in scores:
        name, number = score.entry.name, 2
        while name in results:
            name, number = f"{score.entry.name} ({number})", number + 1
        grade = score.grade
        checks: list[Json] = [
            {"text": check.text, "passed": check.passed, **({"evidence": check.evidence} if check.evidence else {})}
            for check in grade.checks
        ]
        results[name] = {
            "type": score.entry.shown_type,
            "score": grade.score,
            "verdict": "pass" if grade.passed else "fail",
            "weight": score.entry.settings.weight,
            "assertions": checks,
            "reason": grade.reason,
            "details": grade.details,
        }
    return results
