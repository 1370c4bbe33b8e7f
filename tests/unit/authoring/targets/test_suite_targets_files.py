"""The files of targets of a project, and what they say together (SPEC sections 2 and 3)."""

import pytest

from agentv.authoring.header import open_project
from agentv.authoring.source.report import Report
from agentv.targets.catalogue import registry
from doubles.loading import parsed, reading_of, repository


def project(folder, files, directory="", *, hints=False):
    """The targets and the configuration that a directory sees, and all that was found wrong with the files."""
    reading = reading_of(repository(folder, files))
    reading = reading.reporting_to(Report(hints=hints))
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


@pytest.mark.parametrize(
    ("targets", "config", "wrong"),
    [
        ("target: a", "target: a", []),
        ("target: a", "defaults: {provider: a}", []),
        ("target: a", "defaults: {provider: b}", ["conflicting-defaults"]),
        ("judge: a", "defaults: {grader: b}", ["conflicting-defaults"]),
        ("judge: a, grader: b", "threshold: 1", ["conflicting-defaults"]),
        ("target: a, provider: a", "target: a\ndefaults: {target: a, provider: a}\nexecution: {target: a}", []),
        ("target: a", "target: a\nexecution: {target: b}", ["conflicting-defaults"]),
    ],
)
def test_defaults_that_differ_are_named_both(tmp_path, targets, config, wrong):
    files = {
        ".agentv/targets.yaml": f"targets: [{{name: a, provider: echo}}]\ndefaults: {{{targets}}}\n",
        ".agentv/config.yaml": f"{config}\n",
    }
    _, _, reading = project(tmp_path, files)
    assert codes(reading) == wrong


def test_the_local_configuration_overrides_the_other(tmp_path):
    files = {
        ".agentv/config.yaml": "defaults: {provider: a}\nexecution: {workers: 2, cache: true}\nproviders: []\n",
        ".agentv/config.local.yaml": "defaults: {provider: b}\nexecution: {workers: 3}\nproviders: [{id: echo, label: b}]\n",
    }
    found, config, reading = project(tmp_path, files)
    assert (found.default_target.text, config.run.workers, config.run.cache) == ("b", 3, True)
    assert (list(found.entries), codes(reading)) == (["b"], [])


def test_one_hint_for_each_file_lists_what_is_passed_over(tmp_path):
    files = {
        ".agentv/config.yaml": "$schema: x\nresults: {repo: a/b}\nexecution: {verbose: true, workers: 2}\n",
        ".agentv/targets.yaml": (
            "schema: x\ntargets:\n  - {name: a, provider: echo, verbose: true, runtime: host}\n"
            "  - {name: b, provider: vscode, log_dir: x}\n"
        ),
    }
    _, config, reading = project(tmp_path, files, hints=True)
    listed = [one.message for one in reading.report.diagnostics if one.code == "no-effect"]
    assert listed == [
        "'$schema', 'execution.verbose', 'results' have no effect in agentv",
        "'runtime', 'schema', 'verbose' have no effect in agentv",
    ]
    assert config.run.workers == 2
    _, _, quiet = project(tmp_path, files)
    assert codes(quiet) == []


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("runtime: {mode: sandbox}", "not-yet"),
        ("environment: {type: docker}", "not-yet"),
        ("provider_batching: true, batch_requests: true, runtime: host, timeout_ms: 1", None),
        ("provider_baching: true", "unknown-key"),
    ],
)
def test_a_key_that_asks_for_what_is_not_built_is_refused_where_the_target_is_used(tmp_path, settings, code):
    files = {".agentv/targets.yaml": f"targets: [{{name: a, provider: echo, {settings}}}]\n"}
    found, _, reading = project(tmp_path, files)
    assert codes(reading) == []
    spec = found.resolve("a", None, reading)
    assert (spec is None, codes(reading)) == (code is not None, [code] if code else [])


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
    found, _, reading = project(tmp_path, files)
    reading = found._homes["a"] = reading_with(found._homes["a"], {"KEY": "k" * 20})
    spec = found.resolve("a", None, reading)
    assert codes(reading) == []
    assert (spec.provider, spec.settings.model, spec.settings.api_key) == (provider, value, "k" * 20)


def reading_with(reading, env):
    from agentv.templating import Scope

    return reading.within(Scope({}, env))


def test_a_mapping_of_a_suite_may_name_a_target_of_a_file(tmp_path):
    files = {".agentv/targets.yaml": "targets: [{name: a, provider: echo}]\n"}
    found, _, reading = project(tmp_path, files)
    assert found.inline(parsed("{name: a}"), reading).provider == "echo"
    assert codes(reading) == []
    assert found.inline(parsed("{name: b}"), reading) is None
    assert codes(reading) == ["missing-key"]
