import asyncio
import math

import pytest

from agentv.model.values.response import Failure
from agentv.targets.local import Local
from agentv.targets.mock import Mock
from agentv.user_code.threads import DaemonThreads
from doubles.asking import answer, answers, request, spec_of
from doubles.embedding import saved_model


def test_an_answer_for_each_and_one_for_the_rest():
    mock = Mock(responses={"a": "for a", "b": None, "default": "for all others"})
    found = answers(mock, request(case_id="a"), request(case_id="b"), request(case_id="c"), request(case_id="default"))
    assert [one.output for one in found] == ["for a", None, "for all others", "for all others"]


def test_of_a_case_with_turns_a_list_is_an_answer_a_turn():
    mock = Mock(responses={"a": ["one", {"n": 2}], "b": "same", "default": ["other"]})

    def said(case, turn):
        return answer(mock, request(case_id=case, turn=turn))

    assert [said("a", turn).output for turn in (1, 2, None)] == ["one", '{"n": 2}', '["one", {"n": 2}]']
    assert said("a", 3) == Failure("no-response", "no response for turn 3 of 'a': only 2 given")
    assert [said("b", turn).output for turn in (1, 2)] == ["same", "same"]
    assert said("c", 1).output == "other"
    assert said("c", 2).code == "no-response"
    assert answer(Mock(response=["x", "y"]), request(turn=2)).output == "y"
    assert answer(Mock(responses={"a": "x"}), request(turn=1)).code == "no-response"


@pytest.mark.parametrize(
    ("mock", "faults"),
    [
        (Mock(), [((), "missing-key")]),
        (Mock(response="x", error="y"), [(("error",), "bad-value")]),
        (Mock(response="x", responses={"a": "b"}), [(("responses",), "bad-value")]),
        (Mock(responses={}), [(("responses",), "missing-value")]),
        (Mock(response=""), []),
        (Mock(response=0), []),
    ],
)
def test_exactly_one_source_of_answers_is_needed(mock, faults):
    assert [(fault.path, fault.code) for fault in mock.validate()] == faults


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(saved_model(tmp_path_factory.mktemp("model")))


def embedded(place, *texts, times=1):
    async def ask():
        threads = DaemonThreads()
        target = Local(place).connect(spec_of(Local(place)), threads)
        try:
            return (await asyncio.gather(*(target.embed(texts, 30.0) for _ in range(times))))[-1]
        finally:
            await target.close()
            await threads.aclose()

    return asyncio.run(ask())


def test_texts_are_embedded_in_their_order(model):
    found = embedded(model, "hello", "Goodbye", "hello hello", times=3)
    hello, goodbye, again = found.vectors
    assert hello == pytest.approx((1.0, 0.0, 0.0), abs=1e-4)
    assert goodbye == pytest.approx((0.0, 1.0, 0.0), abs=1e-4)
    assert math.dist(hello, again) < 1e-4
    assert (found.cost_usd, found.token_usage) == (0.0, None)
    assert all(type(number) is float for number in hello)


def test_a_directory_without_a_model_is_told(tmp_path):
    found = embedded(str(tmp_path), "hello")
    assert found.code == "cannot-load"
    assert str(tmp_path) in found.message


def test_it_answers_nothing(model):
    [found] = answers(Local(model), request("hello"))
    assert found.code == "bad-answer"
