"""Effects, output, completions, imports and exit statuses of each command."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyte
import pytest

from doubles.misbehaving_server import misbehaving_server
from e2e.command import AGENTV, Project
from needs import needs

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITE = """\
target: echo
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: "hi \\e[2J\\e]0;owned\\a there", assert: [contains: bye, contains: hi]}
  - {id: broken, input: hello, assert: [{type: cost, threshold: 1}]}
"""


@pytest.mark.parametrize(
    ("path", "cases"),
    [
        ("quickstart", 5),
        ("templates/evals/EVAL.yaml", 2),
        ("eval-cases/evals/cases.yaml", 5),
        ("custom-assertions/evals/suite.yaml", 2),
    ],
)
def test_the_examples_are_green(project, path, cases):
    shutil.copytree(EXAMPLES, project.path / "examples", ignore=shutil.ignore_patterns("results"))
    project.run("eval", f"examples/{path}", status=0, says=f"{cases} passed")
    assert project.run("validate", f"examples/{path}").status == 0


@needs("bwrap")
@pytest.mark.libraries
def test_the_example_of_agents_shows_what_a_skill_is_worth(project):
    shutil.copytree(EXAMPLES / "agents", project.path / "agents", ignore=shutil.ignore_patterns("results"))
    assert project.run("validate", "agents").status == 0
    ended = project.run("eval", "agents", status=1)
    assert "3 cases: 2 passed, 1 failed, 0 errored\n6 trials: 5 passed, 1 failed, 0 errored" in ended.stderr
    assert re.search(r"pass rate +66\.7% of 3 .* 100\.0% of 3 ", ended.stderr)
    assert "1 win, 0 losses, 2 ties" in project.run("compare", "last", "--by", "variant").stdout
    assert project.run("check", "agents", "--oracle").status == 0


@pytest.mark.libraries
def test_the_example_of_a_shop_tells_work_from_words(project):
    shutil.copytree(EXAMPLES / "retail", project.path / "retail")
    project.run("eval", "retail", "--target", "honest", "--target", "lying", "--repeat", "1", status=1)
    statuses = {(row["target"], row["status"]) for row in project.rows()}
    assert (len(project.rows()), statuses) == (10, {("honest", "passed"), ("lying", "failed")})
    assert project.run("check", "retail", "--oracle").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("suite.eval.yaml",), "no command 'suite.eval.yaml'; did you mean 'agentv eval suite.eval.yaml'?"),
        (("eval", "suite.eval.yaml", "--target", "gpt-5"), "write the provider in front: openai:gpt-5"),
        (("eval", "suite.eval.yaml", "--target", "bot.py:run"), "write python:bot.py:run"),
    ],
)
def test_words_of_other_programs_lead_to_ours(project, arguments, said):
    project.write("suite.eval.yaml", SUITE)
    project.run(*arguments, status=2, says=said)


@pytest.mark.libraries
def test_the_example_of_models_is_green_without_a_key(project):
    shutil.copytree(EXAMPLES / "models", project.path / "models")
    ended = project.run("models/offline.py")
    assert (ended.stdout, ended.status) == ("3 of 3 cases passed\n", 0), ended.stderr
    assert project.run("validate", "models").status == 0


def test_people_read_stderr_and_programs_stdout(project):
    project.write("a.eval.yaml", SUITE)
    plain = project.run("eval", "a.eval.yaml")
    assert (plain.status, plain.stdout) == (3, "")
    assert "a.eval.yaml:4" in plain.stderr
    as_json = project.run("eval", "a.eval.yaml", "--json")
    shown = json.loads(as_json.stdout)
    assert shown["cases"] == {"total": 3, "passed": 1, "failed": 1, "errored": 1, "skipped": 0, "shown": 0}
    assert {one["test_id"] for one in shown["not_passed"]} == {"bad", "broken"}
    assert project.run("eval", "a.eval.yaml", "-q").stderr.count("\n") <= 4


def test_what_users_code_prints_does_not_disturb_the_json(project):
    project.write("agent.py", "def answer(prompt):\n    print('thinking')\n    return prompt\n")
    project.write(".agentv/assertions/loud.py", "def loud(ctx):\n    print('loud')\n    return True\n")
    project.write(
        "a.eval.yaml", "target: python:agent.py:answer\ntests:\n  - {id: a, input: x, assert: [{type: loud}]}\n"
    )
    ended = project.run("eval", "a.eval.yaml", "--json")
    assert json.loads(ended.stdout)["cases"]["passed"] == 1, ended.stderr
    assert "thinking" in ended.stderr
    assert "loud" in ended.stderr


def in_a_terminal(project: Project, *words: str, columns: int = 100) -> tuple[int, list[str], str]:
    """Return the exit status, the lines finally on the screen, and everything written to the terminal."""
    leader, follower = pty.openpty()
    environment = {**project.environment, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    for name in ("CI", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [AGENTV, *words], cwd=project.path, env=environment, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    written = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        written += chunk
    os.close(leader)
    screen = pyte.HistoryScreen(columns, 200)
    pyte.ByteStream(screen).feed(written)
    return process.wait(timeout=120), [line.rstrip() for line in screen.display], written.decode(errors="replace")


def test_a_person_sees_the_cases_that_did_not_pass(project):
    project.write("a.eval.yaml", SUITE)
    status, screen, written = in_a_terminal(project, "eval", "a.eval.yaml")
    shown = "\n".join(screen)
    assert status == 3
    assert "bad" in shown
    assert "contains 'bye'" in shown
    assert "a.eval.yaml:4" in shown
    assert "1 passed, 1 failed, 1 errored" in shown
    assert "owned" not in written.split("\x1b]0;")[-1][:5]
    assert "\x1b]0;owned" not in written
    assert "Traceback" not in shown
    assert shown.count("read the answers in a browser: agentv view\n") == 1
    _, screen, _ = in_a_terminal(project, "eval", "a.eval.yaml", "--out", "a run")
    assert "read the answers in a browser: agentv view 'a run'" in screen
    for words in ((), ("--quiet",), ("--json",)):
        assert "agentv view" not in project.run("eval", "a.eval.yaml", *words).stderr


def test_the_command_alone_says_where_to_begin(project):
    ended = project.run()
    assert (ended.status, ended.stderr, len(ended.stdout.splitlines())) == (0, "", 6)
    for command in ("init", "eval", "view", "help"):
        assert f"agentv {command} " in ended.stdout


def test_help_explains_commands_and_groups(project):
    for words in (["eval"], ["results", "list"]):
        assert project.run("help", *words).stdout == project.run(*words, "--help").stdout, words
    project.run("help", "evil", status=2, says="did you mean 'eval'?")


def test_strict_makes_warnings_fail(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: x, criteria: good, assert: [contains: x]}\n")
    assert project.run("validate", "a.eval.yaml").status == 0
    assert project.run("validate", "a.eval.yaml", "--strict").status == 2
    assert project.run("eval", "a.eval.yaml").status == 0
    assert project.run("eval", "a.eval.yaml", "--strict").status == 2


def test_assert_runs_one_alone(project):
    project.write(
        ".agentv/assertions/min_words.py",
        "def min_words(ctx, *, minimum: int = 3):\n    return len((ctx.output or '').split()) >= minimum\n",
    )
    good = project.run("assert", "min-words", "--output", "one two three")
    assert (good.status, json.loads(good.stdout)["score"]) == (0, 1)
    bad = project.run("assert", "min-words", "--output", "one")
    assert (bad.status, json.loads(bad.stdout)["pass"]) == (1, False)
    project.write("payload.json", json.dumps({"output": "one two", "config": {"minimum": 2}}))
    assert project.run("assert", "min-words", "--file", "payload.json").status == 0
    assert project.run("assert", "contains", "--output", "x").status == 2
    project.run("assert", "min-word", "--output", "x", status=2, says="did you mean 'min-words'?")
    project.write(".agentv/assertions/breaks.py", "def breaks(ctx):\n    raise ValueError('no')\n")
    assert project.run("assert", "breaks", "--output", "x").status == 3


def test_without_a_code_all_are_listed(project):
    ended = project.run("explain")
    lines = ended.stdout.splitlines()
    assert lines[0] == "In files"
    assert "In a run" in lines
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert {"unknown-key", "timeout"} <= set(listed)
    assert [one["code"] for one in json.loads(project.run("explain", "--json").stdout)] == listed


def completed(project, line: str, **env: str) -> list[str]:
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_AGENTV_COMPLETE": "bash_complete", **env}
    ended = project.run(env=asked)
    assert (ended.status, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("agentv ev", ["plain,eval"]),
        ("agentv eval --replay-", ["plain,--replay-mode"]),
        ("agentv eval --replay-mode n", ["plain,new"]),
        ("agentv eval evals/", ["file,evals/"]),
        ("agentv results li", ["plain,list"]),
        ("agentv explain unknown-as", ["plain,unknown-assertion"]),
        ("agentv nosuch ", []),
    ],
)
def test_words_are_completed(project, line, found):
    assert completed(project, line) == found


def test_names_of_runs_are_completed(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n")
    assert project.run("eval", "a.eval.yaml").status == 0
    (name,) = (one.name for one in (project.path / ".agentv" / "results").iterdir() if one.is_dir())
    assert completed(project, "agentv results show ") == ["plain,last", f"plain,{name}"]
    assert completed(project, "agentv results show las") == ["plain,last"]


def test_bash_completes_a_command_line(project):
    script = project.run("completion", "bash").stdout
    asked = (
        f'{script}\nCOMP_WORDS=({AGENTV} valid); COMP_CWORD=1; _agentv_completion {AGENTV}; echo "${{COMPREPLY[@]}}"'
    )
    ended = project.other("bash", "-c", asked)
    assert (ended.stdout, ended.stderr) == ("validate\n", "")


WRONG = "target: echo\ntests:\n  - {id: a, input: x, asert: [contains: x]}\n"
FAILING = "target: 'mock:%0A::error::no'\ntests:\n  - id: a\n    input: x\n    assert:\n      - contains: x\n"


def test_validate_annotates_for_github_on_stdout_alone(project):
    project.write("evals/a.eval.yaml", WRONG)
    ended = project.run("validate", "evals", "--format", "github")
    assert (ended.status, ended.stderr) == (2, "")
    place = "file=evals/a.eval.yaml,line=3,endLine=3,col=23,endColumn=27"
    assert ended.stdout.startswith(f"::error {place},title=agentv unknown-key::a case has no key 'asert'%0A")


def test_validate_writes_sarif_with_the_catalogues_help(project):
    project.write("a.eval.yaml", WRONG)
    ended = project.run("validate", "a.eval.yaml", "--format", "sarif")
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["results"][0]["ruleId"] == "unknown-key"
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith("unknown-key")
    assert (ended.status, ended.stderr) == (2, "")


def test_eval_annotates_what_failed_and_nothing_of_an_answer_is_a_command(project):
    project.write("a.eval.yaml", FAILING)
    ended = project.run("eval", "a.eval.yaml", "--format", "github", status=1)
    total, failed = ended.stdout.splitlines()
    assert failed.startswith("::error file=a.eval.yaml,line=6,")
    assert failed.endswith("%250A::error::no")
    assert total == "::error title=agentv eval::1 case: 0 passed, 1 failed, 0 errored"
    assert "::" not in ended.stderr


def test_eval_writes_failed_trials_as_sarif(project):
    project.write("a.eval.yaml", FAILING)
    (run,) = json.loads(project.run("eval", "a.eval.yaml", "--format", "sarif").stdout)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("case-failed", 6)


KEY = "sk-Zq81Lm20Xv77Rt46Wb93"
AGENT = """\
import os

