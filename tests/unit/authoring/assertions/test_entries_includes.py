"""Templates (SPEC section 7.3). What goes wrong with them is in `tests/cases/invalid`."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.authoring.source.nodes import node_of
from agentv.model.values.values import Span
from doubles.loading import parsed, reading_of, repository


def test_a_broken_template_is_told_of_wherever_it_is_included(tmp_path):
    files = {".agentv/templates/broken.yaml": "# assert:\n"}
    reading = reading_of(repository(tmp_path, files))
    for _ in range(2):
        own = reading.part()
        assert reading.entries(parsed("- include: broken"), own) == ((), False)
        assert own.report.failed


NAMES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES)
def test_any_name_is_a_template_or_is_told_to_be_missing(tmp_path, name):
    reading = reading_of(tmp_path)
    at = Span(str(tmp_path / "suite.eval.yaml"), 1, 1, 1, 2)
    assert reading.entries(node_of([{"include": name}], at), reading).value == ()
    assert reading.report.failed
