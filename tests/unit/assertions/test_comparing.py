import json
from operator import contains, eq

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as Distance

from agentv.assertions.comparing import edits_between, only_difference
from agentv.assertions.data import Field, FieldAccuracy
from agentv.assertions.text.matching import Levenshtein
from doubles.nested_grading import answer, graded


def within(value, output):
    return contains(output, value)


@pytest.mark.parametrize(
    ("value", "output", "matches", "said"),
    [
        ("caf\u00e9", "a cafe\u0301 here", within, "only the Unicode normalisation (NFC, NFD) differs: "),
        ("caf\u00e9", "cafe\u0301", eq, "only the Unicode normalisation (NFC, NFD) differs: "),
        ("ab", "xa\u200bbx", within, "only invisible or similar characters differ (U+200B ZERO WIDTH SPACE): "),
        ("a b", "a\u00a0b", eq, "only invisible or similar characters differ (U+00A0 NO-BREAK SPACE): "),
        ("a\u00adb", "ab", eq, "only invisible or similar characters differ (U+00AD SOFT HYPHEN): "),
        ("ab", "\ufeffab", eq, "only invisible or similar characters differ (U+FEFF ZERO WIDTH NO-BREAK SPACE): "),
        ("\u2764\ufe0f", "\u2764", eq, "only invisible or similar characters differ (U+FE0F VARIATION SELECTOR-16): "),
        ("cafe", "caf\u00e9", within, ""),
    ],
)
def test_what_alone_differs(value, output, matches, said):
    assert only_difference(value, output, matches) == said


TEXTS = st.text(alphabet="ab", max_size=12)
LONG, OTHER = "ab" * 1_500_000, "xyz" * 1_000_000


@given(TEXTS, TEXTS, st.integers(0, 15))
def test_edits_are_counted_up_to_the_most(one, other, most):
    edits = Distance.distance(one, other)
    assert edits_between(one, other, most) == (edits if edits <= most else None)


@pytest.mark.parametrize(
    ("other", "most", "edits"),
    [(LONG, len(LONG), 0), (LONG[:100], 1_000_000, None), (LONG + "c", 5, 1), ("", len(LONG), len(LONG))],
    ids=["equal", "much shorter", "few edits", "empty"],
)
def test_long_texts_are_compared_where_that_is_quick(other, most, edits):
    assert edits_between(LONG, other, most) == edits


def test_an_answer_that_is_too_long_to_be_compared_is_an_errored_grade():
    assert graded(Levenshtein(OTHER, len(OTHER) - 1), LONG).error.code == "too-long"


def test_a_field_that_is_too_long_to_be_compared_is_an_errored_grade():
    fields = FieldAccuracy((Field("it", match="fuzzy", threshold=0.1),))
    assert graded(fields, answer(json.dumps({"it": LONG}), reference={"it": OTHER})).error.code == "too-long"