def ask(prompt):
    if "boom" in prompt:
        raise ValueError("." * 290 + os.environ["MY_API_KEY"] + "." * 300)
    return {"output": f"{prompt} {os.environ['MY_API_KEY']}", "cost_usd": 0.0123}
"""
VERBOSE_SUITE = """\
name: s
target: python:agent.py:ask
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: "hello\\n::error::x", assert: [contains: bye, contains: hello]}
  - {id: broken, input: boom, assert: [contains: hello]}
  - {id: held, depends_on: [broken], input: hello, assert: [contains: hello]}
"""


def test_every_trial_is_told_with_status_score_duration_cost_and_its_failed_checks(project):
    project.write_files({"evals/agent.py": AGENT, "evals/a.eval.yaml": VERBOSE_SUITE})
    ended = project.run("eval", "evals", "-v", "-j", "1", env={"MY_API_KEY": KEY}, status=3)
    assert ended.stdout == ""
    told = [re.sub(r"[\d.]+ m?s\b", "T", line) for line in ended.stderr.splitlines()]
    at = "python:agent.py:ask"
    assert told[0] == f"[1/4] PASSED s: good on {at}: score 1.00, T, $0.0123"
    assert told[1] == f"[2/4] FAILED s: bad on {at}: score 0.50, needs 0.80, T, $0.0123"
    assert told[2].startswith("  evals/a.eval.yaml:5: failed: contains 'bye' | hello")
    assert told[3].startswith(f"[3/4] ERRORED s: broken on {at}: target-raised: ask raised ValueError: ....")
    assert told[4].startswith(f"[4/4] NOT RUN s: held on {at}: ")
    assert "4 cases: 1 passed, 1 failed, 1 errored, 1 not run" in ended.stderr
    assert not any(KEY[at : at + 8] in ended.stderr for at in range(len(KEY) - 7))


def test_calls_that_were_made_again_and_their_waits_are_told(project):
    with misbehaving_server() as server:
        server.retry_after = "0.2"
        target = f"{{provider: http, url: '{server.url('429/2')}'}}"
        project.write(
            "a.eval.yaml", f"target: {target}\ntests:\n  - {{id: a, input: x, assert: [contains: at last]}}\n"
        )
        ended = project.run("eval", "a.eval.yaml", "--verbose")
    assert ended.status == 0, ended.stderr
    again = [line for line in ended.stderr.splitlines() if line.startswith("  call ")]
    assert len(again) == 2
    assert re.fullmatch(
        r"  call 1 got no answer after [\d.]+ m?s, waited 0\.\d s: http-status: HTTP 429 Too Many Requests: no 429",
        again[0],
    )


HEAVY = [
    "agentv.app.authored.reference",
    "agentv.codes",
    "agentv.reports.annotations",
    "aiohttp",
    "anthropic",
    "boto3",
    "genai_prices",
    "google.genai",
    "httpx",
    "httpx2",
    "litellm",
    "model2vec",
    "numpy",
    "openai",
    "pydantic",
    "requests",
    "tiktoken",
    "tokenizers",
]

PROGRAM = """
import atexit, json, sys
sys.argv = ["agentv", *json.loads(sys.argv[1])]
from agentv.__main__ import main

