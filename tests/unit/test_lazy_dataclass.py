"""A class made by `lazy_dataclass` behaves as the standard library's, and compiles a method when it is first called."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from dataclasses import FrozenInstanceError, field

import pytest

from agentv.lazy_dataclass import compiled_from, dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A frozen class with each kind of field."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    """The same, as the standard library makes it."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Counter:
    count: int = 0
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.count += 1


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: str = "r"


@dataclass(frozen=True, slots=True)
class Triple(Pair):
    third: int = 3


@dataclass(frozen=True, slots=True)
class Spelled:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spelled) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


@dataclass(frozen=True, slots=True)
class OnlyByName:
    a: int
    total: int = field(init=False, default=7)
    b: int = field(default=1, kw_only=True)


def test_instances_equal_those_of_the_standard_library():
    for arguments, named in [((1,), {}), ((1, 5), {}), ((1,), {"tags": ["a"], "note": "n"}), ((), {"x": 3, "y": 4})]:
        ours, theirs = Point(*arguments, **named), StandardPoint(*arguments, **named)
        assert dataclasses.astuple(ours) == dataclasses.astuple(theirs)
        assert repr(ours) == repr(theirs).replace("StandardPoint", "Point")
        assert ours == Point(*arguments, **named)


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, [], "n", 5), {}), ((1,), {"z": 1}), ((1,), {"x": 1})]
)
def test_wrong_arguments_are_refused_in_the_same_words(arguments, named):
    with pytest.raises(TypeError) as theirs:
        StandardPoint(*arguments, **named)
    with pytest.raises(TypeError) as ours:
        Point(*arguments, **named)
    assert str(ours.value) == str(theirs.value).replace("StandardPoint", "Point")


def test_defaults_that_are_made_are_not_shared():
    first, second = Point(1), Point(1)
    first.tags.append("a")
    assert second.tags == []


def test_a_frozen_instance_takes_no_new_value():
    point = Point(1)
    for name in ("x", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 5)
        with pytest.raises(FrozenInstanceError):
            delattr(point, name)
    assert point == Point(1)


def test_equality_looks_at_the_class_and_at_the_fields_that_are_compared():
    assert Point(1, note="a") == Point(1, note="b")
    assert Point(1) != Point(2)
    assert Pair(1, "r") != Triple(1, "r")
    assert Point(1).__eq__(StandardPoint(1)) is NotImplemented


def test_hashes_are_those_of_the_standard_library():
    assert hash(Pair(1)) == hash(Pair(1, "r")) == hash((1, "r"))
    assert {Pair(1), Pair(1), Pair(2)} == {Pair(1), Pair(2)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


def test_a_class_that_changes_runs_its_post_init():
    counter = Counter(4)
    counter.seen.append(1)
    assert counter == Counter(4, [1])
    assert counter.count == 5


def test_inherited_fields_own_methods_and_unusual_fields_are_kept():
    assert Triple(1) == Triple(1, "r", 3)
    assert Spelled("A") == Spelled("a")
    assert len({Spelled("A"), Spelled("a")}) == 1
    assert OnlyByName(1, b=2) == OnlyByName(1, b=2)
    assert (OnlyByName(1).total, OnlyByName(1, b=2).b) == (7, 2)
    with pytest.raises(TypeError):
        OnlyByName(1, 2)


def test_instances_can_be_copied_pickled_and_replaced():
    point = Point(1, tags=["a"])
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert other == point
        assert other is not point
    assert dataclasses.replace(point, y=9) == Point(1, 9, ["a"])
    assert pickle.loads(pickle.dumps(Counter(1))) == Counter(1)
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("no match")


def test_a_method_is_compiled_at_its_first_call_and_known():
    @dataclass(frozen=True, slots=True)
    class New:
        a: int

    placeholder = vars(New)["__init__"]
    assert compiled_from(placeholder) is None
    made = New(1)
    function, code = compiled_from(placeholder)
    assert vars(New)["__init__"] is function
    assert function.__code__ is code
    assert compiled_from(vars(New)["__eq__"]) is None
    assert made == New(1)
    assert compiled_from(len) is None


def test_a_method_that_somebody_kept_is_compiled_once():
    @dataclass(frozen=True, slots=True)
    class New:
        a: int

    class Mine(New):
        __slots__ = ()
        __hash__ = New.__hash__

    kept = New.__hash__
    assert kept(New(1)) == hash(New(1)) == hash(Mine(1))
    compiled = vars(New)["__hash__"]
    assert kept is not compiled
    assert kept(New(1)) == hash(Mine(1))
    assert vars(New)["__hash__"] is compiled is compiled_from(kept)[0]


def test_threads_that_come_at_once_make_equal_instances():
    @dataclass(frozen=True, slots=True)
    class New:
        a: int
        b: list[int] = field(default_factory=list)

    barrier, made = threading.Barrier(8), []

    def make() -> None:
        barrier.wait()
        made.append(New(1))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [New(1)] * 8
