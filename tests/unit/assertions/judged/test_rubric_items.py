import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.rubric_items import (
    Bounds,
    ScoreRange,
    range_issues,
    ranges_of,
    scale_issues,
    scale_of,
    threshold_of,
)

THREE = ((0, 3, "wrong"), (4, 9, "nearly"), (10, 10, "right"))


@pytest.mark.parametrize(
    "authored",
    [
        {"0-3": "wrong", "4-9": "nearly", "10": "right"},
        {"10-10": "right", "0 - 3": "wrong", "4\u20139": "nearly"},
        {"0": "wrong", "4": "nearly", "10": "right"},
        {"10": "right", "4": "nearly", "0": "wrong"},
        (ScoreRange((0, 3), "wrong"), ScoreRange((4, 9), "nearly"), ScoreRange((10, 10), "right")),
        (ScoreRange((10, 10), "right"), ScoreRange((0, 3), "wrong"), ScoreRange((4, 9), "nearly")),
    ],
)
def test_the_three_shapes_say_the_same(authored):
    assert range_issues(authored) == []
    assert ranges_of(authored) == THREE


@pytest.mark.parametrize(
    ("authored", "found"),
    [
        ({}, [((), "'score_ranges' is empty")]),
        ({"low": "bad", "5-10": "good"}, [(("low",), "'low' is not a range of points")]),
        ({"0-3": "bad", "4-12": "good"}, [(("4-12",), "points must be from 0 to 10, found 4-12")]),
        ({"3-0": "bad", "4-10": "good"}, [(("3-0",), "the range 3-0 ends before it starts")]),
        ({"0-3": " ", "4-10": "good"}, [(("0-3",), "the description of 0-3 points is empty")]),
        ({"0-5": "bad", "4-10": "good"}, [(("4-10",), "the ranges 0-5 and 4-10 overlap at 4 to 5 points")]),
        ({"0": "bad", "00": "good"}, [(("00",), "the ranges 0 and 0-10 overlap at 0 points")]),
        ({"0-3": "bad", "6-9": "good"}, [((), "no range covers 4, 5, 10 points; cover all from 0 to 10")]),
        ({"1": "bad", "5": "good"}, [((), "no range covers 0 points; cover all from 0 to 10")]),
        ((ScoreRange((0, 3), "bad"), ScoreRange((4,), "good")), [((1, "score_range"), "'score_range' must be the lowest and the highest points, found [4]")]),
        ((ScoreRange((0, 6), "bad"), ScoreRange((6, 10), "good")), [((1,), "the ranges 0-6 and 6-10 overlap at 6 points")]),
    ],
)  # fmt: skip
def test_holes_overlaps_and_bounds_are_told_at_their_place(authored, found):
    assert [(fault.path, fault.message) for fault in range_issues(authored)] == found


@given(st.sets(st.integers(1, 10)))
def test_beginnings_with_0_among_them_cover_all_points(begins):
    authored = {str(low): f"from {low}" for low in {0, *begins}}
    assert range_issues(authored) == []
    assert [points for low, high, _ in ranges_of(authored) for points in range(low, high + 1)] == [*range(11)]


@given(st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), min_size=1, max_size=5))
def test_what_has_no_faults_says_one_thing_of_each_number_of_points(bounds):
    authored = tuple(ScoreRange(one, "text") for one in bounds)
    said = [points for low, high in bounds for points in range(low, high + 1)]
    sound = sorted(said) == [*range(11)] and all(low <= high for low, high in bounds)
    assert (range_issues(authored) == []) is sound


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
