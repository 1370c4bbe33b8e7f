import asyncio
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.questions import ClosedQa
from agentv.assertions.judged.retrieval import ContextRecall
from agentv.assertions.judged.rubric import LlmRubric, RubricEntry
from agentv.judge.target import TargetJudge
from agentv.model.run.grade import Check
from agentv.model.run.rubric import JudgeFailure, Verdict
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Command, Document, FunctionRef, JavaScriptSource, PromptCode
from doubles.judges import FixedReplies, FixedVerdict, JudgeServices, answer_context
from doubles.judging import JudgeRun, grade_judged, grade_within
from doubles.runtimes import RUNTIMES, Lab

RANGES = {"0": "bad", "5": "good"}


def verdict(score, *checks, satisfied=None, **more):
    return Verdict(score, checks, more.pop("reason", None), "{}", satisfied, **more)


def graded(assertion, said, output="42", criteria=None):
    judge = FixedVerdict(said)
    services = JudgeServices(judge)
    grade = asyncio.run(assertion.grade(answer_context(output, criteria=criteria, _services=services)))
    return grade, judge.rubrics, services.asked


# the request


@pytest.mark.parametrize(("given", "mark"), [({"min_score": 7}, 7), ({"required": 7}, 7), ({"required": False}, None)])
def test_the_points_that_an_item_must_reach(given, mark):
    _, (rubric,), _ = graded(LlmRubric((RubricEntry("adds", score_ranges=RANGES, **given),)), verdict(1))
    assert rubric.items[0].min_score == mark


@pytest.mark.parametrize("criteria", [None, "", " "])
def test_nothing_to_judge_by_is_an_error(criteria):
    grade, rubrics, _ = graded(LlmRubric(), verdict(1), criteria=criteria)
    assert grade.error.code == "nothing-to-judge"
    assert not rubrics


def test_no_answer_is_an_error_and_nothing_is_asked():
    grade, rubrics, _ = graded(LlmRubric("is right"), verdict(1), output=None)
    assert grade.error.code == "no-output"
    assert not rubrics


# handling of the verdict


@pytest.mark.parametrize(("score", "passed"), [(1, True), (0.8, True), (0.8 - 1e-12, True), (0.79, False), (0, False)])
def test_prose_passes_from_0_8(score, passed):
    grade, _, _ = graded(LlmRubric("is right"), verdict(score, reason="so"))
    assert (grade.score, grade.passed, grade.reason, grade.error) == (score, passed, "so", None)
    assert grade.checks == (Check("so", passed),)


@pytest.mark.parametrize("votes", [(), (0.6, 0.6, 0.9)])
def test_a_check_that_the_mark_made_follows_another_mark(votes):
    grade, _, _ = graded(LlmRubric("is right"), verdict(0.6, reason="so", votes=votes))
    for mark, passed in ((0.5, True), (0.7, False)):
        assert {check.passed for check in grade.passing_at(mark).checks} == {passed}
    assert {check.passed for check in grade.negated().passing_at(0.3).checks} == {True}
    assert {check.passed for check in grade.negated().passing_at(0.5).checks} == {False}
    assert grade.passing_at(0.5).negated() == grade.negated().passing_at(0.5)


def test_a_check_of_the_judges_own_stays_whatever_the_mark():
    own = Check("says 42", False)
    grade, _, _ = graded(LlmRubric("is right"), verdict(0.6, own, votes=(0.6, 0.6, 0.9)))
    assert [check.passed for check in grade.passing_at(0.5).checks] == [False, True]


@pytest.mark.parametrize(("passed", "counted"), [(True, 1.0), (False, 0.0)])
def test_on_a_scale_the_points_decide_and_not_the_score(passed, counted):
    grade, _, _ = graded(LlmRubric("is right", scale="1-5"), verdict(0.75, passed=passed, details={"points": 4}))
    assert (grade.score, grade.passed, grade.counted) == (0.75, passed, counted)
    assert grade.details == {"points": 4}
    assert grade.passing_at(0.7).passed


def test_a_reply_that_is_no_verdict_fails_the_answer_and_its_complement():
    grade, _, _ = graded(LlmRubric("is right", scale="1-5"), verdict(0, passed=False, undecided=True))
    assert (grade.error, grade.passed, grade.counted) == (None, False, 0)
    shown = (grade.negated().passed, grade.passing_at(0).passed, grade.negated().passing_at(0).passed)
    assert shown == (False, False, False)


