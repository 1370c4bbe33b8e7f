import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.app.wiring import SystemClock
from agentv.engine.grading import grade_entries
from agentv.judge.target import TargetJudge
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings, Transform
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.user_code.javascript.host import JavaScriptHost
from agentv.user_code.threads import DaemonThreads
from doubles.grading import Services, context_of
from doubles.judges import FixedReplies, JudgeServices
from doubles.nested_grading import CallbackAssertion, FixedGrade, entry
from doubles.run_contexts import FixedClock

HALF = Grade(0.5, False, (Check("half", False),))


def scores(*entries: Any, output: str = "hi", **given: Any) -> Any:
    async def main() -> Any:
        executor, javascript = DaemonThreads(), JavaScriptHost()
        try:
            context = context_of(output, _services=Services(executor, javascript), **given)
            return await grade_entries(entries, context, FixedClock())
        finally:
            await javascript.close()
            await executor.aclose()

    return asyncio.run(main())


def raises(error: BaseException) -> Any:
    def action(_context: Any) -> Grade:
        raise error

    return CallbackAssertion(action)


@pytest.mark.parametrize(
    ("grade", "settings", "threshold", "passed"),
    [
        (Grade(0.7, True), {"required": True}, 0.8, False),
        (Grade(0.8, True), {"required": True}, 0.8, True),
        (Grade(0.8 - 1e-12, True), {"required": True}, 0.8, True),
        (Grade(0.7, True), {"required": True, "min_score": 0.5}, 0.8, True),
        (Grade(0.7, True, has_own_threshold=True), {"required": True}, 0.8, True),
        (Grade(0.7, True), {"required": 0.6}, 0.8, True),
        (Grade(0.9, False), {"required": True}, 0.8, False),
        (Grade(0.7, False), {"required": True, "negate": True}, 0.8, False),
        (Grade(0.1, False), {"required": True, "negate": True}, 0.8, True),
    ],
)
def test_a_required_grade_reaches_the_threshold_of_the_case(grade, settings, threshold, passed):
    (one,) = scores(entry(FixedGrade(grade), **settings), threshold=threshold)
    assert one.grade.passed is passed


def test_an_errored_required_grade_stays_errored():
    given = Grade.errored("judge-failed", "no verdict")
    (one,) = scores(entry(FixedGrade(given), required=True), threshold=0.8)
    assert one.grade == given


def test_negation_comes_before_the_pass_mark():
    (one,) = scores(entry(FixedGrade(HALF), negate=True, min_score=0.5))
    assert one.grade.score == 0.5
    assert one.grade.passed
    (other,) = scores(entry(FixedGrade(Grade(0.2, False)), negate=True, min_score=0.9))
    assert other.grade.score == 0.8
    assert not other.grade.passed


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(0), RecursionError(), MemoryError()])
def test_what_an_assertion_raises_is_its_errored_grade(error):
    broken, fine = scores(entry(raises(error)), entry(FixedGrade(Grade.of(True, "fine"))))
    assert broken.grade.error.code == "assertion-raised"
    assert fine.grade.passed


def test_an_error_stays_an_error_under_negation():
    (one,) = scores(entry(raises(ValueError("no")), negate=True, min_score=0.0))
    assert one.grade.error is not None
    assert not one.grade.passed


def test_a_grade_that_never_comes_is_errored_in_time():
    async def never(_context: Any) -> Grade:
        await asyncio.Event().wait()
        raise AssertionError

    (one,) = scores(entry(CallbackAssertion(never), timeout_s=0.01))
    assert one.grade.error.code == "timeout"


def looks(context: Any) -> Grade:
    return Grade(1.0, True, (Check(str(context.output), True, None, ((0, 1),)),))


@pytest.mark.parametrize(
    ("transform", "seen"),
    [
        (Transform("jinja", "output | upper"), '{"A": {"B": [1, 2]}}'),
        (Transform("jinja", "json.a.b[1]"), "2"),
        (Transform("path", "$.a.b"), "[1, 2]"),
    ],
)
def test_transform_reshapes_what_one_assertion_sees(transform, seen):
    reshaped, plain = scores(
        entry(CallbackAssertion(looks), transform=transform),
        entry(CallbackAssertion(looks)),
        output='{"a": {"b": [1, 2]}}',
    )
    assert reshaped.grade.checks[0].text == seen
    assert plain.grade.checks[0].text == '{"a": {"b": [1, 2]}}'
    assert (reshaped.grade.checks[0].spans, plain.grade.checks[0].spans) == ((), ((0, 1),))


