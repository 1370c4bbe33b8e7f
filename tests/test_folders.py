"""Every code of a file has a folder under `tests/cases/invalid` in every form that it can take.

A folder `CODE--FORM` gives that code alone, in that form: `include` is a template, `jsonl` a line of a JSON Lines file,
`sidecar` the YAML file beside one. Other words behind the dashes say how the mistake came about.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from agentv.codes import FILES

INVALID = Path(__file__).parent / "cases" / "invalid"
HEADLINE = re.compile(r"^(?:(?P<file>\S+?):\d+:\d+: )?(?:error|warning|hint)\[(?P<code>[\w-]+)\]", re.MULTILINE)
USAGE = re.compile(r"^error: .*\[(?P<code>[\w-]+)\]$", re.MULTILINE)
FORMS = {
    "yaml": lambda file: file.endswith(".yaml"),
    "include": lambda file: file.startswith(".agentv/templates/"),
    "jsonl": lambda file: file == "suite.jsonl",
    "sidecar": lambda file: file == "suite.yaml",
}

NOT_IN_FOLDERS = {
    "bad-log": "logs are read by `agentv prompt`; see tests/unit/prompts/test_log.py",
    **dict.fromkeys(
        ["doctor-findings", "exam-not-passed", "no-evidence", "stale-evidence"],
        "gates say it, and no file; see tests/unit/prompts/test_gates.py",
    ),
    **dict.fromkeys(
        ["status-too-low", "unknown-file"], "`agentv prompt doctor` and `check` say it; see tests/unit/app/prompts"
    ),
    **dict.fromkeys(
        ["no-docker", "sandbox-unavailable"],
        "what confines programs is this machine's; see tests/unit/extensions/agents/authoring/test_reader.py",
    ),
    "missing-agent": "which programs are installed is this machine's; see tests/unit/extensions/agents/adapters/native",
    "missing-extra": "the libraries of all extras are there where this runs; tests/unit/assertions take them away",
    **dict.fromkeys(
        ["bad-plugin", "shadowed-plugin"], "it needs an installed package; see tests/unit/app/plugins and tests/e2e"
    ),
    "other-sheets": "it needs a workbook; see tests/unit/authoring/cases/data_files/test_workbook.py",
    "stale-repository": "it needs the copy that an earlier run left; see tests/unit/authoring/source/test_git_files.py",
}
"""Codes that no folder can show → why."""

NOT_IN_TEMPLATES = {
    **NOT_IN_FOLDERS,
    "no-equivalent": "a template is no file of another tool",
    **dict.fromkeys(
        ["ambiguous-assertion", "shadowed-assertion"], "it is about the files of .agentv/assertions, and stands there"
    ),
    **dict.fromkeys(
        [
            "bad-block",
            "bad-case",
            "bad-csv",
            "bad-dataset",
            "bad-generator",
            "bad-message",
            "bad-table",
            "bad-turn",
            "checks-nothing",
            "criteria-not-judged",
            "dependency-cycle",
            "missing-cluster",
            "missing-input",
            "nearly-a-column",
            "extra-keys",
            "no-gateway",
            "no-tests",
            "reference-beside-turns",
            "torn-conversation",
            "unchecked-cases",
            "unknown-case",
        ],
        "a template holds no case",
    ),
    **dict.fromkeys(
        [
            "bad-target",
            "duplicate-target",
            "no-target",
            "placeholder-in-script",
            "quoted-placeholder",
            "shell-variable",
            "unknown-placeholder",
            "unknown-provider",
        ],
        "a template  has no targets",
    ),
    **dict.fromkeys(["exposed-files", "unmatched-glob", "unpinned-repository"], "a template has no workspace"),
    **dict.fromkeys(["ambiguous-config", "ambiguous-path", "conflicting-defaults"], "it is about a project"),
    **dict.fromkeys(["bad-prompt", "input-not-shown"], "a template has no prompts"),
    **dict.fromkeys(["bad-prompt-file", "unused-input", "unused-judge"], "a template is no exam"),
    "bad-dotenv": "it is about .env files",
    "bad-python-file": "it stands in the Python file",
    "zero-threshold": "a template has no threshold",
    "not-applied": "a template says nothing of how a suite runs",
    "bad-eval-file": "a template that is no mapping is a bad-template-file",
    "empty-file": "an empty template is a bad-template-file",
    "include-depth": "it is said at the eval file's own include",
    "more-bad-lines": "it is about JSON Lines",
    "not-unicode": "YAML cannot say half of a character",
    "not-utf-8": "it is said at the include, since there is no text to point into",
    "unknown-code": "the comments of a template are left alone: what they silence may be said in another eval file",
    "unused-ignore": "as unknown-code",
}
"""Codes that never stand in a template → why."""

NOT_IN_LINES = {
    **NOT_IN_FOLDERS,
    "no-equivalent": "cases of JSON Lines are no file of another tool",
    **dict.fromkeys(
        ["ambiguous-assertion", "shadowed-assertion"], "it is about the files of .agentv/assertions, and stands there"
    ),
    **dict.fromkeys(
        ["bad-key", "bad-merge", "bad-yaml", "several-documents", "too-large", "unknown-tag"], "JSON has no such thing"
    ),
    **dict.fromkeys(["unknown-code", "unused-ignore"], "JSON has no comments"),
    "extra-keys": "it is about rows that a suite pulls in, not about a file that is run itself",
    **dict.fromkeys(["bad-csv", "nearly-a-column"], "it is about the text of CSV"),
    **dict.fromkeys(["bad-dataset", "bad-table"], "it stands in another file, or where `tests` names it"),
    **dict.fromkeys(["bad-eval-file", "no-target", "not-applied"], "it is about the sidecar"),
    **dict.fromkeys(["exposed-files", "unmatched-glob", "unpinned-repository"], "the sidecar holds workspaces"),
    **dict.fromkeys(["bad-generator", "unchecked-cases"], "it stands where `tests` names the function"),
    **dict.fromkeys(["bad-prompt", "input-not-shown"], "it is about `prompts`, which the sidecar holds"),
    **dict.fromkeys(["bad-prompt-file", "unused-input", "unused-judge"], "it is about exams, which are YAML"),
    "bad-dotenv": "it is about .env files",
    "bad-python-file": "it stands in the Python file",
    "secret-in-file": "lines are data; what is written by hand is searched",
    "unused-template": "it stands in the template",
    "bad-template-file": "it stands in the template",
    **dict.fromkeys(["ambiguous-config", "ambiguous-path", "conflicting-defaults"], "it is about a project"),
    "duplicate-target": "it is about targets.yaml",
    "empty-file": "an empty file of lines is one without cases: no-tests",
}
"""Codes that never stand in a line → why."""


@cache
def heads(folder: Path) -> tuple[tuple[str, str], ...]:
    """(file, code) of everything that a folder expects."""
    text = (folder / "expected.txt").read_text(encoding="utf-8")
    usage = [("", found["code"]) for found in USAGE.finditer(text)]
    return (*((found["file"] or "", found["code"]) for found in HEADLINE.finditer(text)), *usage)


def codes_in(form: str) -> set[str]:
    return {code for folder in INVALID.iterdir() for file, code in heads(folder) if FORMS[form](file)}


def folders_of_forms() -> list[str]:
    return sorted(one.name for one in INVALID.iterdir() if one.name.rpartition("--")[2] in FORMS and "--" in one.name)


def test_every_code_has_a_folder():
    assert FILES.keys() - {code for folder in INVALID.iterdir() for _, code in heads(folder)} == NOT_IN_FOLDERS.keys()


@pytest.mark.parametrize(("form", "exceptions"), [("include", NOT_IN_TEMPLATES), ("jsonl", NOT_IN_LINES)])
def test_every_code_has_a_folder_in_each_form_that_it_can_take(form, exceptions):
    found = codes_in(form)
    assert FILES.keys() - found - exceptions.keys() == set(), f"write a folder CODE--{form}, or give the reason"
    assert exceptions.keys() & found == set(), "there is a folder, so that this is no exception"
    assert exceptions.keys() <= FILES.keys()


@pytest.mark.parametrize("name", folders_of_forms())
def test_a_folder_of_a_code_and_a_form_gives_that_code_alone_in_that_form(name):
    code, _, form = name.partition("--")
    found = heads(INVALID / name)
    assert {one for _, one in found} == {code}
    assert all(FORMS[form](file) for file, _ in found)
