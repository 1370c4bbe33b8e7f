"""Values that remember where they stand."""

from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.nodes import node_of, plain
from agentv.model.values.values import Span

AT = Span("file.yaml", 3, 1, 3, 2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_plain_data_comes_back_out_of_nodes(value):
    assert plain(node_of(value, AT)) == value
