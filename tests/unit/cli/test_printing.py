import io

import pytest

from agentv.cli.printing import takes_color


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("env", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"CI": "true", "FORCE_COLOR": "3"}, True, True),
    ],
)
def test_what_takes_colours(monkeypatch, env, terminal, pipe):
    for name in ("NO_COLOR", "FORCE_COLOR", "CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert (takes_color(Terminal()), takes_color(io.StringIO()), takes_color(None)) == (terminal, pipe, False)
