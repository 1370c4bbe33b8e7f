"""What calls cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentv.model.values.usage import TokenUsage
from agentv.targets.model_api.prices import cost_of

USAGE = TokenUsage(input=1_000_000, output=1_000_000, total=2_000_000)


def test_cached_tokens_are_cheaper():
    cached = TokenUsage(input=1_000_000, output=0, cached=1_000_000)
    full = TokenUsage(input=1_000_000, output=0)
    assert 0 < (cost_of("openai", "gpt-4o", cached) or 0) < (cost_of("openai", "gpt-4o", full) or 0)


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        ("openai", "no-such-model", USAGE),
        ("ollama", "llama3.3", USAGE),
        ("http://localhost:8000/v1", "gpt-4o", USAGE),
        ("openai", "gpt-4o", None),
        ("openai", "gpt-4o", TokenUsage(output=3)),
    ],
)
def test_what_is_not_known_is_none_and_never_0(provider, model, usage):
    assert cost_of(provider, model, usage) is None


def test_the_price_list_is_read_at_the_first_answer_only():
    code = "import sys, agentv.targets.model_api.prices; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_price_list_that_breaks_costs_no_answer(monkeypatch):
    def broken(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("genai_prices.calc_price", broken)  # another package, which fails where files cannot be opened
    assert cost_of("openai", "gpt-4o", USAGE) is None


def test_the_price_list_is_there_before_the_first_answer():
    code = (
        "import sys; from agentv.targets.model_api.prices import cost_of, load_prices; from agentv.model.values.response import TokenUsage\n"
        "load_prices(); before = set(sys.modules); cost_of('openai', 'gpt-4o', TokenUsage(input=1, output=1))\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
