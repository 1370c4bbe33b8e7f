import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.rubric_items import Bounds, scale_issues, scale_of, threshold_of


@pytest.mark.parametrize(
    ("authored", "scale"),
    [
        ("1-5", (1, 5)),
        ("1\u20135", (1, 5)),
        ("0..10", (0, 10)),
        ("1 to 7", (1, 7)),
        ("-2-2", (-2, 2)),
        ((1, 5), (1, 5)),
        (Bounds(0, 100), (0, 100)),
        (None, (1, 5)),
    ],
)
def test_the_shapes_of_a_scale(authored, scale):
    assert scale_of(authored) == scale
    assert [*scale_issues(authored, None)] == []


@pytest.mark.parametrize(
    "authored",
    ["5", "5-1", "3-3", "one to five", "1-5-9", "0.5-1", "", (), (1,), (1, 2, 3), (5, 1), Bounds(2, 2), "0-9999999"],
)
def test_what_is_no_scale(authored):
    assert scale_of(authored) is None
    (fault,) = scale_issues(authored, 4)
    assert (fault.path, fault.code) == (("scale",), "bad-value")
    assert "write 1-5" in fault.hint


@given(low=st.integers(-50, 50), span=st.integers(1, 100))
def test_which_is_never_less_and_always_on_the_scale(low, span):
    mark = threshold_of((low, low + span), None)
    assert low < mark <= low + span
    assert (mark - low) / span >= 0.75
