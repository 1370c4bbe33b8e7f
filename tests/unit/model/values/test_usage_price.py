import pytest

from agentv.model.values.usage import Price, TokenUsage


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (None, None),
        (TokenUsage(total=5), None),
        (TokenUsage(input=1_000_000), 2.0),
        (TokenUsage(input=1_000_000, output=500_000), 7.0),
        (TokenUsage(input=1_000_000, cached=400_000), 1.6),
        (TokenUsage(input=100, cached=1_000_000), 0.0001),  # never more cached tokens than input tokens
    ],
)
def test_tokens_have_a_price(usage, cost):
    assert Price(2, 10, 1).cost(usage) == pytest.approx(cost)


def test_without_a_price_of_its_own_cached_input_costs_as_other_input():
    assert Price(2, 10).cost(TokenUsage(input=1_000_000, cached=1_000_000)) == 2.0


def test_no_call_costs_more_than_its_tokens_at_the_highest_price():
    assert (Price(2, 10).at_most(500_000), Price(2, 10).at_most(None)) == (5.0, None)
