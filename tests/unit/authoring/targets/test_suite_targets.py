"""The targets visible in a directory, how its files combine, and which one has precedence (SPEC sections 2, 3, 12)."""

from contextlib import chdir

import pytest

from agentv.authoring.header import open_project
from agentv.model.suite.suite import TargetSpec
from agentv.targets.catalogue import registry
from agentv.targets.mock import Echo
from doubles.loading import codes_and_lines, outcome, parsed, reading_of, repository, suite_of

CASE = "tests:\n  - {id: a, input: x, assert: [{contains: x}]}\n"
BOOK = "targets: [{name: one, provider: echo}, {name: two, provider: echo}]\ndefaults: {target: one, judge: two}\n"
GIVEN = TargetSpec("given", "echo", Echo())


def asked(folder, text: str, **request):
    path = repository(folder, {"evals/suite.eval.yaml": text, ".agentv/targets.yaml": BOOK}) / "evals/suite.eval.yaml"
    suites, found = outcome(path, **request)
    assert suites, found
    (suite,) = suites
    judges = [spec and spec.name for spec in (suite.forced_judge, suite.judge, suite.default_judge)]
    return [target.name for target in suite.targets], judges


BOTH = [None, None, "two"]


@pytest.mark.parametrize(
    ("head", "request_", "names", "judges"),
    [
        ("target:\n", {}, ["one"], BOTH),
        ("targets: []\n", {}, ["one"], BOTH),
        ("target: two\n", {"targets": ("one", "mock:x")}, ["one", "mock:x"], BOTH),
        ("target: two\n", {"targets": ("one",), "given_target": GIVEN}, ["given"], BOTH),
        ("target: two\n", {"given_target": {"provider": "mock", "response": "{{ x }}"}}, ["mock"], BOTH),
        ("", {"judge": "one", "given_judge": GIVEN}, ["one"], ["given", None, "two"]),
        ("", {"given_judge": {"name": "j", "provider": "mock", "response": "yes"}}, ["one"], ["j", None, "two"]),
    ],
)
def test_whom_a_suite_asks_and_who_judges_it(tmp_path, head, request_, names, judges):
    assert asked(tmp_path, head + CASE, **request_) == (names, judges)


def test_paths_of_the_command_line_begin_in_the_working_directory(tmp_path):
    repository(
        tmp_path,
        {"agent.py": "def f(): ...", "evals/agent.py": "def f(): ...", "suite.eval.yaml": "target: echo\n" + CASE},
    )
    with chdir(tmp_path / "evals"):
        suites, found = outcome(tmp_path / "suite.eval.yaml", targets=("python:agent.py:f",))
    assert not found
    assert suites[0].targets[0].settings.function.path == str(tmp_path / "evals/agent.py")


