"""Without an extension's folder, the rest of the program works and its messages name the missing extension."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import agentv
from agentv.registry.extensions import (
    ASSERTIONS,
    CASE_KEYS,
    COMMANDS,
    CONFIG_KEYS,
    EXECUTORS,
    EXPORT_FORMATS,
    OPTIONS,
    PAGES,
    PORTS,
    PROVIDERS,
    SUITE_KEYS,
    TRACE_FORMATS,
    extensions,
)

SOURCE = Path(agentv.__file__).parent
EXAMPLE = Path(__file__).parents[2] / "examples/quickstart"
CASES = Path(__file__).parents[1] / "cases"
FILES = {
    "promptfoo": (
        "valid/promptfoo/promptfooconfig.yaml",
        "valid/promptfoo-of-any-name/greetings.yaml",
        "invalid/promptfoo-in-typescript/promptfooconfig.ts",
    ),
    "datasets": (
        "invalid/bad-eval-file--inspect/samples.jsonl",
        "invalid/bad-eval-file--openai-evals/samples.jsonl",
        "invalid/bad-eval-file--deepeval/goldens.json",
        "invalid/bad-eval-file--deepeval-csv/goldens.csv",
    ),
}
"""Extension → the files of `CASES` that need it."""

RUN = ("eval", ".", "--replay", "support.cassette.jsonl")
ONE_CASE = "tests: [{id: a, input: hi, assert: [{contains: hi}]}]\n"
GIVEN = {EXECUTORS: ("eval", ".", "--executor"), TRACE_FORMATS: ("results", "export", "--format")}
"""Kind of entry → command to which its name is passed."""

COMMANDS_IN_ONE_PROCESS = """
import contextlib, io, json, sys
from agentv.cli.main import run

ended = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = run(words)
    ended.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""


def ran(place: Path, names: Sequence[str], commands: Sequence[tuple[str, ...]]) -> list[tuple[int, str, str]]:
    """Run commands in a package without some extensions' folders; return the status, stdout and stderr of each."""
    package = place / "package" / "agentv"
    (package / "extensions").mkdir(parents=True)
    for part in (*SOURCE.iterdir(), *(SOURCE / "extensions").iterdir()):
        if part.name not in ("extensions", *names):
            (package / part.relative_to(SOURCE)).symlink_to(part)
    shutil.copytree(EXAMPLE, place / "quickstart", ignore=shutil.ignore_patterns("results"))
    ended = subprocess.run(
        [sys.executable, "-c", COMMANDS_IN_ONE_PROCESS],
        input=json.dumps(commands),
        cwd=place / "quickstart",
        env={**os.environ, "PYTHONPATH": str(package.parent), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [tuple(one) for one in json.loads(ended.stdout)]


def refused(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield commands that an extension adds or extends, with their messages when it is missing."""
    tables = extensions()[name]
    needs = f"needs extension {name}"
    for command in getattr(tables, COMMANDS, {}):
        yield (*command.split(), "--help"), f"'{command.split()[-1]}' {needs}"
    for kind, words in GIVEN.items():
        for one in getattr(tables, kind, {}):
            yield (*words, one), f"'{one}' {needs}"
    for suffix in getattr(tables, EXPORT_FORMATS, {}):
        yield ("eval", ".", "--out", f"report{suffix}"), f"'{suffix}' {needs}"
    for command, _, option in (one.rpartition(" ") for one in getattr(tables, OPTIONS, {})):
        yield (*command.split(), ".", option), f"'{option}' {needs}"
    if hasattr(tables, PAGES):
        yield ("serve", "--data", "server"), f"agentv serve {needs}"


def refused_files(name: str, place: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield commands with files that need an extension, and their messages."""
    tables = extensions()[name]
    needs = f"needs extension {name}"
    for key in getattr(tables, CONFIG_KEYS, {}):
        (place / "project/.agentv").mkdir(parents=True)
        config = f"{key}: {{remote: https://evals.example.org/projects/a}}\n"
        (place / "project/.agentv/config.yaml").write_text(config)
        (place / "project/a.eval.yaml").write_text(ONE_CASE)
        said = f"config.yaml:1:{len(key) + 3}: error[missing-extra]: '{key}' {needs}"
        yield ("validate", str(place / "project")), said
    for key in getattr(tables, CASE_KEYS, {}):
        file = place / f"{key}.eval.yaml"
        file.write_text(ONE_CASE.replace("input: hi", f"input: hi, {key}: {{}}"))
        yield ("validate", str(file)), f"{key}.eval.yaml:1:28: error[missing-extra]: '{key}' {needs}"
    for file in FILES.get(name, ()):
        for command in ("validate", "convert"):
            yield (command, str(CASES / file)), needs
    ports = getattr(tables, PORTS, {})
    file = place / "ports.eval.yaml"
    if "TrialWorks" in ports:
        file.write_text(f"target: {{provider: cli, command: cat, gateway: openai}}\n{ONE_CASE}")
        yield ("eval", str(file)), f"'gateway' {needs}"
    if "LabelledRuns" in ports:
        file.write_text(f"run: {{gate: corrected}}\njudge: {{min_tpr: 0.9}}\n{ONE_CASE}")
        yield ("validate", str(file)), f"ports.eval.yaml:1:13: error[missing-extra]: 'gate' {needs}"
        yield ("validate", str(file)), f"ports.eval.yaml:2:9: error[missing-extra]: 'min_tpr' {needs}"


@pytest.mark.parametrize("name", extensions())
def test_what_an_extension_adds_says_what_it_needs_and_the_core_works(name, tmp_path):
    expected = [*refused(name), *refused_files(name, tmp_path)]
    kinds = (SUITE_KEYS, CASE_KEYS, PROVIDERS, ASSERTIONS)
    suite_keys, case_keys, providers, types = added = [getattr(extensions()[name], kind, {}) for kind in kinds]
    case = {"id": "a", "input": "hi", **{key: {} for key in case_keys}, "assert": [{"type": one} for one in types]}
    targets = [{"provider": one} for one in providers]
    suite = {"targets": targets, **{key: {} for key in suite_keys}, "tests": [case]}
    (tmp_path / "names.eval.yaml").write_text(json.dumps(suite))
    names, listed, whole, *ended = ran(
        tmp_path,
        [name],
        [("validate", str(tmp_path / "names.eval.yaml")), ("--help",), RUN, *(words for words, _ in expected)],
    )
    wrong = [(words, one) for (words, said), one in zip(expected, ended, strict=True) if said not in one[2]]
    assert wrong == []
    assert {status for status, _, _ in ended} <= {2}

    assert [one for kind in added for one in kind if f"'{one}' needs extension {name}" not in names[2]] == []
    if any(added):
        diagnostic = re.compile(rf".*names\.eval\.yaml:1:\d+: error\[missing-extra\]: .* needs extension {name}")
        told = [line for line in names[2].splitlines() if "error[" in line]
        assert [line for line in told if not diagnostic.fullmatch(line)] == []

    commands = getattr(extensions()[name], COMMANDS, {})
    assert [command for command in commands if f"\n  {command} " in listed[1]] == []
    assert (whole[0], whole[2].startswith("5 cases: 5 passed")) == (0, True), whole


def test_the_core_works_without_any_extension(tmp_path):
    commands = (("validate", "."), RUN, ("compare", "last", "last"), ("results", "show"), ("plugins",), ("--help",))
    *ended, listed = ran(tmp_path, list(extensions()), [*commands, ("results", "list", "--json")])
    assert [one for one in ended if one[0] != 0] == []
    assert len(json.loads(listed[1])) == 1
