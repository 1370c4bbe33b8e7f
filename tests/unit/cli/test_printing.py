import io
import sys

import pytest

from agentv.cli.printing import print_pieces, takes_color


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


def test_a_long_text_is_utf_8_also_where_python_takes_ascii(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    print_pieces(iter(["caf", "é"]))
    out.flush()
    assert out.buffer.getvalue().decode() == "café"
