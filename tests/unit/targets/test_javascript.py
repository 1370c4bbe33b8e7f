"""`javascript` targets against real runtimes."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from textwrap import dedent

import pytest

from agentv.model.values.message import Message
from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import JavaScriptSource
from agentv.targets.javascript import JavaScript
from doubles.asking import answer, answers, code, request, spec_of
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
    """Writes a file and makes a target of it, and a request in the environment of one runtime."""
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


def test_retrieved_texts_come_with_an_answer(write):
    settings = write(
        "export default () => ({ output: 'yes', context: ['a', { text: 'b', id: 7 }], metadata: { n: 1 } });"
    )
    found = answer(settings, request("ask", env=write.env))
    assert found.context == (RetrievedText("a"), RetrievedText("b", "7"))
    assert found.metadata == {"n": 1}


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


def test_types_are_stripped(write):
    text = """
    interface Options { config: { k: string } }
    export default class P {
      private k: string;
      constructor(options: Options) { this.k = options.config.k; }
      async callApi(prompt: string): Promise<{ output: string }> { return { output: this.k }; }
    }
    """
    assert answer(write(text, "p.ts", k="v"), request(env=write.env)).output == "v"


def test_several_messages_are_json_and_a_value_is_marked(write):
    settings = write("export default (prompt) => ({ output: JSON.parse(prompt).map((one) => one.role) });")
    messages = (Message("system", "s"), Message("user", "u"))
    found = answer(settings, request(messages=messages, env=write.env))
    assert (found.output, found.metadata) == ('["system","user"]', {STRUCTURED: True})


@pytest.mark.parametrize("body", ["", "return null", "return {}", "return { output: undefined }"])
def test_nothing_is_an_empty_answer(write, body):
    found = answer(write(f"export default () => {{ {body} }};"), request(env=write.env))
    assert (found.output, found.messages) == (None, ())


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("throw new Error('at import');", "cannot-load", "p.mjs cannot be loaded: raised Error: at import"),
        ("export default 7;", "target-raised", "exports no provider"),
        ("export default class A {}", "target-raised", "exports no provider"),
        ("export default () => process.exit(0);", "target-raised", "called process.exit(0)"),
        ("export default () => ({ error: 'refused' });", "target-error", "refused"),
        ("export default () => () => 1;", "bad-answer", "a function"),
        ("export default () => 7;", "bad-answer", "must return an object with 'output'"),
        ("export default () => ({ output: 1n });", "bad-answer", "written as JSON"),
        ("export default () => { throw new TypeError('no'); };", "target-raised", "raised TypeError: no (p.mjs:1)"),
        ("export default () => process.kill(process.pid, 'SIGKILL');", "target-raised", "ended the JavaScript process"),
    ],
)
def test_what_goes_wrong_is_a_failure(write, text, kind, said):
    found = answer(write(text, "p.mjs"), request(env=write.env))
    assert isinstance(found, Failure)
    assert (found.code, said in found.message) == (kind, True), found.message


def test_a_missing_export_is_named(write):
    found = answer(write("export default () => 'a';", export="other"), request(env=write.env))
    assert isinstance(found, Failure)
    assert found.code == "target-raised"


def test_two_targets_of_one_file_keep_their_config_and_state_apart(write):
    first = write(CLASS + "export default Provider;", word="a")
    second = JavaScript(first.function, {"word": "b"})
    one = request("p", vars={"x": 1}, metadata={"m": 2}, env=write.env)
    assert [answer(each, one).output for each in (first, second)] == ["a p 1 2 1", "b p 1 2 1"]


def test_calls_overlap_in_one_process(write):
    """Each call ends only when all 50 have begun."""
    settings = write("""
        let begun = 0, release;
        const all = new Promise((resolve) => { release = resolve; });
        export default async (prompt) => {
          if (++begun === 50) release();
          await all;
          return `${prompt} ${process.pid}`;
        };
    """)
    found = answers(settings, *(request(str(number), env=write.env) for number in range(50)))
    outputs = [one.output.split() for one in found]
    assert [output[0] for output in outputs] == [str(number) for number in range(50)]
    assert len({output[1] for output in outputs}) == 1


def test_the_environment_of_the_target_reaches_it(write):
    settings = write("export default () => process.env.MARK;")
    assert answer(settings, request(env={**write.env, "MARK": "here"})).output == "here"


def test_its_process_ends_with_it(write):
    settings = write("export default () => String(process.pid);")
    pid = int(answer(settings, request(env=write.env)).output)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_a_runtime_it_says_how_to_get_one(write, tmp_path, monkeypatch):
    monkeypatch.setattr("agentv.user_code.javascript.runtime.find_spec", lambda _: None)
    (tmp_path / "none").mkdir()
    found = code(write("export default () => 'a';"), request(env={"PATH": str(tmp_path / "none")}))
    assert found == "no-javascript-runtime"


def test_inline_code_is_no_target():
    [issue] = JavaScript(JavaScriptSource(code="prompt => prompt")).validate()
    assert "must be the path" in issue.message


def test_a_target_that_was_never_called_closes():
    settings = JavaScript(JavaScriptSource(path="/a.js"))
    target = settings.connect(spec_of(settings), None)
    asyncio.run(target.close())
