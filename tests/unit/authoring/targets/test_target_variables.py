"""Keys from the environment, and the diagnostics when they are missing (SPEC section 6)."""

import pytest

from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.targets.target import nearly_set, read_target
from agentv.errors import LoadError
from doubles.keyed import keyed_registries
from doubles.loading import parsed, reading_of, repository

PLAIN = "{name: a, provider: 'keyed:m'}"


def target(folder, text=PLAIN, env=None):
    """Return the target in a text, and the secrets of its suite."""
    reading = reading_of(repository(folder, {}), env=env or {}, renders=True)
    found = read_target(parsed(text, str(folder / "suite.eval.yaml")), keyed_registries().providers, reading)
    assert {one.code for one in reading.report.diagnostics} <= {"secret-in-file"}
    return found


@pytest.mark.parametrize(
    ("text", "env", "key"),
    [
        (PLAIN, {"KEYED_API_KEY": "first", "KEYED_KEY": "second"}, "first"),
        (PLAIN, {"KEYED_API_KEY": " ", "KEYED_KEY": " second\n"}, "second"),
        (PLAIN, {"KEYED_API_KEY": "{{ not.rendered }}"}, "{{ not.rendered }}"),
        ("{name: a, provider: 'keyed:m', api_key: own}", {"KEYED_API_KEY": "first"}, "own"),
        ("{name: a, provider: 'keyed:m', key: own}", {"KEYED_API_KEY": "first"}, "own"),
        ("{name: a, provider: 'keyed:m', api_key: '${{ MINE }}'}", {"KEYED_API_KEY": "first", "MINE": "own"}, "own"),
        ("{name: a, provider: 'keyed:m', api_key: '${{ MINE }}'}", {"KEYED_API_KEY": "first", "MINE": ""}, "first"),
        ("{name: a, provider: 'keyed:m', api_key: }", {"KEYED_API_KEY": "first"}, "first"),
        ("{name: a, provider: 'keyed:m', env: {KEYED_API_KEY: inner}}", {"KEYED_API_KEY": "first"}, "inner"),
        (PLAIN, {}, None),
    ],
)
def test_the_environment_gives_a_setting_where_the_author_gives_none(tmp_path, text, env, key):
    found = target(tmp_path, text, env)
    assert found.settings.api_key == key
    assert [one.setting for one in found.missing] == ([] if key else ["api_key"])


def test_a_key_is_a_secret_wherever_it_comes_from(tmp_path):
    for text, env in [(PLAIN, {"KEYED_API_KEY": "sk-1234"}), ("{name: a, provider: 'keyed:m', key: sk-1234}", {})]:
        found = target(tmp_path, text, env)
        assert "sk-1234" in found.secrets
        assert "sk-1234" not in str(found.public)


def test_another_key_is_the_same_target_and_another_server_is_not(tmp_path):
    one, two, written = (
        target(tmp_path, env={"KEYED_API_KEY": "sk-1234"}),
        target(tmp_path, env={"KEYED_KEY": "sk-5678"}),
        target(tmp_path, "{name: a, provider: 'keyed:m', api_key: '${{ MINE }}'}", env={"MINE": "sk-9"}),
    )
    assert one.fingerprint == two.fingerprint == written.fingerprint
    away = target(tmp_path, env={"KEYED_API_KEY": "sk-1234", "KEYED_BASE_URL": "https://gateway"})
    assert away.public["base_url"] == "https://gateway"
    assert away.fingerprint != one.fingerprint
    shown = away.fingerprint
    assert shown == target(tmp_path, "{name: a, provider: 'keyed:m', base_url: 'https://gateway'}").fingerprint


def test_the_password_in_a_url_is_a_secret(tmp_path):
    found = target(tmp_path, env={"KEYED_API_KEY": "k", "KEYED_BASE_URL": "https://ann:pass%2Fword@gateway/v1"})
    assert {"pass%2Fword", "pass/word"} <= found.secrets
    assert found.public["base_url"] == "https://ann:[redacted]@gateway/v1"


def told(folder, suite, files=None, **request):
    """Return the code, severity, line and text of every diagnostic."""
    path = repository(folder, {"suite.eval.yaml": suite, **(files or {})}) / "suite.eval.yaml"
    try:
        found = load(LoadRequest((str(path),), **request), keyed_registries()).diagnostics
    except LoadError as error:
        found = error.diagnostics
    return [(one.code, one.severity, one.span.line if one.span else 0, one.message) for one in found]


