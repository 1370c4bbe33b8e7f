"""Samples that are drawn from strata: their sizes, and the weights of their labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from agentv.extensions.labels.stats.posterior import JudgedAnswer


def even_sizes(wanted: int, available: Sequence[int]) -> list[int]:
    """How many of `wanted` to take from each stratum: one from each in turn, as long as it has one left.

    A larger sample takes at least as many from each.
    """
    sizes = [0] * len(available)
    left = min(wanted, sum(available))
    while left:
        open_strata = [place for place, size in enumerate(sizes) if size < available[place]]
        each = max(1, left // len(open_strata))
        for place in open_strata[:left]:
            more = min(each, available[place] - sizes[place])
            sizes[place] += more
            left -= more
    return sizes


def with_label_weights(answers: Sequence[JudgedAnswer], kinds: Sequence[Hashable]) -> list[JudgedAnswer]:
    """The answers of one judge, whose labels speak for all answers of their kind and verdict.

    Labels are drawn evenly from assertions, which need not have equally many answers: without weights, an assertion of
    few answers would count as much as one of many.

    Args:
        answers: with or without labels.
        kinds: of each answer, such as its assertion.
    """
    placed = list(zip(answers, kinds, strict=True))
    whole: dict[tuple[Hashable, bool], float] = {}
    labelled: dict[tuple[Hashable, bool], float] = {}
    for one, kind in placed:
        stratum = (kind, one.judge)
        whole[stratum] = whole.get(stratum, 0.0) + one.weight
        if one.person is not None:
            labelled[stratum] = labelled.get(stratum, 0.0) + one.weight
    return [
        one if one.person is None else replace(one, per_label=whole[kind, one.judge] / labelled[kind, one.judge])
        for one, kind in placed
    ]
