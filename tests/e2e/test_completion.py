"""Completion of commands and their arguments in shells."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from e2e.command import AGENTV


def completed(project, line: str, **env: str) -> list[str]:
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_AGENTV_COMPLETE": "bash_complete", **env}
    ended = project.run(env=asked)
    assert (ended.status, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("agentv ev", ["plain,eval"]),
        ("agentv eval --replay-", ["plain,--replay-mode"]),
        ("agentv eval --replay-mode n", ["plain,new"]),
        ("agentv eval evals/", ["file,evals/"]),
        ("agentv results li", ["plain,list"]),
        ("agentv explain unknown-as", ["plain,unknown-assertion"]),
        ("agentv nosuch ", []),
    ],
)
def test_words_are_completed(project, line, found):
    assert completed(project, line) == found


def test_names_of_runs_are_completed(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n")
    assert project.run("eval", "a.eval.yaml").status == 0
    (name,) = (one.name for one in (project.path / ".agentv" / "results").iterdir() if one.is_dir())
    assert completed(project, "agentv results show ") == ["plain,last", f"plain,{name}"]
    assert completed(project, "agentv results show las") == ["plain,last"]


def test_bash_completes_a_command_line(project):
    script = project.run("completion", "bash").stdout
    asked = (
        f'{script}\nCOMP_WORDS=({AGENTV} valid); COMP_CWORD=1; _agentv_completion {AGENTV}; echo "${{COMPREPLY[@]}}"'
    )
    ended = subprocess.run(
        [shutil.which("bash"), "-c", asked], check=False, capture_output=True, text=True, cwd=project.path
    )
    assert (ended.stdout, ended.stderr) == ("validate\n", "")
