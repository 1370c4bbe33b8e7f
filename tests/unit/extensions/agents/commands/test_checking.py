import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from agentv.app.settings import EvalSettings
from agentv.cli.main import cli
from agentv.errors import LoadError
from agentv.extensions.agents.commands.checking import CheckReport, check_cases
from agentv.extensions.agents.commands.work import render_check
from doubles.loading import repository
from needs import needs

pytestmark = needs("bwrap")

PATCH = """\
--- a/app.py
+++ b/app.py
@@ -1 +1 @@
-def total(a, b): return a - b
+def total(a, b): return a + b
"""


@pytest.fixture
def project(project):
    files = {
        "template/app.py": "def total(a, b): return a - b\n",
        "hidden/test_app.py": "from app import total\nassert total(1, 2) == 3\n",
        "fix.patch": PATCH,
        "right/app.py": "def total(a, b): return a + b\n",
    }
    return repository(project, files)


def write(project: Path, tests: str) -> Path:
    file = project / "fix.eval.yaml"
    header = """\
    target: echo
    workspace: {template: template, hidden: {tests/: hidden/test_app.py}}
    tests:
    """
    file.write_text(dedent(header) + tests)
    return file


def checked(file: Path, *, oracle: bool = True, sandbox="bwrap"):
    report = check_cases(EvalSettings(paths=(str(file),), sandbox=sandbox, workers=1), oracle=oracle)
    return report, [(one.case, one.problem) for one in report.problems]


GRADED = f"""\
  input: Make total() add.
  assert:
    - command: [env, PYTHONPATH=., {sys.executable}, tests/test_app.py]
"""


@pytest.mark.parametrize("solution", [
    "fix.patch", "{patch: fix.patch}", "right", "{files: {app.py: right/app.py}}",
    "{commands: ['sed -i s/-/+/ app.py']}", "{commands: [[sed, -i, s/-/+/, app.py]]}",
])  # fmt: skip
def test_a_sound_case_fails_nothing_and_passes_its_solution(project, solution):
    file = write(project, f"- id: total\n  solution: {solution}\n{GRADED}")
    report, problems = checked(file)
    assert problems == []
    assert (report.status, report.cases, report.solved) == (0, 1, 1)


def test_a_case_that_passes_untouched_is_found(project):
    file = write(project, "- {id: weak, input: Fix it., assert: [file-exists: app.py]}")
    report, problems = checked(file, oracle=False)
    assert problems == [("weak", "passes-untouched")]
    assert report.status == 1


def test_cases_are_checked_whatever_becomes_of_those_that_they_depend_on(project):
    """Otherwise they would be skipped for an agent that does nothing, and count as sound."""
    weak = "- {id: weak, depends_on: [first], input: Fix it., assert: [file-exists: app.py]}\n"
    file = write(project, f"- id: first\n{GRADED}- id: sound\n  depends_on: [first]\n  solution: right\n{GRADED}{weak}")
    report, problems = checked(file)
    assert problems == [("weak", "passes-untouched")]
    assert (report.sound, report.solved, report.without_solution) == (2, 1, ("first", "weak"))


def test_an_answer_that_says_done_must_not_pass(project):
    (project / "plain.eval.yaml").write_text(
        "target: echo\ntests:\n"
        "- {id: weak, input: Do it., assert: [not-contains: error]}\n"
        "- {id: sound, input: 2 + 2?, expected_output: '4', assert: [contains: '4']}\n"
    )
    report, problems = checked(project / "plain.eval.yaml")
    assert problems == [("weak", "passes-untouched")]
    assert report.without_solution == ("weak",)


def test_a_solution_that_does_not_pass_is_found(project):
    file = write(project, f"- id: total\n  solution: {{commands: ['echo >> app.py']}}\n{GRADED}")
    report, problems = checked(file)
    assert problems == [("total", "solution-fails")]
    assert "exits with 0" in report.problems[0].detail[0]


@pytest.mark.parametrize("solution", ["{commands: [exit 1]}", "{patch: wrong.patch}"])
def test_a_solution_that_cannot_be_applied_is_an_error(project, solution):
    (project / "wrong.patch").write_text(PATCH.replace("a - b", "a * b"))
    report, problems = checked(write(project, f"- id: total\n  solution: {solution}\n{GRADED}"))
    assert problems == [("total", "not-graded")]
    assert report.status == 3


def test_a_grader_that_changes_its_mind_is_found(project):
    flip = f"""\
- id: flaky
  input: Fix it.
  assert:
    - type: command
      command: test -e {project}/seen && rm {project}/seen || {{ touch {project}/seen; false; }}
"""
    _, problems = checked(write(project, flip), oracle=False, sandbox="none")
    assert ("flaky", "hidden-readable") in problems
    assert problems[0][1] in ("grading-differs", "passes-untouched")


def test_hidden_files_that_the_agent_can_read_are_found(project):
    file = write(project, f"- id: total\n{GRADED}")
    report, problems = checked(file, oracle=False, sandbox="none")
    assert problems == [("total", "hidden-readable")]
    assert report.problems[0].detail == (str(project / "hidden/test_app.py"),)
    assert checked(file, oracle=False)[1] == []


@pytest.mark.parametrize(
    "solution",
    ["missing.patch", "{commands: []}", "{patch: ''}", "{path: fix.patch}", "{commands: [[]]}", "[1]", "empty.patch"],
)
def test_a_solution_that_cannot_be_read_is_refused(project, solution):
    (project / "empty.patch").write_text("\n")
    with pytest.raises(LoadError):
        checked(write(project, f"- id: total\n  solution: {solution}\n{GRADED}"))


def test_the_command_prints_the_problems(project):
    write(project, "- {id: weak, input: Fix it., assert: [file-exists: app.py]}")
    found = CliRunner().invoke(cli, ["check", "fix.eval.yaml"], standalone_mode=False)
    assert found.return_value == 1
    assert "weak: passes for an agent that does nothing" in found.stdout
    found = CliRunner().invoke(cli, ["check", "fix.eval.yaml", "--json"], standalone_mode=False)
    assert [one["problem"] for one in json.loads(found.stdout)["problems"]] == ["passes-untouched"]
    assert not (project / ".agentv").exists()


def test_calls_of_tools_prove_a_case_whose_user_says_only_what_it_wants(project):
    (project / "shop.py").write_text("def pay(amount: int, state):\n    state['paid'] = amount\n")
    file = project / "pay.eval.yaml"
    file.write_text(
        dedent("""\
        target: echo
        tools: {shop: shop.py}
        assert: [{tool-state: {after: solution}}]
        tests:
          - {id: sound, user: pay 3, solution: {calls: [{tool: shop.pay, args: {amount: 3}}]}}
          - {id: does nothing, user: pay 3, solution: {calls: [{tool: shop.pay, args: {amount: "3"}}]}}
        """)
    )
    report, problems = checked(file, sandbox=None)
    assert report.solved == 2
    assert problems == [("does nothing", "not-graded"), ("does nothing", "not-graded")]
    assert "shop.pay of the solution fails: invalid arguments" in report.problems[0].message


def test_an_interrupted_check_calls_no_case_sound():
    shown = render_check(CheckReport(3, 2, (), interrupted=True))
    assert shown == "interrupted, so that not all of 3 cases are checked"
