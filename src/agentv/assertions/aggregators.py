"""Aggregators of an assert-set: how the grades of its assertions become one, as AgentV's `composite` has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import structs
from msgspec.structs import replace

from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, reaches
from agentv.model.run.trial import Score
from agentv.model.run.verdict import Combined, combined, passes_gate
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import (
    Alias,
    Between,
    Command,
    Declared,
    DirectoryPath,
    Doc,
    Document,
    FileGlobs,
    Fraction,
    Issue,
    Nonempty,
    Seconds,
    Text,
    ValueAlias,
)

Kind: TypeAlias = Literal["weighted_average", "threshold", "all", "any", "code", "llm"]

AGGREGATOR = "aggregator"
"""The type of the entry that stands for an aggregator which runs code or asks a judge."""

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
"""Options → the types that use them."""


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
        """Reports options of another type, missing ones, and a judge prompt that cannot work."""
        for option, kinds in _ONLY_FOR.items():
            if self.type not in kinds and getattr(self, option) not in (None, EMPTY):
                yield Issue((option,), f"'{option}' requires type: {' or '.join(kinds)}, found type: {self.type}")
        for option, kind in (("threshold", "threshold"), ("command", "code")):
            if self.type == kind and getattr(self, option) is None:
                yield Issue((), f"an aggregator of type: {kind} needs '{option}'", "missing-key")
        if self.type == "threshold" and self.threshold is not None and reaches(0.0, self.threshold):
            yield Issue(("threshold",), "with threshold: 0, every answer passes this set", "zero-threshold")
        if self.type == "llm" and self.prompt is not None:
            from agentv.assertions.aggregating import aggregate_prompt_issues

            yield from aggregate_prompt_issues(self.prompt)

    @property
    def entry(self) -> AssertionEntry | None:
        """The assertion that grades the grades; None where they are only counted."""
        if self.type == "code" and self.command is not None:
            from agentv.assertions.aggregating import CodeAggregator

            command = self.command if self.cwd is None else structs.replace(self.command, cwd=self.cwd)
            return _entry(CodeAggregator(command, self.config, self.fingerprint), self.timeout_s)
        if self.type == "llm":
            from agentv.assertions.aggregating import JudgeAggregator

            return _entry(JudgeAggregator(self.prompt, self.judge), self.timeout_s)
        return None

    def weighed(self, entry: AssertionEntry) -> AssertionEntry:
        """An assertion of the set with the weight that counts here."""
        weight = (self.weights or {}).get(entry.name)
        return (
            entry if weight is None else structs.replace(entry, settings=structs.replace(entry.settings, weight=weight))
        )

    def count(self, scores: Sequence[Score], threshold: float) -> tuple[Combined, Check | None]:
        """The verdict that weighing or counting the grades gives, and the check that says so.

        Assertions of weight 0 are not counted. A required one that falls makes the verdict fall.
        """
        weighed = [structs.replace(score, entry=self.weighed(score.entry)) for score in scores]
        whole = combined(weighed, threshold)
        counted = [score for score in weighed if score.entry.settings.weight]
        if whole.error is not None or self.type == "weighted_average" or not counted:
            return whole, None
        passing = sum(score.grade.passed for score in counted)
        share = passing / len(counted)
        mark = {"all": 1.0, "any": 1 / len(counted)}.get(self.type, self.threshold or 0.0)
        passed = reaches(share, mark)
        text = f"{passing} of {len(counted)} assertions pass, {_wanted(self.type, mark)}"
        score = share if self.type == "threshold" else float(passed)
        return Combined(score, passed and all(map(passes_gate, weighed))), Check(text, passed)


def _entry(assertion: object, timeout_s: float | None) -> AssertionEntry:
    settings = AssertionSettings(name=AGGREGATOR, timeout_s=timeout_s)
    return AssertionEntry(AGGREGATOR, assertion, settings)  # type: ignore[arg-type]  # a declared assertion


def _wanted(kind: Kind, mark: float) -> str:
    return f"{kind} must" if kind != "threshold" else f"threshold {mark:g}"


def results_of(scores: Iterable[Score]) -> JsonObject:
    """Grades by the names of their assertions, in AgentV's form; a duplicate name gets a number."""
    results: dict[str, Json] = {}
    for score in scores:
        name, number = score.entry.name, 2
        while name in results:
            name, number = f"{score.entry.name} ({number})", number + 1
        results[name] = _result(score)
    return results


def _result(score: Score) -> JsonObject:
    grade = score.grade
    checks: list[Json] = [
        {"text": check.text, "passed": check.passed, **({"evidence": check.evidence} if check.evidence else {})}
        for check in grade.checks
    ]
    return {
        "type": score.entry.shown_type,
        "score": grade.score,
        "verdict": "pass" if grade.passed else "fail",
        "weight": score.entry.settings.weight,
        "assertions": checks,
        "reason": grade.reason,
        "details": grade.details,
    }


def with_results(context: AssertionContext, scores: Iterable[Score], threshold: float) -> AssertionContext:
    """The context in which an aggregator grades."""
    return replace(context, results=results_of(scores), threshold=threshold)
