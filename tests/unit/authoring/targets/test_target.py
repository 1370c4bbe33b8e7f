"""One target from its mapping (SPEC section 12)."""

from pathlib import Path

import pytest

from agentv.authoring.fields.translation import translated_target
from agentv.authoring.source.masking import MASK
from agentv.authoring.targets.target import read_target
from agentv.targets.catalogue import registry
from doubles.loading import parsed, reading_of, repository
from needs import each


def read_node(node, reading):
    found = read_target(translated_target(node, registry(), reading), registry(), reading)
    return None if reading.report.failed else found


def read(text: str, folder: Path, files: dict[str, str] | None = None, **more):
    """Return the target in a text, and the codes and columns of its diagnostics."""
    reading = reading_of(repository(folder, files or {}), **more)
    found = read_node(parsed(text, str(folder / "suite.eval.yaml")), reading)
    return found, [(one.code, one.span.column) for one in reading.report.diagnostics]


def target(text: str, folder: Path, files: dict[str, str] | None = None, **more):
    found, told = read(text, folder, files, **more)
    assert [one for one in told if one[0] != "secret-in-file"] == []
    return found


@pytest.mark.parametrize(
    "text",
    [
        "{name: a, provider: mock, response: hi}",
        "{name: a, provider: 'mock:hi'}",
        "{name: a, provider: MOCK, response: hi}",
        "{id: a, provider: mock, config: {response: hi}, response: hi}",
        "{id: 'mock:hi', label: a}",
    ],
)
def test_the_shapes_of_a_target(tmp_path, text):
    found = target(text, tmp_path)
    assert (found.name, found.provider, found.settings.response) == ("a", "mock", "hi")


def test_secrets_are_kept_apart_and_masked(tmp_path):
    text = "{name: a, provider: cli, command: x, env: {API_KEY: '{{ env.KEY }}', MODE: fast}}"
    found = target(text, tmp_path, env={"KEY": "sk-123456789"}, renders=True)
    assert found.env == {"API_KEY": "sk-123456789", "MODE": "fast"}
    assert found.secrets == {"sk-123456789"}
    assert found.public == {"provider": "cli", "command": "x", "env": {"API_KEY": MASK, "MODE": "fast"}}


def test_secrets_in_templates_of_the_call_are_known_too(tmp_path):
    text = """
    name: a
    provider: http
    url: http://localhost
    headers: {Authorization: "Bearer {{ env.KEY }}", X-Case: "{{ case_id }}"}
    body: {prompt: "{{ prompt }}"}
    """
    found = target(text, tmp_path, env={"KEY": "sk-123456789"}, renders=True)
    assert found.settings.headers["X-Case"] == "{{ case_id }}"
    assert found.settings.body == {"prompt": "{{ prompt }}"}
    assert {"Bearer sk-123456789", "sk-123456789"} <= found.secrets
    assert found.public["headers"] == {"Authorization": MASK, "X-Case": "{{ case_id }}"}


def test_the_fingerprint_tells_settings_and_code_but_not_secrets_apart(tmp_path):
    plain = "{name: a, provider: python, function: agent.py:f}"
    first = target(plain, tmp_path, {"agent.py": "def f(prompt): return 'a'\n"})
    assert target(plain.replace("name: a", "name: b"), tmp_path).fingerprint == first.fingerprint
    assert target(plain, tmp_path, {"agent.py": "def f(prompt): return 'b'\n"}).fingerprint != first.fingerprint
    text = "{name: a, provider: cli, command: x, env: {API_KEY: %s}}"
    (one, told), (second, _) = read(text % "first", tmp_path), read(text % "second", tmp_path)
    assert one.fingerprint == second.fingerprint
    assert [code for code, _ in told] == ["secret-in-file"]
    other = "{name: a, provider: cli, command: x, env: {MODE: %s}}"
    assert target(other % "first", tmp_path).fingerprint != target(other % "second", tmp_path).fingerprint
    for fixtures in ("f.jsonl", "."):
        replay = f"{{name: a, provider: replay, fixtures: {fixtures}}}"
        given = [{"f.jsonl": f'{{"id": "a", "output": "{text}"}}\n'} for text in ("good", "bad")]
        assert target(replay, tmp_path, given[0]).fingerprint != target(replay, tmp_path, given[1]).fingerprint


