from __future__ import annotations

import pytest

from agentv.model.run.grade import Grade, spent_on
from agentv.model.values.response import TokenUsage

TOKENS = TokenUsage(1, 2, 3)


def spent(cost, tokens=None):
    return Grade(1.0, True, cost_usd=cost, token_usage=tokens)


@pytest.mark.parametrize(
    ("grades", "cost", "tokens"),
    [
        ([], None, None),
        ([spent(None)], None, None),
        ([spent(0.5, TOKENS), spent(None), spent(0.25)], 0.75, TOKENS),
        ([spent(0.5, TOKENS), spent(None, TOKENS)], None, TokenUsage(2, 4, 6)),
        ([spent(None, TOKENS), spent(0.5, TOKENS)], None, TokenUsage(2, 4, 6)),
    ],
)
def test_a_part_without_a_price_makes_the_sum_unknown(grades, cost, tokens):
    assert spent_on(grades) == (cost, tokens)
