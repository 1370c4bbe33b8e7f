import json
import unicodedata
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.formatting import ELLIPSIS
from agentv.reports.text import cells, data_element, one_line, safe, to_json, without_directories
from doubles.html_reports import HOSTILE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("\u2066a\u2069\u200f", "\\u2066a\\u2069\\u200f"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("naïve “日本” 👩‍🔬", "naïve “日本” 👩‍🔬"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text, shown):
    assert safe(text) == shown


@given(st.text(st.characters()))
def test_safe_text_steers_nothing_and_can_be_written(text):
    shown = safe(text)
    assert not [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\t\n"]
    assert not set(shown) & set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    shown.encode()
    assert safe(shown) == shown


@given(st.text(st.characters()), st.integers(1, 30))
def test_one_line_is_one_line_and_no_longer_than_asked(text, longest):
    shown = one_line(text, longest)
    assert len(shown) <= longest
    assert not set(shown) & set("\n\t\r")
    assert one_line(text).startswith(shown.removesuffix(ELLIPSIS))


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("\u200d", 0)])
def test_columns_of_a_terminal(text, columns):
    assert cells(text) == columns


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_every_text_comes_back_as_it_was_and_can_be_written_to_a_file(text):
    line = to_json({"a": text})
    line.encode("utf-8")
    assert json.loads(line) == {"a": text}
    assert "<" not in line
    assert "\n" not in line


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_the_element_that_it_stands_in(text):
    shown = data_element("whole", 0, [to_json(text), to_json([text])])
    assert shown.count("<") == 2
    assert shown.endswith("</script>\n")


def test_what_json_knows_no_number_for_is_null():
    nan, infinite = float("nan"), float("inf")
    shown = json.loads(to_json({"a": [nan, infinite, 0.5], "b": {"c": -infinite, "d": True}}))
    assert shown == {"a": [None, None, 0.5], "b": {"c": None, "d": True}}


def test_objects_that_are_no_dict_are_written_as_one():
    assert to_json(MappingProxyType({"a": 1})) == '{"a":1}'


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot read /home/ann/p/.agentv/results/r/run.json: x", "cannot read .agentv/results/r/run.json: x"),
        ("cannot use the database '/var/lib/agentv/team.sqlite'", "cannot use the database 'team.sqlite'"),
        ("/srv/a.yaml:3:1: wrong, see (/srv/b.yaml), /srv/c.yaml.", "a.yaml:3:1: wrong, see (b.yaml), c.yaml."),
        ("[Errno 2] No such file: '/srv/x'", "[Errno 2] No such file: 'x'"),
        ("give --remote https://example.org/projects/x", "give --remote https://example.org/projects/x"),
        ("evals/a.yaml, ./b/c.yaml and 1/2 of all", "evals/a.yaml, ./b/c.yaml and 1/2 of all"),
        ("/home/ann/two words/.agentv/labels/s.jsonl", "two words/.agentv/labels/s.jsonl"),
    ],
)
def test_a_message_for_others_says_no_directory_of_this_machine(message, shown):
    assert without_directories(message) == shown
