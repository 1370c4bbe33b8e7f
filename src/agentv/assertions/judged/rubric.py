"""`llm-rubric`: a judge grades the answer by a rubric, in one of the four modes of SPEC section 9."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import with_quotations
from agentv.assertions.judged.file_texts import with_file_texts
from agentv.assertions.judged.rubric_items import (
    AuthoredScale,
    Entries,
    RubricEntry,
    item_issues,
    items_of,
    label_text,
    scale_issues,
    scale_of,
    threshold_of,
)
from agentv.assertions.services_for_workers import ADAPTERS, services_of
from agentv.matching.spelling import nearest
from agentv.model.run.context import AssertionContext, wire_of_context
from agentv.model.run.grade import Check, Grade, reaches
from agentv.model.run.rubric import (
    JUDGED_VARIABLES,
    MAX_CHARS,
    MODE_VARIABLES,
    PROMPT_VARIABLES,
    RUBRIC_MARK,
    WRITER_NAMES,
    JudgeFailure,
    Rubric,
    RubricItem,
    RubricMode,
    Verdict,
)
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject, lazy_pattern, plain_json
from agentv.ports import CodeCall, Raised
from agentv.registry.fields import (
    Alias,
    Between,
    Command,
    DeclaredAssertion,
    Doc,
    Document,
    FromFile,
    FunctionRef,
    Issue,
    JavaScriptSource,
    Preprocessor,
    PromptCode,
    Text,
)
from agentv.templating import RenderError, undeclared
from agentv.user_code.excerpts import last_error
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program

PROMPT_FAILED = "judge-prompt-failed"

_PROMPT_ONLY = ("rubrics", "tool_calls", "file_changes", "context", "transcript")
"""Prompt variables that commands and JavaScript get besides the context of SPEC section 8, under the same names."""

WrittenPrompt = str | tuple[Message, ...] | Failure


@dataclass(frozen=True, slots=True)
class CodeWriter:
    """A PromptWriter that runs user code. The caller cancels it at the entry's time limit."""

    code: PromptCode

    async def write(self, values: Mapping[str, Json], context: AssertionContext) -> WrittenPrompt:
        """Return the prompt, or a Failure if the code raises, or returns or prints something else."""
        if self.code.function is not None:
            return await _from_python(self.code.function, values, self.code.config, context)
        # the context of SPEC section 8, and prompt variables under their older names
        payload = {
            **context.payload,
            **{name: values[name] for name in _PROMPT_ONLY if name in values},
            "config": self.code.config,
            "criteria": values["criteria"],
            "question": values["question"],
            "answer": values["output"],
            "candidate_answer": values["candidate_answer"],
            "reference_answer": values["reference_answer"],
            "expected_outcome": values["expected_outcome"],
            "sidecar": context.metadata,
        }
        if self.code.script is not None:
            return await _from_javascript(self.code.script, payload, context)
        return await _from_command(self.code.command or Command(), payload, context)


async def _from_python(
    function: FunctionRef, values: Mapping[str, Json], config: JsonObject, context: AssertionContext
) -> WrittenPrompt:
    others: dict[str, Any] = {"vars": context.vars, "config": config, "case_id": context.case_id}
    call = CodeCall(
        "grading",
        f"{ADAPTERS}:by_name",
        {
            "offered": {**dict.fromkeys(WRITER_NAMES, ""), **values, **others},
            "single": "ctx",
            "context_as": ("ctx",),
            "context": wire_of_context(context),
        },
        code=PROMPT_FAILED,
        what=function.name,
        function=function.name,
        file=function.path,
        module=function.module,
        env=dict(context.env) or None,
        handler=services_of(context),
    )
    found = await context.services.executor.python(call)
    if not isinstance(found, Raised):
        return _read(found.value, function.name)
    if found.code == "bad-result":
        return Failure(PROMPT_FAILED, f"{function.name} must return text or messages, not {found.cause}")
    return found


