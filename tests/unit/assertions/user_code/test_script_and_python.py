import asyncio
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from aiohttp import ClientSession

from agentv.assertions.judged.judge_proxy import judge_proxy
from agentv.assertions.user_code.script_and_python import JavaScriptCode, JudgeAccess, PythonCode, Script
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.registry.fields import Command, FunctionRef, JavaScriptSource, PythonSource
from doubles.grading import FixedReplyJudge, context_of, grade, grade_async
from doubles.processes_alive import all_gone
from doubles.runtimes import RUNTIMES, Lab


def shell(line: str, **options) -> Script:
    return Script(Command(shell=line), **options)


def program(tmp_path: Path, source: str, **options) -> Script:
    file = tmp_path / "grader.py"
    file.write_text(dedent(source))
    return Script(Command(argv=(sys.executable, str(file)), cwd=str(tmp_path)), **options)


# --- script: output and exit status


@pytest.mark.parametrize(
    ("line", "passed", "score", "text"),
    [
        ("true", True, 1.0, "exit 0"),
        ("echo all good", True, 1.0, "all good"),
        ("exit 1", False, 0.0, "exit 1"),
        ("echo too short; exit 1", False, 0.0, "too short"),
        ("echo 'careful' >&2", True, 1.0, "exit 0"),
        ("echo 42 words", True, 1.0, "42 words"),
        ("""printf '{"a": 1, "a": 2} logged\\n{"pass": true}\\n'""", True, 1.0, "script"),
        ("echo true", True, 1.0, "true"),
        ("""echo '{"pass": false, "score": 0.67}'""", False, 0.67, "script"),
        ("""echo '{"score": 0.5, "checks": [{"text": "half", "passed": true}]}'""", True, 0.5, "half"),
        ("""echo '{"score": 0.5, "hits": ["half"], "misses": [], "reasoning": "so"}'""", True, 0.5, "half"),
        ("""printf 'loading model\\n{\\n "pass": false\\n}\\n'""", False, 0.0, "script"),
        ("""printf '{log} line\\n{"pass": false}\\n'""", False, 0.0, "script"),
    ],
)
def test_output_and_exit_status_decide(line, passed, score, text):
    found = grade(shell(line))
    assert found.error is None, found.error
    assert (found.passed, found.score, found.checks[0].text) == (passed, score, text)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("echo broken >&2; exit 1", "script-failed", "exited with 1: broken"),
        ("""echo '{"pass": true}'; exit 1""", "script-failed", "exited with 1 after it printed a verdict"),
        ("""echo '{"pass": true}'; kill -KILL $$""", "script-failed", "killed by signal 9"),
        ("no-such-program-of-agentv", "script-failed", "exited with 127"),
        ("""echo "{'pass': False}" """, "bad-result", "not print a JSON object"),
        ("""printf '{"pass": fal'; exit 1""", "bad-result", "not print a JSON object"),
        ("""printf '{"pass": true}\\nDone.' """, "bad-result", "printed text after its verdict"),
        ("""printf 'loading\\n{"score": 0}\\nDone.' """, "bad-result", "printed text after its verdict"),
        ("""printf '{"score": 0}\\n{"score": 1}' """, "bad-result", "printed 2 verdicts that disagree"),
        ("""printf 'a\\n{\\n"pass": false}\\nb\\n  {"score": 1}' """, "bad-result", "printed 2 verdicts that disagree"),
        ("""printf '{"score": "n/a"}\\n{"score": 1}' """, "bad-result", "printed 2 verdicts that disagree"),
        ("""printf '{"score": 1}\\n{"level": "info"}' """, "bad-result", "none of 'pass', 'score' and 'assertions'"),
        ("echo false", "bad-result", "printed false and exited with 0"),
        ("echo 1", "bad-result", "printed 1 and exited with 0"),
        ("""echo '"fail"'""", "bad-result", "and exited with 0, which is not a verdict"),
        ("""echo '{"pass": false, "pass": true}'""", "bad-result", "the duplicate key 'pass'"),
    ],
)
def test_what_is_no_verdict_is_an_error(line, code, said):
    found = grade(shell(line))
    assert found.error is not None, found
    assert (found.error.code, found.passed) == (code, False)
    assert said in found.error.message


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ('"x\\n" + "{\\"a\\":\\n" * 100_000 + "{\\"pass\\": false}"', "script printed too much before its verdict; print less"),
        ('"[" + "[]," * 2_000_000 + "[]]"', "and exited with 0, which is not a verdict"),
        ('"{\\"pass\\": true" + "".join(f", \\"k{n}\\": 1" for n in range(50_000)) + ", \\"k7\\": 1}"', "duplicate key 'k7'"),
    ],
    ids=["lines that could be it", "values", "keys"],
)  # fmt: skip
def test_output_that_takes_too_long_to_be_read_is_an_error(made, said):
    found = grade(shell(f"""python3 -c 'print({made})'"""))
    assert found.error is not None, found
    assert found.error.code == "bad-result"
    assert said in found.error.message


