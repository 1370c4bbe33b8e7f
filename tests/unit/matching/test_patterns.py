import pytest

from agentv.matching.patterns import backtracks


@pytest.mark.parametrize("pattern", ["(a|aa)+$", r"^(a|a?)+$|(b|bb)+c"])
def test_a_pattern_that_runs_away(pattern: str) -> None:
    assert backtracks(pattern)


@pytest.mark.parametrize("pattern", [r"^(?:\d{3}-)+\d{4}$", "(foo|bar)+", "a+b+c+", "(a+)+$", r"\)+"])
def test_a_pattern_that_stays_quick(pattern: str) -> None:
    assert not backtracks(pattern)
