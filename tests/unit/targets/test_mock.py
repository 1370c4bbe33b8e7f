import pytest

from agentv.model.values.response import Failure
from agentv.targets.mock import Mock
from doubles.asking import answer, answers, request


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
