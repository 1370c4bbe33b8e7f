"""Eval files under pytest, run as by a user."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

SUITE = """
name: greetings
targets: [echo]
tests:
  - id: hello
    tags: [fast]
    input: hello
    assert: [contains: hello]
  - id: bye
    input: bye
    assert: [contains: hello]
  - id: broken
    input: x
    assert:
      - type: cost
        threshold: 1
  - id: noted
    input: hi
    threshold: 0.5
    assert: [contains: hi, contains: there]
""".replace("[contains: hi, contains: there]", "[{contains: hi}, {contains: there}]")

PLUGINS = ("-p", "no:agentv", "-p", "agentv.pytest_plugin", "-p", "xdist.plugin")
"""Loads agentv's plugin by module, installed or not, and skips other plugins, which take half a second to import."""


@pytest.fixture
def evals(project):
    project.write(".agentv/.keep", "")
    project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    project.write("evals/greet.eval.yaml", SUITE)
    return project


PROGRAM = "import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"


def run_pytest(project, *words):
    program = str(project.write("program.py", PROGRAM))
    ended = project.run(program, *PLUGINS, "-q", *words, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert "INTERNALERROR" not in ended.stdout, ended.stdout
    return ended


def outcomes(project, *words):
    """Return each test's outcome from the JUnit file written by pytest."""
    ended = run_pytest(project, *words, "--junitxml=junit.xml")
    found = {}
    for case in ET.parse(project.path / "junit.xml").iter("testcase"):
        failed = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[case.get("name")] = failed[0] if failed else "passed"
    return found, ended


ALL = {"hello[echo]": "passed", "bye[echo]": "failure", "broken[echo]": "error", "noted[echo]": "passed"}


def test_cases_are_tests_and_what_failed_differs_from_what_broke(evals):
    """A tag named like a pytest mark hides no failure, an invalid mark breaks nothing, and a shown-only case does not
    pass."""
    tags = ("skip", "xfail", "_slow", "team:x")
    tagged = (f"  - {{id: '{tag}', tags: ['{tag}'], input: a, assert: [contains: b]}}\n" for tag in tags)
    evals.write("evals/marks.eval.yaml", f"target: echo\ntests:\n{''.join(tagged)}")
    evals.write("evals/shown.eval.yaml", "show_only: true\ntarget: echo\ntests: [{id: ann, input: Hi}]\n")
    found, ended = outcomes(evals, "evals", "--strict-markers")

    assert found == {**ALL, **{f"{tag}[echo]": "failure" for tag in tags}, "ann[echo]": "error"}
    assert "the case checks nothing (show_only)" in ended.stdout
    assert ended.status == 1
    shown = "FAILED bye: score 0.00, needs 0.80\n  evals/greet.eval.yaml:11: failed: contains 'hello' | bye"
    assert shown in ended.stdout
    assert "ERRORED broken: no-data" in ended.stdout
    assert "answered: bye" in ended.stdout
    assert "Traceback" not in ended.stdout
    assert "collection.py" not in ended.stdout
    assert "1 case passed with a failed check" in ended.stdout
    assert {row["test_id"] for row in evals.rows()} >= {"hello", "bye", "broken", "noted"}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("evals", "-k", "noted"), {"noted[echo]"}),
        (("evals", "-m", "fast", "--strict-markers"), {"hello[echo]"}),
        (("evals/greet.eval.yaml::bye[echo]",), {"bye[echo]"}),
        (("evals", "-x"), {"hello[echo]", "bye[echo]"}),
    ],
)
def test_tests_are_selected_as_others_are(evals, words, names):
    found, _ = outcomes(evals, *words)

    assert found.keys() == names
    if "-x" not in words:
        assert {f"{row['test_id']}[echo]" for row in evals.rows()} == names


def test_the_last_failures_are_run_again(evals):
    run_pytest(evals, "evals")
    found, _ = outcomes(evals, "evals", "--lf")

    assert found == {"bye[echo]": "failure", "broken[echo]": "error"}


