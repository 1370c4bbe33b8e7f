"""Combine each case with each prompt of its suite, including prompts of functions (SPEC section 3, `prompts`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.cases.messages import read_messages
from agentv.authoring.cases.prompts import SuitePrompt
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, Scalar, node_of, plain, span_of
from agentv.authoring.source.python_values import as_authored
from agentv.authoring.source.report import LONGEST, Report
from agentv.errors import Diagnostic
from agentv.model.suite.suite import CODE_TIMEOUT_S, Case, TargetSpec
from agentv.model.values.formatting import shorten
from agentv.model.values.message import Message, prompt_text
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, JsonObject
from agentv.ports import CodeCall
from agentv.registry.fields import FunctionRef
from agentv.templating import UNREADABLE, Scope
from agentv.user_code.guard import ForeignError

SHOWN = 100
"""Maximum number of distinct problems of prompts that are reported."""

Extend = Callable[[tuple[Message, ...], Node], "tuple[Message, ...] | None"]
"""(a prompt's messages, its node) → the messages with the suite's input and files; None if those are invalid."""


class PromptMatrix:
    """Expands a case to one case per prompt.

    Problems of a prompt are collected over all cases, and reported once by `end`.

    Args:
        prompts: the suite's prompts.
        digest: computes the hash of the content that determines a case.
    """

    def __init__(self, prompts: Sequence[SuitePrompt], digest: Callable[[Any], str]) -> None:
        self._prompts = prompts
        self._digest = digest
        self._issues: dict[tuple[object, ...], _PromptIssue] = {}
        self._answers: dict[tuple[str, str], Node | Failure] = {}  # a function is called once for the same variables
        self._has_called = False

    def cases(self, case: Case, targets: Sequence[TargetSpec], reading: Reading, extend: Extend) -> tuple[Case, ...]:
        """One case per prompt, in order; () if a prompt cannot be rendered for the case.

        Args:
            case: the case, whose own input prompts see as `{{ input }}`.
            targets: targets that it runs on, which prompt functions see as `provider`.
            reading: the case's `Reading`, with its variables.
            extend: adds the suite's input and files.
        """
        names = {"input": prompt_text(case.input)} if case.input else EMPTY
        within = reading.within(Scope(reading.scope.vars, reading.scope.env, names))
        made = [self._case(case, prompt, targets, within, extend) for prompt in self._prompts]
        return tuple(one for one in made if one is not None) if None not in made else ()

    def end(self, report: Report) -> None:
        """Report the collected problems, after the last case."""
        for issue in self._issues.values():
            if issue.found.code == "unset-environment" or issue.found.message.startswith(UNREADABLE):
                where = ""  # the same for all cases
            elif issue.cases == 1:
                where = f", in the case '{issue.first}'"
            else:
                where = f", in {issue.cases:,} cases, first in '{issue.first}'"
            message = shorten(issue.found.message, LONGEST - len(where))
            report.add(replace(issue.found, message=f"{message}{where}"))
        for prompt in () if self._has_called else self._prompts:
            if prompt.function is not None:
                message = f"'{prompt.id}' is not called here: its prompts are checked when they run"
                report.remark("unchecked-cases", prompt.node if isinstance(prompt.node, Scalar) else None, message)

    def _case(
        self, case: Case, prompt: SuitePrompt, targets: Sequence[TargetSpec], reading: Reading, extend: Extend
    ) -> Case | None:
        from agentv.authoring.cases.prompts import filled

        own = Report()
        prompted = (
            prompt.node
            if prompt.function is None
            else self._from_function(prompt, case, targets, structs.replace(reading, report=own))
        )
        if prompted is None:
            self._note(own.diagnostics, case.id)
            return None
        within = structs.replace(reading, report=own, renders=prompt.templated)
        messages = filled(prompt.sections, within) if prompt.sections else read_messages(prompted, "user", within)
        if messages is not None and not any(message.content or message.tool_calls for message in messages):
            own.error("missing-input", prompt.node, "this prompt is empty after its placeholders are filled in")
        before_user = case.input if case.user is not None and not prompt.shows_input else ()
        if case.input and not prompt.shows_input and not before_user:
            hint = "write {{ input }} where the prompt should contain it"
            own.warning("input-not-shown", prompt.node, "this prompt does not use the case's 'input'", hint=hint)
        whole = extend((*messages, *before_user), prompt.node) if messages is not None and not own.failed else None
        digest = self._digest_of(case, whole, prompt, own) if whole is not None else None
        if own.count:
            self._note(own.diagnostics, case.id)
        if whole is None or digest is None:
            return None
        return structs.replace(case, input=whole, prompt_id=prompt.id, sha256=digest)

    def _note(self, found: Iterable[Diagnostic], case_id: str) -> None:
        """Collect the problems of rendering a prompt for one case."""
        for one in found:
            key = (one.code, one.span, one.message)
            issue = self._issues.get(key)
            if issue is None:
                if len(self._issues) < SHOWN:
                    self._issues[key] = _PromptIssue(one, 1, case_id, case_id)
            elif issue.last != case_id:  # a line with errors is read twice, to locate them
                issue.cases += 1
                issue.last = case_id

    def _digest_of(self, case: Case, messages: tuple[Message, ...], prompt: SuitePrompt, report: Report) -> str | None:
        try:
            return self._digest((case.sha256, messages))
        except UnicodeEncodeError:
            message = "this prompt contains half of a character (a lone surrogate), which cannot be sent"
            report.error("not-unicode", prompt.node, message)
            return None

    def _from_function(
        self, prompt: SuitePrompt, case: Case, targets: Sequence[TargetSpec], reading: Reading
    ) -> Node | None:
        """The prompt that a function writes for a case: text or messages; None if it fails, which is reported.

        A case has one prompt for all targets, so the function must return the same for each of them.
        """
        if not reading.strict_env:  # nothing runs, as in `validate`: stand in with the function's name
            return Scalar(prompt.id, prompt.id, prompt.node.at)
        self._has_called = True
        providers: list[JsonObject] = [_provider(one) for one in targets] or [{}]
        found = [self._cached_call(prompt, case, one, reading) for one in providers]
        if any(one is None for one in found):
            return None
        if any(one is not None and found[0] is not None and plain(one) != plain(found[0]) for one in found):
            message = f"{prompt.id} writes different prompts for different targets"
            hint = "run one target at a time, with --target, or write a suite for each"
            reading.report.error(BAD_PROMPT, prompt.node, message, hint=hint)
            return None
        return found[0]

    def _cached_call(self, prompt: SuitePrompt, case: Case, provider: JsonObject, reading: Reading) -> Node | None:
        context: JsonObject = {
            "vars": case.vars,
            "input": prompt_text(case.input) if case.input else "",
            "provider": provider,
            "config": {},
        }
        key = (prompt.id, json.dumps(context, sort_keys=True, default=str))
        if key not in self._answers:
            self._answers[key] = self._call(prompt, context, reading)
        found = self._answers[key]
        if isinstance(found, Failure):
            reading.report.error(found.code, prompt.node, found.message)
            return None
        return found

    def _call(self, prompt: SuitePrompt, context: JsonObject, reading: Reading) -> Node | Failure:
        function = prompt.function
        name = Path(str(function)).name
        try:
            if isinstance(function, FunctionRef):
                from agentv.user_code.blocking import ADAPTERS, call_blocking  # few suites have such prompts

                call = CodeCall(
                    "authoring",
                    f"{ADAPTERS}:by_name",
                    {"offered": {**context, "context": context}, "single": "context"},
                    code=BAD_PROMPT,
                    what=name,
                    function=function.name,
                    file=function.path,
                    module=function.module,
                    env=dict(reading.scope.env) or None,
                )
                given = call_blocking(call, CODE_TIMEOUT_S)
            else:
                from agentv.user_code.blocking import call_javascript

                source = f"call:{getattr(function, 'name', None) or ''}:{getattr(function, 'path', '')}"
                given = call_javascript(source, {"arguments": [context]}, reading.scope.env, CODE_TIMEOUT_S)
                if isinstance(given, Failure):
                    raised = given.code in ("assertion-raised", "assertion-crashed", "bad-result")
                    return Failure(BAD_PROMPT if raised else given.code, f"{name} {given.message}")
            value = as_authored(given, name, BAD_PROMPT)
        except ForeignError as error:
            return error.failure
        if isinstance(value, Mapping) and "prompt" in value:  # promptfoo's form
            if value.get("config"):
                message = f"{name} returns 'config', which a prompt cannot set; write the settings in the target"
                return Failure(BAD_PROMPT, message)
            value = value["prompt"]
        if isinstance(value, str):
            value = _messages_in(value)
        if not isinstance(value, str | list) and not (isinstance(value, Mapping) and "role" in value):
            found = "nothing" if value is None else type(value).__name__
            message = f"{name} must return the text of a prompt or a list of messages, returned {found}"
            return Failure(BAD_PROMPT, message)
        return node_of(value, span_of(prompt.node.at))


class _PromptIssue(Struct):
    """A problem of a prompt, with the number of cases that have it, and the first and last of them."""

    found: Diagnostic
    cases: int
    first: str
    last: str


BAD_PROMPT = "bad-prompt"


def _provider(target: TargetSpec) -> JsonObject:
    """A target as promptfoo shows a provider to functions."""
    model = getattr(target.settings, "model", None)
    return {"id": f"{target.provider}:{model}" if isinstance(model, str) else target.provider, "label": target.name}


def _messages_in(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value and all(isinstance(one, dict) and "role" in one for one in value) else text
