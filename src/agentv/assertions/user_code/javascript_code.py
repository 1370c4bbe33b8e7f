"""`javascript`: JavaScript or TypeScript of the user's, inline or a function of a file (SPEC section 7.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import quoted
from agentv.assertions.user_code.grading_result import at_threshold, with_checks
from agentv.assertions.user_code.result import grade_of
from agentv.model.run.context import AssertionContext, promptfoo_context
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json
from agentv.registry.fields import DeclaredAssertion, Doc, Fraction, JavaScriptSource


@dataclass(frozen=True, slots=True)
class JavaScriptCode(DeclaredAssertion):
    """JavaScript of yours judges the answer: an expression, a body that returns, or a function of a file."""

    value: Annotated[
        JavaScriptSource, Doc("code over `output` and `context`, or a file: ./check.ts, file://check.js:function")
    ]
    threshold: Annotated[Fraction | None, Doc("minimum score to pass")] = None
    config: Annotated[Mapping[str, Json], Doc("available to the code as `context.config`")] = field(default=EMPTY)

    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The code, or the file's name."""
        if self.value.code is not None:
            return quoted(self.value.code)[1:-1]
        return str(self.value).rpartition("/")[2]

    async def grade(self, context: AssertionContext) -> Grade:
        """Have the long-lived process call the function. Who grades an entry cancels it when its time is up."""
        if self.config:
            context = replace(context, config=self.config)
        payload = {**context.payload, "prompt": context.prompt, "promptfoo": promptfoo_context(context)}
        if not isinstance(context.graded_value, str | None):
            payload["structured"] = context.graded_value
        answer = await context.services.javascript.grade(_source(self.value), payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"javascript {answer.message}")
        return at_threshold(grade_of(with_checks(answer), "javascript"), self.threshold, "javascript")


def _source(value: JavaScriptSource) -> str:
    """How the process that runs it learns what to call."""
    if value.code is not None:
        return f"javascript:{value.code}"
    return f"function:{value.name or ''}:{value.path}"