async def _from_javascript(script: JavaScriptSource, payload: JsonObject, context: AssertionContext) -> WrittenPrompt:
    name = (script.path or "").rpartition("/")[2]
    source = f"prompt:{script.name or ''}:{script.path}"
    found = await context.services.javascript.grade(source, payload, math.inf)
    if isinstance(found, Failure):
        raised = found.code in ("assertion-raised", "bad-result")
        return Failure(PROMPT_FAILED if raised else found.code, f"{name} {found.message}")
    return _read(found.get("prompt"), name)


async def _from_command(command: Command, payload: JsonObject, context: AssertionContext) -> WrittenPrompt:
    stdin = json.dumps(payload, default=plain_json).encode()
    ended = await run_program(command, stdin=stdin, env=with_sdk(context.env), timeout_s=math.inf)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        message = last_error(ended.stderr)
        return Failure(PROMPT_FAILED, f"it exited with {ended.status}{message and f': {message}'}")
    return _read(ended.stdout.decode(errors="replace").strip(), str(command))


def _read(value: object, what: str) -> WrittenPrompt:
    """Return a value as a prompt (text, a message or several), or a Failure if it is anything else."""
    if isinstance(value, str):
        return value if value.strip() else Failure(PROMPT_FAILED, f"{what} returned an empty prompt")
    given = [value] if isinstance(value, Mapping | Message) else value
    if not isinstance(given, list | tuple):
        return Failure(PROMPT_FAILED, f"{what} must return text or messages, not {type(value).__name__}")
    rows = [one.as_json() if isinstance(one, Message) else one for one in given]
    if not all(isinstance(one, Mapping) for one in rows):
        return Failure(PROMPT_FAILED, f"{what} must return text or messages, and an entry of its list is null")
    try:
        return messages_from_json(rows) or Failure(PROMPT_FAILED, f"{what} returned an empty list of messages")
    except ValueError as error:
        return Failure(PROMPT_FAILED, f"{what} returned an invalid message: {error}")


__all__ = ["LlmRubric", "RubricEntry", "prompt_issues"]

OWN_PROMPT = "your own judge prompt, inline or a path, or code that writes it; it must contain {{ output }}"
RUBRIC_PROMPT = f"{OWN_PROMPT}; without any placeholder, it is criteria in the built-in prompt"

JudgeName = Annotated[
    str | None,
    Alias(("target", "judge_target", "provider", "model")),
    Doc("the judge of this assertion; default: the judge in effect"),
]
Temperature = Annotated[float, Between(0, 2), Doc("sampling temperature of the judge")]


