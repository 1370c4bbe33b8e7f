"""What workers send: any plain data arrives as it was, and results are made plain."""

from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.user_code.workers.messages import LENGTH, Reply, Value, packed, unpacker
from agentv.user_code.workers.plain import UnsendableError, plain

TEXTS = st.text(st.characters(codec=None))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers(), inner),
    max_leaves=10,
)


def sent(value):
    body = packed(Value(1, value))
    assert int.from_bytes(body[:LENGTH], "big") == len(body) - LENGTH
    return unpacker(Reply).decode(body[LENGTH:]).value


@given(DATA)
def test_plain_data_arrives_as_it_was(value):
    assert sent(value) == value


@given(DATA)
def test_plain_data_is_plain_already(value):
    assert plain(value) == value


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


class Model(pydantic.BaseModel):
    a: int = 1
    when: datetime = datetime(2020, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2, "inner": None}}),
        (Model(), {"a": 1, "when": "2020-01-02T00:00:00Z"}),
        ({"k": [np.float64(0.5), np.int32(3), np.bool_(True)]}, {"k": [0.5, 3, True]}),  # what it holds
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (Decimal("1.5"), 1.5),
        (type("Markup", (str,), {})("<b>"), "<b>"),
        (type("Count", (int,), {})(5), 5),
        (type("Share", (float,), {})(0.5), 0.5),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (PurePosixPath("/a/b"), "/a/b"),
        (datetime(2020, 1, 2, tzinfo=UTC), "2020-01-02T00:00:00Z"),
        (MappingProxyType({"a": range(2)}), {"a": [0, 1]}),
        ((1, "x"), [1, "x"]),
        (10**30, 10**30),
        ({"\ud800": "\udfff"}, {"\ud800": "\udfff"}),
    ],
)
def test_results_are_made_plain(value, result):
    assert sent(plain(value)) == result


class Hostile:
    def __reduce__(self):
        raise AssertionError("it was pickled")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Hostile(), "Hostile"),
        (iter(()), "tuple_iterator"),
        (lambda: 1, "function"),
        ({"a": [object()]}, "object"),
        (Point, "type"),
    ],
)
def test_what_is_no_data_is_named_by_its_type(value, name):
    with pytest.raises(UnsendableError, match=f"^{name}$"):
        plain(value)


def test_what_contains_itself_is_refused():
    held = []
    held.append(held)
    with pytest.raises(RecursionError):
        plain(held)
