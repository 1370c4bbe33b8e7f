from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentv.reports.commands.side_by_side import wrapped
from agentv.reports.text.escaping import cells, safe


@given(st.text(), st.integers(12, 40))
def test_no_line_is_wider_than_the_column_and_no_letter_is_lost(text, width):
    lines = list(wrapped(text, width))
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe(text).split())