def test_a_failure_is_an_errored_grade_that_negation_leaves_so():
    failure = JudgeFailure("unreadable-verdict", "no", reply="Fine!", token_usage=TokenUsage(1), cost_usd=0.01)
    grade, _, _ = graded(LlmRubric("is right"), failure)
    assert grade.error == Failure("unreadable-verdict", "no")
    assert (grade.passed, grade.negated().passed, grade.passing_at(0).passed) == (False, False, False)
    assert grade.details == {"judge_reply": "Fine!"}
    assert (grade.token_usage, grade.cost_usd) == (TokenUsage(1), 0.01)


@given(weights=st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(any), data=st.data())
def test_a_checklist_passes_just_when_its_rule_says_so(weights, data):
    count = len(weights)
    required = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    held = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    entries = tuple(RubricEntry(f"does {n}", weight=weights[n], required=required[n]) for n in range(count))
    checks = [f'{{"id": "r{n + 1}", "satisfied": {str(held[n]).lower()}}}' for n in range(count)]
    judge = TargetJudge(FixedReplies([f'{{"checks": [{", ".join(checks)}]}}']), "judge")
    grade = asyncio.run(LlmRubric(entries).grade(answer_context("42", _services=JudgeServices(judge))))
    share = sum(weights[n] for n in range(count) if held[n]) / sum(weights)
    gate = all(held[n] for n in range(count) if required[n])
    assert grade.score == pytest.approx(share if gate else 0)
    assert grade.passed is (gate and share >= 0.8 - 1e-9)


# load-time errors


@pytest.mark.parametrize(
    ("minimum", "points"),
    [
        ({"min_score": 0.75}, 8),
        ({"min_score": 0.7}, 7),
        ({"min_score": 1}, 10),
        ({"min_score": 0}, 0),
        ({"required_min_score": 1}, 1),
        ({"required": 0.7}, 7),
        ({"required": True}, 10),
        ({}, None),
    ],
)
def test_a_minimum_of_an_item_is_a_share_up_to_1_and_points_above_it(minimum, points):
    assert RubricEntry("b", score_ranges=RANGES, **minimum).gate == points


def test_a_prompt_without_a_placeholder_is_criteria_in_the_built_in_prompt():
    rubric = LlmRubric(prompt=Document("Look for depth.")).rubric("Is short")
    assert (rubric.mode, rubric.text, rubric.prompt) == ("freeform", "Look for depth.", None)
    listed = LlmRubric(("names a day",), prompt=Document("Look for depth.")).rubric("Is short")
    assert (listed.mode, listed.text, len(listed.items), listed.prompt) == ("checklist", "Look for depth.", 1, None)


# labels


@pytest.mark.parametrize(
    ("assertion", "label"),
    [
        (LlmRubric("is\n right"), "is right"),
        (LlmRubric("x" * 100), "x" * 59 + "…"),
        (LlmRubric((RubricEntry("says 42"), "b", "c")), "says 42 (+2)"),
        (LlmRubric((RubricEntry(score_ranges=RANGES), "b")), "score ranges (+1)"),
        (LlmRubric((RubricEntry(id="tone", score_ranges=RANGES),)), "tone"),
        (LlmRubric(prompt=Document("Judge {{ output }}", "/evals/judges/depth.md")), "depth.md"),
        (LlmRubric(), "criteria"),
    ],
)
def test_the_label_is_what_is_judged_by(assertion, label):
    assert assertion.label() == label


YES = {"criterion_met": True, "reason": "it does"}
FENCED = re.compile(r"<answer-([0-9a-f]{16})>\nIt is Paris\.\n</answer-\1>")


@pytest.fixture
def function(tmp_path):
    """Return a function that writes a Python file and returns the prompt written by its function `ask`."""

    def made(text, name="ask", **config):
        path = tmp_path / f"prompts{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        return PromptCode(FunctionRef(name, str(path)), config=config)

    return made


def asked(prompt, **known):
    grade, run = grade_judged(ClosedQa("is polite", prompt), YES, case_id="one", **known)
    assert grade.error is None, grade.error
    assert grade.passed
    return run


def refused(prompt, **known):
    grade, run = grade_judged(ClosedQa("is polite", prompt), YES, **known)
    assert run.judge_target.requests == []
    return grade.error.code, grade.error.message


