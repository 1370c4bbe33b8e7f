import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentv.cli.main import cli
from agentv.errors import UsageError
from agentv.extensions.agents.commands.prepared_work import PreparationError
from doubles.loading import repository

SUITE = """\
target: echo
workspace: {template: template, hidden: {tests/: hidden/test_app.py}, protected: [kept.txt]}
tests:
  - id: total
    input: Make total() add.
    assert:
      - command: python3 -c "exec(open('tests/test_app.py').read())"
      - file-changes: {allow: [app.py]}
  - id: said
    input: Say hello.
    assert: [contains: hello]
"""


@pytest.fixture
def project(project):
    files = {
        "template/app.py": "def total(a, b): return a - b\n",
        "template/kept.txt": "keep\n",
        "hidden/test_app.py": "exec(open('app.py').read())\nassert total(1, 2) == 3\n",
        "fix.eval.yaml": SUITE,
    }
    return repository(project, files)


def run(*arguments: str) -> int:
    return CliRunner().invoke(cli, arguments, standalone_mode=False, catch_exceptions=False).return_value


def prepared(project: Path, test_id: str = "total") -> Path:
    assert run("prepare", "fix.eval.yaml", "--test-id", test_id, "--out", "work") == 0
    return project / "work"


def graded(test_id: str = "total", *more: str) -> int:
    return run("grade", "fix.eval.yaml", "--test-id", test_id, "--prepared", "work", *more)


def test_a_prepared_case_holds_the_prompt_and_the_workspace_alone(project):
    work = prepared(project)
    files = sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())
    assert files == ["manifest.json", "prompt.md", "workspace/app.py", "workspace/kept.txt"]
    assert (work / "prompt.md").read_text() == "Make total() add.\n"


def test_what_could_not_be_prepared_can_be_prepared_again(project):
    path = project / "fix.eval.yaml"
    broken = path.read_text().replace(
        "workspace:", "workspace: {template: ./template, setup: [test -e ../ready]}\nx-old:", 1
    )
    path.write_text(broken)
    with pytest.raises(PreparationError, match="setup-failed"):
        run("prepare", "fix.eval.yaml", "--test-id", "total", "--out", "work")
    path.write_text(broken.replace("test -e ../ready", "'true'"))
    prepared(project)


def test_work_is_graded_against_a_new_workspace(project):
    work = prepared(project)
    assert graded() == 1
    (work / "workspace/app.py").write_text("def total(a, b): return a + b\n")
    assert graded() == 0
    (work / "workspace/extra.py").write_text("")
    assert graded() == 1


def test_a_changed_protected_file_fails_and_planted_tests_do_not_count(project):
    work = prepared(project)
    (work / "workspace/tests").mkdir()
    (work / "workspace/tests/test_app.py").write_text("pass\n")
    assert graded() == 1
    (work / "workspace/app.py").write_text("def total(a, b): return a + b\n")
    (work / "workspace/tests/test_app.py").unlink()
    (work / "workspace/tests").rmdir()
    (work / "workspace/kept.txt").write_text("changed\n")
    assert graded() == 1


def test_a_case_that_changed_since_is_refused(project):
    work = prepared(project)
    suite = project / "fix.eval.yaml"
    suite.write_text(suite.read_text().replace("Make total() add.", "Make total() subtract."))
    with pytest.raises(UsageError, match="changed since it was prepared"):
        graded()
    suite.write_text(suite.read_text().replace("subtract", "add"))
    manifest = json.loads((work / "manifest.json").read_text())
    (work / "manifest.json").write_text(json.dumps({**manifest, "status": "passed"}))
    assert graded() == 1


def test_a_workspace_that_is_a_link_is_refused(project):
    work = prepared(project)
    (work / "workspace").rename(project / "elsewhere")
    (work / "workspace").symlink_to(project / "elsewhere")
    with pytest.raises(UsageError, match="is a link"):
        graded()


def test_an_answer_comes_from_a_file_or_is_missing(project):
    prepared(project, "said")
    assert graded("said") == 3
    (project / "answer.txt").write_text("hello there")
    assert graded("said", "--response", "answer.txt") == 0
    (project / "answer.txt").write_text("goodbye")
    assert graded("said", "--response", "answer.txt") == 1


def test_an_answer_may_come_from_a_trace(project):
    prepared(project, "said")
    steps = [{"type": "message", "role": "assistant", "text": "hello there"}]
    (project / "trace.json").write_text(json.dumps({"version": 1, "steps": steps}))
    assert graded("said", "--trace", "trace.json") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("grade", "fix.eval.yaml", "--test-id", "said", "--prepared", "work"),
        ("grade", "fix.eval.yaml", "--test-id", "total", "--prepared", "template"),
        ("grade", "fix.eval.yaml", "--test-id", "total", "--prepared", "work", "--response", "missing.txt"),
        ("grade", "fix.eval.yaml", "--test-id", "total", "--prepared", "work", "--trace", "fix.eval.yaml"),
        ("prepare", "fix.eval.yaml", "--test-id", "totl", "--out", "other"),
        ("prepare", "fix.eval.yaml", "--test-id", "*", "--out", "other"),
        ("prepare", "fix.eval.yaml", "--test-id", "total", "--out", "work"),
    ],
)
def test_what_cannot_be_prepared_or_graded_is_refused(project, arguments):
    prepared(project)
    with pytest.raises(UsageError):
        run(*arguments)
    assert not (project / "other").exists()


def test_a_case_that_depends_on_others_is_prepared_and_graded_without_them(project):
    suite = project / "fix.eval.yaml"
    suite.write_text(suite.read_text().replace("- id: said", "- id: said\n    depends_on: total"))
    prepared(project, "said")
    (project / "answer.txt").write_text("hello there")
    assert graded("said", "--response", "answer.txt") == 0


def test_a_case_that_continues_a_conversation_is_refused_since_its_prompt_is_not_known(project):
    suite = project / "fix.eval.yaml"
    suite.write_text(suite.read_text().replace("    input:", "    conversation_id: talk\n    input:"))
    with pytest.raises(UsageError, match="contains the answers before it in the conversation 'talk'") as refused:
        run("prepare", "fix.eval.yaml", "--test-id", "said", "--out", "other")
    assert refused.value.hint == "give the id of its first case: total"
