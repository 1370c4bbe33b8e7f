"""A planned comparison in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Literal

from agentv.model.values import Json
from agentv.reports.text import one_line, percent
from agentv.reports.totals import plural
from agentv.stats.classification import Measured
from agentv.stats.clustered import MeanInterval
from agentv.stats.planning import Plan
from agentv.stats.variance import NOTHING, Noise

Source = Literal["given", "run", "assumed"]
NONE_SEEN = "none"
"""Where not even the largest drop is seen."""
LEAST_SHOWN = 0.0001
"""A variance below it has no digit among the first four."""
SURE = 0.9999
"""More often nothing is promised: what is assumed is never known so well."""


@dataclass(frozen=True, slots=True)
class PilotShown:
    """What an earlier run told, of so many cases and so many samples of each.

    Attributes:
        trials: how many passed, and how many were judged.
    """

    run_id: str
    cases: int
    repeat: int
    trials: tuple[int, int]
    mean: MeanInterval
    disagreement: Measured | None
    scores: Noise


@dataclass(frozen=True, slots=True)
class PlanShown:
    """A plan, and what it stands on.

    Attributes:
        plan: the two runs.
        detect: the drop that matters; None: a table of the least that is seen.
        pilot: the run that it is planned from.
        rate_from, alike_from: where these two come from.
    """

    plan: Plan
    detect: float | None = None
    pilot: PilotShown | None = None
    rate_from: Source = "assumed"
    alike_from: Source = "assumed"


def render_power(shown: PlanShown, *, sized: bool) -> str:
    """What the plan can show.

    Args:
        shown: the plan.
        sized: somebody said how many cases there are; else only how many it takes is told.
    """
    plan, detect, pilot = shown.plan, shown.detect, shown.pilot
    told = _table(plan) if detect is None else _detecting(plan, detect, sized=sized)
    return "\n".join([*told, "", *_assumed(shown), *(_noise(pilot) if pilot else ())])


def power_json(shown: PlanShown) -> str:
    """The plan as one object: what was assumed, the least drop seen, the table, and of `detect` the chance.

    A least drop that is null: none is seen.
    """
    plan, pilot, assumed = shown.plan, shown.pilot, shown.plan.assumed
    told: dict[str, Json] = {
        "cases": plan.cases,
        "repeat": plan.repeat,
        "rate": assumed.rate,
        "rate_from": shown.rate_from,
        "alike": assumed.alike,
        "alike_from": shown.alike_from,
        "shared": assumed.shared,
        "alpha": assumed.alpha,
        "power": assumed.power,
        "fewest_cases": assumed.fewest,
        "least_difference": _possible(plan.least),
        "table": [_line_json(cases, line) for cases, line in plan.table().items()],
    }
    if (detect := shown.detect) is not None:
        told["detect"] = {"difference": detect, "chance": plan.chance(detect), "cases_needed": plan.needed(detect)}
    if pilot is not None:
        passed, judged = pilot.trials
        counted: Json = {"passed": passed, "judged": judged}
        told["from"] = {"run_id": pilot.run_id, "cases": pilot.cases, "repeat": pilot.repeat, "trials": counted}
        told["mean_score"] = pilot.mean.mean
        told["mean_score_interval"] = [pilot.mean.low, pilot.mean.high] if isfinite(pilot.mean.low) else None
        told["disagreement"] = None if pilot.disagreement is None else asdict(pilot.disagreement)
        told["noise"] = _noise_json(pilot.scores)
    return json.dumps(told, indent=2)


def _line_json(cases: int, line: Mapping[int, float]) -> Json:
    return {"cases": cases, "least_difference": {str(repeat): _possible(least) for repeat, least in line.items()}}


def _possible(least: float) -> float | None:
    return least if isfinite(least) else None


def _noise_json(noise: Noise) -> Json:
    cases, answers, votes = noise.counts
    counts: Json = {"cases": cases, "answers": answers, "votes": votes}
    return {
        "cases": noise.cases,
        "target": noise.target,
        "judge": noise.judge,
        "counts": counts,
        "advice": noise.advice(),
    }


def _detecting(plan: Plan, detect: float, *, sized: bool) -> Iterator[str]:
    needed = plan.needed(detect)
    wanted = percent(plan.assumed.power)
    if sized and plan.cases < plan.assumed.fewest:
        yield f"Not enough: {_runs(plan)} show nothing, whatever comes out."
    elif sized:
        chance = plan.chance(detect)
        enough = "Enough" if chance >= plan.assumed.power else "Not enough"
        yield f"{enough}: {_runs(plan)} show a drop of {detect:g} {_often(chance)} of the time."
        if isfinite(plan.least):
            yield f"The least drop that they show {wanted} of the time is {_shown(plan.least)}."
    if needed is None:
        yield f"No number of cases that anybody runs shows a drop of {detect:g}."
    else:
        yield f"To show {detect:g} {wanted} of the time takes {plural(needed, 'case')}{_each(plan.repeat)}."


def _often(chance: float) -> str:
    """How often something comes out: never always."""
    if chance > SURE:
        return f"more than {SURE:.2%}"
    return percent(chance) if chance >= 1 - SURE else f"less than {1 - SURE:.2%}"


def _table(plan: Plan) -> Iterator[str]:
    table = plan.table()
    repeats = list(next(iter(table.values())))
    yield f"The least drop of the pass rate that two runs show {percent(plan.assumed.power)} of the time:"
    yield ""
    yield f"{'cases':>9}" + "".join(f"{f'repeat {repeat}':>11}" for repeat in repeats)
    for cases, line in table.items():
        yield f"{cases:>9,}" + "".join(f"{_shown(line[repeat]):>11}" for repeat in repeats)
    yield ""
    yield f"{_runs(plan)}: {_shown(plan.least)}"
    if min(table) < plan.assumed.fewest:
        yield f"fewer than {plan.assumed.fewest} cases show nothing, whatever comes out"


def _shown(least: float) -> str:
    return f"{least:.3f}" if isfinite(least) else NONE_SEEN


def _runs(plan: Plan) -> str:
    return f"two runs of {plural(plan.cases, 'case')}{_each(plan.repeat)}"


def _each(repeat: int) -> str:
    return f" with {repeat} samples of each" if repeat > 1 else ""


def _assumed(shown: PlanShown) -> Iterator[str]:
    assumed = shown.plan.assumed
    yield f"pass rate before the drop {percent(assumed.rate)} ({_rate_from(shown)});"
    yield f"{percent(assumed.alike)} of its variance between cases ({_alike_from(shown)});"
    yield f"{percent(assumed.shared)} of what makes a case hard is the same for both runs (assumed; --shared);"
    yield f"a difference that is not there is shown {percent(assumed.alpha)} of the time at most (--alpha);"
    yield "a rise to that rate is shown as often as a drop from it"


def _rate_from(shown: PlanShown) -> str:
    if shown.rate_from == "given":
        return "--rate"
    if shown.pilot is None:
        return "assumed; --rate, or --from RUN takes it from a run"
    passed, judged = shown.pilot.trials
    counted = f"{one_line(shown.pilot.run_id)} passed {passed} of {plural(judged, 'trial')}"
    if shown.rate_from == "run":
        return f"from a run: {counted}"
    return f"assumed: {counted}, {percent(passed / judged)}, and others would come out otherwise"


def _alike_from(shown: PlanShown) -> str:
    if shown.alike_from == "given":
        return "--alike"
    if shown.pilot is None:
        return "assumed; --alike, or --from a run with repeat"
    run_id = one_line(shown.pilot.run_id)
    if shown.alike_from == "run":
        return f"from {run_id}"
    if shown.pilot.disagreement is None:
        return f"assumed: no case of {run_id} has two samples; --alike"
    return f"assumed: all verdicts of {run_id} are the same; --alike"


def _noise(pilot: PilotShown) -> Iterator[str]:
    yield ""
    yield f"{one_line(pilot.run_id)} had a mean score of {_mean(pilot.mean)}"
    if (found := pilot.disagreement) is not None:
        interval = f"95% interval {percent(found.low)} to {percent(found.high)}"
        yield f"two samples of one case disagreed {percent(found.value)} of the time ({interval})"
    noise = pilot.scores
    cases, answers, votes = noise.counts
    of = [plural(cases, "case"), plural(answers, "answer"), *([plural(votes, "vote")] if votes > answers else [])]
    yield ""
    yield f"Where the noise of its scores is, of {', '.join(of)}:"
    whole = sum(part or 0.0 for part in (noise.cases, noise.target, noise.judge))
    judged = "" if noise.judge is not None else ", judge included"
    yield f"  between cases: {_part(noise.cases, whole, 'there is one case')}"
    unsampled = "no case was sampled twice (repeat)"
    yield f"  between answers to one case{judged}: {_part(noise.target, whole, unsampled)}"
    yield f"  between votes on one answer: {_part(noise.judge, whole, 'no answer was judged twice (votes)')}"
    advice = noise.advice()
    yield f"What makes its mean surer soonest: {advice}" if advice else _without_noise(noise)


def _without_noise(noise: Noise) -> str:
    return f"Every score was the same: of {plural(noise.counts[0], 'case')} no noise was seen, which is not none."


def _mean(found: MeanInterval) -> str:
    if not isfinite(found.low):
        return f"{found.mean:.3f}; how sure that is cannot be told from one case"
    low, high = max(0.0, found.low), min(1.0, found.high)
    return f"{found.mean:.3f} (95% interval {low:.3f} to {high:.3f}, by case)"


def _part(part: float | None, whole: float, unknown: str) -> str:
    if part is None:
        return f"not known: {unknown}"
    if part <= NOTHING:
        return "no variance was seen"
    shown = f"{part:.4f}" if part >= LEAST_SHOWN else f"{part:.1e}"
    return f"variance {shown} ({percent(part / whole)})"
