"""A planned comparison in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite

from agentv.model.values import Json
from agentv.reports.text import one_line, percent
from agentv.reports.totals import plural
from agentv.stats.classification import Measured
from agentv.stats.clustered import MeanInterval
from agentv.stats.planning import Plan
from agentv.stats.variance import Noise

NONE_SEEN = "none"
"""Where not even the largest difference is seen."""


@dataclass(frozen=True, slots=True)
class PilotShown:
    """What an earlier run told, of so many cases and so many samples of each."""

    run_id: str
    cases: int
    repeat: int
    mean: MeanInterval
    disagreement: Measured | None
    scores: Noise


def render_power(plan: Plan, detect: float | None, pilot: PilotShown | None, *, sized: bool) -> str:
    """What the plan can show.

    Args:
        plan: the two runs.
        detect: the difference that matters; None: a table of the least that is seen.
        pilot: the run that it is planned from.
        sized: somebody said how many cases there are; else only how many it takes is told.
    """
    told = _table(plan) if detect is None else _detecting(plan, detect, sized=sized)
    return "\n".join([*told, "", *_assumed(plan, pilot), *(_noise(pilot) if pilot else ())])


def power_json(plan: Plan, detect: float | None, pilot: PilotShown | None) -> str:
    """The plan as one object: what was assumed, the least difference seen, the table, and of `detect` the chance.

    A least difference above 1 is null: none is seen.
    """
    assumed = plan.assumed
    shown: dict[str, Json] = {
        "cases": plan.cases,
        "repeat": plan.repeat,
        "rate": assumed.rate,
        "alike": assumed.alike,
        "shared": assumed.shared,
        "alpha": assumed.alpha,
        "power": assumed.power,
        "least_difference": _possible(plan.least),
        "table": [_line_json(cases, line) for cases, line in plan.table().items()],
    }
    if detect is not None:
        shown["detect"] = {"difference": detect, "chance": plan.chance(detect), "cases_needed": plan.needed(detect)}
    if pilot is not None:
        shown["from"] = {"run_id": pilot.run_id, "cases": pilot.cases, "repeat": pilot.repeat}
        shown["mean_score"] = pilot.mean.mean
        shown["mean_score_interval"] = [pilot.mean.low, pilot.mean.high] if isfinite(pilot.mean.low) else None
        shown["disagreement"] = None if pilot.disagreement is None else asdict(pilot.disagreement)
        shown["noise"] = _noise_json(pilot.scores)
    return json.dumps(shown, indent=2)


def _line_json(cases: int, line: Mapping[int, float]) -> Json:
    return {"cases": cases, "least_difference": {str(repeat): _possible(least) for repeat, least in line.items()}}


def _possible(least: float) -> float | None:
    return least if least <= 1 else None


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
    if sized:
        chance = plan.chance(detect)
        enough = "Enough" if chance >= plan.assumed.power else "Not enough"
        yield f"{enough}: {_runs(plan)} show a difference of {detect:g} {percent(chance)} of the time."
        if plan.least <= 1:
            yield f"The least difference that they show {wanted} of the time is {_shown(plan.least)}."
    if needed is None:
        yield f"No number of cases that anybody runs shows a difference of {detect:g}."
    else:
        yield f"To show {detect:g} {wanted} of the time takes {plural(needed, 'case')}{_each(plan.repeat)}."


def _table(plan: Plan) -> Iterator[str]:
    table = plan.table()
    repeats = list(next(iter(table.values())))
    yield f"The least difference of pass rates that two runs show {percent(plan.assumed.power)} of the time:"
    yield ""
    yield f"{'cases':>9}" + "".join(f"{f'repeat {repeat}':>11}" for repeat in repeats)
    for cases, line in table.items():
        yield f"{cases:>9,}" + "".join(f"{_shown(line[repeat]):>11}" for repeat in repeats)
    yield ""
    yield f"{_runs(plan)}: {_shown(plan.least)}"


def _shown(least: float) -> str:
    return f"{least:.3f}" if least <= 1 else NONE_SEEN


def _runs(plan: Plan) -> str:
    return f"two runs of {plural(plan.cases, 'case')}{_each(plan.repeat)}"


def _each(repeat: int) -> str:
    return f" with {repeat} samples of each" if repeat > 1 else ""


def _assumed(plan: Plan, pilot: PilotShown | None) -> Iterator[str]:
    assumed = plan.assumed
    found = f"from {one_line(pilot.run_id)}" if pilot else "assumed; --from RUN takes them from a run"
    yield f"pass rate {percent(assumed.rate)}, {percent(assumed.alike)} of its variance between cases ({found});"
    yield f"{percent(assumed.shared)} of what makes a case hard is the same for both runs (assumed; --shared);"
    yield f"a difference that is not there is shown {percent(assumed.alpha)} of the time at most (--alpha)"


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
    names = ("between cases", "between answers to one case" + ("" if noise.judge is not None else ", judge included"))
    for name, part in zip(
        (*names, "between votes on one answer"), (noise.cases, noise.target, noise.judge), strict=True
    ):
        yield f"  {name}: {_part(part, whole)}"
    advice = noise.advice()
    yield f"What makes its mean surer soonest: {advice}" if advice else "Every score was the same: there is no noise."


def _mean(found: MeanInterval) -> str:
    if not isfinite(found.low):
        return f"{found.mean:.3f}; how sure that is cannot be told from one case"
    low, high = max(0.0, found.low), min(1.0, found.high)
    return f"{found.mean:.3f} (95% interval {low:.3f} to {high:.3f}, by case)"


def _part(part: float | None, whole: float) -> str:
    if part is None:
        return "not known; nothing was sampled twice"
    return f"variance {part:.4f}" + (f" ({percent(part / whole)})" if whole else "")
