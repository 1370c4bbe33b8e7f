"""Without the folder of an extension, the rest of the program works and says what lacks it."""

import json
import os
import re
import shutil
import subprocess
import sys
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
"""Extension → files that need it, of `CASES`."""


def package_without(names, place):
    """What runs a copy of the package without the folders of some extensions."""
    shutil.copytree(SOURCE, place / "agentv")
    shutil.copytree(EXAMPLE, place / "quickstart", ignore=shutil.ignore_patterns("results"))
    for name in names:
        shutil.rmtree(place / "agentv/extensions" / name)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(place)}
        command = [sys.executable, "-m", "agentv", *words]
        return subprocess.run(
            command, cwd=place / "quickstart", env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture(scope="module", params=extensions())
def without(request, tmp_path_factory):
    """An extension's name, and how to run a copy of the package without its folder."""
    return request.param, package_without([request.param], tmp_path_factory.mktemp("package"))


def test_its_commands_are_not_listed_and_say_what_they_need(without):
    name, run = without
    assert run("--version").returncode == 0
    listed = run("--help")
    assert listed.returncode == 0
    for command in getattr(extensions()[name], COMMANDS, {}):
        assert f"\n  {command} " not in listed.stdout
        refused = run(*command.split(), "--help")
        assert (refused.returncode, f"'{command.split()[-1]}' needs extension {name}" in refused.stderr) == (2, True)


def test_what_an_option_takes_says_what_it_needs(without):
    name, run = without
    for executor in getattr(extensions()[name], EXECUTORS, {}):
        refused = run("eval", ".", "--executor", executor)
        assert (refused.returncode, f"'{executor}' needs extension {name}" in refused.stderr) == (2, True)
    for form in getattr(extensions()[name], TRACE_FORMATS, {}):
        refused = run("results", "export", "--format", form)
        assert (refused.returncode, f"'{form}' needs extension {name}" in refused.stderr) == (2, True)


def test_what_files_name_says_what_it_needs(without, tmp_path):
    name, run = without
    kinds = (SUITE_KEYS, CASE_KEYS, PROVIDERS, ASSERTIONS)
    suite_keys, case_keys, providers, types = added = [getattr(extensions()[name], kind, {}) for kind in kinds]
    if not any(added):
        return
    case = {"id": "a", "input": "hi", **{key: {} for key in case_keys}, "assert": [{"type": one} for one in types]}
    targets = [{"provider": one} for one in providers]
    suite = {"targets": targets, **{key: {} for key in suite_keys}, "tests": [case]}
    file = tmp_path / "a.eval.yaml"
    file.write_text(json.dumps(suite))
    refused = run("validate", str(file))
    said = [line for line in refused.stderr.splitlines() if "error[" in line]
    assert [one for kind in added for one in kind if f"'{one}' needs extension {name}" not in refused.stderr] == []
    diagnostic = re.compile(rf".*a\.eval\.yaml:1:\d+: error\[missing-extra\]: .* needs extension {name}")
    assert [line for line in said if not diagnostic.fullmatch(line)] == []


def test_a_program_whose_model_calls_are_to_be_counted_says_what_it_needs(without, tmp_path):
    name, run = without
    if "TrialWorks" in getattr(extensions()[name], PORTS, {}):
        target = {"provider": "cli", "command": "cat", "gateway": "openai"}
        suite = {"target": target, "tests": [{"id": "a", "input": "hi", "assert": [{"contains": "hi"}]}]}
        (tmp_path / "a.eval.yaml").write_text(json.dumps(suite))
        refused = run("eval", str(tmp_path / "a.eval.yaml"))
        assert (refused.returncode, f"'gateway' needs extension {name}" in refused.stderr) == (2, True), refused.stderr


def test_what_it_exports_says_what_it_needs(without):
    name, run = without
    for suffix in getattr(extensions()[name], EXPORT_FORMATS, {}):
        refused = run("eval", ".", "--out", f"report{suffix}")
        assert (refused.returncode, f"'{suffix}' needs extension {name}" in refused.stderr) == (2, True)


def test_its_keys_in_a_configuration_say_what_they_need(without, tmp_path):
    name, run = without
    for key in getattr(extensions()[name], CONFIG_KEYS, {}):
        (tmp_path / ".agentv").mkdir()
        (tmp_path / ".agentv/config.yaml").write_text(f"{key}: {{remote: https://evals.example.org/projects/a}}\n")
        (tmp_path / "a.eval.yaml").write_text("tests: [{id: a, input: hi, assert: [{contains: hi}]}]\n")
        refused = run("validate", str(tmp_path))
        needs = f"config.yaml:1:{len(key) + 3}: error[missing-extra]: '{key}' needs extension {name}"
        assert (refused.returncode, needs in refused.stderr) == (2, True), refused.stderr


def test_its_options_say_what_they_need(without):
    name, run = without
    for command, _, option in (one.rpartition(" ") for one in getattr(extensions()[name], OPTIONS, {})):
        refused = run(*command.split(), ".", option)
        assert (refused.returncode, f"'{option}' needs extension {name}" in refused.stderr) == (2, True)


RUN = ("eval", ".", "--replay", "support.cassette.jsonl")


def test_the_core_runs_an_eval_file(without):
    _, run = without
    ended = run(*RUN)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.startswith("5 cases: 5 passed")


def test_the_core_works_without_any_extension(tmp_path):
    run = package_without(extensions(), tmp_path)
    commands = (("validate", "."), RUN, ("compare", "last", "last"), ("results", "show"), ("plugins",), ("--help",))
    for words in commands:
        ended = run(*words)
        assert ended.returncode == 0, ended.stderr
    assert len(json.loads(run("results", "list", "--json").stdout)) == 1


def test_a_server_without_pages_says_what_it_needs(without):
    name, run = without
    if hasattr(extensions()[name], PAGES):
        refused = run("serve", "--data", "server")
        assert (refused.returncode, f"agentv serve needs extension {name}" in refused.stderr) == (2, True)


def test_files_of_other_tools_say_what_they_need(without):
    name, run = without
    for file in FILES.get(name, ()):
        for command in ("validate", "convert"):
            refused = run(command, str(CASES / file))
            assert (refused.returncode, f"needs extension {name}" in refused.stderr) == (2, True), refused.stderr


def test_labels_that_decide_say_what_they_need(without, tmp_path):
    name, run = without
    if "LabelledRuns" not in getattr(extensions()[name], PORTS, {}):
        return
    file = tmp_path / "a.eval.yaml"
    file.write_text(
        "run: {gate: corrected}\njudge: {min_tpr: 0.9}\ntests: [{id: a, input: a, assert: [contains: a]}]\n"
    )
    refused = run("validate", str(file))
    assert f"a.eval.yaml:1:13: error[missing-extra]: 'gate' needs extension {name}" in refused.stderr
    assert f"a.eval.yaml:2:9: error[missing-extra]: 'min_tpr' needs extension {name}" in refused.stderr