def test_deeply_nested_output_is_no_crash():
    assert grade(shell("""python3 -c 'print("{\\"a\\":" * 50000)'""")).error.code == "bad-result"


# --- script: input

KEYS = {
    *("input", "output", "messages", "expected_output", "criteria", "metadata", "vars", "config", "input_files"),
    *("trace", "trace_summary", "token_usage", "cost_usd", "duration_ms", "workspace_path"),
    *("context", "response_metadata", "time_to_first_token_ms"),
    *("question", "expected_outcome", "candidate_answer", "reference_answer", "sidecar"),
}


def test_the_case_is_on_stdin_under_its_newer_and_older_names(tmp_path):
    source = """
        import json, sys
        print(json.dumps({"pass": True, "details": json.load(sys.stdin)}))
    """
    given = grade(
        program(tmp_path, source, config={"limit": 3}),
        "the answer ☃",
        input=(Message("user", "what?"),),
        expected_output=(Message("assistant", "right"),),
        criteria="be right",
        metadata={"language": "python"},
    ).details
    assert given.keys() == KEYS
    assert given["output"] == given["candidate_answer"] == "the answer ☃"
    assert given["question"] == "what?"
    assert given["criteria"] == given["expected_outcome"] == "be right"
    assert given["reference_answer"] == "right"
    assert given["metadata"] == given["sidecar"] == {"language": "python"}
    assert given["config"] == {"limit": 3}