def note():
    with open("imported.json", "w") as file:
        json.dump(sorted(sys.modules), file)

atexit.register(note)
main()
"""


def imported(project, *words):
    """Return the exit status of a command and the modules that it imported."""
    ended = project.other(sys.executable, "-c", PROGRAM, json.dumps(words))
    loaded = json.loads((project.path / "imported.json").read_text())
    return ended.returncode, {name for name in loaded if name in HEAVY}


def test_a_run_on_the_first_project_imports_no_sdk(project):
    assert project.run("init").status == 0
    assert imported(project, "eval", "evals/") == (0, set())


ENV = {"GITHUB_ACTIONS": "true", "CI": "true"}
ID = "##[error]forged ::set-output name=a::b"
ANSWER = "first ##[group]x\n  ::error file=a::forged\r::stop-commands::t\n\t ::add-mask::a\u2028::warning::w"
ACTIONS_LOG_SUITE = {
    "name": "##[section]s",
    "targets": [{"name": "##[debug]t", "provider": "mock", "response": ANSWER}],
    "tests": [
        {"id": ID, "input": ANSWER, "assert": [{"contains": "::x ##[endgroup]"}, {"equals": "\n::debug::y"}]},
        {"id": "two", "input": "a", "assert": [{"contains": "first"}]},
    ],
}
COMMANDS = (
    ("eval", "a.eval.yaml"),
    ("eval", "a.eval.yaml", "--list"),
    ("eval", "a.eval.yaml", "--json"),
    ("eval", "wrong.eval.yaml"),
    ("validate", "."),
    ("validate", "wrong.eval.yaml", "--json"),
    ("results", "show", "last"),
    ("results", "show", "last", "--json"),
    ("results", "list"),
    ("results", "report", "--md", "-"),
    ("results", "report", "--junit", "-"),
    ("compare", "last", "last"),
    ("targets",),
    ("explain", "##[error]x"),
    ("eval", "::error::no such file"),
)


@pytest.fixture
def hostile(project):
    project.write("a.eval.yaml", json.dumps(ACTIONS_LOG_SUITE, indent=2))
    wrong = "target: echo\ntests:\n  - id: a\n    input: b\n    assert:\n  ::error::x: ##[group]\n"
    return project.write_files({"wrong.eval.yaml": wrong, "agent.py": "print('::error::from code ##[x]')\n"})


def commands_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_no_line_of_any_command_is_obeyed(hostile):
    for words in COMMANDS:
        ended = hostile.run(*words, env=ENV)
        assert commands_in(ended.stdout + ended.stderr) == [], words
    shown = json.loads(hostile.run("results", "show", "last", "--json", env=ENV).stdout)
    assert json.dumps(ANSWER) in json.dumps(shown)  # the answer is kept unchanged


def test_annotations_are_commands_and_nothing_else_is(hostile):
    ended = hostile.run("eval", "a.eval.yaml", "--format", "github", env=ENV)
    obeyed = commands_in(ended.stdout)
    assert obeyed
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in obeyed)
    assert commands_in(ended.stderr) == []
