"""Types that run the user's code: `script`, `python` and `javascript` (SPEC section 8)."""

from __future__ import annotations

import ast
import json
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CodeType
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec.structs import replace

from agentv.assertions.evidence import quoted
from agentv.assertions.services_for_workers import ADAPTERS
from agentv.assertions.user_code.result import (
    BAD_RESULT,
    at_threshold,
    from_python,
    grade_in_worker,
    grade_of,
    verdict_of,
    with_checks,
)
from agentv.model.run.context import AssertionContext, promptfoo_context
from agentv.model.run.grade import Grade, reaches
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject, lazy_pattern, plain_json
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
from agentv.user_code.excerpts import last_error
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import OUTPUT_LIMIT, Finished, run_program
from agentv.user_code.workers.adapters import context_of

FAILED = "script-failed"
_SIGNALS = range(129, 193)
"""Exit statuses by which a shell reports that its command was killed: 128 + the signal."""


class _UnclearError(Exception):
    """The output is too long to tell which object in it is the verdict."""


def script_grade(ended: Finished) -> Grade:
    """Return the grade of a script: from its JSON object, else from its exit status.

    A script that crashes gives no verdict, even if it printed one: the grade is errored with `script-failed`. It is
    errored with `bad-result` if the output begins like a JSON object but is invalid, has a duplicate key, or is
    another JSON value: whether `[]` or `42` with exit 0 means a pass is unknown.
    """
    try:
        return _grade(ended)
    except _UnclearError:
        return Grade.errored(BAD_RESULT, "script printed too much before its verdict; print less")


def aggregator_grade(ended: Finished, threshold: float) -> Grade:
    """Return the grade of an aggregator's command, which prints an object with a `score` or a verdict.

    AgentV's `verdict`, pass or fail, means the same as `pass`. Without either, the score must reach the threshold. The
    grade is errored if the command exits with another status than 0, or prints only text or nothing.
    """
    try:
        found, problem = _find_object(ended.stdout.decode(errors="replace").strip())
    except _UnclearError:
        found, problem = None, None
    if ended.status != 0 or problem is not None or found is None or found.get("verdict") is None:
        grade = script_grade(ended)
    else:
        grade = grade_of(_with_pass(found), "aggregator")
    if grade.error is not None:
        return grade
    given = {key for key in ("score", "pass", "passed", "verdict") if found is not None and found.get(key) is not None}
    if not given:
        return Grade.errored(BAD_RESULT, "the aggregator printed no JSON object with a 'score'")
    if given != {"score"}:
        return grade
    return replace(grade, passed=reaches(grade.score, threshold))


def _with_pass(found: Mapping[str, Json]) -> dict[str, Json]:
    row = {key: value for key, value in found.items() if key != "verdict"}
    word = found["verdict"]
    verdict: Json = {"pass": True, "fail": False}.get(word, str(word)) if isinstance(word, str) else str(word)
    return {**row, "passed" if "pass" in row else "pass": verdict}


def _grade(ended: Finished) -> Grade:
    printed = ended.stdout.decode(errors="replace").strip()
    stderr_message = last_error(ended.stderr)
    status = ended.status
    if status < 0 or status in _SIGNALS:
        signal = -status if status < 0 else status - 128
        return Grade.errored(FAILED, _with_error(f"script was killed by signal {signal}", stderr_message))
    verdict, problem = _find_object(printed)
    if status and (stderr_message or verdict is not None):
        after = " after it printed a verdict" if verdict is not None else ""
        return Grade.errored(FAILED, _with_error(f"script exited with {status}{after}", stderr_message))
    if verdict is not None or problem is not None:
        return grade_of(verdict, "script") if problem is None else Grade.errored(BAD_RESULT, problem)
    if printed.startswith("{"):
        return Grade.errored(BAD_RESULT, f"script did not print a JSON object: {shorten(printed, 200)}")
    if status == 0 and _is_other_json(printed):
        what = f"script printed {shorten(printed, 60)} and exited with 0, which is not a verdict"
        return Grade.errored(BAD_RESULT, f"{what}; print an object with 'pass', or plain text and exit with 0 or 1")
    return Grade.of(status == 0, shorten(printed, 2000) or f"exit {status}")


_MOST_READ = 2 * OUTPUT_LIMIT
"""Maximum number of characters parsed in total to find objects, which may begin on any line of an output."""

_LINE_BEGINS = lazy_pattern(r"^[ \t]*(?=\{)", re.MULTILINE)
_VERDICT_KEYS = frozenset({"score", "pass", "passed", "verdict", "assertions", "checks", "hits", "misses"})


class _Found(NamedTuple):
    """The object at the end of an output, or why it is not a verdict."""

    object: Mapping[str, Json] | None
    problem: str | None = None


def _find_object(printed: str) -> _Found:
    """Return the JSON object that an output ends with. Lines before it may come from libraries that are loading.

    Raises:
        _UnclearError: the output has too much to parse before the object.
    """
    objects = [*_objects(printed)]
    verdicts = [_outcome(found) for found, _, _ in objects if found.keys() & _VERDICT_KEYS]
    last, duplicate, end = objects[-1] if objects else (None, None, 0)
    if last is None or printed[end:].strip():
        late = "script printed text after its verdict; print the verdict last"
        return _Found(None, late if verdicts else None)
    if any(one != verdicts[0] for one in verdicts):
        return _Found(last, f"script printed {len(verdicts)} verdicts that disagree; print one")
    return _Found(last, duplicate and f"script printed an object with the duplicate key {duplicate!r:.80}")


