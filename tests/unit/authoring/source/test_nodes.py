"""Values that remember where they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.nodes import holds_placeholder, is_empty, kind_of, node_of, plain
from agentv.model.values.span import Span
from doubles.loading import parsed

AT = Span("file.yaml", 3, 1, 3, 2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_plain_data_comes_back_out_of_nodes(value):
    assert plain(node_of(value, AT)) == value


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), (1.5, "1.5"), (7, "7"), ("x", "x")])
def test_plain_data_is_written_as_yaml_would(value, text):
    assert node_of(value, AT).text == text


@pytest.mark.parametrize("text", ["", "~", "' '", "[]", "{}"])
def test_nothing_is_empty(text):
    assert is_empty(parsed(f"- {text}").items[0])


@pytest.mark.parametrize("text", ["0", "false", "x", "[~]", "{a: }"])
def test_something_is_not_empty(text):
    assert not is_empty(parsed(f"- {text}").items[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("~", "nothing"),
        ("yes", "'yes'"),
        ("true", "the boolean true"),
        ("1.50", "the number 1.50"),
        ("''", "empty text"),
        ("a" * 41, "text"),
        ("[1]", "a list"),
        ("[]", "an empty list"),
        ("{a: 1}", "a mapping"),
        ("{}", "an empty mapping"),
    ],
)
def test_what_was_found_is_said_in_words(text, words):
    assert kind_of(parsed(f"- {text}").items[0]) == words


@pytest.mark.parametrize(
    ("text", "holds"), [("'{{ a }}'", True), ("['{% x %}']", True), ("{a: [{b: '{{c}}'}]}", True), ("{'{{': x}", False)]
)
def test_placeholders_are_seen_in_values_alone(text, holds):
    assert holds_placeholder(parsed(text)) is holds
