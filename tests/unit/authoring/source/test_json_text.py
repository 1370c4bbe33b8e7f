"""JSON and plain data as nodes with positions."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from agentv.authoring.source.json_text import read_json
from agentv.authoring.source.nodes import node_of, plain
from agentv.authoring.source.report import Report
from agentv.model.values.values import Span
from doubles.json_values import JSON


@example({"\U00010000": None, "\U00010001": None}, True, None)
@example({"\U00010000": 1, "\ue000\ue001d800\ue000\ue001dc00": 2}, True, None)
@given(JSON, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_it_says_what_json_says(value, ascii_only, indent):
    report = Report()
    node = read_json("a.json", json.dumps(value, ensure_ascii=ascii_only, indent=indent), report).value
    assert node is not None
    assert plain(node) == plain(node_of(value, Span("a.json", 3, 1, 3, 2))) == value
    assert report.diagnostics == ()
