"""Report of a planned comparison, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from math import isfinite
from typing import Literal

from msgspec import Struct

from agentv.model.run.matrix import MeasuredShare
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.run.rates import interval_words
from agentv.reports.text import one_line, percent
from agentv.stats.intervals.means import MeanInterval
from agentv.stats.power import NEGLIGIBLE, Advice, ComparisonPlan, Noise, Way

Source = Literal["given", "run", "assumed"]
NONE_SEEN = "none"
"""Cell for a number of cases that cannot show any difference."""
LEAST_SHOWN = 0.0001
"""Smallest variance that is nonzero with four decimal places."""
POWER_TOLERANCE = 0.02
"""How far a simulated power may be below the requested one and still count as enough."""
HIGHEST_PROBABILITY = 0.9999
"""Highest probability that is reported; assumptions are never more certain."""


class PilotShown(Struct, frozen=True):
    """Estimates from an earlier run.

    Attributes:
        cases: number of distinct cases with a judged sample.
        repeat: largest number of samples of a case on one target.
        trials: numbers of passed and of judged trials.
        mean: mean score as in the run's report.
        disagreement: probability that two samples of a case disagree; None if no case has two.
        scores: variance components of the scores, or of single votes if a judge gave several.
    """

    run_id: str
    cases: int
    repeat: int
    trials: tuple[int, int]
    mean: MeanInterval
    disagreement: MeasuredShare | None
    scores: Noise


class PlanShown(Struct, frozen=True):
    """A plan and its assumptions.

    Attributes:
        plan: the two planned runs.
        detect: the difference to detect; None for a table of the smallest detectable differences.
        pilot: the earlier run that the plan is based on.
        rate_from, alike_from: source of the pass rate, and of the share of its variance between cases.
        cases_given: the user gave the number of cases; otherwise only the number needed is reported.
    """

    plan: ComparisonPlan
    detect: float | None = None
    pilot: PilotShown | None = None
    rate_from: Source = "assumed"
    alike_from: Source = "assumed"
    cases_given: bool = True


def render_power(shown: PlanShown) -> str:
    """Report of what the plan can show."""
    plan, detect, pilot = shown.plan, shown.detect, shown.pilot
    if detect is None and plan.assumed.margin:
        detect = 0.0
    table = [*_headline(plan), *_table(plan)] if detect is None else _detecting(plan, detect, sized=shown.cases_given)
    return "\n".join([*table, "", *_assumed(shown), *(_noise(pilot) if pilot else ())])


def power_data(shown: PlanShown) -> dict[str, Json]:
    """The plan as a JSON object: assumptions, smallest detectable differences, and the power to detect `detect`.

    A smallest difference is null if no difference is detectable.
    """
    plan, pilot, assumed = shown.plan, shown.pilot, shown.plan.assumed
    document: dict[str, Json] = {
        "cases": plan.cases,
        "repeat": plan.repeat,
        "rate": assumed.rate,
        "rate_from": shown.rate_from,
        "alike": assumed.alike,
        "alike_from": shown.alike_from,
        "shared": assumed.shared,
        "alpha": assumed.alpha,
        "power": assumed.power,
        "margin": assumed.margin,
        "cluster_size": assumed.cluster_size,
        "intra_cluster_correlation": assumed.correlation,
        "score_deviation": assumed.deviation,
        "fewest_cases": assumed.fewest,
        **_least_json(plan.least_each()),
        "table": [{"cases": cases, **_least_json(line)} for cases, line in plan.table().items()],
    }
    if assumed.margin:
        document["non_inferior"] = {"chance": plan.chance(0.0), "cases_needed": plan.needed(0.0)}
    if (detect := shown.detect) is not None:
        ways: dict[str, Json] = {
            way: {"chance": plan.chance(detect, way), "cases_needed": plan.needed(detect, way)}
            for way in plan.ways(detect)
        }
        document["detect"] = {"difference": detect, **ways}
    if pilot is not None:
        passed, judged = pilot.trials
        counted: Json = {"passed": passed, "judged": judged}
        document["from"] = {"run_id": pilot.run_id, "cases": pilot.cases, "repeat": pilot.repeat, "trials": counted}
        document["mean_score"] = pilot.mean.mean
        document["mean_score_interval"] = [pilot.mean.low, pilot.mean.high] if isfinite(pilot.mean.low) else None
        document["disagreement"] = None
        if (found := pilot.disagreement) is not None:
            low, high = found.interval
            document["disagreement"] = {"value": found.value, "low": low, "high": high}
        noise = pilot.scores
        cases, answers, votes = noise.counts
        document["noise"] = {
            "cases": noise.cases,
            "target": noise.target,
            "judge": noise.judge,
            "counts": {"cases": cases, "answers": answers, "votes": votes},
            "advice": noise.advice(),
        }
    return document


def _least_json(line: Mapping[Way, float]) -> dict[str, Json]:
    return {f"least_{way}": least if isfinite(least) else None for way, least in line.items()}


def _detecting(plan: ComparisonPlan, detect: float, *, sized: bool) -> Iterator[str]:
    """Whether the plan can show a drop and a rise of `detect`, or if it is 0, that the loss is within the margin."""
    ways = plan.ways(detect) if detect else ("drop",)
    named = {
        way: f"a {way} of {detect:g}" if detect else f"that the loss is at most {plan.assumed.margin:g}" for way in ways
    }
    if sized and plan.cases < plan.assumed.fewest:
        yield f"Not enough: {_runs(plan)} cannot show a difference, whatever the results."
    elif sized:
        chances = {way: plan.chance(detect, way) for way in ways}
        enough = "Enough" if min(chances.values()) >= plan.assumed.power - POWER_TOLERANCE else "Not enough"
        shown = " and ".join(f"{named[way]} {_often(chances[way])} of the time" for way in ways)
        yield f"{enough}: {_runs(plan)} show {shown}."
    for way in ways:
        needed = plan.needed(detect, way)
        if needed is None:
            yield f"No practical number of cases shows {named[way]}."
        else:
            many = f"About {plural(needed, 'case')}{_each(plan.repeat)}"
            yield f"{many} would show {named[way]} with {percent(plan.assumed.power)} power."
    if plan.assumed.margin and not detect:
        yield _BOTH_MEASURES[plan.assumed.deviation is not None]


_BOTH_MEASURES = {
    True: "compare needs the pass rate, too: both it and the mean score must be within the margin, and are simulated.",
    False: "Scores are taken to be 0 or 1; where they are not, compare needs the mean score and the pass rate, both.",
}


def _headline(plan: ComparisonPlan) -> Iterator[str]:
    """The smallest drop that two runs of this many cases show."""
    least = plan.least_each()["drop"]
    what = "pass rate" if plan.assumed.deviation is None else "mean score"
    cases, lower = plural(plan.cases, "case"), f"{least:.2f}" if plan.assumed.deviation else f"{100 * least:.0f} points"
    if isfinite(least):
        yield f"With {cases}, a comparison notices a {what} that is {lower} lower."
    else:
        yield f"{cases} cannot show that a candidate is worse, whatever the results."
    yield ""


def _table(plan: ComparisonPlan) -> Iterator[str]:
    what = "pass rate" if plan.assumed.deviation is None else "mean score"
    power = percent(plan.assumed.power)
    yield f"Smallest difference of the {what} that two runs{_each(plan.repeat)} show with {power} power, about:"
    yield ""
    yield f"{'cases':>9}{'drop':>11}{'rise':>11}"
    table = plan.table()
    rows = []
    for cases, line in table.items():
        shown = (f"{least:.3f}" if isfinite(least) else NONE_SEEN for least in line.values())
        rows.append((cases, "".join(f"{least:>11}" for least in shown)))
    for cells, alike in groupby(rows, key=lambda row: row[1]):
        sizes = [cases for cases, _ in alike]
        named = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,}–{sizes[-1]:,}"
        yield f"{named:>9}{cells}"
    if min(table) < plan.assumed.fewest:
        yield ""
        yield f"Fewer than {plan.assumed.fewest} cases cannot show a difference, whatever the results."


def _often(chance: float) -> str:
    """A probability in percent, never 0% or 100%."""
    if chance > HIGHEST_PROBABILITY:
        return f"more than {HIGHEST_PROBABILITY:.2%}"
    return percent(chance) if chance >= 1 - HIGHEST_PROBABILITY else f"less than {1 - HIGHEST_PROBABILITY:.2%}"


def _runs(plan: ComparisonPlan) -> str:
    return f"two runs of {plural(plan.cases, 'case')}{_each(plan.repeat)}"


def _each(repeat: int) -> str:
    return f" with {repeat} samples of each" if repeat > 1 else ""


def _assumed(shown: PlanShown) -> Iterator[str]:
    """One line with the assumptions and their sources."""
    one = shown.plan.assumed
    mean = f"mean score {one.rate:.3g} (SD {one.deviation:.2g})" if one.deviation else f"pass rate {percent(one.rate)}"
    rate_from = "--rate"
    if shown.rate_from != "given" and shown.pilot is not None:
        passed, judged = shown.pilot.trials
        counted = f"{one_line(shown.pilot.run_id)}: {passed} of {plural(judged, 'trial')} passed"
        rate_from = counted if shown.rate_from == "run" else f"a guess; {counted}"
    parts = [
        f"{mean} ({rate_from})",
        f"{percent(one.alike)} of the variance is between cases {_alike_from(shown)}",
        f"{percent(one.shared)} of the difficulty of a case is the same in both runs (--shared)",
        f"alpha {one.alpha:g}",
    ]
    if one.cluster_size > 1:
        parts.append(f"clusters of {one.cluster_size} with correlation {one.correlation:.2g}")
    yield f"Assumed: {'; '.join(parts)}."


def _alike_from(shown: PlanShown) -> str:
    if shown.alike_from == "given" or shown.pilot is None:
        return "(--alike)"
    if shown.alike_from == "run":
        return f"({one_line(shown.pilot.run_id)})"
    if shown.pilot.disagreement is None:
        return "(assumed, because no case has two samples; --alike)"
    return "(assumed, because all verdicts are the same; --alike)"


def _noise(pilot: PilotShown) -> Iterator[str]:
    yield ""
    yield f"{one_line(pilot.run_id)} had a mean score of {_mean(pilot)}"
    if (found := pilot.disagreement) is not None:
        interval = interval_words(found.interval)
        yield f"two samples of one case disagreed {percent(found.value)} of the time ({interval})"
    noise = pilot.scores
    if all((part or 0.0) <= NEGLIGIBLE for part in (noise.cases, noise.target, noise.judge)):
        yield _without_noise(noise)
        return
    cases, answers, votes = noise.counts
    of = [plural(cases, "case"), plural(answers, "answer"), *([plural(votes, "vote")] if votes > answers else [])]
    yield ""
    yield f"Sources of the noise of its scores, in {', '.join(of)}:"
    whole = sum(part or 0.0 for part in (noise.cases, noise.target, noise.judge))
    judged = "" if noise.judge is not None else ", judge included"
    yield f"  between cases: {_part(noise.cases, whole, 'there is one case')}"
    unsampled = "no case was sampled twice (repeat)"
    yield f"  between answers to one case{judged}: {_part(noise.target, whole, unsampled)}"
    yield f"  between votes on one answer: {_part(noise.judge, whole, 'no answer was judged twice (votes)')}"
    advice = noise.advice()
    yield f"To narrow the confidence interval of its mean: {_ADVICE[advice]}" if advice else _without_noise(noise)


_ADVICE: dict[Advice, str] = {
    "more cases": "more cases (with as many calls, they tell at least as much as more samples of each)",
    "a steadier judge": "a steadier judge",
}


def _without_noise(noise: Noise) -> str:
    cases = plural(noise.counts[0], "case")
    return f"Every score was the same: {cases} showed no noise, but others may."


def _mean(pilot: PilotShown) -> str:
    found = pilot.mean
    if not isfinite(found.low):
        return f"{found.mean:.3f} (no confidence interval: {plural(found.clusters, 'cluster')} only)"
    counted = plural(found.clusters, "case" if found.clusters == pilot.scores.counts[0] else "cluster")
    return f"{found.mean:.3f} (95% CI {found.low:.3f} to {found.high:.3f}, {counted})"


def _part(part: float | None, whole: float, unknown: str) -> str:
    if part is None:
        return f"not known: {unknown}"
    if part <= NEGLIGIBLE:
        return "no variance observed"
    shown = f"{part:.4f}" if part >= LEAST_SHOWN else f"{part:.1e}"
    return f"variance {shown} ({percent(part / whole)})"
