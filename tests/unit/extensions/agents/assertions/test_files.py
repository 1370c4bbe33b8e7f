import asyncio
import os

import pytest
from msgspec.structs import replace

from agentv.assertions.text.matching import Contains
from agentv.engine.grading import grade_entries
from agentv.extensions.agents.assertions.files import Diff, FileChanges, FileContains, FileEquals, FileExists, FileJson
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.values.trace import FileChange, WorkspaceChanges
from agentv.registry.fields import Document, LoadedJson
from doubles.grading import Services, context_of, grade


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "workspace"
    (root / "src/deep").mkdir(parents=True)
    (root / "src/app.py").write_text("def total(a, b):\n    return a + b\n")
    (root / "src/deep/old.py").write_text("print('old')\n")
    (root / "config.json").write_text('{"name": "app", "limits": {"rows": 10}}')
    (root / ".hidden").write_text("dot")
    return root


def graded(assertion, workspace):
    return grade(assertion, workspace_path=str(workspace))


@pytest.mark.parametrize(
    "assertion", [FileExists("a"), FileContains("a", value="b"), FileEquals("a", "b"), FileJson("a")]
)
def test_without_a_workspace_nothing_passes(assertion):
    found = grade(assertion)
    assert found.error.code == "no-workspace"


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("src/app.py", True),
        ("src", True),
        ("src/*.py", True),
        ("**/old.py", True),
        ("src/**", True),
        (".hidden", True),
        ("src/[ab]pp.py", True),
        ("src/[!a]pp.py", False),
        ("s*/old.py", False),
        ("SRC/app.py", False),
        ("missing/", False),
    ],
)
def test_a_path_or_a_glob_names_files(workspace, path, exists):
    found = graded(FileExists(path), workspace)
    assert (found.error, found.passed) == (None, exists), found.checks


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "~/x", " "])
def test_a_path_outside_the_workspace_is_refused_when_it_is_loaded(path):
    assert [issue.path for issue in FileExists(path).validate()] == [("path",)]


def test_a_link_out_of_the_workspace_is_not_read(workspace, tmp_path):
    (tmp_path / "secret").write_text("the password")
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "directory").symlink_to(tmp_path)
    found = graded(FileContains("link", value="password"), workspace)
    assert not found.passed
    assert found.checks[0].evidence == "is a link that leads out of the workspace"
    assert not graded(FileContains("directory/secret", value="password"), workspace).passed
    assert not graded(FileExists("directory/secret"), workspace).passed
    assert graded(FileExists("link"), workspace).passed
    assert not graded(FileContains("**/secret", value="password"), workspace).passed


@pytest.mark.parametrize(("path", "said"), [("pipe", "is no regular file"), ("src", "is a directory")])
def test_what_is_no_file_fails_and_does_not_hang_the_grade(workspace, path, said):
    os.mkfifo(workspace / "pipe")
    found = graded(FileContains(path, value="x"), workspace)
    assert (found.error, found.checks[0].evidence) == (None, said)


def test_any_file_of_a_glob_may_contain_the_text(workspace):
    assert graded(FileContains("**/*.py", value="old"), workspace).passed
    assert graded(FileContains("src/*.py", pattern=r"return\s+a"), workspace).passed
    assert not graded(FileContains("**/*.py", value="new"), workspace).passed
    assert not graded(FileContains("*.txt", value="new"), workspace).passed


def test_exactly_one_of_value_and_pattern_is_given():
    assert list(FileContains("a").validate())
    assert list(FileContains("a", value="x", pattern="x").validate())
    assert [issue.code for issue in FileContains("a", pattern="(").validate()] == ["bad-regex"]
    assert not list(FileContains("a", value="x").validate())


def test_text_is_compared_line_by_line(workspace):
    wanted = "def total(a, b):\n    return a + b"
    assert graded(FileEquals("src/app.py", wanted), workspace).passed
    assert not graded(FileEquals("src/app.py", wanted, trim=False), workspace).passed
    found = graded(FileEquals("src/app.py", wanted.replace("+", "-")), workspace)
    assert found.checks[0].evidence == "line 2: expected 'return a - b', found 'return a + b'"


def test_bytes_that_are_no_text_do_not_equal_text(workspace):
    (workspace / "binary").write_bytes(b"\xff\xfe\x00")
    assert graded(FileEquals("binary", "x"), workspace).checks[0].evidence == "is not UTF-8 text"


def test_json_is_compared_whole_or_in_part(workspace):
    assert graded(FileJson("config.json"), workspace).passed
    assert graded(FileJson("config.json", LoadedJson({"name": "app"})), workspace).passed
    assert not graded(FileJson("config.json", LoadedJson({"name": "app"}), mode="equal"), workspace).passed
    assert graded(FileJson("config.json", LoadedJson(10), at="$.limits.rows"), workspace).passed
    found = graded(FileJson("config.json", LoadedJson(10), at="$.limits.columns"), workspace)
    assert not found.passed
    assert not graded(FileJson("src/app.py"), workspace).passed


def test_a_file_of_the_project_may_hold_the_text(workspace):
    wanted = Document("def total(a, b):\n    return a + b\n", "/project/expected.py")
    assert graded(FileEquals("src/app.py", file=wanted, trim=False), workspace).passed
    assert [issue.code for issue in FileEquals("a").validate()] == ["missing-value"]
    assert [issue.path for issue in FileEquals("a", file=Document("no path")).validate()] == [("file",)]


CHANGES = WorkspaceChanges(
    files=(
        FileChange("src/app.py", "modified", added_lines=3, deleted_lines=1),
        FileChange("docs/new.md", "renamed", old_path="README.md", added_lines=0, deleted_lines=0),
        FileChange("logo.png", "added", size=100, sha256="0" * 64, binary=True),
    ),
    patch="--- a/src/app.py\n+++ b/src/app.py\n+password = 1\n",
)


def grade_changes(changes=CHANGES, **options):
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
        ({"max_lines": 4}, False),  # a binary file has no line count
        ({"none": True}, False),
    ],
)
def test_each_limit_is_a_check(options, passed):
    found = grade_changes(**options)
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


def test_places_in_a_diff_are_no_places_in_the_answer():
    [check] = of_diff(Diff((entry("password"),), allow_binary=True)).checks
    assert (check.passed, check.spans) == (True, ())
