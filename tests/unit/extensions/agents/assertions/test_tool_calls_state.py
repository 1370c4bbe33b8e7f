import pytest

from agentv.extensions.agents.assertions.tool_calls import ToolState
from agentv.model.run.context import AssertionContext
from agentv.registry.fields import LoadedJson

STATE = {"shop": {"orders": {"17": {"status": "refunded", "amount": 5}}, "log": [1, 2]}}


def grade(state, value, **options):
    return ToolState(LoadedJson(value), **options).grade(AssertionContext((), "Done.", tool_state=state))


@pytest.mark.parametrize(
    ("value", "options", "passed"),
    [
        ("refunded", {"path": "orders.17.status"}, True),
        ("shipped", {"path": "orders.17.status"}, False),
        ({"status": "refunded"}, {"path": "orders['17']"}, True),
        ({"status": "refunded"}, {"path": "orders.17", "mode": "equal"}, False),
        ({"orders": {"17": {"amount": 5}}}, {}, True),
        ([1, 2], {"path": "$.log", "server": "shop"}, True),
        (None, {"path": "orders.18"}, False),
    ],
)
def test_it_compares_what_the_functions_kept(value, options, passed):
    assert grade(STATE, value, **options).passed is passed


def test_a_missing_path_is_told_as_any_other():
    assert [grade(STATE, 1, path=path).checks[0].text for path in ("a.b", "log.0")] == ["a.b is 1", "log.0 is 1"]


def test_without_scripted_tools_it_is_an_error():
    for state, options in (({}, {}), ({"a": {}, "b": {}}, {}), ({"a": {}}, {"server": "b"})):
        found = grade(state, "x", **options)
        assert (found.error.code, found.passed) == ("no-tool-state", False)


def test_what_is_wrong_with_the_options():
    assert [one.code for one in ToolState(LoadedJson("x"), path="a..b").validate()] == ["bad-path"]
    assert [one.path for one in ToolState(LoadedJson({})).validate()] == [("value",)]
