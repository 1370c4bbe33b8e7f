"""Types that run the user's code: `script`, a command, and `python`, inline or a function (SPEC section 8)."""

from __future__ import annotations

import ast
import json
import math
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import quoted
from agentv.assertions.services_for_workers import ADAPTERS
from agentv.assertions.user_code.result import at_threshold, from_python, grade_in_worker, grade_of, with_checks
from agentv.assertions.user_code.script_output import read_output
from agentv.model.run.context import AssertionContext, promptfoo_context
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject, plain_json
from agentv.ports import CodeCall
from agentv.registry.fields import (
    Alias,
    Command,
    Count,
    DeclaredAssertion,
    DirectoryPath,
    Doc,
    FileGlobs,
    Fraction,
    Issue,
    JavaScriptSource,
    PythonSource,
)
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program
from agentv.user_code.workers.adapters import context_of


@dataclass(frozen=True, slots=True)
class JudgeAccess:
    """Judge calls that a script may make."""

    max_calls: Annotated[Count, Doc("maximum number of calls per grading")] = 50


@dataclass(frozen=True, slots=True)
class Script(DeclaredAssertion):
    """Your own command grades the answer: it reads the case as JSON on stdin."""

    reads_criteria: ClassVar[bool] = True

    command: Annotated[Command, Alias(("script",)), Doc("a list of words, or a shell command")]
    cwd: Annotated[DirectoryPath | None, Doc("working directory; default: the eval file's directory")] = None
    config: Annotated[
        Mapping[str, Json],
        Doc("passed to the script as `config`, together with all keys of the entry that are not options"),
    ] = field(default=EMPTY)
    fingerprint: Annotated[
        FileGlobs | None, Doc("further files that the script depends on, besides those in its command")
    ] = None
    target: Annotated[
        JudgeAccess | bool | None, Doc("true, or a mapping: lets the script call the judge through a local proxy")
    ] = None

    short: ClassVar[str | None] = "command"
    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True
    extra_option: ClassVar[str | None] = "config"

    @property
    def needs_judge(self) -> bool:  # type: ignore[override]  # of most types it is a constant; here `target` decides
        """Whether the script may ask the judge."""
        return self.judge_access is not None

    @property
    def judge_access(self) -> JudgeAccess | None:
        """Judge calls that it may make."""
        if isinstance(self.target, bool):
            return JudgeAccess() if self.target else None
        return self.target

    def label(self) -> str:
        """The command."""
        return _cut(str(self.command))

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the command and read its output."""
        command = self.command if self.cwd is None else replace(self.command, cwd=self.cwd)
        stdin = json.dumps(script_payload(context, self.config), default=plain_json).encode()
        if self.judge_access is None:
            return await _run(command, stdin, context.env)
        from agentv.assertions.judged.judge_proxy import judge_proxy

        async with judge_proxy(context.services.judge(None), self.judge_access.max_calls) as access:
            grade = await _run(command, stdin, {**context.env, **access.env})
        return replace(grade, cost_usd=access.cost_usd, token_usage=access.token_usage)


async def _run(command: Command, stdin: bytes, env: Mapping[str, str]) -> Grade:
    # who grades an entry cancels it when its time is up, and the command ends with it
    ended = await run_program(command, stdin=stdin, env=await with_sdk(command, env), timeout_s=math.inf)
    return Grade.errored(ended.code, ended.message) if isinstance(ended, Failure) else read_output(ended)


@dataclass(frozen=True, slots=True)
class PythonCode(DeclaredAssertion):
    """Your own Python code grades the answer: an expression, a body that returns, or `file.py:function`."""

    reads_criteria: ClassVar[bool] = True

    value: Annotated[PythonSource, Doc("code over `output` and `context`, or a function of a file")]
    config: Annotated[Mapping[str, Json], Doc("available to the code as `context.config`")] = field(default=EMPTY)
    threshold: Annotated[Fraction | None, Doc("minimum score to pass")] = None

    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def validate(self) -> Iterable[Issue]:
        """Reports inline code that is not valid Python, or that returns nothing. The code is not run."""
        if self.value.code is not None:
            wrong = compile_inline(self.value.code)
            if isinstance(wrong, Failure):
                yield Issue(("value",), wrong.message, wrong.code)

    def label(self) -> str:
        """The code, or the function's name."""
        function = self.value.function
        return _cut(self.value.code or "" if function is None else function.name)

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the code in a worker."""
        function = self.value.function
        payload: JsonObject
        if function is None:
            adapter, payload = "agentv.assertions.user_code.script_and_python:called", {"code": self.value.code}
        else:
            adapter = f"{ADAPTERS}:by_name"
            offered: JsonObject = {
                "output": context.graded_value,
                "config": self.config or context.config,
                "vars": context.vars,
                "metadata": context.metadata,
                "criteria": context.criteria,
                "expected_output": context.reference,
                "prompt": context.prompt,
            }
            payload = {
                "offered": offered,
                "single": "output",
                "context_as": ("context", "ctx"),
                "by_position": ("output", "context"),  # what promptfoo passes
            }
        call = CodeCall(
            "grading",
            adapter,
            payload,
            code="assertion-raised",
            what="python",
            function="" if function is None else function.name,
            file=None if function is None else function.path,
            module=None if function is None else function.module,
        )
        return await grade_in_worker(context, call, self.config or None, self._read)

    def _read(self, value: object, subject: str) -> Grade:
        answer = from_python(value)
        return at_threshold(grade_of(answer, subject), self.threshold, subject)


def script_payload(context: AssertionContext, config: JsonObject) -> JsonObject:
    """Stdin of a script: the context, including its older names."""
    return {
        **context.payload,
        "config": config,
        "question": context.prompt,
        "expected_outcome": context.criteria,
        "candidate_answer": context.output,
        "reference_answer": context.reference,
        "sidecar": context.metadata,
    }


def _cut(text: str, limit: int = 60) -> str:
    return shorten(" ".join(text.split()), limit)


BAD_PYTHON = "bad-python"
_PLACE = "<python>"
_WRAPPER = "def assertion(output, context): ..."
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@lru_cache(maxsize=1024)
def compile_inline(code: str) -> CodeType | Failure:
    """Code that defines the function `assertion(output, context)`, or a Failure `bad-python`. Nothing is run.

    An expression is what the function returns; several statements are its body.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(textwrap.dedent(code).strip("\n")).body
            if len(body) == 1 and isinstance(body[0], ast.Expr):
                body = [ast.copy_location(ast.Return(body[0].value), body[0])]
            if not _returns(body):
                return Failure(BAD_PYTHON, "the code returns no verdict; end it with 'return …'")
            tree = ast.parse(_WRAPPER)
            tree.body[0].body = body  # type: ignore[attr-defined]  # the wrapper's one statement is a function
            return compile(tree, _PLACE, "exec")
    except SyntaxError as error:
        return Failure(BAD_PYTHON, f"not valid Python: {error.msg} (line {error.lineno})")
    except (ValueError, RecursionError, MemoryError) as error:
        return Failure(BAD_PYTHON, f"not valid Python: {str(error) or type(error).__name__}")