@dataclass(frozen=True, slots=True)
class LlmRubric(DeclaredAssertion):
    """A judge model grades the answer by a rubric."""

    reads_criteria: ClassVar[bool] = True

    value: Annotated[
        Annotated[Text, FromFile()] | Entries | None,
        Alias(("rubrics", "criteria")),
        Doc("the rubric: prose, `file://` and a path, or a list of sentences or items; default: the case's criteria"),
    ] = None
    prompt: Annotated[PromptCode | Document | None, Doc(RUBRIC_PROMPT)] = None
    judge: JudgeName = None
    temperature: Temperature = 0.0
    votes: Annotated[int, Between(1, 101), Doc("number of verdicts to request, odd; the median counts")] = 1
    scale: Annotated[
        AuthoredScale | None,
        Doc("lowest and highest points, as in 1-5, [1, 5] or {min: 1, max: 5}: the judge returns SCORE and REASON"),
    ] = None
    pass_threshold: Annotated[
        int | None,
        Doc("minimum points to pass; default: three quarters up the scale, 4 of 1-5"),
    ] = None
    max_chars: Annotated[
        int,
        Between(100),
        Doc("maximum characters of the answer in the judge prompt; a longer answer is cut in the middle"),
    ] = MAX_CHARS
    max_steps: Annotated[
        Annotated[int, Between(1, 50)] | None,
        Alias(("maxSteps",)),
        Doc("maximum steps of a judge that is an agent; without effect for a model"),
    ] = None
    preprocessors: Annotated[
        tuple[Preprocessor, ...] | None, Doc("commands that turn files in the answer into text; text files need none")
    ] = None

    short: ClassVar[str | None] = "value"
    needs_judge: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S
    title: ClassVar[str] = "llm-rubric"

    def label(self) -> str:
        """The rubric's first words."""
        if isinstance(self.value, tuple):
            more = f" (+{len(self.value) - 1})" if len(self.value) > 1 else ""
            return _brief(label_text(self.value[0])) + more if self.value else ""
        if self.value is not None:
            return _brief(self.value)
        if isinstance(self.prompt, PromptCode):
            return _brief(self.prompt.name)
        if self.prompt is not None and self.prompt.path is not None:
            return self.prompt.path.rpartition("/")[2]
        return _brief(self.prompt.text) if self.prompt is not None else "criteria"

    def validate(self) -> Iterable[Issue]:
        """Report empty rubrics, duplicate ids, all-zero weights, invalid ranges and scales, and unusable prompts."""
        if isinstance(self.value, tuple):
            yield from item_issues(self.value)
        elif self.value is not None and not self.value.strip():
            yield Issue(("value",), "the rubric is empty", code="missing-value")
        if self.votes % 2 == 0:
            near = f"write {self.votes - 1} or {self.votes + 1}"
            yield Issue(("votes",), f"an even number of votes, {self.votes}, has no median", hint=near)
        if self._scaled:
            yield from self._scale_issues()
        if self.max_steps is not None and not self.needs_agent:
            message = "'max_steps' has no effect: a model grades in one step"
            yield Issue(("max_steps",), message, "no-effect", warning=True)
        if isinstance(self.prompt, Document):
            yield from self._prompt_issues(self.prompt)

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterator[Issue]:
        """Report that value, prompt and criteria are all missing."""
        del variables, reference
        if self.value is None and self.prompt is None and not criteria:
            message = f"'{self.title}' needs 'value' or 'prompt', or 'criteria' of the case"
            yield Issue((), message, "missing-key")

    def rubric(self, criteria: str | None) -> Rubric | None:
        """Return the question to the judge, or None if value, prompt and criteria are all missing.

        Args:
            criteria: criteria of the case, which are used if there is no value.
        """
        items = items_of(self.value) if isinstance(self.value, tuple) else ()
        prompt = self.prompt
        if isinstance(prompt, Document) and is_criteria(prompt):
            criteria, prompt = prompt.text, None
            text = criteria
        else:
            text = self.value if isinstance(self.value, str) else "" if items else (criteria or "")
        if not items and not text.strip() and prompt is None:
            return None
        scale = scale_of(self.scale) if self._scaled else None
        return Rubric(
            mode=_mode_of(items, scale),
            text=text,
            items=items,
            **prompt_of(prompt),
            temperature=self.temperature,
            scale=scale,
            pass_threshold=threshold_of(scale, self.pass_threshold) if scale else None,
            votes=self.votes,
            max_chars=self.max_chars,
            looks=self.needs_agent,
        )

    async def grade(self, context: AssertionContext) -> Grade:
        """Ask the judge. Without an answer, a rubric or a verdict, the grade is errored."""
        rubric = self.rubric(context.criteria)
        if rubric is None:
            return Grade.errored(
                "nothing-to-judge", "llm-rubric has no value and no prompt, and the case has no criteria"
            )
        if context.output is None:
            return Grade.errored("no-output", "there is no answer to grade")
        shown = await with_file_texts(context, self.preprocessors or ())
        if isinstance(shown, Failure):
            return Grade.errored(shown.code, shown.message)
        verdict = await context.services.judge(self.judge).assess(rubric, shown)
        return (
            unjudged(verdict)
            if isinstance(verdict, Failure)
            else with_quotations(_judged(verdict, self.label()), context.output)
        )

    def _prompt_issues(self, prompt: Document) -> Iterator[Issue]:
        if not is_criteria(prompt):
            yield from prompt_issues(prompt)
            yield from _value_issues(prompt.text, self.value)
        elif not prompt.text.strip():
            yield Issue(("prompt",), "the judge prompt is empty", "missing-value", file=prompt.path)
        elif isinstance(self.value, str):
            message = "'prompt' has no placeholder, so it is criteria too; keep either 'value' or 'prompt'"
            yield Issue(("prompt",), message, "judge-prompt-without-rubric", file=prompt.path)
        else:
            yield from _bracket_issues(prompt)

    @property
    def _scaled(self) -> bool:
        return self.scale is not None or self.pass_threshold is not None

    def _scale_issues(self) -> Iterator[Issue]:
        yield from scale_issues(self.scale, self.pass_threshold)
        if isinstance(self.value, tuple):
            option = "scale" if self.scale is not None else "pass_threshold"
            hint = "for points per item, give each item 'score_ranges'"
            yield Issue((option,), f"'{option}' requires a rubric in prose, but 'value' is a list", hint=hint)


