"""Aggregators that grade the grades of an assert-set: a command, or a judge."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec.structs import replace

from agentv.assertions.judged.rubric import details_of, is_criteria, prompt_issues, unjudged
from agentv.assertions.user_code.script_and_python import script_payload
from agentv.assertions.user_code.script_output import read_verdict
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, reaches
from agentv.model.run.rubric import Rubric
from agentv.model.suite.suite import CODE_TIMEOUT_S, JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, lazy_pattern
from agentv.registry.fields import Command, DeclaredAssertion, Document, FileGlobs, Issue
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program


@dataclass(frozen=True, slots=True)
class CodeAggregator(DeclaredAssertion):
    """A command decides on the grades, which it reads under `results` in addition to the input of every script."""

    command: Command
    config: Mapping[str, Json] = field(default=EMPTY)
    fingerprint: FileGlobs | None = None

    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The command."""
        return str(self.command)

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the command. Whatever is no object with a score or a verdict is an errored grade."""
        stdin = json.dumps(script_payload(context, self.config), default=str).encode()
        env = await with_sdk(self.command, context.env)
        ended = await run_program(self.command, stdin=stdin, env=env, timeout_s=math.inf)
        if isinstance(ended, Failure):
            return Grade.errored(ended.code, ended.message)
        return read_verdict(ended, context.threshold)


@dataclass(frozen=True, slots=True)
class JudgeAggregator(DeclaredAssertion):
    """A judge decides on the grades."""

    prompt: Document | None = None
    judge: str | None = None

    needs_judge: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S

    async def grade(self, context: AssertionContext) -> Grade:
        """Ask the judge. Without a verdict, the grade is errored."""
        prompt = None if self.prompt is None else _current(self.prompt)
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
        return Grade(
            score=verdict.score,
            passed=passed,
            checks=checks,
            reason=verdict.reason,
            details=details_of(verdict),
            token_usage=verdict.token_usage,
            cost_usd=verdict.cost_usd,
        )


_OLDER = lazy_pattern(r"(\{\{-?\s*)EVALUATOR_RESULTS_JSON(\s*-?\}\})")


def _current(prompt: Document) -> Document:
    """The prompt with AgentV's name of the variable replaced by ours."""
    return replace(prompt, text=_OLDER.sub(r"\1results\2", prompt.text))


def aggregate_prompt_issues(prompt: Document) -> Iterator[Issue]:
    """Problems of an aggregator's judge prompt."""
    current = _current(prompt)
    if not is_criteria(current):
        yield from prompt_issues(current, "aggregate")
