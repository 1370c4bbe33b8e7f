from __future__ import annotations

import pytest

from agentv.matching.patterns import backtracks, matches_everything


@pytest.mark.parametrize("pattern", [".*", "", "^", "$", "a?", "(?s)^.*$", r"\s*", "(?:x|)"])
def test_a_pattern_that_is_found_in_every_text(pattern: str) -> None:
    assert matches_everything(pattern)


@pytest.mark.parametrize("pattern", [".", "x", "^$", r"\w", "[^x]", ".+"])
def test_a_pattern_that_some_text_lacks(pattern: str) -> None:
    assert not matches_everything(pattern)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", r"^(a|a?)+$|(b|bb)+c"])
def test_a_pattern_that_runs_away(pattern: str) -> None:
    assert backtracks(pattern)


@pytest.mark.parametrize("pattern", [r"^(?:\d{3}-)+\d{4}$", "(foo|bar)+", "a+b+c+", "(a+)+$", r"\)+"])
def test_a_pattern_that_stays_quick(pattern: str) -> None:
    assert not backtracks(pattern)