async def test_nothing_is_left_of_a_cancelled_script(tmp_path):
    script = Script(Command(shell="echo $$ > pid; sleep 30 & echo $! >> pid; wait", cwd=str(tmp_path)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(grade_async(script), 0.3)
    pids = [int(line) for line in (tmp_path / "pid").read_text().split()]
    assert len(pids) == 2
    assert all_gone(pids)


# --- script: judge proxy

CLIENT = """
    import json, os, sys, urllib.error, urllib.request

    def call(path, body=None, token=os.environ.get("AGENTV_TARGET_PROXY_TOKEN", "")):
        request = urllib.request.Request(
            os.environ["AGENTV_TARGET_PROXY_URL"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request) as response:
                return [response.status, json.load(response)]
        except urllib.error.HTTPError as error:
            return [error.code, json.load(error)]

    json.load(sys.stdin)
    print(json.dumps({"pass": True, "details": {"got": CALLS}}))
"""


def calls(tmp_path: Path, expression: str, judge: FixedReplyJudge, max_calls: int = 2):
    script = program(tmp_path, CLIENT.replace("CALLS", expression), target=JudgeAccess(max_calls))
    found = asyncio.run(grade_async(script, asked=judge))
    assert found.error is None, found.error
    return found.details["got"]


def test_a_script_asks_the_judge_through_the_proxy(tmp_path):
    judge = FixedReplyJudge("42", [])
    got = calls(tmp_path, 'call("/invoke", {"question": "what?", "systemPrompt": "be short"})', judge)
    assert got == [200, {"output": [{"role": "assistant", "content": "42"}], "rawText": "42"}]
    assert judge.prompts == ["be short\n\nwhat?"]


def test_what_the_judge_costs_is_counted(tmp_path):
    both = '[call("/invoke", {"question": "a"}), call("/invoke", {"question": "b"})]'
    script = program(tmp_path, CLIENT.replace("CALLS", both), target=JudgeAccess(2))
    found = asyncio.run(grade_async(script, asked=FixedReplyJudge("42", [])))
    assert found.cost_usd == 0.5
    assert (found.token_usage.input, found.token_usage.total) == (20, 24)


def test_no_more_calls_than_allowed(tmp_path):
    judge = FixedReplyJudge("42", [])
    got = calls(tmp_path, '[call("/invoke", {"question": str(n)})[0] for n in range(4)] + [call("/info")]', judge)
    assert got[:4] == [200, 200, 429, 429]
    assert got[4] == [200, {"targetName": "judge", "maxCalls": 2, "callCount": 2, "availableTargets": ["judge"]}]
    assert judge.prompts == ["0", "1"]


def test_a_batch_is_answered_whole_or_not_at_all(tmp_path):
    judge = FixedReplyJudge("42", [])
    batch = '[call("/invokeBatch", {"requests": [{"question": "q"}] * n}) for n in (3, 2)]'
    refused, answered = calls(tmp_path, batch, judge)
    assert (refused[0], answered[0]) == (429, 200)
    assert [row["rawText"] for row in answered[1]["responses"]] == ["42", "42"]
    assert judge.prompts == ["q", "q"]


async def test_batches_at_once_are_counted_before_the_first_call(tmp_path):
    async with judge_proxy(FixedReplyJudge("42", []), 4) as access, ClientSession() as client:
        url, body = f"{access.env['AGENTV_TARGET_PROXY_URL']}/invokeBatch", {"requests": [{"question": "q"}] * 3}
        headers = {"Authorization": f"Bearer {access.token}"}
        replies = await asyncio.gather(*(client.post(url, json=body, headers=headers) for _ in range(2)))
    assert sorted(reply.status for reply in replies) == [200, 429]


def test_a_judge_that_fails_is_told_to_the_script(tmp_path):
    judge = FixedReplyJudge(Failure("timeout", "no answer"), [])
    assert calls(tmp_path, 'call("/invoke", {"question": "q"})', judge) == [502, {"error": "no answer"}]


def test_only_a_script_with_a_target_needs_a_judge_and_gets_a_door():
    assert not shell("true").needs_judge
    assert shell("true", target=JudgeAccess()).needs_judge
    assert grade(shell('test -z "$AGENTV_TARGET_PROXY_URL"')).passed


# --- python


def inline(code: str, **options) -> PythonCode:
    return PythonCode(PythonSource(code=code), **options)


@pytest.mark.parametrize(
    ("code", "passed", "score"),
    [
        ("len(output) > 3", True, 1.0),
        ("'bye' in output", False, 0.0),
        ("0.4", False, 0.4),
        ("{'pass': False, 'score': 0.9}", False, 0.9),
        ("context.vars['name'] in output", True, 1.0),
        ("context.config['limit'] == 3", True, 1.0),
        ("import math\nreturn math.floor(0.9)", False, 0.0),
        ("if 'hello' in output:\n  return True\nreturn False", True, 1.0),
        ("words = output.split()\ndef enough():\n  return len(words) > 2\nreturn enough()", True, 1.0),
        ("return [\n  1\n][0]", True, 1.0),
    ],
)
def test_inline_code_is_an_expression_or_a_body(code, passed, score):
    assertion = inline(code, config={"limit": 3})
    assert not list(assertion.validate())
    found = grade(assertion, vars={"name": "there"})
    assert found.error is None, found.error
    assert (found.passed, found.score) == (passed, score)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("len(output >", "line 1"),
        ("x = 1\nreturn x +", "line 2"),
        ("x = len(output) > 3", "returns no verdict"),
        ("", "returns no verdict"),
        ("def inner():\n  return True", "returns no verdict"),
        ("await thing", "not valid Python"),
        ("'\x00'", "not valid Python"),
        ("(" * 5000, "not valid Python"),
    ],
)
def test_what_is_no_python_is_a_fault_at_load(code, said):
    (fault,) = inline(code).validate()
    assert (fault.path, fault.code) == (("value",), "bad-python")
    assert said in fault.message


def test_a_function_of_a_file_gets_what_it_names(tmp_path):
    file = tmp_path / "checks.py"
    file.write_text(
        dedent("""
        def get_assert(output, context): return output == "hi" and context.output == "hi"
        def answer(text): return text == "hi"
        def several(config, vars, prompt, ctx): return config["a"] == vars["a"] == 1 and prompt == ctx.prompt
        async def later(output): return {"score": 0.3}
        def asks(nothing, of, ours): return True
        def pair(text, given): return text == "hi" and given["vars"] == {"a": 1} and "nothing" not in given
    """)
    )

    def found(name):
        return grade(
            PythonCode(PythonSource(function=FunctionRef(name, path=str(file))), config={"a": 1}), "hi", vars={"a": 1}
        )

    assert found("get_assert").passed
    assert found("answer").passed
    assert found("several").passed
    assert found("later").score == 0.3
    assert found("asks").error.code == "bad-signature"
    assert found("pair").passed
    assert found("missing").error.code == "cannot-load"


class CodeLab(Lab):
    def grade(self, source, output="hello", *, threshold=None, config=None, **known):
        value = source if isinstance(source, JavaScriptSource) else JavaScriptSource(code=source)
        assertion = JavaScriptCode(value, threshold, config or {})
        return self.runner.run(grade_async(assertion, context_of(output, **known), javascript=self.host))


