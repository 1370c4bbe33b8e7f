"""Connections that are encrypted: which certificates are trusted, and that no call goes without one."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from agentv.model.values.response import TargetResponse
from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.http.certificates import tls_context
from agentv.targets.openai_compatible.azure import Azure
from agentv.targets.openai_compatible.openai import OpenAI
from agentv.testing import ModelServer
from doubles.asking import answer
from doubles.tls_front import encrypted, make_certificate

KEY = "sk-very-secret-key"

TARGETS = {
    "openai": lambda root: OpenAI("gpt-4o", f"{root}/openai/v1", KEY),
    "azure": lambda root: Azure("d", f"{root}/azure", KEY),
    "anthropic": lambda root: Anthropic("claude-haiku-4-5", f"{root}/anthropic", KEY),
    "gemini": lambda root: Gemini("gemini-2.5-flash", f"{root}/gemini", KEY),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_server_answers_where_its_certificate_is_trusted_and_gets_nothing_where_not(name, tmp_path, monkeypatch):
    certificate = make_certificate(tmp_path)
    with ModelServer("yes") as server, encrypted(urlsplit(server.openai).port, certificate) as port:
        settings = TARGETS[name](f"https://127.0.0.1:{port}")
        refused = answer(settings)
        assert server.calls == []
        assert (refused.code, "certificate" in refused.message.lower()) == ("connection", True), refused
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert isinstance(answer(settings), TargetResponse)
        assert len(server.calls) == 1


def test_certificates_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (empty, tmp_path / "missing.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        with pytest.raises(OSError, match=f"cannot read the certificates of SSL_CERT_FILE: {path}: "):
            tls_context("https://api.openai.com/v1")
