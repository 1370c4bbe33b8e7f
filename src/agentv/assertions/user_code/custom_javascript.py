"""Custom assertions in TypeScript and JavaScript, graded by the long-lived process of `services.javascript`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from agentv.assertions.user_code.custom_options import label_of, merge_config
from agentv.assertions.user_code.grading_result import with_checks
from agentv.assertions.user_code.result import grade_of
from agentv.model.run.context import AssertionContext, promptfoo_context
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.registry.fields import Issue


@dataclass(frozen=True, slots=True)
class JavaScriptType:
    """A `.ts`, `.js`, `.mts` or `.mjs` file in `.agentv/assertions/`. It takes any option."""

    name: str
    path: str

    short: ClassVar[str | None] = "value"
    options: ClassVar[tuple[str, ...] | None] = None

    def build(self, options: JsonObject) -> JavaScriptAssertion | list[Issue]:
        """The assertion with these options, or a clash between them and `config:`."""
        config, issues = merge_config(options)
        return issues or JavaScriptAssertion(self.name, self.path, config)


@dataclass(frozen=True, slots=True)
class JavaScriptAssertion:
    """One entry of a custom type: the options that reach its function as `config`, and as `value`."""

    type: str
    path: str
    config: JsonObject

    needs_judge: ClassVar[bool] = False
    timeout_s: ClassVar[float] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True
    runs_javascript: ClassVar[bool] = True

    def label(self) -> str:
        """Its options."""
        return label_of(self.config)

    async def grade(self, context: AssertionContext) -> Grade:
        """Have the file's default export grade the answer."""
        value = {"value": self.config.get("value")} if self.config else {}
        context = replace(context, config=self.config) if self.config else context
        # promptfoo's context is for a function of (output, context)
        payload = {**context.payload, **value, "promptfoo": promptfoo_context(context)}
        # who grades an entry cancels it when its time is up, so the process need not watch the clock too
        answer = await context.services.javascript.grade(self.path, payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"{self.type} {answer.message}")
        return grade_of(with_checks(answer), self.type)
