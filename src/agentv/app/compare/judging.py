"""What pairs show: better, worse, no difference that matters, or nothing (SPEC section 10).

Two measures decide, the mean score and the pass rate. A mean may rise while every case comes to fail, by a gate that
weighs little or a mark that is just missed; and it may fall where all cases still pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from math import ceil, fsum, sqrt
from statistics import NormalDist, fmean

from agentv.app.compare.measuring import Differences, may_claim, measured, together
from agentv.app.compare.settings import same_settings
from agentv.model.comparison import (
    CaseOutcome,
    Judgement,
    Level,
    Measure,
    Measured,
    Moves,
    Pair,
    Question,
    Verdict,
)
from agentv.stats.holm import adjusted
from agentv.stats.paired import mcnemar_exact
from agentv.stats.power import fewest_cases
from agentv.stats.proportion import wilson_interval

POWER = 0.8
"""How often a difference that is called detectable is shown."""

MOST_NEEDED = 1_000_000
"""Cases that somebody might write; a difference that takes more of them is as good as none."""

LIKELY_CHANCE = 0.5
"""A p-value above which it would mislead to say how many cases would show the difference: it is likelier chance."""


def judge(pairs: Sequence[Pair], question: Question) -> Judgement:
    """What the pairs show; at least one."""
    clusters = [_cluster(pair) for pair in pairs]
    measure: Measure = "pass rate" if all(pair.by_verdict for pair in pairs) else "mean score"
    scores = Differences(measure, [pair.delta for pair in pairs], clusters)
    score, rate, tested = _measures(scores, [pair.flip for pair in pairs], question)
    rates_compare = all(same_settings(pair) for pair in pairs)
    if not rates_compare:
        score, rate, tested = measured(scores, question), None, 1  # a lower bar makes failures pass, and shows nothing
        if any(pair.by_verdict and pair.before.threshold != pair.after.threshold for pair in pairs):
            score = replace(score, verdict="cannot tell")  # its scores are verdicts, which the mark moves by itself
    claim, p_of_claim, shown_by = _settled([score] if rate is None else [score, rate])
    gains = [pair.gain for pair in pairs if pair.gain is not None]
    detectable = _detectable(scores, score, question.alpha)
    return Judgement(
        pairs=len(pairs),
        clusters=scores.independent,
        before=_level(pair.before for pair in pairs),
        after=_level(pair.after for pair in pairs),
        moves=_moves(pairs, question.alpha, alone=scores.independent == len(pairs)),
        delta=score.delta,
        interval=score.interval,
        gain=fmean(gains) if gains else None,
        room=len(gains),
        p=score.p,
        p_of_claim=p_of_claim,
        verdict=claim,
        detectable=detectable,
        needed=_needed(detectable, score, scores.independent, question),
        rate=rate,
        shown_by=shown_by,
        tested=tested,
        measure=measure,
        rates_compare=rates_compare,
    )


def corrected(judgements: Sequence[Judgement], alpha: float) -> list[Judgement]:
    """The same comparisons, their p-values corrected for their number: a claim that does not stand is taken back."""
    raised = adjusted([one.p_of_claim for one in judgements])
    return [
        replace(one, p_of_claim=p) if p <= alpha else replace(one, p_of_claim=p, verdict="cannot tell", shown_by=())
        for one, p in zip(judgements, raised, strict=True)
    ]


def _measures(scores: Differences, flips: Sequence[float], question: Question) -> tuple[Measured, Measured | None, int]:
    """What the mean score shows, what the pass rate does, and how many of the two their p-values are corrected for.

    Where every score moved just as its verdict did the two are one measure, and the second is None.
    """
    score = measured(scores, question)
    if list(scores.values) == list(flips):
        return score, None, 1
    verdicts = Differences("pass rate", flips, scores.clusters)
    rate = measured(verdicts, question)
    if not (may_claim(scores, question) and may_claim(verdicts, question)):
        return score, rate, 1
    score, rate = together([score, rate], question.alpha)
    return score, rate, 2


def _settled(measures: Sequence[Measured]) -> tuple[Verdict, float, tuple[Measure, ...]]:
    """The verdict, its p-value, and what shows it. What is worse in one measure is worse, whatever the other says."""
    claims: tuple[Verdict, ...] = ("worse", "better")
    for claim in claims:
        shown = [one for one in measures if one.verdict == claim]
        if shown:
            return claim, min(one.p_of_claim for one in shown), tuple(one.measure for one in shown)
    if all(one.verdict == "equivalent" for one in measures):
        return "equivalent", max(one.p_of_claim for one in measures), tuple(one.measure for one in measures)
    return "cannot tell", next(one.p_of_claim for one in measures if one.verdict == "cannot tell"), ()


def _cluster(pair: Pair) -> Hashable:
    """What a pair hangs together with: its conversation or what the user named, else its own case on all targets."""
    return pair.before.cluster or (pair.before_key.suite, pair.before_key.case_id)


def _level(outcomes: Iterable[CaseOutcome]) -> Level:
    found = list(outcomes)
    return Level(fmean(one.score or 0.0 for one in found), sum(one.status == "passed" for one in found))


def _moves(pairs: Sequence[Pair], alpha: float, *, alone: bool) -> Moves:
    """Which way cases went. Where they do not stand alone, what counts each of them as one would be too sure."""
    wins, losses = (sum(pair.outcome == outcome for pair in pairs) for outcome in ("win", "loss"))
    fixed, broken = sum(pair.fixed for pair in pairs), sum(pair.broken for pair in pairs)
    return Moves(
        wins=wins,
        losses=losses,
        ties=len(pairs) - wins - losses,
        win_interval=wilson_interval(wins, wins + losses, 1 - alpha) if wins + losses and alone else None,
        fixed=fixed,
        broken=broken,
        flips_p=mcnemar_exact(fixed, broken) if alone else None,
    )


def _detectable(scores: Differences, score: Measured, alpha: float) -> float:
    """The difference that is shown with the power asked for: z_alpha + z_power standard errors of the mean.

    Where all differences are alike there is no error to be had from them, so half of the interval stands for z_alpha.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), chapter 2, for a normal mean.
    """
    if scores.independent < fewest_cases(alpha) or score.interval is None:
        return 1.0
    usual, power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    low, high = score.interval
    error = _error(scores) or (high - low) / 2 / usual
    return min(1.0, (usual + power) * error)


def _error(scores: Differences) -> float:
    """The standard error of the mean by how much the clusters differ; at least two."""
    sums = scores.sums(fmean(scores.values))
    return sqrt(fsum(one * one for one in sums) * len(sums) / (len(sums) - 1)) / len(scores.values)


def _needed(detectable: float, score: Measured, clusters: int, question: Question) -> int | None:
    """How many cases would show a difference so far from the margin; None where these should, or no number would do."""
    if clusters < fewest_cases(question.alpha):
        return fewest_cases(question.alpha)
    distance = abs(abs(score.delta) - question.margin)
    if score.p > LIKELY_CHANCE or detectable <= distance:
        return None
    if clusters * (detectable / MOST_NEEDED**0.5) ** 2 > distance**2:
        return None
    return ceil(clusters * (detectable / distance) ** 2)