@pytest.mark.parametrize(
    "text",
    [
        "def ask(output, criteria): return f'{criteria}: {output}'",
        "def ask(candidate_answer, expected_outcome): return f'{expected_outcome}: {candidate_answer}'",
        "async def ask(output, criteria, *, case_id='x'): return f'{criteria}: {output}'",
        "async def wait(text): return text\ndef ask(output, criteria): return wait(f'{criteria}: {output}')",
        "def ask(anything): return f'is polite: {anything.output}'",
        'def ask(**given): return f\'{given["criteria"]}: {given["output"]}\'',
        "class ask:\n    def __new__(cls, output): return f'is polite: {output}'",
    ],
)
def test_a_function_gets_what_it_asks_for(function, text):
    run = asked(function(text))
    assert FENCED.search(run.asked)
    assert run.asked.startswith("is polite: <answer-")


def test_the_rules_and_the_shape_of_the_verdict_are_always_asked_for(function):
    run = asked(function("def ask(output): return output"))
    assert run.request.messages[0].role == "system"
    assert "criterion_met" in run.request.messages[0].text
    assert FENCED.search(run.asked)[1] in run.request.messages[0].text


def test_every_call_has_a_fence_of_its_own(function):
    prompt = function("def ask(output): return output")
    assert asked(prompt).asked != asked(prompt).asked


def test_variables_config_and_material_are_in_reach(function):
    text = "def ask(output, vars, config, case_id, context, transcript):\n"
    text += "    return repr((vars, config, case_id, context, transcript)) + output"
    run = asked(function(text, strict=True), vars={"a": 1})
    assert run.asked.startswith("({'a': 1}, {'strict': True}, 'one', '', '')")
    grade, run = grade_judged(
        ContextRecall(
            value="It is Paris.", context="Paris is it.", prompt=function("def ask(context): return context")
        ),
        {"statements": [{"id": "t1", "attributed": True}]},
    )
    assert grade.passed
    assert "Paris is it." in run.asked


@pytest.mark.parametrize(
    "made",
    [
        "[{'role': 'system', 'content': 'Be strict.'}, {'role': 'user', 'content': output}]",
        "({'role': 'system', 'content': 'Be strict.'}, Message('user', output))",
    ],
)
def test_a_function_may_give_messages(function, made):
    run = asked(function(f"from agentv.model.values.message import Message\ndef ask(output): return {made}"))
    assert [message.role for message in run.request.messages] == ["system", "system", "user"]
    assert run.asked.startswith("Be strict.")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("def ask(output): raise ValueError('no')", "judge-prompt-failed", "raised ValueError: no (prompts0.py:1, in ask)"),
        ("def ask(output): raise SystemExit(3)", "judge-prompt-failed", "called sys.exit"),
        ("raise ValueError('no')", "cannot-load", "raised ValueError"),
        ("def other(): pass", "cannot-load", "has no function 'ask'"),
        ("def ask(output, secret): return output", "bad-signature", "has the parameters secret"),
        ("def ask(output): return None", "judge-prompt-failed", "must return text or messages, not NoneType"),
        ("def ask(output): return [output]", "judge-prompt-failed", "must return text or messages, and an entry of its list is null"),
        ("def ask(output): return [{'role': 'judge', 'content': output}]", "judge-prompt-failed", "needs one of the roles"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_an_errored_grade(function, text, code, said):
    found, message = refused(function(text))
    assert found == code
    assert said in message


@pytest.mark.parametrize(
    "made", ["'is it right?'", "output[:30]", "output.split('\\n')[1]", "output.replace('answer', 'reply')"]
)
def test_a_prompt_without_the_whole_fence_is_refused(function, made):
    code, message = refused(function(f"def ask(output): return {made}"))
    assert code == "judge-prompt-without-output"
    assert "both of its markers" in message


def test_the_prompt_of_a_rubric_may_be_code_too(function):
    text = "def ask(rubrics, output): return f'{rubrics}\\n{output}'"
    verdict = {"checks": [{"id": "r1", "satisfied": True}]}
    grade, run = grade_judged(LlmRubric(("names a city",), prompt=function(text)), verdict)
    assert grade.passed
    assert run.asked.startswith("[r1] names a city\n<answer-")
    assert LlmRubric(prompt=function(text)).label().endswith(".py:ask")
    assert list(LlmRubric(prompt=function(text)).validate()) == []


def script(text):
    return PromptCode(command=Command((sys.executable, "-c", text)), config={"strict": True})


def test_a_command_gets_the_case_on_stdin_and_prints_the_prompt():
    text = "import json, sys; row = json.load(sys.stdin); print(row['criteria'], row['config'], row['output'])"
    known = {"metadata": {"a": 1}, "expected_output": (Message("assistant", "Paris"),)}
    assert asked(script(text), **known).asked.startswith("is polite {'strict': True} <answer-")
    names = ("question", "answer", "candidate_answer", "reference_answer", "expected_outcome", "sidecar", "rubrics")
    text = f"import json, sys; row = json.load(sys.stdin); print([row[one] for one in {names}], row['output'])"
    shown = asked(script(text), **known).asked
    assert re.search(r"'<input-\w+>What is 15 \+ 27\?</input-\w+>', '<answer-", shown)
    assert re.search(r"'<reference-\w+>Paris</reference-\w+>', 'is polite', {'a': 1}, 'is polite'", shown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.stderr.write('oh\\nno\\n'); sys.exit(3)", "it exited with 3: no"),
        ("import sys; sys.exit(3)", "it exited with 3"),
        ("print()", "returned an empty prompt"),
    ],
)
def test_a_command_that_fails_gives_no_prompt(text, said):
    code, message = refused(script(text))
    assert code == "judge-prompt-failed"
    assert said in message


