"""`agentv judge compare`, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec import to_builtins

from agentv.extensions.labels.checking import FEW
from agentv.extensions.labels.judges.comparing import (
    MOST_ERRORS,
    NOT_WORSE,
    AssertionComparison,
    ComparedJudge,
    JudgeComparison,
)
from agentv.extensions.labels.stats.paired_accuracy import AccuracyDifference
from agentv.extensions.labels.stats.posterior import Estimated
from agentv.model.values.formatting import duration, money, plural
from agentv.reports.run.rates import signed
from agentv.reports.text.escaping import one_line, percent
from agentv.reports.text.tables import aligned

_LONGEST_NAME = 40
_LONGEST_ERROR = 160
_NONE = "-"


def render_judge_comparison(found: JudgeComparison) -> str:
    """A block for each assertion, then what the calls cost."""
    blocks = ["\n".join(_assertion(one, found.margin)) for one in found.assertions]
    return "\n\n".join([*blocks, calls_line(found.new_calls, found.spent_usd)])


def calls_line(new_calls: int, spent_usd: float | None) -> str:
    """How many calls were made, and what they cost."""
    if not new_calls:
        return "no new calls: all verdicts were stored"
    cost = "cost not known" if spent_usd is None else money(spent_usd)
    return f"{plural(new_calls, 'new call')}, {cost}"


def _assertion(found: AssertionComparison, margin: float) -> Iterator[str]:
    best = None if found.reference is None else found.judges[found.reference]
    if best is not None and len(_usable(found)) > 1:
        yield from _recommended(found, best, margin)
        yield ""
    of_run = f"graded by {one_line(found.model)} in the run"
    yield f"{one_line(found.assertion)}: {plural(found.answers, 'labelled answer')}, {of_run}"
    for note in found.notes:
        yield f"note: {one_line(note)}"
    yield from _errors(found.judges)
    if best is None:
        yield "no judge gave enough verdicts to be compared"
        return
    if found.answers < FEW:
        yield f"warning: only {plural(found.answers, 'labelled answer')}; the intervals say how little that shows"
    yield ""
    yield from aligned([("judge", "accuracy", "TPR", "TNR", "Cohen's kappa"), *map(_figures, _usable(found))])
    yield ""
    heading = ("judge", "per 1,000 verdicts", "latency", "accuracy against the best", "p", "")
    yield from aligned([heading, *(_against(one, best) for one in _usable(found))])


def _usable(found: AssertionComparison) -> list[ComparedJudge]:
    return [one for one in found.judges if one.accuracy is not None]


def _errors(judges: Sequence[ComparedJudge]) -> Iterator[str]:
    for one in judges:
        if not one.errors:
            continue
        name, number = _name(one.name), plural(one.errors, "answer")
        if one.accuracy is None:
            yield f"error: '{name}' gave no verdict on {number}, more than {MOST_ERRORS:.0%}: it is not compared"
        else:
            yield f"warning: '{name}' gave no verdict on {number}; no judge is measured on them"
        if one.error is not None:
            yield f"  {one_line(one.error, _LONGEST_ERROR)}"


def _figures(one: ComparedJudge) -> tuple[str, ...]:
    accuracy = one.accuracy
    assert accuracy is not None  # noqa: S101  # only such judges are shown
    shares = (_interval(found) for found in (accuracy.accuracy, accuracy.tpr, accuracy.tnr))
    kappa = accuracy.kappa
    shown = _NONE if kappa is None else f"{kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})"
    return (_name(one.name), *shares, shown)


def _against(one: ComparedJudge, best: ComparedJudge) -> tuple[str, ...]:
    costs, latency = _cost(one.cost_usd), _NONE if one.latency_ms is None else duration(one.latency_ms)
    if one is best:
        return (_name(one.name), costs, latency, "the best", "", "")
    if one.difference is None:
        return (_name(one.name), costs, latency, _NONE, _NONE, "too few answers")
    shown = "inconclusive" if one.verdict == "inconclusive" else "not worse"
    shown = "worse" if one.verdict == "worse" else shown
    return (_name(one.name), costs, latency, _difference(one.difference), _p(one.difference.p_value), shown)


def _recommended(found: AssertionComparison, best: ComparedJudge, margin: float) -> Iterator[str]:
    cheapest, at_most = found.cheapest, f"by more than {margin * 100:g} points"
    first = f"'{_name(best.name)}'"
    if cheapest is None:
        yield f"{first} is the most accurate on these labels; no price is known, so none is called the cheapest"
        not_worse = ", ".join(f"'{_name(one.name)}'" for one in found.judges if one.verdict in NOT_WORSE)
        if not_worse:
            yield f"not worse {at_most}: {not_worse}"
    elif cheapest is best:
        yield f"Use {first}: the most accurate on these labels; no cheaper judge is shown to be not worse {at_most}"
    else:
        yield f"Use '{_name(cheapest.name)}': the cheapest judge that is not worse than {first} {at_most}"
        yield f"  {_cost(cheapest.cost_usd)} instead of {_cost(best.cost_usd)} per 1,000 verdicts"
    for one in found.undecided:
        why = "too few labelled answers to compare" if one.difference is None else _difference(one.difference)
        yield f"inconclusive for '{_name(one.name)}': {why}"


def _name(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _interval(found: Estimated | None) -> str:
    if found is None:
        return _NONE
    return f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"


def _difference(found: AccuracyDifference) -> str:
    return f"{_points(found.value)} points ({_points(found.low)} to {_points(found.high)})"


def _points(share: float) -> str:
    return signed(100 * share, 1).replace("-", "−")


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _cost(usd: float | None) -> str:
    return "not known" if usd is None else money(usd * 1000)


def json_of(found: object) -> str:
    """Results of a command as one JSON object, whose keys are the names of their fields; what is not known is null."""
    return json.dumps(to_builtins(found), ensure_ascii=False, indent=2)


def judge_comparison_json(found: JudgeComparison) -> str:
    """The same as one JSON object; what is not known is null."""
    return json_of({**to_builtins(found), "assertions": [_assertion_json(one) for one in found.assertions]})


def _assertion_json(found: AssertionComparison) -> dict[str, object]:
    return {
        "assertion": found.assertion,
        "model_of_the_run": found.model,
        "answers": found.answers,
        "weighted": found.weighted,
        "notes": found.notes,
        "judges": [_judge_json(one) for one in found.judges],
        "best": None if found.reference is None else found.judges[found.reference].name,
        "cheapest_not_worse": None if found.cheapest is None else found.cheapest.name,
        "not_enough_evidence": [one.name for one in found.undecided],
    }


def _judge_json(one: ComparedJudge) -> dict[str, object]:
    found = to_builtins(one)
    accuracy = found.pop("accuracy") or dict.fromkeys(("accuracy", "tpr", "tnr", "kappa"))
    named = {"judge": found.pop("name"), "model": found.pop("model") or None}
    return {**named, "confusion_matrix": found.pop("matrix"), **accuracy, **found}