@pytest.fixture(scope="module", params=RUNTIMES)
def lab(request, tmp_path_factory):
    with CodeLab(request.param, tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.mark.parametrize(
    ("code", "score", "passed"),
    [
        ("output.length === 5", 1, True),
        ("  output.length > 5\n", 0, False),
        ("output.length / 10", 0.5, True),
        ("0.4", 0.4, False),
        ("{ pass: true, score: 0.25 }", 0.25, True),
        ("output // a comment\n === 'hello'", 1, True),
        ("return output === 'hello'", 1, True),
        ("const n = output.length; n > 3", 1, True),
        ("(output, context) => output.length === 5 && context.vars !== undefined", 1, True),
        ("async (output) => ({ pass: true, score: 0.25 })", 0.25, True),
        ("function check(output) { return output === 'no'; }", 0, False),
        ("const path = require('node:path'); return path.basename('/a/hello') === output", 1, True),
        ("const require = process.mainModule.require; return require('path').sep === '/'", 1, True),
        ("typeof fetch === 'function' && process.env.PATH !== undefined", 1, True),
        ("if (output) {\n  return 0.75;\n}\nreturn false;", 0.75, True),
        ("return new Promise((done) => setTimeout(() => done(false), 5))", 0, False),
        ("(await import('node:path')).basename('/a/hello') === output", 1, True),
    ],
)
def test_inline_code_gives_the_verdict(lab, code, score, passed):
    grade = lab.grade(code)
    assert grade.error is None, grade.error
    assert (grade.score, grade.passed) == (score, passed)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("output.length >", "cannot-load", "SyntaxError"),
        ("const a = 1;\nconst b = ;\nreturn true", "cannot-load", "(<javascript>:2)"),
        ("const a = 1;\nnull.x;\nreturn true", "assertion-raised", "(<javascript>:2)"),
        ("output", "bad-result", "returned hello"),
        ("() => () => true", "bad-result", "returned a function"),
    ],
)
def test_what_is_no_verdict_is_errored_and_says_why(lab, code, kind, said):
    grade = lab.grade(code)
    assert grade.error.code == kind
    assert said in grade.error.message


def test_context_has_the_case_with_names_as_they_are_written(lab):
    code = """
      return context.vars.my_name === 'Ada' && context.test.vars.my_name === 'Ada'
        && context.metadata.a_b === 1 && context.test.metadata.a_b === 1
        && context.config.max_words === 3 && context.prompt === 'say hello'
        && context.criteria === 'polite' && context.expectedOutput[0].content === 'hi'
        && context.output === output && context.input[0].role === 'user'
    """
    grade = lab.grade(
        code,
        vars={"my_name": "Ada"},
        metadata={"a_b": 1},
        config={"max_words": 3},
        criteria="polite",
        expected_output=(Message("assistant", "hi"),),
    )
    assert grade.passed, grade


def test_a_threshold_makes_no_verdict_of_an_error(lab):
    assert lab.grade("output", threshold=0.0).error.code == "bad-result"


def test_functions_of_files_get_the_answer_and_the_context(lab):
    source = """
        export default (output: string, context: { vars: Record<string, unknown> }) => context.vars.my_name === output;
        export const half = async (output: string): Promise<number> => 0.5;
        export function broken() { throw new Error('no') }
        export const number = 3;
    """
    path = lab.write(source, "check.ts")
    assert lab.grade(JavaScriptSource(path=path), vars={"my_name": "hello"}).passed
    assert not lab.grade(JavaScriptSource(path=path), vars={"my_name": "x"}).passed
    assert lab.grade(JavaScriptSource(path=path, name="half")).score == 0.5
    assert lab.grade(JavaScriptSource(path=path, name="broken")).error.message.endswith("raised Error: no (check.ts:4)")
    for name in ("missing", "number"):
        error = lab.grade(JavaScriptSource(path=path, name=name)).error
        assert error.code == "cannot-load"
        assert f"exports no function '{name}'" in error.message


def test_functions_of_commonjs_files(lab):
    source = "module.exports = (output) => output.length === 5;\nmodule.exports.other = () => 0;\n"
    path = lab.write(source, "check.cjs")
    assert lab.grade(JavaScriptSource(path=path)).passed
    assert not lab.grade(JavaScriptSource(path=path, name="other")).passed


def test_label_is_the_code_or_the_file():
    assert JavaScriptCode(JavaScriptSource(code="output.length\n > 3")).label() == "output.length > 3"
    assert JavaScriptCode(JavaScriptSource(path="/a/check.ts", name="polite")).label() == "check.ts:polite"
    assert JavaScriptCode(JavaScriptSource(path="/a/check.ts")).label() == "check.ts"
