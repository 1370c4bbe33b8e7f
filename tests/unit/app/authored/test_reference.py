"""Every code is explained, and every example is correct: only its wrong files give that code, and no other.

`AGENTV_UPDATE_CASES=1` rewrites the messages; review them.
"""

import os
import re
from pathlib import Path

import pytest

from agentv import sdk
from agentv.app.authored.reference import FOLDER, GROUPS, explanation, explanations
from agentv.app.authored.validate import source_of
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.codes import CODES, FILES, RUNS
from agentv.errors import Diagnostic, LoadError
from agentv.reports.diagnostics import render_diagnostics
from doubles.loading import repository
from doubles.validation import validate
from needs import needs

UPDATE = os.environ.get("AGENTV_UPDATE_CASES") == "1"

EXAMPLE_NEEDS = {
    "a prompt of the library": ["bad-log", "doctor-findings", "exam-not-passed", "no-evidence", "stale-evidence"],
    "a prompt of the library, too": ["status-too-low", "unknown-file"],
    "an installed package": ["bad-plugin", "shadowed-plugin"],
    "a git host": ["ambiguous-ref", "git-failed", "missing-ref", "missing-repository", "stale-repository"],
    "this machine": ["missing-agent", "missing-extra", "no-docker", "no-javascript-runtime", "no-receiver"],
    "this machine, too": ["gateway-failed", "sandbox-unavailable"],
    "an agent": ["agent-api", "agent-limit", "no-session", "no-tools", "permission-denied", "grader-defeated"],
    "an agent that works in a directory": ["hook-failed", "setup-failed", "workspace-failed"],
    "a server": ["bad-header", "bad-picture", "http-status", "judge-empty-output", "refused", "target-stopped"],
    "an earlier run": ["no-kept-answer", "not-drawn", "not-recorded", "not-replayed"],
    "another command": ["bad-payload", "no-equivalent", "no-output", "solution-failed", "unused-template"],
    "somebody who acts meanwhile": ["file-changed", "grader-changed", "interrupted"],
    "a very long text": ["more-bad-lines", "output-too-large", "prompt-too-long", "regex-timeout", "schema-limit"],
    "a file that is no text": ["bad-document", "not-utf-8", "other-sheets"],
    "a cluster": ["worker-lost", "worker-unfit"],
    "more than a file can say": ["assertion-crashed", "bad-body", "internal-error", "nothing-counts"],
    "more than loading lets pass": ["budget-spent", "nothing-to-judge"],
}
"""Requirement of an example → codes that for this reason have no testable example."""

WITHOUT_EXAMPLE = {code for codes in EXAMPLE_NEEDS.values() for code in codes}

WITHOUT_RIGHT_FILES = {
    "bad-dataset": "right ones name a dataset of Hugging Face",
    "bad-git-url": "right ones name a repository on a git host",
    "connection": "right ones name a server",
    "agent-protocol": "right ones name an agent",
    "agent-stopped": "right ones name an agent",
    "exposed-files": "right ones have directories beside them",
}
"""Codes with testable wrong files, but no testable right ones → reason."""

CAUSES = {"broken-conversation": ["empty-output"]}
"""Codes of trials that are caused by other trials of the example → the codes of those, which are reported first."""

FOR_RUN = {"no-target", "no-judge", "no-embedder", "nothing-to-choose"}
"""Codes of files that matter only in a run."""


def written(files, project: Path) -> str:
    """Write an example's files and return the path of the eval file."""
    repository(project, {one.path: one.text for one in files})
    return next(one.path for one in files if one.path.endswith((".eval.yaml", "suite.jsonl", "/eval.yml")))


def found(code: str, path: str) -> tuple[Diagnostic, ...]:
    if code not in FOR_RUN:
        return validate((path,), {})
    try:
        return load(LoadRequest((path,)), registries()).diagnostics
    except LoadError as error:
        return error.diagnostics


def outcome(path: str, project: Path) -> list[str]:
    """Return `code: message` of every errored trial, as in a report."""
    results = sdk.evaluate(path, out=str(project / "out"), process_env={"PATH": os.environ["PATH"]}).results
    return [f"{one.error.code}: {one.error.message}" for one in results if one.error is not None]


NEEDS = {"bad-dataset": "pyarrow"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=code, marks=needs(*filter(None, [NEEDS.get(code)])))
        for code in FILES
        if code not in WITHOUT_EXAMPLE
    ],
)
def test_wrong_files_give_that_code_and_right_ones_do_not(code, project):
    diagnostics = found(code, written(explanation(code).wrong, project))
    assert {one.code for one in diagnostics} == {code}
    checked(code, render_diagnostics(diagnostics, source_of, here=str(project), counted=False))


@pytest.mark.parametrize("code", [code for code in CODES if code not in WITHOUT_EXAMPLE])
def test_the_fix_mends_it(code, project):
    right = explanation(code).right
    assert bool(right) == (code not in WITHOUT_RIGHT_FILES)
    if not right:
        return
    path = written(right, project)
    assert [str(LoadError([one])) for one in found(code, path)] == []
    if code in RUNS:
        assert outcome(path, project) == []


@pytest.mark.parametrize("code", [code for code in RUNS if code not in WITHOUT_EXAMPLE])
def test_wrong_runs_end_with_that_code(code, project):
    *causes, said = outcome(written(explanation(code).wrong, project), project)
    assert [cause.partition(":")[0] for cause in causes] == CAUSES.get(code, [])
    assert said.startswith(f"{code}: ")
    checked(code, said)


def checked(code: str, said: str) -> None:
    """Check that an explanation shows the actual message."""
    file = FOLDER / f"{code}.md"
    if UPDATE:
        text = file.read_text(encoding="utf-8")
        fresh = re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{said}\n```", text, flags=re.MULTILINE | re.DOTALL)
        file.write_text(fresh, encoding="utf-8")
    assert explanation(code).message == said


def test_every_code_is_explained_and_nothing_else():
    assert {file.stem for file in FOLDER.iterdir()} == CODES.keys()


def test_codes_of_judges_are_those_of_targets():
    one = explanation("judge-timeout")
    assert (one.code, one.fix) == ("judge-timeout", explanation("timeout").fix)
    assert "judge" in one.meaning
    assert explanation("judge-is-target").meaning == FILES["judge-is-target"]


def test_what_is_no_code_has_no_explanation():
    assert list(explanations(["unknown-key", "case-failed", "unknown-key"])) == ["unknown-key"]


def test_every_code_is_in_one_group():
    assert sorted(code for codes in GROUPS.values() for code in codes) == sorted(CODES)
