import pytest

from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.targets.promptfoo.responses import from_provider


@pytest.mark.parametrize("value", [None, {}, {"output": None}, {"error": "", "output": None}])
def test_nothing_is_an_empty_answer_which_the_engine_errs(value):
    assert from_provider(value) == TargetResponse(None)


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}, TokenUsage(2, 3, 5)),
        ({"total": 7.6, "prompt": 2.4}, TokenUsage(2, None, 8)),
        ({"input": 1, "output": 2}, TokenUsage(1, 2, 3)),
        ({"numRequests": 1}, TokenUsage()),
    ],
)
def test_counts_of_other_spellings_are_read(usage, found):
    assert from_provider({"output": "a", "tokenUsage": usage}).token_usage == found


@pytest.mark.parametrize(
    "value", [7, ["a"], {"output": "a", "cost": "much"}, {"output": "a", "tokenUsage": {"total": "many"}}]
)
def test_anything_else_is_no_answer(value):
    found = from_provider(value)
    assert isinstance(found, Failure)
    assert found.code == "bad-answer"


def test_a_value_that_holds_itself_is_no_answer():
    loop: dict = {}
    loop["a"] = loop
    assert from_provider({"output": loop}).code == "bad-answer"
