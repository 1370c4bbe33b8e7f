from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentv.assertions.work.command import CommandPasses
from agentv.model.values.changes import WorkspaceChanges
from agentv.ports import ProgramResult
from agentv.registry.fields import Command
from agentv.user_code.processes.processes import run_program
from doubles.grading import grade

REPORT = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.test_a.TestOne" name="test_new"/>
<testcase classname="tests.test_a" name="test_old"/>
<testcase classname="tests.test_a" name="test_bad"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase classname="tests.test_a" name="test_skipped"><skipped/></testcase>
</testsuite></testsuites>"""


class Directory:
    """A workspace without a sandbox, in which commands really run."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

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
        ("exit 3", {}, False),
        ("exit 3", {"exit": 3}, True),
        ("echo ready", {"stdout": "ready"}, True),
        ("echo steady", {"stdout": "ready"}, False),
        ("echo ready; exit 1", {"stdout": "ready"}, False),
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


def test_a_failed_command_shows_its_last_lines(tmp_path):
    found = graded(tmp_path, "echo broken >&2; exit 1")
    assert found.checks[0].evidence == "exit 1: broken"
    assert found.details == {"stderr": "broken"}
    assert graded(tmp_path, "echo fine").details == {}


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


def test_a_name_that_fits_several_tests_needs_all_of_them(tmp_path):
    text = (
        '<testsuite><testcase classname="a" name="t"/><testcase classname="b" name="t"><error/></testcase></testsuite>'
    )
    assert not with_report(tmp_path, text, fail_to_pass=("t",)).passed
    assert with_report(tmp_path, text, fail_to_pass=("a.t",)).passed


def test_a_failing_status_fails_though_each_test_passed(tmp_path):
    text = '<testsuite><testcase name="t"/></testsuite>'
    assert with_report(tmp_path, text).passed
    assert not with_report(tmp_path, text, line="cp given.xml report.xml; exit 2").passed


def test_a_report_that_the_agent_wrote_does_not_count(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT.replace("<failure", "<x").replace("</failure", "</x"))
    found = graded(tmp_path, "exit 1", parse="junit", path="report.xml", fail_to_pass=("test_new",))
    assert not found.passed
    assert "does not exist" in found.checks[0].evidence


def test_a_directory_at_the_place_of_the_report_does_not_pass(tmp_path):
    (tmp_path / "report.xml").mkdir()
    assert not with_report(tmp_path).passed


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html/>",
        "<testsuite/>",
        "<testsuite><testcase name='t'><skipped/></testcase></testsuite>",
        "<testsuite><testcase name='t'>",
        '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="t"/></testsuite>',
    ],
)
def test_a_report_without_tests_does_not_pass(tmp_path, text):
    found = with_report(tmp_path, text)
    assert (found.error, found.passed) == (None, False)


@pytest.mark.parametrize(
    "text",
    [
        '<testsuite><testcase name="t"><failure/><skipped/></testcase><testcase name="u"/></testsuite>',
        '<testsuite><testcase name="t" status="failed"/></testsuite>',
        '<testsuite><testcase name="t"><Failure/></testcase></testsuite>',
        '<testsuite><error message="cannot collect"/><testcase name="t"/></testsuite>',
        '<testsuite errors="1" failures="3" tests="9"><testcase name="t"/></testsuite>',
        '<testsuites failures="1"><testsuite><testcase name="t"/></testsuite></testsuites>',
    ],
)
def test_a_failure_in_a_report_counts_however_it_is_written(tmp_path, text):
    found = with_report(tmp_path, text)
    assert (found.error, found.passed) == (None, False)


def test_counts_of_nested_suites_are_those_of_their_tests(tmp_path):
    inner = '<testsuite failures="0" errors="0"><testcase name="t"/></testsuite>'
    assert with_report(tmp_path, f'<testsuites failures="0">{inner}{inner}</testsuites>').passed


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"parse": "junit"}, ()),
        ({"path": "a.xml"}, ("path",)),
        ({"fail_to_pass": ("a",)}, ("fail_to_pass",)),
        ({"cwd": "../x"}, ("cwd",)),
        ({"parse": "junit", "path": "*.xml"}, ("path",)),
    ],
)
def test_options_that_cannot_work_are_refused(options, path):
    issues = list(CommandPasses(Command(shell="true"), **options).validate())
    assert [issue.path for issue in issues] == [path]


@pytest.mark.parametrize(
    ("line", "options", "passed"),
    [
        ("true pytest", {}, False),
        ("true npx jest --ci", {}, False),
        ("true make lint", {}, True),
        ("true pytest", {"allow_config": ("tests/*",)}, False),
        ("true pytest", {"allow_config": ("tests/*", "conftest.py")}, True),
    ],
)
def test_tests_whose_configuration_the_agent_changed_prove_nothing(tmp_path, line, options, passed):
    assertion = CommandPasses(Command(shell=line), **options)
    changes = WorkspaceChanges(test_config=("conftest.py", "tests/pytest.ini"))
    found = grade(assertion, workspace=Directory(tmp_path), workspace_path=str(tmp_path), changes=changes)
    assert (found.passed, found.score) == (passed, float(passed)), found.checks
    if not passed:
        assert found.checks[0].text == "the agent did not change how hidden tests run"
        assert "conftest.py" in found.checks[0].evidence