def test_processes_share_the_cases_and_no_case_runs_twice(evals):
    found, ended = outcomes(evals, "evals", "-n", "2")

    assert found == ALL
    runs = [path.parent for path in (evals.path / ".agentv" / "results").glob("*/index.jsonl")]
    rows = [json.loads(line) for run in runs for line in (run / "index.jsonl").read_text().splitlines()]
    assert sorted(row["test_id"] for row in rows) == ["broken", "bye", "hello", "noted"]
    assert all(f"{run.name}" in ended.stdout for run in runs)


def test_a_broken_file_is_an_error_of_the_collection_with_its_diagnostics(evals):
    evals.write("evals/bad.eval.yaml", "name: bad\ntarget: echo\ntests: [{id: a, input: x, asert: [contains: x]}]\n")
    gated = "target: echo\nrun: {gate: corrected}\ntests: [{id: a, input: x, assert: [contains: x]}]\n"
    evals.write("evals/gated.eval.yaml", gated)

    ended = run_pytest(evals, "evals")

    assert ended.status == 2
    assert re.search(r"^evals/bad.eval.yaml:3:\d+: error\[unknown-key\]", ended.stdout, re.MULTILINE)
    assert "did you mean 'assert'" in ended.stdout
    assert "labels decide the whole run of this suite" in ended.stdout
    assert not evals.ran


def test_a_bare_pytest_pays_for_nothing(evals):
    ended = run_pytest(evals)

    assert ended.status == 5
    assert "1 eval file not collected: give the files or their directory, or set agentv_collect = true" in ended.stdout
    assert not evals.ran
    assert "2 passed" in run_pytest(evals, "-o", "agentv_collect=true").stdout


def test_collecting_asks_nobody(evals):
    evals.write(
        "evals/model.eval.yaml", "name: m\ntarget: openai:gpt-5\ntests: [{id: a, input: x, assert: [contains: x]}]\n"
    )

    ended = run_pytest(evals, "evals", "--collect-only")

    assert "evals/model.eval.yaml::a[openai:gpt-5]" in ended.stdout
    assert not evals.ran
    assert "OPENAI_API_KEY" in run_pytest(evals, "evals").stdout


def test_a_case_brings_along_what_it_hangs_on_and_is_no_success_without_it(evals):
    evals.write(
        "evals/greet.eval.yaml",
        "name: g\ntarget: echo\ntests:\n"
        "  - {id: first, input: a, assert: [contains: b]}\n"
        "  - {id: second, input: a, assert: [contains: a], depends_on: first}\n",
    )

    found, ended = outcomes(evals, "evals", "-k", "second")

    assert found == {"second[echo]": "error"}
    assert re.search(r"NOT RUN second: dependency-not-passed: 'first', which it depends on, failed", ended.stdout)


def test_an_exam_is_told_and_not_run(evals):
    evals.write("prompts/p/prompt.md", "Say {{ word }}.")
    evals.write("prompts/p/eval.yml", "cases: [{name: a, inputs: {word: x}, assert: [contains: x]}]\n")
    evals.write("prompts/p/meta.yaml", "description: says a word\nstatus: draft\n")

    assert "1 prompt exam not collected: run them with 'agentv prompt eval'" in run_pytest(evals, "prompts").stdout
    named = run_pytest(evals, "prompts/p/eval.yml", "--agentv-target", "echo")
    assert (named.status, "an exam keeps a log: run it with 'agentv prompt eval'" in named.stdout) == (2, True)
    assert not (evals.path / "prompts" / "p" / ".eval.jsonl").exists()


def test_suites_made_in_python_fail_with_their_checks(evals):
    evals.write(
        "test_suite.py",
        """
        SUITE = {"name": "s", "target": "echo", "tests": [{"id": "a", "input": "hi", "assert": [{"contains": "ho"}]}]}


        def test_fails(assert_eval):
            assert_eval(SUITE)


        def test_looks(agentv_run):
            assert agentv_run(SUITE, threshold=0).summary.cases.passed == 1
        """.replace("\n        ", "\n"),
    )

    ended = run_pytest(evals, "test_suite.py")

    assert "FAILED a: score 0.00, needs 0.80" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_the_plugin_alone_imports_nothing_of_agentv():
    code = "import sys, agentv.pytest_plugin; print([m for m in sys.modules if m.startswith('agentv.')])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "['agentv.version', 'agentv.pytest_plugin.session', 'agentv.pytest_plugin']"
