"""JSON as nodes with places."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from agentv.authoring.source.json_text import parse_json, read_json
from agentv.authoring.source.nodes import plain, span_of
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10**20) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@example({"\U00010000": None, "\U00010001": None}, True, None)
@example({"\U00010000": 1, "\ue000\ue001d800\ue000\ue001dc00": 2}, True, None)
@given(JSON, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_it_says_what_json_says(value, ascii_only, indent):
    report = Report()
    node = read_json("a.json", json.dumps(value, ensure_ascii=ascii_only, indent=indent), report).value
    assert node is not None
    assert plain(node) == value
    assert report.diagnostics == ()


def test_parts_know_their_places_behind_tabs_and_escapes():
    node = read_json("a.json", '{\n\t"a": "\\ud83d\\ude00 \\\\ud83d",\n\t"b":\t1\n}', Report()).value
    assert plain(node) == {"a": "😀 \\ud83d", "b": 1}
    assert [span_of(item.at)[1:3] for item in node.items.values()] == [(2, 7), (3, 7)]


def test_a_lone_carriage_return_ends_a_line_too(tmp_path):
    report = Report()
    assert parse_json('{"a":\r\n 1,\r}', Span("x.json", 1, 1, 1, 2), report) is None
    assert [one.span and one.span[1:3] for one in report.diagnostics] == [(3, 1)]