@pytest.mark.parametrize(
    "transform",
    [Transform("path", "$.missing"), Transform("jinja", "no.x"), Transform("jinja", "1 / 0"), Transform("path", "$.a")],
)
def test_a_transform_that_fails_is_an_errored_grade(transform):
    (one,) = scores(entry(CallbackAssertion(looks), transform=transform), output="no json")
    assert one.grade.error.code == "transform-failed"


@pytest.mark.parametrize("transform", [Transform("path", "$.a"), Transform("path", "$[0]")])
@pytest.mark.parametrize("answer", ["[" * 100_000 + "]" * 100_000, '[{"a":' * 50_000 + "1" + "}]" * 50_000])
def test_json_that_is_nested_too_deep_is_not_reshaped(transform, answer):
    (one,) = scores(entry(CallbackAssertion(looks), transform=transform), output=answer)
    assert one.grade.error.code == "transform-failed"
    assert "nested too deep" in one.grade.error.message


def test_what_a_transform_gives_may_be_no_json(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text("def odd(output):\n    held = []\n    held.append(held)\n    return held\n")
    (one,) = scores(entry(CallbackAssertion(looks), transform=Transform("function", "odd", str(file))), output="a")
    assert one.grade.error.code == "transform-failed"
    assert "contains itself" in one.grade.error.message


@pytest.mark.parametrize(
    ("expression", "code", "said"),
    [
        ("undefined", "empty-output", "the transform 'undefined' returned nothing for the answer 'a'"),
        ("null", "empty-output", "returned nothing"),
        ("output.a.b", "transform-failed", "raised TypeError"),
        ("]]", "cannot-load", "SyntaxError"),
        ("() => () => 1", "transform-failed", "a function"),
    ],
)
def test_javascript_that_gives_nothing_is_an_errored_grade(expression, code, said):
    (one,) = scores(entry(CallbackAssertion(looks), transform=Transform("javascript", expression)), output="a")
    assert one.grade.error.code == code
    assert said in one.grade.error.message


EMPTY_SHAPES = """\
def text(output):
    return " \\n"

def nothing(output):
    return None

async def later(output):
    return ""
"""

EMPTYING = {
    "an expression": Transform("jinja", "output | replace('secret', '')"),
    "an expression without a value": Transform("jinja", "none"),
    "white space": Transform("jinja", "' \\n\\t'"),
    "a path to an empty text": Transform("path", "$.empty"),
    "a path to null": Transform("path", "$.none"),
    "a function": Transform("function", "text", "empty.py"),
    "a function without a result": Transform("function", "nothing", "empty.py"),
    "a coroutine": Transform("function", "later", "empty.py"),
    "JavaScript": Transform("javascript", "''"),
    "JavaScript without a result": Transform("javascript", "() => {}"),
    "a file of JavaScript": Transform("javascript-file", "", "empty.mjs"),
}


def emptied(tmp_path: Any, name: str, output: str, **given: Any) -> Any:
    """Return the score of a check that passes for an empty text, after a transform that returns one."""
    (tmp_path / "empty.py").write_text(EMPTY_SHAPES)
    (tmp_path / "empty.mjs").write_text("export default () => '  ';\n")
    transform = EMPTYING[name]
    placed = replace(transform, file=transform.file and str(tmp_path / transform.file))
    check = CallbackAssertion(lambda context: Grade.of("secret" not in (context.output or ""), "no secret"))
    return scores(entry(check, transform=placed), output=output, **given)[0].grade


NULLS = '{"empty": "", "none": null, "said": "the secret"}'


@pytest.mark.parametrize("name", EMPTYING)
def test_a_transform_that_makes_an_answer_empty_is_an_errored_grade(name, tmp_path):
    grade = emptied(tmp_path, name, {"an expression": "secret"}.get(name, NULLS))
    assert not grade.passed
    assert grade.error.code == "empty-output"
    made = "nothing" if "without" in name or "null" in name else "an empty text"
    assert f" returned {made} for the answer " in grade.error.message
    assert str(tmp_path) not in grade.error.message


@dataclass(frozen=True)
class ReadsFiles(CallbackAssertion):
    reads_files: bool = True


@dataclass(frozen=True)
class RunsCode(CallbackAssertion):
    runs_code: bool = True


@dataclass(frozen=True)
class Several(CallbackAssertion):
    inner: tuple[Any, ...] = ()


def noting(log: list[str], name: str) -> Any:
    def action(_context: Any) -> Grade:
        log.append(name)
        return Grade.of(True, name)

    return action


@pytest.mark.parametrize(("workspace", "order"), [("/w", "bdeacf"), (None, "abcdef")])
def test_files_are_read_before_commands_of_graders_change_them(workspace, order):
    log: list[str] = []
    reads, runs = entry(ReadsFiles(noting(log, "-"))), entry(RunsCode(noting(log, "-")))
    entries = [
        entry(RunsCode(noting(log, "a"))),
        entry(ReadsFiles(noting(log, "b"))),
        entry(Several(noting(log, "c"), (reads, runs))),
        entry(Several(noting(log, "d"), (reads,))),
        entry(ReadsFiles(noting(log, "e"))),
        entry(CallbackAssertion(noting(log, "f"))),
    ]
    found = scores(*entries, workspace_path=workspace)
    assert "".join(log) == order
    assert [one.grade.checks[0].text for one in found] == list("abcdef")
    assert [one.entry for one in found] == entries


@dataclass(frozen=True)
class Judged(CallbackAssertion):
    """An assertion that calls a judge."""

    needs_judge = True
    timeout_s = JUDGE_TIMEOUT_S


@pytest.mark.parametrize(
    ("judge_s", "entry_s", "why"),
    [
        (0.02, None, "no grade after 0.02 s; raise 'timeout_s' of the judge 'strict', or of the assertion"),
        (None, 0.01, "no grade after 0.01 s; raise 'timeout_s' of the assertion"),
        (9.0, 0.01, "no grade after 0.01 s; raise 'timeout_s' of the assertion"),
    ],
)
def test_a_grade_may_take_as_long_as_its_judge_and_a_late_one_names_the_setting_to_raise(judge_s, entry_s, why):
    async def never(_context: Any) -> Any:
        await asyncio.Event().wait()

    judge = TargetJudge(FixedReplies(["?"]), "strict", **({"timeout_s": judge_s} if judge_s else {}))
    context = context_of("hi", _services=JudgeServices(judge))
    (one,) = asyncio.run(grade_entries([entry(Judged(never), timeout_s=entry_s)], context, FixedClock()))
    assert (one.grade.error.code, one.grade.error.message) == ("timeout", why)


PASSED, FAILED = Grade.of(True, "yes"), Grade.of(False, "no")


@dataclass(frozen=True)
class Plain:
    given: Any

    def label(self):
        return ""

    def grade(self, context):
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


@dataclass(frozen=True)
class Async(Plain):
    async def grade(self, context):
        return Plain.grade(self, context)


@dataclass(frozen=True)
class Later(Async):
    def grade(self, context):
        return super().grade(context)


@dataclass(frozen=True)
class Twice(Async):
    async def grade(self, context):
        return super().grade(context)  # an unawaited coroutine


def graded(assertion, **settings) -> Grade:
    async def grade():
        executor = DaemonThreads()
        context = AssertionContext((), "answer", _services=SimpleNamespace(executor=executor))
        entry = AssertionEntry("nice", assertion, AssertionSettings(**settings), plugin="acme-evals 1.2 abc")
        (score,) = await grade_entries([entry], context, SystemClock())
        await executor.aclose()
        return score.grade

    return asyncio.run(grade())


@pytest.mark.parametrize("kind", [Plain, Async, Later, Twice])
def test_every_way_to_grade_is_taken(kind):
    assert graded(kind(PASSED)) == PASSED
    assert graded(kind(FAILED)) == replace(FAILED, has_own_threshold=True)
    assert graded(kind(FAILED), negate=True).passed


def test_the_no_of_a_plugin_counts_0():
    denied = Grade(0.9, False)
    assert (graded(Plain(denied)).score, graded(Plain(denied)).counted) == (0.9, 0.0)
    assert graded(Plain(denied), negate=True).counted == 1.0


@pytest.mark.parametrize("kind", [Plain, Async, Later, Twice])
@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        (True, "bad-result", "nice must return a Grade, and returned bool"),
        (None, "bad-result", "and returned NoneType"),
        (1.0, "bad-result", "and returned float"),
        (ValueError("no"), "assertion-raised", "raised ValueError: no"),
        (SystemExit(0), "assertion-raised", "called sys.exit"),
        (KeyboardInterrupt(), "assertion-raised", "KeyboardInterrupt"),
    ],
)
def test_what_breaks_the_rules_is_errored_and_never_a_pass(kind, given, code, why):
    for negate in (False, True):
        grade = graded(kind(given), negate=negate)
        assert grade.error.code == code
        assert why in grade.error.message
        assert not grade.passed
