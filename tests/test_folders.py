"""Every code of a file has a folder under `tests/cases/invalid`.

A folder `CODE--FORM` gives that code alone, in that form: `include` is a template, `jsonl` a line of a JSON Lines file,
`sidecar` the YAML file beside one. Other suffixes describe the cause of the mistake.
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
    "missing-agent": "which programs are installed is this machine's; see tests/unit/extensions/agents/adapters",
    "missing-extra": "the libraries of all extras are there where this runs; tests/unit/assertions take them away",
    **dict.fromkeys(
        ["bad-plugin", "shadowed-plugin"], "it needs an installed package; see tests/unit/app/plugins and tests/e2e"
    ),
    "other-sheets": "it needs a workbook; see tests/unit/authoring/cases/data_files/test_binary_tables_workbook.py",
    "stale-repository": "it needs the copy that an earlier run left; see tests/unit/authoring/source/test_git_files.py",
}
"""Codes that no folder can show → reason."""


@cache
def heads(folder: Path) -> tuple[tuple[str, str], ...]:
    """Return (file, code) of every diagnostic that a folder expects."""
    text = (folder / "expected.txt").read_text(encoding="utf-8")
    usage = [("", found["code"]) for found in USAGE.finditer(text)]
    return (*((found["file"] or "", found["code"]) for found in HEADLINE.finditer(text)), *usage)


def folders_of_forms() -> list[str]:
    return sorted(one.name for one in INVALID.iterdir() if one.name.rpartition("--")[2] in FORMS and "--" in one.name)


def test_every_code_has_a_folder():
    assert FILES.keys() - {code for folder in INVALID.iterdir() for _, code in heads(folder)} == NOT_IN_FOLDERS.keys()


@pytest.mark.parametrize("name", folders_of_forms())
def test_a_folder_of_a_code_and_a_form_gives_that_code_alone_in_that_form(name):
    code, _, form = name.partition("--")
    found = heads(INVALID / name)
    assert {one for _, one in found} == {code}
    assert all(FORMS[form](file) for file, _ in found)
