from __future__ import annotations

import json

import pytest

from agentv.reports.commands.comparison_json import indented


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": []},
        {"a": [1, {"b": [], "c": {}}], "d": {"e": [[], ["x\ny", "é"]], "f": {}}, "g": None, "h": 0.1},
    ],
)
def test_pieces_make_what_the_library_writes_at_once(value):
    def in_pieces(one):
        if isinstance(one, list):
            return iter(one)  # whose items are written whole
        return {key: in_pieces(each) for key, each in one.items()} if isinstance(one, dict) else one

    assert "".join(indented(in_pieces(value))) == json.dumps(value, indent=2)
