"""Under GitHub Actions, no printed line is a workflow command by accident."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.cli.formats import ActionsStream, guarded, print_commands, render_github, summary_command, without_commands
from agentv.errors import Diagnostic
from agentv.model.values.values import Span

LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
PARTS = st.lists(st.sampled_from(["##", "#", "[", ":", "::", "##[", " ", "\t", "\xa0", "\n", "\r", "\u2028", "a", "{"]))


def is_command(line: str) -> bool:
    """Whether GitHub's runner treats a line as a command."""
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


COMMAND = re.compile(r"::(?P<name>[a-z]+) (?P<properties>[^:]*)::(?P<data>.*)")
"""A command as GitHub's runner parses it: properties end at the first `::`."""


def read_back(line: str) -> tuple[str, dict[str, str], str]:
    """Parse a command as the runner does."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    properties = dict(pair.split("=", 1) for pair in found["properties"].split(","))
    return found["name"], {name: unescaped(value) for name, value in properties.items()}, unescaped(found["data"])


def unescaped(text: str) -> str:
    for written, meant in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(written, meant)
    return text


def shown(message="m", span=None, severity="error", **fields):
    return render_github([Diagnostic("some-code", message, span, severity, **fields)], root="/repo")


def test_a_diagnostic_is_one_command_at_its_place():
    span = Span("/repo/evals/a.eval.yaml", 14, 9, 14, 17)
    line = shown("no type 'contians'", span, hint="did you mean 'contains'?", notes=("searched: .",))
    name, properties, data = read_back(line)
    assert name == "error"
    assert properties == {
        "file": "evals/a.eval.yaml",
        "line": "14",
        "endLine": "14",
        "col": "9",
        "endColumn": "16",  # inclusive
        "title": "agentv some-code",
    }
    assert data == "no type 'contians'\ndid you mean 'contains'?\nsearched: ."


def test_columns_are_for_places_of_one_line():
    assert "col" not in read_back(shown(span=Span("/repo/a.yaml", 1, 3, 4, 2)))[1]


def test_what_stands_in_no_file_names_none():
    assert read_back(shown())[1] == {"title": "agentv some-code"}


@given(st.text(), st.text(), st.text(alphabet="ab:,%\r\n/=", min_size=1))
def test_hostile_text_begins_no_command_of_its_own(message, hint, file):
    line = shown(message, Span(f"/repo/{file}", 1, 1, 1, 2), hint=hint)
    assert len(line.splitlines()) == 1
    name, properties, _ = read_back(line)
    assert (name, set(properties)) == ("error", {"file", "line", "endLine", "col", "endColumn", "title"})


def test_a_summary_is_an_error_only_where_something_failed():
    shown = summary_command("1 case: 1 passed", title="a, b: c", failed=False)
    assert shown == "::notice title=a%2C b%3A c::1 case: 1 passed"
    assert summary_command("50% failed\n::x::", title="t", failed=True) == "::error title=t::50%25 failed%0A::x::"
