import asyncio

import pytest
from msgspec.structs import replace

from agentv.assertions.text.matching import Contains
from agentv.engine.grading import grade_entries
from agentv.extensions.agents.assertions.files import Diff, FileChanges
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.values.trace import FileChange, WorkspaceChanges
from doubles.grading import Services, context_of, grade

CHANGES = WorkspaceChanges(
    files=(
        FileChange("src/app.py", "modified", added_lines=3, deleted_lines=1),
        FileChange("docs/new.md", "renamed", old_path="README.md", added_lines=0, deleted_lines=0),
        FileChange("logo.png", "added", size=100, sha256="0" * 64, binary=True),
    ),
    patch="--- a/src/app.py\n+++ b/src/app.py\n+password = 1\n",
)


def graded(changes=CHANGES, **options):
    return grade(FileChanges(**options), changes=changes)


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ({"allow": ("**",)}, True),
        ({"allow": ("src/**", "docs/**", "*.png")}, False),  # a rename changes README.md too
        ({"allow": ("src/**", "docs/**", "*.png", "README.md")}, True),
        ({"deny": ("README.md",)}, False),
        ({"deny": ("**/*.py",)}, False),
        ({"max_files": 3}, True),
        ({"max_files": 2}, False),
        ({"max_lines": 4}, False),  # of a binary file nobody knows the lines
        ({"none": True}, False),
    ],
)
def test_each_limit_is_a_check(options, passed):
    found = graded(**options)
    assert (found.error, found.passed) == (None, passed), found.checks
    assert len(found.checks) == len(options)


def test_a_diff_that_does_not_show_all_is_not_graded():
    without = entry("password", negate=True)
    assert of_diff(Diff((without,))).error.code == "no-data"
    cut = WorkspaceChanges(CHANGES.files[:2], "x", cut=True)
    assert of_diff(Diff((without,), allow_binary=True), cut).error.code == "no-data"


def test_without_a_workspace_it_errs():
    assert grade(FileChanges(none=True)).error.code == "no-workspace"
    assert grade(Diff(())).error.code == "no-workspace"


@pytest.mark.parametrize(
    ("options", "path"),
    [({}, ()), ({"none": True, "deny": ("a",)}, ("deny",)), ({"allow": ("/etc/**",)}, ("allow", 0))],
)
def test_what_checks_nothing_or_no_file_is_refused(options, path):
    assert [issue.path for issue in FileChanges(**options).validate()] == [path]


class _Services(Services):
    async def grade(self, entries, context):
        class Clock:
            def monotonic(self):
                return 0.0

        return await grade_entries(entries, context, Clock())


def entry(value, *, negate=False):
    return AssertionEntry("contains", Contains(value), replace(DEFAULTS, negate=negate))


def of_diff(diff, changes=CHANGES):
    context = context_of("the answer says nothing", changes=changes, _services=_Services())
    return asyncio.run(diff.grade(context))


def test_an_empty_diff_fails_unless_it_may_be_empty():
    without = entry("password", negate=True)
    assert not of_diff(Diff((without,)), WorkspaceChanges()).passed
    assert of_diff(Diff((without,), allow_empty=True), WorkspaceChanges()).passed
