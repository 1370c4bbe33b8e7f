"""Mean and percentiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.samples.distribution import PERCENTILES, distribution_of


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50))
def test_percentiles_are_those_of_numpy(values):
    found = distribution_of(values)
    assert found.count == len(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert list(found.percentiles) == pytest.approx(list(np.percentile(values, PERCENTILES)))


def test_without_values_there_are_no_figures():
    assert distribution_of([]) is None
