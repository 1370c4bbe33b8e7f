"""Decisions that hold together: at most a share of them is expected to be wrong.

Each decision may be wrong with a chance of α. Where few of many cases are decided, that says little of those few: of
500 cases near the threshold 25 may be decided wrongly, and no more than 26 be decided at all. The procedure of
Benjamini and Hochberg for e-values keeps the k decisions with the most evidence, for the largest k at which each of
them has n / (k · α) or more. Of those that are kept a share of α at most is expected to be wrong, however the cases
depend on each other, and whenever each was stopped.

A case has two hypotheses, that its rate is below the threshold and that it is not, of which one is true. So n is the
number of cases, and not twice that.

Source: R. Wang, A. Ramdas, "False discovery rate control with e-values", Journal of the Royal Statistical Society B 84
(2022), 822–852, arXiv:2009.02824.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def evidence_needed(evidence: Sequence[float], cases: int, level: float) -> float:
    """The evidence from which decisions are kept; inf where none is.

    Args:
        evidence: of every decision that was made, its e-value; 0 or more.
        cases: of all that were looked at, decided or not.
        level: the share of wrong ones among those that are kept, inside 0..1.

    Raises:
        ValueError: there are more decisions than cases, or `level` is not inside 0..1.
    """
    if len(evidence) > cases or not 0 < level < 1:
        raise ValueError(f"{len(evidence)} decisions on {cases} cases at the level {level}")
    ranked = sorted(evidence, reverse=True)
    ranks = [place for place, one in enumerate(ranked, 1) if one * place * level >= cases]
    return cases / (ranks[-1] * level) if ranks else inf


def kept_of(evidence: Sequence[float], cases: int, level: float) -> int:
    """Number of decisions that are kept; same arguments as `evidence_needed`."""
    needed = evidence_needed(evidence, cases, level)
    return sum(one >= needed for one in evidence)
