from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from agentv.model.values.replacement import varied


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    names: list[str] = field(default_factory=list)


def test_a_copy_is_as_that_of_replace():
    point = Point(1, 2, ["a"])
    assert varied(point, y=3) == replace(point, y=3) == Point(1, 3, ["a"])
    assert varied(point) == point
    assert varied(point).names is point.names
    assert point.y == 2


def test_a_field_that_there_is_not_is_refused():
    with pytest.raises(TypeError):
        varied(Point(1), z=1)
