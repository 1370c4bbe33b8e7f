"""What users' Python gives one after the other."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import closing
from threading import Event
from threading import enumerate as threads

import pytest

from agentv.model.run.context import AssertionContext
from agentv.user_code.functions.guard import ForeignError
from agentv.user_code.functions.values import AHEAD, CallRequest, value_of, values_of

ASKED = CallRequest("bad-generator", "cases.py:make", 5.0)


def same(value):
    return value


def listed():
    return [1, 2]


def generated():
    yield 1
    yield 2


async def awaited():
    await asyncio.sleep(0)
    return iter([1, 2])


async def streamed():
    yield 1
    await asyncio.sleep(0)
    yield 2


async def a_stream_of_its_own():
    return streamed()


@pytest.mark.parametrize("function", [listed, generated, awaited, streamed, a_stream_of_its_own])
def test_whatever_kind_of_function_it_is(function):
    assert list(values_of(function, same, ASKED)) == [1, 2]


def test_inside_an_event_loop_too():
    async def inside():
        return list(values_of(streamed, same, ASKED))

    assert asyncio.run(inside()) == [1, 2]


def test_what_is_given_is_taken_on_its_own_thread():
    assert list(values_of(generated, lambda value: value * 10, ASKED)) == [10, 20]


@pytest.mark.parametrize(("function", "value"), [(listed, [1, 2]), (lambda: None, None)])
def test_a_lone_value(function, value):
    assert value_of(function, same, ASKED) == value


def test_a_lone_value_may_be_awaited():
    async def later():
        return 7

    assert value_of(later, same, ASKED) == 7


def raises():
    yield 1
    raise ValueError("gone")


def looks_up():
    yield AssertionContext((), "an answer")["var"]


def leaves():
    os._exit(3)


def exits():
    sys.exit(0)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (raises, r"raised ValueError: gone \(test_values.py:\d+, in raises\)"),
        (looks_up, r"raised KeyError: 'var'; did you mean 'vars'\? \(test_values.py:\d+, in looks_up\)"),
        (leaves, "called sys.exit: SystemExit: 3"),
        (exits, "called sys.exit: SystemExit: 0"),
        (lambda: 7, "raised TypeError: 'int' object is not iterable"),
    ],
)
def test_what_goes_wrong_is_a_failure_and_ends_nothing(function, said):
    with pytest.raises(ForeignError, match=f"^cases.py:make {said}") as caught:
        list(values_of(function, same, ASKED))
    assert caught.value.failure.code == "bad-generator"


def test_what_was_given_before_is_given():
    values = values_of(raises, same, ASKED)
    assert next(values) == 1
    with pytest.raises(ForeignError):
        next(values)


def test_what_hangs_is_left_behind():
    hold = Event()

    def hangs():
        yield 1
        hold.wait(10)
        yield 2

    values = values_of(hangs, same, CallRequest("bad-generator", "cases.py:make", 0.05))
    assert next(values) == 1
    with pytest.raises(ForeignError, match=r"returned nothing for 0\.05 seconds") as caught:
        next(values)
    assert caught.value.failure.code == "timeout"
    hold.set()


def test_nobody_works_ahead_without_end_or_for_nobody():
    made = []

    def endless():
        while True:
            made.append(1)
            yield 1

    before = set(threads())
    with closing(values_of(endless, same, ASKED)) as values:
        assert next(values) == 1
        (worker,) = set(threads()) - before
    worker.join(5)
    assert not worker.is_alive()
    assert len(made) <= AHEAD + 3


def test_what_it_prints_is_for_people(capsys):
    def prints():
        sys.stdout.write("hello\n")
        return [1]

    list(values_of(prints, same, ASKED))
    assert capsys.readouterr() == ("", "hello\n")
