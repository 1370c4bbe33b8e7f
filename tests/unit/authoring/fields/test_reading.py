"""Placeholders in every place. `tests/cases` covers their errors."""

from agentv.authoring.source.nodes import Scalar
from doubles.loading import parsed, reading_of


def test_text_is_needed_where_a_text_is_rendered(tmp_path):
    reading = reading_of(tmp_path, variables={"items": [1], "n": 5}, renders=True)
    assert reading.render_text(Scalar("{{ n }}", "{{ n }}", parsed("x").at)) == "5"
    assert reading.render_text(Scalar("{{ items }}", "{{ items }}", parsed("x").at)) is None
    assert reading.render_text(Scalar("{{ nobody }}", "{{ nobody }}", parsed("x").at)) is None
    assert [one.code for one in reading.report.diagnostics] == ["bad-value", "undefined-variable"]
