"""What must never be written (SPEC section 6)."""

from __future__ import annotations

import pytest

from agentv.spec.masking import MASK, is_secret, mask, secrets_in


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "API_KEY",
        "apiKey",
        "apikey",
        "X-Api-Key",
        "OPENAI_API_KEY",
        "azure-api-key",
        "access_token",
        "accessToken",
        "token",
        "GITHUB_TOKEN",
        "client_secret",
        "clientSecret",
        "Authorization",
        "Proxy-Authorization",
        "password",
        "DB_PASSWORD",
        "aws_secret_access_key",
        "private_key",
        "Ocp-Apim-Subscription-Key",
    ],
)
def test_keys_of_secrets(key):
    assert is_secret(key)


@pytest.mark.parametrize("key", ["max_tokens", "token_usage", "tokens", "key", "keyboard", "author", "monkey", "url"])
def test_keys_of_other_things(key):
    assert not is_secret(key)


@pytest.mark.parametrize("name", ["X-Goog-Key", "x-key-id", "X-Tokens", "my-secret-header", "X-Auth", "Cookie"])
def test_headers_of_secrets(name):
    assert not is_secret(name)
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
        "credentials": [{"client_secret": MASK, "id": 7}],
        "tokens": {"password": MASK},
        "empty": {"api_key": None, "token": ""},
    }
    assert set(secrets_in(settings)) == {
        "sk-1234567890",
        "Bearer sk-abcdefgh",
        "sk-abcdefgh",
        "hush",
        "deep-secret",
    }