def prompt_of(prompt: PromptCode | Document | None) -> dict[str, Any]:
    """Return the fields of a Rubric that set its prompt."""
    if isinstance(prompt, PromptCode):
        return {"writer": CodeWriter(prompt), "prompt_path": prompt.name}
    return {} if prompt is None else {"prompt": prompt.text, "prompt_path": prompt.path}


def prompt_issues(prompt: Document, mode: RubricMode = "freeform") -> list[Issue]:
    """Return the problems of a judge prompt in a mode: invalid syntax, unknown variables, nothing to judge."""
    try:
        names = _names(prompt.text)
    except RenderError as error:
        return [Issue(("prompt",), error.message, code=error.code, file=prompt.path, line=error.line)]
    added = MODE_VARIABLES.get(mode, ())
    issues, known = [], tuple(dict.fromkeys((*PROMPT_VARIABLES, *added)))
    for name in sorted(names - _KNOWN.union(added)):
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else "the case's own variables are under 'vars'"
        message = f"'{name}' is not a variable of a judge prompt; available: {', '.join(known)}"
        issues.append(Issue(("prompt",), message, "undefined-variable", hint, file=prompt.path, name=name))
    for shown in JUDGED_VARIABLES.get(mode, ("output",)):
        if shown not in _canonical(names) | names:
            what = "answer" if shown == "output" else shown
            hint = f"put {{{{ {shown} }}}} where the judge should read it"
            message = f"the judge prompt does not contain the {what}"
            issues.append(Issue(("prompt",), message, code="judge-prompt-without-output", hint=hint))
    return issues


def is_criteria(prompt: Document) -> bool:
    """Return whether a judge prompt has no placeholder, so that it is criteria for the built-in prompt, as in AgentV.

    A prompt with invalid syntax is not criteria. Nor is a single word or a line that ends like the name of a text
    file: it is probably a file that does not exist.
    """
    text = prompt.text.strip()
    if "{{" in text or "{%" in text:
        return False
    word = len(text.split()) == 1 and text.isascii()
    return prompt.path is not None or not (word or _FILE_NAME.fullmatch(text))


def _bracket_issues(prompt: Document) -> Iterator[Issue]:
    """Warn about a variable in other brackets, which would be text in the criteria instead of a placeholder."""
    found = _OTHER_BRACKETS.search(prompt.text)
    if found is not None:
        name = next(group for group in found.groups() if group)
        message = f"{found[0]} is not a placeholder, so this prompt is read as criteria in the built-in prompt"
        hint = f"for a prompt of your own, write {{{{ {name} }}}}"
        line = prompt.text.count("\n", 0, found.start()) + 1 if prompt.path else None
        yield Issue(
            ("prompt",), message, "judge-prompt-without-output", hint, warning=True, file=prompt.path, line=line
        )


