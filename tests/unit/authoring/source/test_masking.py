"""Masking of what must never be written (SPEC section 6)."""

import subprocess
import sys

import pytest

from agentv.authoring.source.masking import (
    MASK,
    check_keys,
    check_settings,
    environment_secrets,
    is_secret,
    mask,
    mask_keys_in,
    secrets_in,
)
from agentv.authoring.source.nodes import node_of
from agentv.authoring.source.report import Report
from agentv.model.values.values import Span


@pytest.mark.parametrize("key", [
    "api_key", "API_KEY", "apiKey", "apikey", "X-Api-Key", "OPENAI_API_KEY", "azure-api-key", "access_token",
    "accessToken", "token", "GITHUB_TOKEN", "client_secret", "clientSecret", "Authorization", "Proxy-Authorization",
    "password", "DB_PASSWORD", "aws_secret_access_key", "private_key", "Ocp-Apim-Subscription-Key", "key",
    "SECRET_KEY", "SECRET_KEY_BASE", "DB_PASS", "PGPASSWORD", "MYSQL_PWD", "GITHUB_PAT", "SERVICE_CREDENTIALS",
    "basic_auth", "X-Hub-Signature", "sig", "AWS_ACCESS_KEY_ID", "--api-key", "OPENAI_API_KEY_OF_TEAM",
])  # fmt: skip
def test_keys_of_secrets(key):
    assert is_secret(key)


@pytest.mark.parametrize("key", [
    "max_tokens", "token_usage", "tokens", "keyboard", "author", "monkey", "url", "GIT_AUTHOR_NAME", "PATH",
    "PYTHONPATH", "pass_threshold", "AUTH_URL", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "compass", "pattern",
    "SSL_KEY_FILE", "token_limit", "keywords", "PWD", "OLDPWD", "PRIMARY_KEY_FIELD", "AZURE_KEY_VAULT",
    "GIT_CONFIG_KEY_0", "AUTH_DOMAIN", "SECRETARY", "SECRETARIAT_HEAD", "SIGNATURE_ALGO", "TOKEN_ALG",
])  # fmt: skip
def test_keys_of_other_things(key):
    assert not is_secret(key)


@pytest.mark.parametrize("name", ["X-Goog-Key", "x-key-id", "X-Tokens", "my-secret-header", "X-Auth", "Cookie"])
def test_headers_of_secrets(name):
    assert is_secret(name, "headers")
    settings = {"headers": {name: "hush", "Accept": "text/plain"}}
    assert mask(settings) == {"headers": {name: MASK, "Accept": "text/plain"}}
    assert set(secrets_in(settings)) == {"hush"}


def test_secrets_are_masked_wherever_they_stand_and_the_rest_is_kept():
    settings = {
        "url": "https://example.com",
        "api_key": "sk-1234567890",
        "headers": {"Authorization": "Bearer sk-abcdefgh", "Accept": "text/plain"},
        "credentials": [{"client_secret": "hush", "id": 7}],
        "tokens": {"password": {"nested": ["deep-secret"]}},
        "empty": {"api_key": None, "token": ""},
    }
    assert mask(settings) == {
        "url": "https://example.com",
        "api_key": MASK,
        "headers": {"Authorization": MASK, "Accept": "text/plain"},
        "credentials": MASK,
        "tokens": {"password": MASK},
        "empty": {"api_key": None, "token": ""},
    }
    shown = set(secrets_in(settings))
    assert shown == {"sk-1234567890", "Bearer sk-abcdefgh", "sk-abcdefgh", "hush", "deep-secret", "7"}


