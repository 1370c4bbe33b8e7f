"""Ports."""

import webbrowser
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from agentv.errors import ExitStatus, UsageError
from agentv.extensions.view.app import listening_socket, opened_in_browser


def test_a_port_in_use_is_told_and_without_one_the_next_is_taken():
    with listening_socket(None) as first, listening_socket(None) as second:
        assert first.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {first.getsockname()[1]} is in use") as refused:
            listening_socket(first.getsockname()[1])
        assert "--port" in (refused.value.hint or "")
        assert refused.value.status == ExitStatus.WRONG


@pytest.fixture
def opened(monkeypatch):
    """Addresses that a browser was started with, and what says that there was one."""
    found, ready = [], Event()

    class Recorded(webbrowser.BaseBrowser):
        def open(self, url, new=0, autoraise=True):
            found.append(url)
            ready.set()
            return True

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "_tryorder", ["recorded"])
    monkeypatch.setattr(webbrowser, "_browsers", {"recorded": [None, Recorded()]})
    return found, ready


def test_the_command_line_of_a_browser_names_no_token(opened):
    found, ready = opened
    address = "http://127.0.0.1:4280/?token=secret"
    with opened_in_browser(address, secret=True):
        assert ready.wait(10)
        page = Path(urlsplit(found[0]).path)
        assert "secret" not in found[0]
        assert f'content="0;url={address}"' in page.read_text()
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_an_address_without_a_token_is_opened_as_it_is(opened):
    found, ready = opened
    with opened_in_browser("http://127.0.0.1:4280/", secret=False):
        assert ready.wait(10)
    assert found == ["http://127.0.0.1:4280/"]
