"""`javascript`: JavaScript or TypeScript of the user's, inline or a function of a file (SPEC section 7.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar

from agentv.assertions.evidence import quoted
from agentv.assertions.user_code.grading_result import with_checks
from agentv.assertions.user_code.result import grade_of
from agentv.lazy_dataclass import dataclass
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade, reaches
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject
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
        payload = {**context.payload, "prompt": context.prompt, "config": self.config or context.config}
        answer = await context.services.javascript.grade(_source(self.value), payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"javascript {answer.message}")
        return _at_threshold(grade_of(with_checks(answer), "javascript"), answer, self.threshold)


def _source(value: JavaScriptSource) -> str:
    """How the process that runs it learns what to call."""
    if value.code is not None:
        return f"javascript:{value.code}"
    return f"function:{value.name or ''}:{value.path}"


def _at_threshold(grade: Grade, answer: JsonObject, threshold: float | None) -> Grade:
    """The grade judged by a threshold of the entry; a `pass: false` of the code's own stays one."""
    if threshold is None or grade.error is not None:
        return grade
    denied = any(answer.get(key) is False for key in ("pass", "passed"))
    passed = reaches(grade.score, threshold) and not denied
    checks = grade.checks
    if len(checks) == 1 and checks[0].text == "javascript":  # the one that was made of the verdict itself
        checks = (replace(checks[0], passed=passed, evidence=f"scores {grade.score:g}, threshold {threshold:g}"),)
    return replace(grade, passed=passed, checks=checks, own_mark=True)
