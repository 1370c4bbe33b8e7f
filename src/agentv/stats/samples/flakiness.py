"""Cases that pass in one sample and fail in the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentv.model.run.group_totals import MeasuredShare
from agentv.stats.intervals.design_effect import estimated_mean
from agentv.stats.intervals.proportion import USUAL


def is_flaky(samples: int, passed: int) -> bool:
    """Whether samples of one case disagree: some passed, some failed."""
    return 0 < passed < samples


def disagreement(samples: int, passed: int) -> float:
    """The chance that two samples of the case disagree: 2 · passed · failed / (samples · (samples − 1)), 0..1.

    The unbiased estimator of 2p(1 − p), which is 0 for a case that always ends alike and 0.5 for a coin. Unlike the
    share of flaky cases it does not grow with the number of samples.

    Source: C. Gini's index of diversity, in the unbiased form of E. H. Simpson, "Measurement of diversity", Nature 163
    (1949), 688, for two kinds.

    Raises:
        ValueError: fewer than two samples, or more passed than there are.
    """
    if samples < 2 or not 0 <= passed <= samples:
        raise ValueError(f"no disagreement: {passed} of {samples} passed")
    return 2 * passed * (samples - passed) / (samples * (samples - 1))


def mean_disagreement(cases: Sequence[tuple[int, int]], confidence: float = USUAL) -> MeasuredShare | None:
    """The chance that two samples of a case disagree, over all cases, with the interval of a mean of scores.

    None where no case has two samples.

    Args:
        cases: of each how many samples were judged, and how many of them passed.
        confidence: of the interval, inside 0..1.
    """
    shares = Counter((1, disagreement(samples, passed)) for samples, passed in cases if samples > 1)
    if not shares:
        return None
    found = estimated_mean(shares, confidence)
    return MeasuredShare(found.mean, found.interval or (0.0, 1.0))