def test_an_absolute_path_is_one_of_the_system_on_the_command_line_alone(tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text("def f(prompt): return prompt\n", encoding="utf-8")
    named = f"python:{agent}:f"
    for given in ({"targets": (named,)}, {"judge": named}):
        suite = suite_of(tmp_path / "project", "target: echo\n" + CASE, **given)
        assert (suite.forced_judge or suite.targets[0]).settings.function.path == str(agent)
    assert codes_and_lines(tmp_path / "project", f"target: {named}\n" + CASE) == [("missing-file", 1)]


def project(folder, files, directory=""):
    """Return the targets and configuration visible in a directory, and all diagnostics."""
    reading = reading_of(repository(folder, files))
    found, config = open_project(str(folder / directory) if directory else str(folder), registry(), reading)
    return found, config, reading


def codes(reading) -> list[str]:
    return [one.code for one in reading.report.diagnostics]


def test_targets_and_providers_of_one_folder_are_one_list(tmp_path):
    found, _, reading = project(
        tmp_path,
        {
            ".agentv/targets.yaml": "targets: [{name: a, provider: echo}]\n",
            ".agentv/providers.yaml": "providers: [{id: echo, label: b}, 'openai:gpt-5']\n",
            ".agentv/config.yaml": "providers: [{id: echo, label: c}]\n",
        },
    )
    assert (sorted(found.entries), codes(reading)) == (["a", "b", "c"], [])


def test_the_closer_file_wins_over_the_configuration_and_is_wanted_to_agree_with_its_own(tmp_path):
    files = {
        ".agentv/config.yaml": "providers: [{id: mock, label: a, response: far}, {id: echo, label: b}]\n",
        "in/.agentv/providers.yaml": "- {id: mock, label: a, response: near}\n",
    }
    found, _, reading = project(tmp_path, files, "in")
    assert found.resolve("a", None, reading).settings.response == "near"
    assert found.resolve("b", None, reading).provider == "echo"
    assert codes(reading) == []


def test_the_local_configuration_overrides_the_other(tmp_path):
    files = {
        ".agentv/config.yaml": "defaults: {provider: a}\nexecution: {workers: 2, cache: true}\nproviders: []\n",
        ".agentv/config.local.yaml": "defaults: {provider: b}\nexecution: {workers: 3}\nproviders: [{id: echo, label: b}]\n",
    }
    found, config, reading = project(tmp_path, files)
    assert (found.default_target.text, config.run.workers, config.run.cache) == ("b", 3, True)
    assert (list(found.entries), codes(reading)) == (["b"], [])


@pytest.mark.parametrize(
    ("written", "provider", "value"),
    [
        ("{provider: azure-openai, resource: 'https://a.example', deployment: m, version: v1}", "azure", "m"),
        ("{provider: google, model: m, max_output_tokens: 5}", "gemini", "m"),
        ("{provider: openai, endpoint: 'http://a.example/v1', variant: m, api_format: responses}", "openai", "m"),
        ("{provider: anthropic, deployment: m, thinking_budget: 2000}", "anthropic", "m"),
        ("{provider: agentv, model: 'openai:m'}", "openai", "m"),
        ("{provider: 'agentv:openai:m'}", "openai", "m"),
    ],
)
def test_agentv_s_settings_of_models(tmp_path, written, provider, value):
    files = {".agentv/targets.yaml": f"targets: [{{name: a, api_key: '${{{{ KEY }}}}', {written[1:]}]\n"}
    (spec,) = suite_of(tmp_path, f"target: a\n{CASE}", files, process_env={"KEY": "k" * 20}).targets
    assert (spec.provider, spec.settings.model, spec.settings.api_key) == (provider, value, "k" * 20)


def test_a_mapping_of_a_suite_may_name_a_target_of_a_file(tmp_path):
    found, _, reading = project(tmp_path, {".agentv/targets.yaml": "targets: [{name: a, provider: echo}]\n"})
    assert found.inline(parsed("{name: a}"), reading).provider == "echo"
    assert codes(reading) == []
    assert found.inline(parsed("{name: b}"), reading) is None
    assert codes(reading) == ["missing-key"]


def test_text_that_came_out_of_a_placeholder_is_not_rendered_again(tmp_path):
    found, _, _ = project(tmp_path, {})
    reading = reading_of(tmp_path, variables={"t": "mock:{{ x }}"}, renders=True)
    assert found.inline(parsed("'{{ t }}'"), reading).settings.response == "{{ x }}"
    assert codes(reading) == []


def test_an_installed_agent_is_read_for_an_eval_file_in_a_folder(tmp_path, monkeypatch):
    files = {
        "bin/copilot": "#!/bin/sh\n",
        ".agentv/targets.yaml": "targets: [{name: agent, provider: copilot-cli}]\n",
        "evals/a.eval.yaml": "target: agent\ntests: [{id: a, input: hi, assert: [contains: hi]}]\n",
    }
    folder = repository(tmp_path, files)
    (folder / "bin" / "copilot").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    assert outcome(folder / "evals" / "a.eval.yaml")[1] == ()