def called(_function: None, payload: Mapping[str, Any]) -> object:
    """In a worker: what inline code returns for an output and its context."""
    context = context_of(payload["context"])
    return inline_function(payload["code"])(context.graded_value, context)


@lru_cache(maxsize=1024)
def inline_function(code: str) -> Callable[[Json, Any], object]:
    """The function of inline code that `compile_inline` has validated."""
    compiled = compile_inline(code)
    if isinstance(compiled, Failure):
        raise TypeError(compiled.message)
    namespace: dict[str, Any] = {"__name__": "agentv_inline", "json": json}  # as in promptfoo
    exec(compiled, namespace)  # noqa: S102  # running the user's own code is what the type `python` is for
    return namespace["assertion"]  # type: ignore[no-any-return]  # the wrapper defines it


def _returns(statements: Iterable[ast.AST]) -> bool:
    """Whether a body returns something itself, not just a function inside it."""
    for node in statements:
        if isinstance(node, ast.Return):
            if node.value is not None:
                return True
        elif not isinstance(node, _SCOPES) and _returns(ast.iter_child_nodes(node)):
            return True
    return False


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
        value = self.value
        source = f"function:{value.name or ''}:{value.path}" if value.code is None else f"javascript:{value.code}"
        answer = await context.services.javascript.grade(source, payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"javascript {answer.message}")
        return at_threshold(grade_of(with_checks(answer), "javascript"), self.threshold, "javascript")
