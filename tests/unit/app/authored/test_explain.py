"""Every code is explained, and every example is true: its wrong files give that code alone, its right ones do not.

`AGENTV_UPDATE_CASES=1` writes the messages again; read them.
"""

import os
import re
from contextlib import chdir
from pathlib import Path

import pytest

from agentv import sdk
from agentv.app.authored.explain import FOLDER, GROUPS, explanation, explanations
from agentv.app.authored.validate import validate
from agentv.app.planning.excerpts import source_of
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.codes import CODES, FILES, RUNS
from agentv.errors import Diagnostic, LoadError
from agentv.reports.diagnostics.diagnostics import render_diagnostics
from needs import needs

UPDATE = os.environ.get("AGENTV_UPDATE_CASES") == "1"

WITHOUT_EXAMPLE = {
    **dict.fromkeys(
        [
            "bad-log",
            "doctor-findings",
            "exam-not-passed",
            "no-evidence",
            "stale-evidence",
            "status-too-low",
            "unknown-file",
        ],
        "it is about a prompt of the library, and no eval file",
    ),
    **dict.fromkeys(["bad-plugin", "shadowed-plugin"], "it needs an installed package"),
    "other-sheets": "it needs a workbook",
    "more-bad-lines": "it takes more than a hundred lines",
    "not-utf-8": "what is no text cannot stand in one",
    "ambiguous-ref": "it needs a repository on a git host",
    "git-failed": "it needs a machine without git",
    "missing-agent": "which programs are installed is this machine's",
    "missing-extra": "the libraries of all extras are there where this runs",
    "missing-ref": "it needs a repository on a git host",
    "missing-repository": "it needs a git host",
    "no-equivalent": "`convert` tells it, of a file that is not an eval file",
    "stale-repository": "it needs a git host, and the copy that an earlier run left",
    "unused-template": "it is told of directories, and an example is a file",
    **dict.fromkeys(["agent-api", "agent-limit", "no-session", "no-tools", "permission-denied"], "it needs an agent"),
    **dict.fromkeys(
        ["hook-failed", "setup-failed", "too-many-files", "workspace-failed"],
        "it needs an agent that works in a directory",
    ),
    **dict.fromkeys(["no-docker", "sandbox-unavailable"], "it is about this machine"),
    "solution-failed": "it is about `agentv check`, and no run",
    "assertion-crashed": "it needs a JavaScript runtime",
    "bad-body": "no value that YAML can say leads to it",
    "bad-document": "no text is a PDF",
    "bad-header": "it needs a server",
    "nothing-to-judge": "loading refuses nearly all that leads to it, with missing-key",
    "bad-picture": "it needs the key of a model API",
    "bad-payload": "it is for assertions that are run by hand",
    "file-changed": "it needs somebody who writes into the file at the right moment",
    "grader-defeated": "it takes hidden tests, and an agent that cheats",
    "grader-changed": "it needs a target that writes into a file of the project",
    "http-status": "it needs a server",
    "internal-error": "no file leads to it",
    "budget-spent": "the trial that it ends leaves no result: a larger budget runs it",
    "interrupted": "it takes somebody who types Ctrl-C",
    "judge-empty-output": "no file leads to it without a server",
    "no-javascript-runtime": "it depends on the machine",
    "no-output": "it is for grading by hand",
    "no-kept-answer": "it takes a run to grade anew",
    "not-drawn": "it takes an earlier run to compare with",
    "not-recorded": "it takes a cassette",
    "not-replayed": "it takes a cassette, and an agent",
    "gateway-failed": "it takes a machine without a free port",
    "nothing-counts": "it is for suites made by programs",
    "output-too-large": "it takes ten million letters",
    "prompt-too-long": "it takes a hundred thousand letters",
    "refused": "it needs the content filter of a model API",
    "regex-timeout": "it takes two seconds",
    "target-stopped": "it needs a server",
    "worker-lost": "it needs a cluster",
    "worker-unfit": "it needs a cluster",
    "schema-limit": "it takes a schema of many pages",
    "no-receiver": "it needs a port that another program holds",
}
"""Codes that no short text can show → why."""

WITHOUT_RIGHT_FILES = {
    "bad-dataset": "right ones name a dataset of Hugging Face",
    "bad-git-url": "right ones name a repository on a git host",
    "connection": "right ones name a server",
    "agent-protocol": "right ones name an agent",
    "agent-stopped": "right ones name an agent",
    "exposed-files": "right ones have directories beside them",
}
"""Codes whose wrong files can be shown, and whose right ones cannot → why."""

CAUSES = {"broken-conversation": ["empty-output"]}
"""Codes of trials that end so because others of the example did → the codes of those, which are reported first."""

FOR_RUN = {"no-target", "no-judge", "no-embedder", "nothing-to-choose"}
"""Codes of files that matter only where something runs."""


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    with chdir(tmp_path):
        yield tmp_path


def written(files, project: Path) -> str:
    """Puts an example's files there; the one that is an eval file."""
    for one in files:
        path = project / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(one.text, encoding="utf-8")
    return next(one.path for one in files if one.path.endswith((".eval.yaml", "suite.jsonl", "/eval.yml")))


def found(code: str, path: str) -> tuple[Diagnostic, ...]:
    if code not in FOR_RUN:
        return validate((path,), {})
    try:
        return load(LoadRequest((path,)), registries()).diagnostics
    except LoadError as error:
        return error.diagnostics


def outcome(path: str, project: Path) -> list[str]:
    """`code: message` of every trial that errored, as a report says it."""
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
    example = explanation(code)
    diagnostics = found(code, written(example.wrong, project))
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
    """The message of an explanation is what is said."""
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
