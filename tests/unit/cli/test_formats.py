"""Under GitHub Actions no printed line is a command, unless it is meant."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.cli.formats import ActionsStream, guarded, print_commands, without_commands

LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
PARTS = st.lists(st.sampled_from(["##", "#", "[", ":", "::", "##[", " ", "\t", "\xa0", "\n", "\r", "\u2028", "a", "{"]))


def is_command(line: str) -> bool:
    """As the runner decides it."""
    return line.lstrip().startswith("::") or "##[" in line


def printed(parts: list[str]) -> str:
    under = io.StringIO()
    stream = ActionsStream(under)
    for part in parts:
        assert stream.write(part) == len(part)
    return under.getvalue()


@given(PARTS)
def test_no_line_is_a_command_however_it_is_written(parts):
    text = printed(parts)
    assert not [line for line in LINE_END.split(text) if is_command(line)]
    assert text.replace("\\u005b", "[").replace("\\u003a", ":") == "".join(parts)


@given(st.lists(st.text(alphabet=["#", "[", "]", ":", "\n", "x"], max_size=12)))
def test_a_document_of_json_means_what_it_did(texts):
    document = json.dumps(texts, indent=2)
    assert json.loads(printed([document])) == texts


def test_what_is_meant_is_a_command(capsys):
    with guarded({"GITHUB_ACTIONS": "true"}):
        sys.stdout.write("half a line ##[group]")
        print_commands("::error title=a::b\n::notice::c")
        sys.stdout.write("::error::forged\n")
    assert (
        capsys.readouterr().out
        == "half a line ##\\u005bgroup]\n::error title=a::b\n::notice::c\n:\\u003aerror::forged\n"
    )


@given(PARTS)
def test_what_pytest_prints_of_an_answer_is_no_command_there(parts):
    text = "".join(parts)
    said = without_commands(text, {"GITHUB_ACTIONS": "true"})
    assert not [line for line in LINE_END.split(said) if is_command(line)]
    assert without_commands(text, {}) == text


def test_streams_are_as_they_were_afterwards():
    before = sys.stdout, sys.stderr
    with guarded({"GITHUB_ACTIONS": "true"}), pytest.raises(AttributeError):
        sys.stdout.no_such_thing  # noqa: B018
    assert (sys.stdout, sys.stderr) == before