def _judged(verdict: Verdict, label: str) -> Grade:
    score = verdict.counted
    passed = reaches(score, RUBRIC_MARK) if verdict.passed is None else verdict.passed
    own_checks = () if verdict.checks else (Check(verdict.reason or label, passed),)
    votes = verdict.votes
    if votes:
        text = f"median of {len(votes)} votes: {verdict.counted:.2f}, from {min(votes):.2f} to {max(votes):.2f}"
        own_checks = (*own_checks, Check(text, passed, ", ".join(f"{vote:.2f}" for vote in votes)))
    return replace(
        grade_of_verdict(verdict, passed, (*verdict.checks, *own_checks)),
        score=score,
        has_own_threshold=verdict.passed is not None,
        undecided=verdict.undecided,
        threshold_checks=len(own_checks),
        needs=RUBRIC_MARK if verdict.passed is None else None,
    )


def grade_of_verdict(verdict: Verdict, passed: bool, checks: tuple[Check, ...]) -> Grade:
    """Return a grade with the score, the reason, the votes and the cost of a verdict."""
    votes = verdict.votes
    voted: JsonObject = {"votes": list(votes), "spread": {"min": min(votes), "max": max(votes)}} if votes else EMPTY
    shared: JsonObject = {"shared": True} if verdict.shared else EMPTY
    return Grade(
        score=verdict.score,
        passed=passed,
        checks=checks,
        reason=verdict.reason,
        details={**verdict.details, **voted, **shared},
        token_usage=verdict.token_usage,
        cost_usd=verdict.cost_usd,
        asked_judge=verdict.asked,
    )


def unjudged(failure: Failure) -> Grade:
    """Return the errored grade for a judge that gave no verdict, with its reply."""
    failed = failure if isinstance(failure, JudgeFailure) else JudgeFailure(failure.code, failure.message)
    return Grade(
        score=0.0,
        passed=False,
        reason=failure.message,
        details={"judge_reply": failed.reply} if failed.reply else EMPTY,
        error=Failure(failure.code, failure.message, failure.retryable),
        token_usage=failed.token_usage,
        cost_usd=failed.cost_usd,
    )


def _mode_of(items: tuple[RubricItem, ...], scale: tuple[int, int] | None) -> RubricMode:
    if items:
        return "score-ranges" if items[0].score_ranges else "checklist"
    return "freeform" if scale is None else "scale"


def _brief(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59].rstrip() + "…"


_KNOWN = frozenset((*PROMPT_VARIABLES, "vars", "env"))

_FILE_NAME = lazy_pattern(r"[^\n]+\.(?:md|txt|j2|jinja2?|prompt|xml|tmpl|hbs)")
_NAMED = "|".join(PROMPT_VARIABLES)
_OTHER_BRACKETS = lazy_pattern(rf"\$?\{{ *({_NAMED}) *\}}|<({_NAMED})>|<<({_NAMED})>>|\[\[({_NAMED})\]\]|%({_NAMED})%")
"""A variable of a judge prompt in the brackets of other template languages."""

_names = lru_cache(maxsize=64)(undeclared)
"""The variables of a prompt. Cached, because a suite's prompt is checked for every case."""


def _value_issues(prompt: str, value: str | tuple[RubricEntry | str, ...] | None) -> Iterator[Issue]:
    """Report a value that the prompt does not contain, because it would be ignored silently."""
    if value is None:
        return
    try:
        shown = _canonical(_names(prompt))
    except RenderError:  # already reported
        return
    if not shown & ({"rubrics"} if isinstance(value, tuple) else {"rubrics", "criteria"}):
        message = "the judge prompt does not contain the rubric in 'value'"
        hint = "put {{ rubrics }} where the judge should read it"
        yield Issue(("prompt",), message, code="judge-prompt-without-rubric", hint=hint)


def _canonical(names: Iterable[str]) -> set[str]:
    return {PROMPT_VARIABLES[name] for name in names if name in PROMPT_VARIABLES}