@pytest.mark.parametrize(
    ("settings", "found", "left"),
    [
        ({"url": "https://ann:pa55w0rd%21@h/v1?sig=s1g-9876&api-version=2024-05-01&page=7"}, ["pa55w0rd!", "s1g-9876"], []),
        ({"url": "https://ann:pa55w0rd@h/"}, ["YW5uOnBhNTV3MHJk"], ["ann"]),
        ({"url": "https://h/?key={{ env.K }}"}, [], ["{{"]),
        ({"command": "go --token=t0k-1234 --password p4s-1234 --level=high9999"}, ["t0k-1234", "p4s-1234"], ["high9999"]),
        ({"command": ["curl", "-u", "ann:c0rr-ect", "-H", "X-Token: h34-der1"]}, ["c0rr-ect", "h34-der1"], ["curl"]),
        ({"command": "API_KEY=k3y-1234 ./agent {PROMPT}"}, ["k3y-1234"], ["./agent", "{PROMPT}"]),
        ({"body": '{"key": "b0d-1234", "model": "m0del-123"}'}, ["b0d-1234"], ["m0del-123"]),
        ({"body": "auth=f0rm-1234&q=question1"}, ["f0rm-1234"], ["question1"]),
        ({"headers": {"Authorization": "Token token=c0m-1234, user=u53r-1234;n=1"}}, ["c0m-1234", "u53r-1234"], ["n", "1"]),
        ({"headers": {"Authorization": "Basic YW5uOnBhNTV3MHJk"}}, ["pa55w0rd", "ann:pa55w0rd"], ["Basic"]),
        ({"GCP_CREDENTIALS": '{"type": "service_account", "private_key": "pr1-1234"}'}, ["pr1-1234"], ["service_account"]),
        ({"headers": {"X-Key": "Bearer {{ env.SOME_KEY }}"}}, [], ["env.SOME_KEY"]),
    ],
)  # fmt: skip
def test_secrets_are_known_by_where_they_stand(settings, found, left):
    known = set(secrets_in(settings))
    assert set(found) <= known
    assert known.isdisjoint(left)


def test_no_record_of_a_target_shows_them():
    settings = {
        "url": "https://ann:pa55w0rd@h/v1?sig=s1g-9876&api-version=2024-05-01",
        "command": ["go", "--token", "t0k-1234", "--port=8080"],
        "env": {"SECRET_KEY": "s3c-1234", "MODE": "fast"},
    }
    assert mask(settings) == {
        "url": f"https://ann:{MASK}@h/v1?sig={MASK}&api-version=2024-05-01",
        "command": ["go", "--token", MASK, "--port=8080"],
        "env": {"SECRET_KEY": MASK, "MODE": "fast"},
    }


def test_a_path_that_is_there_is_no_secret(tmp_path):
    env = {
        "SOME_TOKEN": str(tmp_path),
        "OTHER_TOKEN": "0th-1234",
        "HOME": "/nowhere/else1",
        "URL": "https://a:pw1-2345@h",
    }
    found = set(environment_secrets(env))
    assert {"0th-1234", "pw1-2345"} <= found
    assert found.isdisjoint(env.keys() | {str(tmp_path), "/nowhere/else1"})


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["curl", "-H", "authorization: Basic YW5uOnBhNTV3MHJkMQ=="], "YW5uOnBhNTV3MHJkMQ=="),
        (["curl", "-H", "Cookie: sid=c0okie-1234"], "c0okie-1234"),
        (["curl", "--header=X-Api-Key: k3y=1234="], "k3y=1234="),
        (["sh", "-c", "agent --token t0k-1234 {PROMPT}"], "t0k-1234"),
        ("sh -c 'curl -u ann:pa55w0rd http://h'", "pa55w0rd"),
        (["curl", "-uann:pa55w0rd", "http://h"], "pa55w0rd"),
        (["mysql", "-uroot", "-phunterhunter"], "hunterhunter"),
        ("sh -c '/usr/bin/mysqldump -phunterhunter db'", "hunterhunter"),
        (["agent", "-pHunter2hunter2"], "Hunter2hunter2"),
        ("sh -c \"curl -H 'Authorization: Basic YW5uOnBhNTV3MHJkMQ==' http://h\"", "YW5uOnBhNTV3MHJkMQ=="),
    ],
)
def test_secrets_in_a_command_are_known_whatever_signs_they_hold_and_however_deep(command, found):
    assert found in set(secrets_in({"command": command}))
    assert found not in str(mask({"command": command}))


