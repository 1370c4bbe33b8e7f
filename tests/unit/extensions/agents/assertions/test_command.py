import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.assertions.command import CommandPasses
from agentv.ports import FailingTests, ProgramResult
from agentv.registry.fields import Command
from agentv.user_code.processes import run_program
from doubles.given_workspaces import FakeWorkspace
from doubles.grading import grade

REPORT = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.test_a.TestOne" name="test_new"/>
<testcase classname="tests.test_a" name="test_old"/>
<testcase classname="tests.test_a" name="test_bad"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase classname="tests.test_a" name="test_skipped"><skipped/></testcase>
</testsuite></testsuites>"""


class Directory(FakeWorkspace):
    """A workspace without a sandbox, in which commands run for real."""

    def __init__(self, path: Path) -> None:
        super().__init__([], path=str(path))

    async def run(self, command, stdin=b""):
        there = Command(command.argv, command.shell, str(Path(self.path, command.cwd)))
        ended = await run_program(there, stdin=stdin, env={**os.environ, **command.env}, timeout_s=60)
        return ProgramResult(ended.status, ended.stdout, ended.stderr)


def graded(workspace, line, **options):
    assertion = CommandPasses(Command(shell=line), **options)
    assert not list(assertion.validate())
    return grade(assertion, workspace=Directory(workspace), workspace_path=str(workspace))


def with_report(workspace, text=REPORT, line="cp given.xml report.xml", **options):
    (workspace / "given.xml").write_text(text)
    return graded(workspace, line, parse="junit", path="report.xml", **options)


def test_without_a_workspace_it_errs():
    assert grade(CommandPasses(Command(shell="true"))).error.code == "no-workspace"


@pytest.mark.parametrize(
    ("line", "options", "passed"),
    [
        ("true", {}, True),
        ("exit 3", {"exit": 3}, True),
        ("echo ready", {"stdout": "ready"}, True),
        ("echo steady", {"stdout": "ready"}, False),
        ('test "$LEVEL" = high', {"env": {"LEVEL": "high"}}, True),
        ("test -f here", {"cwd": "below"}, True),
        ("kill -9 $$", {}, False),
    ],
)
def test_the_exit_status_and_the_output_decide(tmp_path, line, options, passed):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/here").touch()
    found = graded(tmp_path, line, **options)
    assert (found.error, found.passed) == (None, passed), found.checks


def test_every_test_of_a_report_is_a_check(tmp_path):
    found = with_report(tmp_path)
    assert not found.passed
    assert [(check.text, check.passed) for check in found.checks] == [
        ("tests.test_a::test_bad passes", False),
        ("tests.test_a.TestOne::test_new passes", True),
        ("tests.test_a::test_old passes", True),
        ("exits with 0", True),
    ]
    assert found.score == 0.75


def test_named_tests_decide_whatever_else_fails(tmp_path):
    names = ("tests/test_a.py::TestOne::test_new",)
    assert with_report(tmp_path, fail_to_pass=names, pass_to_pass=("tests.test_a.test_old",)).passed
    assert with_report(tmp_path, fail_to_pass=names, line="cp given.xml report.xml; exit 1").passed
    assert not with_report(tmp_path, fail_to_pass=("tests/test_a.py::test_bad",)).passed


@pytest.mark.parametrize("name", ["test_missing", "tests/test_a.py::test_skipped", "test_skipped"])
def test_a_named_test_that_did_not_run_does_not_pass(tmp_path, name):
    assert not with_report(tmp_path, fail_to_pass=(name,)).passed


def test_a_failing_status_fails_though_each_test_passed(tmp_path):
    text = '<testsuite><testcase name="t"/></testsuite>'
    assert with_report(tmp_path, text).passed
    assert not with_report(tmp_path, text, line="cp given.xml report.xml; exit 2").passed


def test_a_report_that_the_agent_wrote_does_not_count(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT.replace("<failure", "<x").replace("</failure", "</x"))
    found = graded(tmp_path, "exit 1", parse="junit", path="report.xml", fail_to_pass=("test_new",))
    assert not found.passed
    assert "does not exist" in found.checks[0].evidence


def test_a_link_at_the_place_of_the_report_is_not_followed(tmp_path):
    outside = tmp_path / "outside.xml"
    outside.write_text('<testsuite><testcase name="t"/></testsuite>')
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "report.xml").symlink_to(outside)
    found = graded(workspace, f"ln -s {outside} report.xml", parse="junit", path="report.xml")
    assert not found.passed
    assert outside.exists()
    (workspace / "reports").symlink_to(tmp_path)
    assert not graded(workspace, "true", parse="junit", path="reports/outside.xml").passed
    assert outside.exists()


@pytest.mark.parametrize("options", [{}, {"fail_to_pass": ("t",)}])
@pytest.mark.parametrize(
    "text",
    [
        "<testsuite/>",
        "<testsuite><testcase name='t'><skipped/></testcase></testsuite>",
        "<testsuite><testcase name='t' status='notrun'/></testsuite>",
    ],
)
def test_a_report_without_a_test_that_ran_is_errored(tmp_path, text, options):
    assert with_report(tmp_path, text, **options).error.code == "no-test-ran"


@pytest.mark.parametrize(
    ("printed", "passed"),
    [
        ("Ran 0 tests in 0.000s", False),
        ("no tests ran in 0.01s", False),
        ("No tests found, exiting with code 0", False),
        ("  0 passing (1ms)", False),
        ("ℹ tests 0", False),
        ("Ran 0 tests in 0.000s\nRan 3 tests in 0.1s", True),
        ("no tests ran in 0.01s\n5 passed in 0.1s", True),
        ("all is well", True),
    ],
)
def test_a_command_whose_runner_says_that_no_test_ran_does_not_pass(tmp_path, printed, passed):
    found = graded(tmp_path, f"printf '{printed}\n'")
    assert found.passed == passed
    if not passed:
        assert found.checks[1].text == "runs a test"
        assert found.checks[1].evidence == printed.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html/>",
        '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="t"/></testsuite>',
        '<testsuite><testcase name="t"><failure/><skipped/></testcase><testcase name="u"/></testsuite>',
        '<testsuite><testcase name="t" status="failed"/></testsuite>',
        '<testsuite><testcase name="u"><testcase name="t" status="failed"/></testcase></testsuite>',
        '<a:testsuite xmlns:a="x"><a:testcase name="t"><a:failure/></a:testcase></a:testsuite>',
        '<testsuite><error message="cannot collect"/><testcase name="t"/></testsuite>',
        '<testsuite errors="1" failures="3" tests="9"><testcase name="t"/></testsuite>',
    ],
)
def test_what_is_no_report_and_a_failure_however_it_is_written_do_not_pass(tmp_path, text):
    found = with_report(tmp_path, text)
    assert (found.error, found.passed) == (None, False)


def test_an_entity_in_a_text_is_none(tmp_path):
    said = '<system-out><![CDATA[<!ENTITY a "b">]]></system-out>'
    assert with_report(tmp_path, f'<testsuite><testcase name="t">{said}</testcase></testsuite>').passed


def test_a_suite_may_count_the_failures_of_the_suites_in_it(tmp_path):
    inner = '<testsuite failures="1"><testcase name="t"/><testcase name="u"><failure/></testcase></testsuite>'
    found = with_report(tmp_path, f'<testsuites><testsuite failures="1">{inner}</testsuite></testsuites>')
    assert (found.score, found.passed) == (pytest.approx(2 / 3, abs=1e-3), False)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"parse": "junit"}, ()),
        ({"path": "a.xml"}, ("path",)),
        ({"fail_to_pass": ("a",)}, ("fail_to_pass",)),
        ({"cwd": "../x"}, ("cwd",)),
        ({"parse": "junit", "path": "*.xml"}, ("path",)),
        ({"parse": "reward", "path": ".", "stdout": "ok"}, ("stdout",)),
        ({"parse": "junit", "path": "a.xml", "fail_to_pass": ("a",), "exit": 1}, ("exit",)),
    ],
)
def test_options_that_cannot_work_are_refused(options, path):
    issues = list(CommandPasses(Command(shell="true"), **options).validate())
    assert [issue.path for issue in issues] == [path]


@pytest.mark.parametrize(
    ("written", "score", "passed"),
    [
        ("1", 1.0, True),
        ("0.25", 0.25, False),
        ('{"reward": 1, "seconds": 30}', 1.0, True),
        ('{"a": 1, "b": 0}', 0.5, False),
        ('{"passed": 7, "failed": 3}', None, False),
        ("5", None, False),
        ("true", None, False),
        ("9" * 5000, None, False),
        ("NaN", None, False),
        ("{}", None, False),
    ],
)
def test_a_reward_is_a_number_or_the_mean_of_several_each_from_0_to_1(tmp_path, written, score, passed):
    (tmp_path / "given").write_text(written)
    found = graded(tmp_path, "cp given reward.txt", parse="reward", path=".")
    assert (None if found.error else found.score, found.passed) == (score, passed)
    assert found.error is None or found.error.code == "no-reward"


class Guarded(Directory):
    """A workspace whose test configuration is restored, and whose hidden tests have the given result."""

    def __init__(self, path: Path, again: FailingTests | None, report: str | None = None) -> None:
        super().__init__(path)
        self.again, self.report, self.allowed = again, report, None

    async def restore_test_config(self, allowed):
        self.allowed = allowed
        return ("conftest.py",)

    async def run_failing_tests(self, command, reports):
        return self.again and replace(self.again, report=self.report and self.report.encode())


def guarded(tmp_path, line, again, report=None, **options):
    workspace = Guarded(tmp_path, again, report)
    found = grade(CommandPasses(Command(shell=line), **options), workspace=workspace, workspace_path=str(tmp_path))
    return found, workspace


@pytest.mark.parametrize(
    ("line", "restores"), [("true pytest", True), ("true npm test", True), ("true make lint", False)]
)
def test_what_configures_tests_is_restored_before_tests_run(tmp_path, line, restores):
    found, workspace = guarded(tmp_path, line, None, allow_config=("tests/*",))
    assert found.passed
    assert workspace.allowed == (("tests/*",) if restores else None)
    assert found.details == ({"restored": ["conftest.py"]} if restores else {})


EXITS = {0: FailingTests(ProgramResult(0, b"", b"")), 1: FailingTests(ProgramResult(1, b"", b""))}


@pytest.mark.parametrize(
    ("line", "again", "code"),
    [
        ("true pytest", EXITS[1], None),
        ("true pytest", EXITS[0], "grader-defeated"),
        ("true pytest", replace(EXITS[0], loaded=False), None),
        ("true pytest", replace(EXITS[1], cheated="it cheats"), "grader-defeated"),
        ("true pytest", None, None),
        ("true make lint", EXITS[0], None),
    ],
)
def test_a_command_that_passes_with_tests_that_must_fail_is_errored(tmp_path, line, again, code):
    found, _ = guarded(tmp_path, line, again)
    assert (found.error and found.error.code) == code


PASSES = '<testsuite><testcase classname="tests.test_a" name="test_new[1]"/><testcase classname="b" name="test_old"/></testsuite>'
FAILS = PASSES.replace('name="test_new[1]"/>', 'name="test_new[1]"><failure/></testcase>')


@pytest.mark.parametrize(
    ("report", "status", "code"),
    [(FAILS, 1, None), (PASSES, 0, "grader-defeated"), (PASSES, 1, "grader-defeated"), (None, 0, "grader-defeated"), (None, 1, None), ("<html", 0, "grader-defeated")],
)  # fmt: skip
def test_a_report_in_which_tests_that_must_fail_pass_is_errored(tmp_path, report, status, code):
    (tmp_path / "given.xml").write_text(PASSES)
    again = FailingTests(ProgramResult(status, b"", b""), frozenset({"test_a::test_new"}))
    found, _ = guarded(tmp_path, "cp given.xml report.xml", again, report, parse="junit", path="report.xml")
    assert (found.error and found.error.code) == code
    assert (tmp_path / "report.xml").read_text() == PASSES
