"""Prices of model API calls in US dollars, from the list that `genai-prices` ships. Fetches nothing."""

from __future__ import annotations

from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.user_code.guard import attempt


def cost_of(provider: str, model: str, usage: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """The price of a call in US dollars; None where the price or the tokens are not known, never 0 for that.

    Args:
        provider: as the price list calls it (`openai`, `azure`, `anthropic`, `google` or `gemini`, `openrouter`,
            `groq`, …), or the URL of an API, by which it knows most of them; empty: the one whose model it is.
        model: as the provider calls it; dated names count as the model that they are of.
        usage: tokens of the call. `input` counts those that were read from a cache as well, as OpenAI counts;
            `output` counts those of the reasoning.
        cache_written: how many tokens of `input` were written to a cache, where that is billed apart (Anthropic).
    """
    if usage is None or usage.input is None:
        return None
    from genai_prices import Usage, calc_price

    def priced(usage: Usage) -> float:
        if "://" in provider:
            return float(calc_price(usage, model, provider_api_url=provider).total_price)
        return float(calc_price(usage, model, provider_id=provider or None).total_price)

    tokens = Usage(
        input_tokens=usage.input,
        output_tokens=usage.output or 0,
        cache_read_tokens=min(usage.cached or 0, usage.input) or None,
        cache_write_tokens=cache_written or None,
    )
    # no such provider or model, counts that contradict each other; whatever it is, the answer is there and paid for
    cost = attempt(priced, tokens, "internal-error", "the price list")
    return None if isinstance(cost, Failure) else cost


def load_prices() -> None:
    """Read the price list, which takes a third of a second and opens files: before the first call, not after it."""
    from genai_prices import Usage, calc_price

    attempt(lambda model: calc_price(Usage(input_tokens=1), model), "gpt-4o", "internal-error", "the price list")


def window_of(provider: str, model: str) -> int | None:
    """Tokens that a model takes at most, its answer included; None where the price list does not know.

    Args:
        provider: as for `cost_of`.
        model: as for `cost_of`.
    """
    from genai_prices.data_snapshot import get_snapshot

    by_name, by_address = (None, provider) if "://" in provider else (provider, None)
    try:
        _, found = get_snapshot().find_provider_model(model, None, by_name, by_address)
    except (LookupError, ValueError):
        return None
    return found.context_window
