"""Invalid settings of model APIs are reported when a file is loaded."""

from __future__ import annotations

import pytest

from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_compatible.openai import OpenAI
from needs import needs

ALL = pytest.mark.parametrize("kind", [OpenAI, Anthropic, Gemini, pytest.param(LiteLLM, marks=needs("litellm"))])


@ALL
@pytest.mark.parametrize(
    ("extra", "wrong"),
    [
        ({"stream": True}, "stream"),
        ({"stream": False, "n": 1, "user": "ann"}, None),
        ({"background": True}, "background"),
        ({"n": 2}, "n"),
    ],
)
def test_extra_may_not_ask_for_what_is_not_read(kind, extra, wrong):
    assert [fault.path for fault in kind("m", extra=extra).validate()] == ([("extra", wrong)] if wrong else [])


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (OpenAI("m", extra={"messages": []}), "messages"),
        (OpenAI("m", api="responses", extra={"input": []}), "input"),
        (OpenAI("m", extra={"model": "another"}), "model"),
        (Anthropic("m", extra={"system": "x"}), "system"),
        (Gemini("m", extra={"contents": []}), "contents"),
        pytest.param(LiteLLM("m", extra={"messages": []}), "messages", marks=needs("litellm")),
    ],
)
def test_extra_may_not_replace_what_the_case_says(settings, key):
    (fault,) = settings.validate()
    assert (fault.path, "' cannot be set here: the target and the case set it" in fault.message) == (
        ("extra", key),
        True,
    )


@ALL
def test_a_tool_is_an_object(kind):
    assert [fault.path for fault in kind("m", tools=({}, "weather")).validate()] == [("tools", 1)]
