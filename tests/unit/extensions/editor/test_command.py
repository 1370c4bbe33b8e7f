"""`agentv lsp` started by hand."""

import pytest

from agentv.errors import UsageError
from agentv.extensions.editor.command import command
from agentv.registry import fields


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    fields._is_installed.cache_clear()
    monkeypatch.setattr(fields, "find_spec", lambda _module: None)
    with pytest.raises(UsageError, match="pygls, which is not installed") as raised:
        command.callback(stdio=False)
    fields._is_installed.cache_clear()
    assert raised.value.hint == "pip install 'agentv[lsp]'"


def test_in_a_terminal_it_says_that_an_editor_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="an editor starts this command") as raised:
        command.callback(stdio=False)
    assert "agentv validate" in raised.value.hint