def _objects(printed: str) -> Iterator[tuple[Mapping[str, Json], str | None, int]]:
    """Yield (object, duplicate key or None, end) for each JSON object that begins a line or follows another object."""
    budget, begin = _MOST_READ, _LINE_BEGINS.search(printed)
    while begin is not None:
        duplicates: list[str] = []
        try:
            found, end = json.JSONDecoder(object_pairs_hook=partial(_as_object, duplicates)).raw_decode(
                printed, begin.end()
            )
        except json.JSONDecodeError as error:
            budget -= error.pos - begin.start() + 1
            begin = _LINE_BEGINS.search(printed, begin.end() + 1)
        except RecursionError:
            budget -= len(printed) - begin.start()
            begin = _LINE_BEGINS.search(printed, begin.end() + 1)
        else:
            yield found, duplicates[0] if duplicates else None, end
            begin = _OBJECT_FOLLOWS.match(printed, end) or _LINE_BEGINS.search(printed, end)
        if budget < 0:
            raise _UnclearError


_OBJECT_FOLLOWS = lazy_pattern(r"[ \t]*(?=\{)")


def _as_object(duplicates: list[str], pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the object of these pairs, and append its duplicate keys to `duplicates`."""
    row = dict(pairs)
    if len(row) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        duplicates.extend(name for name in row if counts[name] > 1)
    return row


def _outcome(found: Mapping[str, Json]) -> object:
    """Return the outcome of a verdict, which is equal for two verdicts that agree."""
    verdict = verdict_of(_with_pass(found) if "verdict" in found else found)
    return verdict.message if isinstance(verdict, Failure) else (verdict.passed, verdict.score)


def _is_other_json(printed: str) -> bool:
    """Return whether the output is a JSON value that is neither an object nor `true`."""
    if printed == "null":
        return True
    try:
        found = json.loads(printed)
    except (ValueError, RecursionError):
        return False
    return found is not None and found is not True


def _with_error(message: str, stderr_message: str) -> str:
    return f"{message}: {stderr_message}" if stderr_message else message


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
    def needs_judge(self) -> bool:  # type: ignore[override]  # a constant in most types; here, `target` decides
        """Whether the script may call the judge."""
        return self.judge_access is not None

    @property
    def judge_access(self) -> JudgeAccess | None:
        """Judge calls that the script may make; None if it must not call the judge."""
        if isinstance(self.target, bool):
            return JudgeAccess() if self.target else None
        return self.target

    def label(self) -> str:
        """The command."""
        return _one_line(str(self.command))

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
    # no timeout here: the caller cancels the entry at its time limit, which ends the command
    ended = await run_program(command, stdin=stdin, env=with_sdk(env), timeout_s=math.inf)
    return Grade.errored(ended.code, ended.message) if isinstance(ended, Failure) else script_grade(ended)


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
        """Report inline code that is not valid Python, or that returns nothing. The code is not run."""
        if self.value.code is not None:
            wrong = compile_inline(self.value.code)
            if isinstance(wrong, Failure):
                yield Issue(("value",), wrong.message, wrong.code)

    def label(self) -> str:
        """The code, or the function's name."""
        function = self.value.function
        return _one_line(self.value.code or "" if function is None else function.name)

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the code in a worker."""
        function = self.value.function
        payload: JsonObject
        if function is None:
            adapter, payload = "agentv.assertions.user_code.script_and_python:run_inline", {"code": self.value.code}
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
    """Return the stdin of a script: the context, including its keys under older names."""
    return {
        **context.payload,
        "config": config,
        "question": context.prompt,
        "expected_outcome": context.criteria,
        "candidate_answer": context.output,
        "reference_answer": context.reference,
        "sidecar": context.metadata,
    }


def _one_line(text: str, limit: int = 60) -> str:
    return shorten(" ".join(text.split()), limit)


BAD_PYTHON = "bad-python"
_PLACE = "<python>"
_WRAPPER = "def assertion(output, context): ..."
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@lru_cache(maxsize=1024)
def compile_inline(code: str) -> CodeType | Failure:
    """Return code that defines the function `assertion(output, context)`, or a Failure `bad-python`. Nothing is run.

    The function returns the value of an expression; other code is its body.
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


def run_inline(_function: None, payload: Mapping[str, Any]) -> object:
    """Return the value of inline code for a context and its output. Runs in a worker."""
    context = context_of(payload["context"])
    return inline_function(payload["code"])(context.graded_value, context)


@lru_cache(maxsize=1024)
def inline_function(code: str) -> Callable[[Json, Any], object]:
    """Return the function of inline code that `compile_inline` has validated."""
    compiled = compile_inline(code)
    if isinstance(compiled, Failure):
        raise TypeError(compiled.message)
    namespace: dict[str, Any] = {"__name__": "agentv_inline", "json": json}  # as in promptfoo
    exec(compiled, namespace)  # noqa: S102  # running the user's own code is what the type `python` is for
    return namespace["assertion"]  # type: ignore[no-any-return]  # the wrapper defines it


def _returns(statements: Iterable[ast.AST]) -> bool:
    """Return whether a body itself returns a value, not just a function inside it."""
    for node in statements:
        if isinstance(node, ast.Return):
            if node.value is not None:
                return True
        elif not isinstance(node, _SCOPES) and _returns(ast.iter_child_nodes(node)):
            return True
    return False


@dataclass(frozen=True, slots=True)
class JavaScriptCode(DeclaredAssertion):
    """Your own JavaScript grades the answer: an expression, a body that returns, or a function of a file."""

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
        """Call the function in the long-lived JavaScript process. The caller cancels the entry at its time limit."""
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