@pytest.mark.parametrize("provider", ["openai:gpt-4o", "anthropic:claude-haiku-4-5", "http:https://example.com"])
@pytest.mark.parametrize("said", ["{{ env.TENANT_PASS }}", "${{ TENANT_PASS }}", "Basic {{ env.TENANT_PASS }}"])
def test_a_header_from_the_environment_is_secret_whatever_its_name(tmp_path, provider, said):
    key = "" if provider.startswith("http") else "api_key: '{{ env.KEY }}', "
    text = f"{{name: a, provider: '{provider}', {key}headers: {{x-tenant: '{said}', accept: text}}}}"
    envs = [{"TENANT_PASS": value, "KEY": "k-12345678"} for value in ("one-of-mine", "two-of-mine")]
    one, two = (target(text, tmp_path, env=env, renders=True) for env in envs)
    assert "one-of-mine" in one.secrets
    assert one.public["headers"] == {"x-tenant": MASK, "accept": "text"}
    assert "one-of-mine" not in repr(one.public)
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    "provider", each(["openai", "azure", "openrouter", "ollama", "anthropic", "gemini", "litellm"])
)
@pytest.mark.parametrize("end", ["\u201d", "\u00a0", "\u00e9"])
def test_a_key_that_no_header_can_hold_is_told_and_never_quoted(tmp_path, provider, end):
    place = ", base_url: 'https://example.com'" if provider == "azure" else ""
    text = f"{{name: a, provider: '{provider}:m', api_key: '{{{{ env.K }}}}'{place}}}"
    reading = reading_of(repository(tmp_path, {}), env={"K": f"sk-1234{end}"}, renders=True)
    assert read_node(parsed(text, str(tmp_path / "suite.eval.yaml")), reading) is None
    (found,) = reading.report.diagnostics
    assert found.code == "bad-value"
    assert "not allowed in an HTTP header" in found.message
    assert "1234" not in f"{found.message}{found.hint}{found.notes}"
    assert (
        read("{name: a, provider: 'openai:m'}", tmp_path, env={"OPENAI_API_KEY": "sk-1\u201d"}, renders=True)[0] is None
    )


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("{name: a, provider: 'javascript:p.mjs', config: {model: m, timeout_s: 3}}", {"model": "m", "timeout_s": 3}),
        ("{name: a, provider: javascript, function: p.mjs, config: {k: [1]}}", {"k": [1]}),
        ("{name: a, provider: javascript, config: {function: p.mjs}}", {}),
        ("{id: 'javascript:p.mjs', label: a, config: {k: 1}}", {"k": 1}),
    ],
)
def test_config_belongs_to_the_code_of_a_file(tmp_path, text, config):
    reading = reading_of(repository(tmp_path, {"p.mjs": "export default () => 'a';"}))
    found = read_node(parsed(text, str(tmp_path / "suite.eval.yaml")), reading)
    assert found is not None, reading.report.diagnostics
    assert found.name == "a"
    assert (found.settings.config, found.timeout_s) == (config, None)


def test_a_key_in_the_config_of_code_is_a_secret(tmp_path):
    text = "{name: a, provider: 'javascript:p.mjs', config: {api_key: sk-very-secret-one, deep: {auth_token: t-0123456789}}}"
    reading = reading_of(repository(tmp_path, {"p.mjs": ""}))
    found = read_node(parsed(text, str(tmp_path / "suite.eval.yaml")), reading)
    assert found is not None, reading.report.diagnostics
    assert {"sk-very-secret-one", "t-0123456789"} <= found.secrets
    assert "very-secret" not in repr(found.public)
    assert "0123456789" not in repr(found.public)


def test_the_placeholders_of_the_gateway_stay_for_each_trial_and_need_a_gateway(tmp_path):
    text = "{name: a, provider: cli, command: [p, '{{ gateway.openai }}'], env: {K: 'x{{ gateway.key }}'}"
    found = target(f"{text}, gateway: openai, api_key: sk-0123456789abcdef}}", tmp_path)
    assert (found.settings.command.argv, found.env) == (("p", "{{ gateway.openai }}"), {"K": "x{{ gateway.key }}"})
    assert read(f"{text}}}", tmp_path)[1] == [("no-effect", 1)]
    wrong = text.replace("gateway.key", "gateway.kye")
    assert read(f"{wrong}}}", tmp_path)[1] == [("no-effect", 1), ("undefined-variable", 1)]