CASE = "tests:\n  - {id: a, input: hi, assert: [contains: m]}\n"
JUDGED = "tests:\n  - {id: a, input: hi, assert: [Is polite]}\n"
BOOK = {
    ".agentv/targets.yaml": "targets:\n  - {name: one, provider: 'keyed:m'}\n  - {name: two, provider: 'keyed:m'}\n"
}


def missing(name, line=0, severity="error"):
    return [("no-api-key", severity, line, f"target '{name}' needs an API key")]


@pytest.mark.parametrize(
    ("suite", "request_", "expected"),
    [
        (f"target: keyed:m\n{CASE}", {"process_env": {"KEYED_KEY": "k"}}, []),
        (f"target: keyed:m\nenv: {{KEYED_KEY: k}}\n{CASE}", {}, []),
        (f"target: keyed:m\n{CASE}", {"asks": False}, missing("keyed:m", 1, "warning")),
        (f"target: keyed:m\n{CASE}", {"targets": ("echo",)}, []),
        (CASE, {"targets": ("keyed:m",)}, missing("keyed:m")),
        (f"target: echo\njudge: keyed:j\n{CASE}", {}, []),
        (f"target: echo\njudge: keyed:j\n{JUDGED}", {}, missing("keyed:j", 2)),
        (f"target: echo\njudge: keyed:j\n{JUDGED}", {"judge": "mock:yes"}, []),
        (f"target: echo\n{JUDGED}", {"judge": "keyed:j"}, missing("keyed:j")),
        (f"target: echo\n{CASE}", {"judge": "keyed:j"}, []),
        (f"target: one\njudge: one\n{JUDGED}", {"judge": "mock:yes"}, missing("one", 2)),
        (f"target: {{name: t, provider: echo, judge: two}}\n{JUDGED}", {}, missing("two", 3)),
        (f"target: {{name: t, provider: echo, judge: two}}\njudge: mock:yes\n{JUDGED}", {}, []),
        (f"target: {{name: t, provider: echo, judge: two}}\n{CASE}", {}, []),
        ("target: echo\ntests:\n  - {id: a, input: hi, target: 'keyed:m', assert: [contains: m]}\n", {}, missing("keyed:m", 3)),
        ("target: keyed:m\ntests:\n  - {id: a, input: hi, target: echo, assert: [contains: m]}\n", {}, []),
        ("target: echo\ntests:\n  - {id: a, input: hi, judge: 'keyed:j', assert: [Is polite]}\n", {}, missing("keyed:j", 3)),
        ("target: echo\ntests:\n  - {id: a, input: hi, judge: 'keyed:j', assert: [contains: m]}\n", {}, []),
        ("target: echo\njudge: mock:yes\ntests:\n- {id: a, input: hi, assert: [{type: llm-rubric, value: x, judge: 'keyed:j'}]}\n", {}, missing("keyed:j", 4)),
        ("tests:\n- {id: a, input: hi, target: {name: t, provider: echo, judge: two}, assert: [Is polite]}\n", {}, missing("two", 3)),
    ],
)  # fmt: skip
def test_a_missing_key_is_told_of_those_that_the_run_asks(tmp_path, suite, request_, expected):
    assert [one for one in told(tmp_path, suite, BOOK, **request_) if one[0] != "judge-is-target"] == expected


@pytest.mark.parametrize(
    ("env", "near"),
    [
        ({"OPEN_AI_KEY": "x"}, "OPEN_AI_KEY"),
        ({"OPENAI_KEY": "x", "OPENAPI_TOKENS": "y"}, "OPENAI_KEY"),
        ({"openai_api_key": "x"}, "openai_api_key"),
        ({"OPNAI_API_KEY": "x"}, "OPNAI_API_KEY"),
        ({"OPENAI_API_TOKEN": "x"}, "OPENAI_API_TOKEN"),
        ({"OPEN_AI_KEY": " "}, None),
        ({"XAI_API_KEY": "x", "GEMINI_API_KEY": "x", "AZURE_API_KEY": "x", "PATH": "x", "OPENAI_BASE_URL": "x"}, None),
    ],
)
def test_a_misspelt_variable_is_found(env, near):
    assert nearly_set(("OPENAI_API_KEY",), env) == near