@pytest.mark.parametrize("command", ["docker run -p8080:8080 x", "cc -pthread a.c", "find . -print0", "ssh -p2222 h"])
def test_options_that_only_begin_like_a_password_are_none(command):
    assert set(secrets_in({"command": command})) == set()


def test_a_private_key_is_one_by_what_it_says_and_not_by_its_name():
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----"
    assert set(environment_secrets({"DEPLOY": key})) == {key}
    assert key in set(environment_secrets({"DEPLOY": key.replace("\n", "\\n")}))


@pytest.mark.parametrize(
    "part", ["a", "-", "a1", "a-", "?", "://", "a ", "a=", "a:", "'", "?a", "&", "a://", "@", "a:a"]
)
def test_secrets_are_looked_for_in_a_long_line_in_one_pass(part):
    """Runs in its own process, because a backtracking expression would take minutes for such a line."""
    looks = "import sys; from agentv.authoring.source.masking import secrets_in, secrets_in_line; line = sys.argv[1] * 300_000; "
    asks = "secrets_in_line(line); list(secrets_in({'body': line, 'url': 'h://' + line}))"
    subprocess.run([sys.executable, "-c", looks + asks, part], check=True, timeout=60)


PEM = "-----BEGIN RSA PRIVATE " + "KEY-----"
KEYS = {
    "sk-ant-api03-" + "a" * 24: "Anthropic",
    "sk-proj-" + "b" * 24: "OpenAI",
    "AKIA" + "Q" * 16: "AWS",
    "ghp_" + "c" * 36: "GitHub",
    "AIza" + "d" * 35: "Google",
    "hf_" + "e" * 30: "Hugging Face",
    "xoxb-" + "1" * 12: "Slack",
    "sk_live_" + "f" * 20: "Stripe",
    PEM: "private key",
}


@pytest.mark.parametrize(("key", "owner"), KEYS.items())
def test_a_key_is_told_at_its_place_and_never_quoted(key: str, owner: str) -> None:
    report = Report(hints=True)
    check_keys("s.yaml", f"a: ä\nb: {key} c\n".encode(), report)
    (found,) = report.diagnostics
    assert owner in found.message
    assert found.span == Span("s.yaml", 2, 4, 2, 4 + len(key))
    assert key not in f"{found.message}{found.hint}"


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ({"api_key": "open sesame"}, ["secret-in-file"]),
        ({"headers": {"Authorization": "Bearer x"}}, ["secret-in-file"]),
        ({"headers": {"X-Goog-Key": "abc"}}, ["secret-in-file"]),
        ({"headers": [{"X-Api-Key": "abc"}]}, ["secret-in-file"]),
        ({"env": {"SERVICE_TOKEN": "abc"}}, ["secret-in-file"]),
        ({"client_secret": {"value": "abc"}}, ["secret-in-file"]),
        ({"api_key": "sk-ant-api03-" + "a" * 24}, []),  # the file was searched for it
        *(({key: value}, []) for key, value in (("api_key", "{{ env.KEY }}"), ("api_key", ""), ("api_key", None))),
        *(({key: value}, []) for key, value in (("url", "http://x"), ("max_tokens", 5))),
    ],
)
def test_a_literal_under_a_secrets_key_is_told_once(values, codes) -> None:
    report = Report(hints=True)
    check_settings({key: node_of(value, Span("t.yaml", 3, 5, 3, 9)) for key, value in values.items()}, report)
    assert [found.code for found in report.diagnostics] == codes


def test_keys_in_a_text_are_masked_wherever_they_stand() -> None:
    for key in KEYS:
        found = mask_keys_in(f"{key} task-{key} sk-short \x1b[31m{key}\x1b[0m, {key}")
        assert found == f"{MASK} task-{key} sk-short \x1b[31m{MASK}\x1b[0m, {MASK}", key