def test_a_command_that_is_not_there_cannot_start():
    code, _ = refused(PromptCode(command=Command(("no-such-program-here",))))
    assert code == "cannot-start"


@pytest.fixture(scope="module", params=RUNTIMES)
def lab(request, tmp_path_factory):
    with Lab(request.param, tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def written(lab, text, assertion=None, *, name=None, file="judge-prompt.mjs", config=None):
    path = lab.write(text, f"{lab.files}/{file}")
    prompt = PromptCode(script=JavaScriptSource(path=path, name=name), config=config or {})
    run = JudgeRun(YES, javascript=lab.host)
    made = assertion(prompt) if assertion else ClosedQa("is polite", prompt)
    return lab.runner.run(grade_within(made, run, "It is Paris.")), run


SDK = "import { definePromptTemplate } from '@agentv/sdk';\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("export default (ctx) => ctx.output;", None),
        ("export default async ({ answer }) => [{ role: 'user', content: answer }];", None),
        (SDK + "definePromptTemplate(({ output }) => output);", None),
        ("export const strict = ({ output }) => output;", "strict"),
    ],
)
def test_whatever_a_file_exports(lab, text, name):
    grade, run = written(lab, text, name=name)
    assert grade.passed, grade.error
    assert FENCED.search(run.asked)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("export default () => { throw new TypeError('no') };", "judge-prompt-failed", "raised TypeError: no"),
        ("export default () => 5;", "judge-prompt-failed", "returned 5; it must return the text of a prompt"),
        ("export default () => ['a'];", "judge-prompt-failed", "must return text or messages, and an entry of its list is null"),
        ("export const other = 1;", "cannot-load", "export default definePromptTemplate"),
        ("syntax error", "cannot-load", "cannot be loaded"),
        ("export default ({ output }) => output.slice(0, 20);", "judge-prompt-without-output", "both of its markers"),
    ],
)  # fmt: skip
def test_what_a_file_does_wrong_is_an_errored_grade(lab, text, code, said):
    grade, run = written(lab, text)
    assert (grade.error.code, run.judge_target.requests) == (code, [])
    assert said in grade.error.message


def test_run_by_hand_a_template_prints_the_prompt(lab, tmp_path):
    import shutil
    import subprocess

    from agentv.user_code.javascript import runtime

    shutil.copytree(runtime.SDK, (tmp_path / "node_modules" / "@agentv") / "sdk")
    file = tmp_path / "prompt.mjs"
    file.write_text(SDK + "export default definePromptTemplate(({ question }) => `Judge ${question}`);")
    program = next((lab.folder / "bin").iterdir())
    payload = json.dumps({"question": "this"})
    # the program and the file are written by the test
    ended = subprocess.run([program, file], input=payload, capture_output=True, text=True, check=True)
    assert ended.stdout == "Judge this\n"
