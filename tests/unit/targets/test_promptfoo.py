"""promptfoo's provider interface: a provider's answers, and `javascript` targets in real runtimes."""

import os
from itertools import count
from textwrap import dedent

import pytest

from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import JavaScriptSource
from agentv.targets.promptfoo import JavaScript, from_provider
from doubles.asking import answer, answers, failure_code, request
from doubles.runtimes import RUNTIMES, path_with

numbers = count()

CLASS = """
let made = 0;
class Provider {
  constructor(options) {
    this.config = options.config;
    this.number = ++made;
  }
  id() { return 'mine'; }
  async callApi(prompt, context, options) {
    console.log('printed');
    return {
      output: `${this.config.word} ${prompt} ${context.vars.x} ${context.test.metadata.m} ${this.number}`,
      tokenUsage: { total: 3, prompt: 1, completion: 2 },
      cost: 0.5,
    };
  }
}
"""


@pytest.fixture(params=RUNTIMES)
def write(request, tmp_path):
    """Return a function that writes a file and makes a target from it and a request in one runtime's environment."""
    env = path_with(tmp_path / "bin", request.param)

    def made(text, name="provider.mjs", export=None, **config):
        file = tmp_path / str(next(numbers)) / name
        file.parent.mkdir()
        file.write_text(dedent(text))
        return JavaScript(JavaScriptSource(path=str(file), name=export), config)

    made.env = env
    return made


@pytest.mark.parametrize(
    ("name", "export"),
    [("p.mjs", "export default Provider;"), ("p.cjs", "module.exports = Provider;"), ("p.ts", "export { Provider };")],
)
def test_a_class_gets_its_options_and_is_made_once(write, name, export):
    settings = write(CLASS + export, name, "Provider" if name == "p.ts" else None, word="hi")
    one = request("ask", vars={"x": 1}, metadata={"m": 2}, env=write.env)
    first, second = answers(settings, one, one)
    assert first == second
    assert first == TargetResponse("hi ask 1 2 1", (), TokenUsage(1, 2, 3), 0.5, metadata={})


@pytest.mark.parametrize(
    ("text", "export", "output"),
    [
        ("export default { id: () => 'a', callApi: async (prompt) => ({ output: prompt }) };", None, "hello"),
        ("export const callApi = (prompt) => ({ output: prompt });", None, "hello"),
        ("export default function (prompt) { return prompt + '!'; }", None, "hello!"),
        ("export default (prompt, context, options) => options.config.k;", None, "v"),
        ("export const other = async () => ({ output: 'other' }); export default () => 'no';", "other", "other"),
        ("export default function (o) { this.callApi = () => ({ output: o.config.k }); }", None, "v"),
    ],
)
def test_an_object_or_a_function_serves_too(write, text, export, output):
    found = answer(write(text, export=export, k="v"), request(env=write.env))
    assert isinstance(found, TargetResponse), found
    assert found.output == output


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("throw new Error('at import');", "cannot-load", "p.mjs cannot be loaded: raised Error: at import"),
        ("export default 7;", "target-raised", "exports no provider"),
        ("export default () => process.exit(0);", "target-raised", "called process.exit(0)"),
        ("export default () => ({ error: 'refused' });", "target-error", "refused"),
        ("export default () => 7;", "bad-answer", "must return an object with 'output'"),
        ("export default () => ({ output: 1n });", "bad-answer", "written as JSON"),
        ("export default () => { throw new TypeError('no'); };", "target-raised", "raised TypeError: no (p.mjs:1)"),
        ("export default () => process.kill(process.pid, 'SIGKILL');", "target-raised", "ended the JavaScript process"),
    ],
)
def test_what_goes_wrong_is_a_failure(write, text, kind, said):
    found = answer(write(text, "p.mjs"), request(env=write.env))
    assert (found.code, said in found.message) == (kind, True), found.message


def test_its_process_ends_with_it(write):
    pid = int(answer(write("export default () => String(process.pid);"), request(env=write.env)).output)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_a_runtime_it_says_how_to_get_one(write, tmp_path, monkeypatch):
    monkeypatch.setattr("agentv.user_code.javascript.runtime.find_spec", lambda _: None)
    (tmp_path / "none").mkdir()
    found = failure_code(write("export default () => 'a';"), request(env={"PATH": str(tmp_path / "none")}))
    assert found == "no-javascript-runtime"


def test_inline_code_is_no_target():
    [issue] = JavaScript(JavaScriptSource(code="prompt => prompt")).validate()
    assert "must be the path" in issue.message


@pytest.mark.parametrize("value", [None, {}, {"output": None}, {"error": "", "output": None}])
def test_nothing_is_an_empty_answer_which_the_engine_errs(value):
    assert from_provider(value) == TargetResponse(None)


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}, TokenUsage(2, 3, 5)),
        ({"total": 7.6, "prompt": 2.4}, TokenUsage(2, None, 8)),
        ({"input": 1, "output": 2}, TokenUsage(1, 2, 3)),
        ({"numRequests": 1}, TokenUsage()),
    ],
)
def test_counts_of_other_spellings_are_read(usage, found):
    assert from_provider({"output": "a", "tokenUsage": usage}).token_usage == found


@pytest.mark.parametrize(
    "value", [7, ["a"], {"output": "a", "cost": "much"}, {"output": "a", "tokenUsage": {"total": "many"}}]
)
def test_anything_else_is_no_answer(value):
    assert from_provider(value).code == "bad-answer"


def test_a_value_that_holds_itself_is_no_answer():
    loop: dict = {}
    loop["a"] = loop
    assert from_provider({"output": loop}).code == "bad-answer"
