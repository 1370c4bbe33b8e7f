"""`type: javascript` against real runtimes."""

import asyncio

import pytest

from agentv.assertions.user_code.script_and_python import JavaScriptCode
from agentv.model.values.message import Message
from agentv.registry.fields import JavaScriptSource
from agentv.user_code.javascript.host import JavaScriptHost
from doubles.grading import context_of, graded
from doubles.runtimes import RUNTIMES, path_with


class Lab:
    """One host for many tests, and a folder for files."""

    def __init__(self, runtime, folder):
        self.folder = folder
        self.runner = asyncio.Runner()
        self.host = JavaScriptHost(path_with(folder / "bin", runtime), patience_s=0.4)
        self.files = 0

    def grade(self, source, output="hello", *, threshold=None, config=None, **known):
        value = source if isinstance(source, JavaScriptSource) else JavaScriptSource(code=source)
        assertion = JavaScriptCode(value, threshold, config or {})
        return self.runner.run(graded(assertion, context_of(output, **known), javascript=self.host))

    def file(self, name, text):
        self.files += 1
        path = self.folder / f"{self.files}" / name
        path.parent.mkdir()
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module", params=RUNTIMES)
def lab(request, tmp_path_factory):
    lab = Lab(request.param, tmp_path_factory.mktemp("lab"))
    yield lab
    lab.runner.run(lab.host.close())
    lab.runner.close()


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
        ("throw new Error('broken')", "assertion-raised", "raised Error: broken"),
        ("Promise.reject(new Error('later'))", "assertion-raised", "raised Error: later"),
        ("process.exit(0)", "assertion-raised", "called process.exit"),
        ("output", "bad-result", "returned hello"),
        ("undefined", "bad-result", "returned undefined"),
        ("() => () => true", "bad-result", "returned a function"),
        ("NaN", "bad-result", "'score' is NaN"),
    ],
)
def test_what_is_no_verdict_is_errored_and_says_why(lab, code, kind, said):
    grade = lab.grade(code)
    assert grade.error is not None
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
    path = lab.file(
        "check.ts",
        """
export default (output: string, context: { vars: Record<string, unknown> }) => context.vars.my_name === output;
export const half = async (output: string): Promise<number> => 0.5;
export function broken() { throw new Error('no') }
export const number = 3;
""",
    )
    assert lab.grade(JavaScriptSource(path=path), vars={"my_name": "hello"}).passed
    assert not lab.grade(JavaScriptSource(path=path), vars={"my_name": "x"}).passed
    assert lab.grade(JavaScriptSource(path=path, name="half")).score == 0.5
    assert lab.grade(JavaScriptSource(path=path, name="broken")).error.message.endswith("raised Error: no (check.ts:4)")
    for name in ("missing", "number"):
        error = lab.grade(JavaScriptSource(path=path, name=name)).error
        assert error.code == "cannot-load"
        assert f"exports no function '{name}'" in error.message


def test_functions_of_commonjs_files(lab):
    path = lab.file("check.cjs", "module.exports = (output) => output.length === 5;\nmodule.exports.other = () => 0;\n")
    assert lab.grade(JavaScriptSource(path=path)).passed
    assert not lab.grade(JavaScriptSource(path=path, name="other")).passed


def test_code_that_blocks_or_ends_the_process_harms_no_other(lab):
    async def together():
        codes = ["while (true) {}", "process.kill(process.pid, 'SIGKILL')", "output === 'hello'", "0.5"]
        gradings = (self_grade(code) for code in codes)
        return await asyncio.gather(*gradings)

    async def self_grade(code):
        assertion = JavaScriptCode(JavaScriptSource(code=code))
        try:
            return await asyncio.wait_for(graded(assertion, context_of("hello"), javascript=lab.host), 3)
        except TimeoutError:
            return "hangs"

    hanging, killed, good, half = lab.runner.run(together())
    assert hanging == "hangs"
    assert killed.error.code == "assertion-crashed"
    assert (good.passed, half.score) == (True, 0.5)


def test_label_is_the_code_or_the_file():
    assert JavaScriptCode(JavaScriptSource(code="output.length\n > 3")).label() == "output.length > 3"
    assert JavaScriptCode(JavaScriptSource(path="/a/check.ts", name="polite")).label() == "check.ts:polite"
    assert JavaScriptCode(JavaScriptSource(path="/a/check.ts")).label() == "check.ts"
