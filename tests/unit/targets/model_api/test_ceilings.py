from __future__ import annotations

import pytest

from agentv.model.run.budget import Ceiling
from agentv.model.values.message import DocumentBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.ports import TargetRequest
from agentv.targets.anthropic.target import MAX_TOKENS, Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.model_api.ceilings import MESSAGE, PICTURE, tokens_at_most
from agentv.targets.model_api.prices import cost_of
from agentv.targets.openai_compatible.hosted import OpenRouter
from agentv.targets.openai_compatible.openai import OpenAI

HI = TargetRequest("case", "hi", (Message("user", "hi"),))
ASKED = 2 + MESSAGE


def test_the_question_is_counted_from_above_and_the_answer_by_its_limit():
    found = OpenAI(model="gpt-4o-mini", max_tokens=100).ceiling(HI)
    assert found.tokens == ASKED + 100
    assert found.usd == cost_of("openai", "gpt-4o-mini", TokenUsage(ASKED, 100))


@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        (OpenAI(model="gpt-4o-mini"), 16_384),
        (OpenAI(model="gpt-4.1"), 32_768),
        (OpenAI(model="gpt-4"), 8_192),
        (OpenAI(model="gpt-5-mini"), 128_000),
        (OpenAI(model="o3"), 100_000),
        (OpenAI(model="gpt-4o", extra={"max_completion_tokens": 50}), 50),
        (OpenAI(model="gpt-4o", max_tokens=10, extra={"n": 3}), 30),
        (OpenRouter(model="openai/gpt-4o"), 16_384),
        (Anthropic(model="claude-haiku-4-5"), MAX_TOKENS),
        (Anthropic(model="claude-haiku-4-5", thinking=2000), MAX_TOKENS + 2000),
        (Gemini(model="gemini-2.5-flash"), 65_536),
        (LiteLLM(model="anthropic/claude-haiku-4-5", max_tokens=7), 7),
    ],
)
def test_how_long_an_answer_can_be(settings, longest):
    found = settings.ceiling(HI)
    assert found.tokens == ASKED + longest
    assert found.usd is not None
    assert found.usd > 0


def test_pictures_documents_and_calls_of_tools_count(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"x" * 5000)
    picture, paper = ImageBlock("p.png"), DocumentBlock("a.pdf", str(tmp_path / "a.pdf"), "")
    text = Message("user", (TextBlock("hi"), picture, paper))
    assert tokens_at_most(TargetRequest("c", "", (text,))) == len(text.text) + MESSAGE + PICTURE + 5000
    calls = Message("assistant", "", tool_calls=(ToolCall("find", {"q": "x" * 100}),))
    assert tokens_at_most(TargetRequest("c", "", (calls,))) > 100
    gone = DocumentBlock("b.pdf", str(tmp_path / "b.pdf"), "")
    assert tokens_at_most(TargetRequest("c", "", (Message("user", (gone,)),))) < 100


def test_vectors_cost_by_the_list_and_take_no_answer():
    found = OpenAI(model="gpt-4o").ceiling_of_vectors(["four", "more"])
    assert found == Ceiling(cost_of("openai", "text-embedding-3-small", TokenUsage(8, 0)), 8)
    assert Gemini(model="gemini-2.5-flash").ceiling_of_vectors(["four"]).tokens == 4
    assert OpenAI(model="m", base_url="http://localhost/v1").ceiling_of_vectors(["four"]) == Ceiling(0.0, 4)
