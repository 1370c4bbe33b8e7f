from __future__ import annotations

import pytest

from agentv.authoring.source.masking import MASK
from agentv.authoring.source.nodes import Node, node_of
from agentv.authoring.source.plaintext_secrets import check_keys, check_settings, mask_keys_in
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span

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


AT = Span("t.yaml", 3, 5, 3, 9)


def settings(**values: object) -> dict[str, Node]:
    return {key: node_of(value, AT) for key, value in values.items()}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        {"api_key": "open sesame"},
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"X-Goog-Key": "abc"}},
        {"headers": [{"X-Api-Key": "abc"}]},
        {"env": {"SERVICE_TOKEN": "abc"}},
        {"client_secret": {"value": "abc"}},
    ],
)
def test_a_literal_under_a_secrets_key_is_told(values: dict[str, object]) -> None:
    report = Report()
    check_settings(settings(**values), report)
    assert [found.code for found in report.diagnostics] == ["secret-in-file"]


@pytest.mark.parametrize(
    "values",
    [{"api_key": "{{ env.KEY }}"}, {"api_key": ""}, {"api_key": None}, {"url": "http://x"}, {"max_tokens": 5}],
)
def test_placeholders_and_other_keys_are_left_alone(values: dict[str, object]) -> None:
    report = Report()
    check_settings(settings(**values), report)
    assert report.diagnostics == ()


def test_a_key_that_the_file_was_searched_for_is_told_once() -> None:
    report = Report(hints=True)
    check_settings(settings(api_key="sk-ant-api03-" + "a" * 24), report)
    assert report.diagnostics == ()


def test_keys_in_a_text_are_masked_wherever_they_stand() -> None:
    for key in KEYS:
        found = mask_keys_in(f"{key} task-{key} sk-short \x1b[31m{key}\x1b[0m, {key}")
        assert found == f"{MASK} task-{key} sk-short \x1b[31m{MASK}\x1b[0m, {MASK}", key
