import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from agentv.app.authored.equivalence import meaning
from agentv.app.authored.from_agentv import convert_project
from agentv.app.planning.default_paths import eval_files_in
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import UsageError
from doubles.thorough import each_third
from doubles.validation import validate

VALID = Path(__file__).parents[3] / "cases" / "valid"
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    with chdir(tmp_path / "project"):
        yield tmp_path / "project"


def meant(directory: Path) -> dict[str, object]:
    """Return file → content of its suites."""
    found = {}
    for path in eval_files_in(directory, ENV):
        suites = load(LoadRequest((path,), process_env=ENV, for_run=False), registries()).suites
        found[path] = [meaning(suite) for suite in suites]
    return found


UNLIKE_THE_REST = {
    "evaluators-replace-in-evalcases": "a rule that hangs on how the key of the cases is spelled",
    "git-files": "it needs git hosts",
}
"""Projects that keep older spellings, or cannot be loaded here → reason."""

PROJECTS = sorted(
    folder.name
    for folder in VALID.iterdir()
    if (folder / "suite.eval.yaml").is_file() and folder.name not in UNLIKE_THE_REST
)


@pytest.mark.parametrize("name", [*each_third(PROJECTS, 0)])
def test_every_suite_means_the_same_without_older_spellings(name: str, project: Path) -> None:
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    before = meant(project)
    assert not convert_project(project, None, ENV).wrong
    assert meant(project) == before
    assert [one for one in validate((str(project),), ENV) if one.code == "older-spelling"] == []


SUITE = """\
# Refunds, as support sees them.
target: local # the fast one
execution: {workers: 3} # few
evaluators:
  - type: llm_judge  # slow
    prompt: Is {{ output }} polite?
evalcases:
  - id: a
    # asked often
    input_messages: [{role: user, content: Hello}]
    expected_outcome: It greets
"""

CANONICAL = """\
# Refunds, as support sees them.
target: local # the fast one
run:
  workers: 3
# few
assert:
  - type: llm-rubric  # slow
    prompt: Is {{ output }} polite?
tests:
  - id: a
    # asked often
    input: [{role: user, content: Hello}]
    criteria: It greets
"""

TARGETS = """\
targets:
  - id: local # mine
    provider: echo
    judge_target: grader
  - {name: grader, provider: "mock:yes"}
  - name: unused
    provider: openai:gpt-4o
    max_retries: 2
"""

CANONICAL_TARGETS = """\
targets:
  - name: local # mine
    provider: echo
    judge: grader
  - {name: grader, provider: "mock:yes"}
  - name: unused
    provider: openai:gpt-4o
    retry:
      max_retries: 2
"""


def written(project: Path) -> Path:
    (project / "evals").mkdir()
    (project / "evals" / "refund.eval.yaml").write_text(SUITE)
    (project / ".agentv").mkdir()
    (project / ".agentv" / "targets.yaml").write_text(TARGETS)
    (project / "notes.txt").write_text("of no interest")
    (project / "node_modules").mkdir()
    return project


def test_a_template_among_the_eval_files_is_rewritten_too(project: Path) -> None:
    (project / "polite.eval.yaml").write_text("assertions:\n  - icontains: please\n")
    done = convert_project(project, None, ENV)
    assert (done.files, done.count, done.invalid) == ({"polite.eval.yaml": 1}, 1, 0)
    assert (project / "polite.eval.yaml").read_text() == "assert:\n  - icontains: please\n"


BROKEN = "evalcases:\n  - id: a\n    input: b\n    evaluators: [{contians: b}]\n"


def files_of(project: Path) -> dict[str, str]:
    return {str(path.relative_to(project)): path.read_text() for path in project.rglob("*") if path.is_file()}


def test_nothing_is_written_in_place_if_an_eval_file_is_wrong(project: Path) -> None:
    written(project)
    (project / "evals" / "broken.eval.yaml").write_text(BROKEN)
    before = files_of(project)
    done = convert_project(project, None, ENV)
    assert files_of(project) == before
    assert not done.written
    assert (done.files, done.count, done.invalid) == ({}, 2, 1)
    assert "unknown-assertion" in [one.code for one in done.wrong]
    assert {one.span.file for one in done.wrong if one.span} == {str(project / "evals" / "broken.eval.yaml")}


def test_nothing_is_written_in_place_if_one_file_cannot_be_written(project: Path) -> None:
    written(project)
    (project / ".agentv" / ".targets.yaml.agentv-fix").mkdir()
    with pytest.raises(OSError, match="agentv-fix"):
        convert_project(project, None, ENV)
    assert (project / "evals" / "refund.eval.yaml").read_text() == SUITE
    assert (project / ".agentv" / "targets.yaml").read_text() == TARGETS
    assert not list((project / "evals").glob(".*"))


def test_a_conversion_that_is_killed_leaves_every_file_whole(project: Path) -> None:
    written(project)
    kill = """
import os, signal, sys
from pathlib import Path
from agentv.app.authored.from_agentv import convert_project
replaced, replace = [], os.replace
def once(one, other):
    if replaced: os.kill(os.getpid(), signal.SIGKILL)
    replaced.append(other)
    replace(one, other)
os.replace = once
convert_project(Path("."), None, {})
"""
    assert subprocess.run([sys.executable, "-c", kill], cwd=project, check=False).returncode == -signal.SIGKILL
    found = [
        (project / "evals" / "refund.eval.yaml").read_text() == CANONICAL,
        (project / ".agentv" / "targets.yaml").read_text() == CANONICAL_TARGETS,
    ]
    assert sorted(found) == [False, True]
    convert_project(project, None, ENV)
    assert (project / "evals" / "refund.eval.yaml").read_text() == CANONICAL
    assert (project / ".agentv" / "targets.yaml").read_text() == CANONICAL_TARGETS
    assert not list(project.rglob("*.agentv-fix"))


def test_nothing_outside_is_written(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.eval.yaml"
    outside.write_text(SUITE)
    shared = tmp_path / "shared"
    shared.mkdir()
    written(project)
    (project / "evals" / "linked.eval.yaml").symlink_to(outside)
    (project / "shared").symlink_to(shared)
    os.mkfifo(project / "pipe")
    done = convert_project(project, tmp_path / "new", ENV)
    assert outside.read_text() == SUITE
    assert {"evals/linked.eval.yaml", "shared", "pipe"} <= set(done.excluded)
    assert not (tmp_path / "new" / "evals" / "linked.eval.yaml").exists()
    convert_project(project, None, ENV)
    assert outside.read_text() == SUITE
    assert (project / "evals" / "linked.eval.yaml").is_symlink()


def test_a_directory_in_use_or_inside_the_project_is_refused(project: Path, tmp_path: Path) -> None:
    written(project)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "a").write_text("")
    with pytest.raises(UsageError, match="would be overwritten"):
        convert_project(project, tmp_path / "used", ENV)
    with pytest.raises(UsageError, match="are inside each other"):
        convert_project(project, project / "new", ENV)
    with pytest.raises(UsageError, match="contains no AgentV project"):
        convert_project(tmp_path / "used", tmp_path / "new", ENV)
    assert not (tmp_path / "new").exists()
