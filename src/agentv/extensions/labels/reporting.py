"""Text and JSON output of `agentv judge check` and `agentv judge compare`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from msgspec import to_builtins

from agentv.extensions.labels.checking import FEW, CheckedJudge, Disagreement, JudgeCheck
from agentv.extensions.labels.comparing import (
    MOST_ERRORS,
    NOT_WORSE,
    AssertionComparison,
    ComparedJudge,
    JudgeComparison,
)
from agentv.extensions.labels.labelled import AccuracyDifference
from agentv.extensions.labels.posterior import Estimated
from agentv.model.values.formatting import duration, money, plural
from agentv.model.values.values import Json
from agentv.reports.run.rates import interval_words, signed
from agentv.reports.text import aligned, one_line, percent

_LONGEST_NAME = 40
_LONGEST_ERROR = 160
_NONE = "-"


def render_judge_comparison(found: JudgeComparison) -> str:
    """Render a block for each assertion, then the cost of the calls."""
    blocks = ["\n".join(_assertion(one, found.margin)) for one in found.assertions]
    calls = "no new calls: all verdicts were stored"
    if found.new_calls:
        cost = "cost not known" if found.spent_usd is None else money(found.spent_usd)
        calls = f"{plural(found.new_calls, 'new call')}, {cost}"
    return "\n\n".join([*blocks, calls])


def _assertion(found: AssertionComparison, margin: float) -> Iterator[str]:
    best = None if found.reference is None else found.judges[found.reference]
    usable = [one for one in found.judges if one.accuracy is not None]
    if best is not None and len(usable) > 1:
        yield from _recommended(found, best, margin)
        yield ""
    of_run = f"graded by {one_line(found.model)} in the run"
    yield f"{one_line(found.assertion)}: {plural(found.answers, 'labelled answer')}, {of_run}"
    for note in found.notes:
        yield f"note: {one_line(note)}"
    for judge in found.judges:
        yield from _errors(judge)
    if best is None:
        yield "no judge gave enough verdicts to be compared"
        return
    if found.answers < FEW:
        yield f"warning: only {plural(found.answers, 'labelled answer')}; the intervals say how little that shows"
    yield ""
    yield from aligned([("judge", "accuracy", "TPR", "TNR", "Cohen's kappa"), *map(_accuracy_row, usable)])
    yield ""
    heading = ("judge", "per 1,000 verdicts", "latency", "accuracy against the best", "p", "")
    yield from aligned([heading, *(_comparison_row(one, best) for one in usable)])


def _errors(one: ComparedJudge) -> Iterator[str]:
    if not one.errors:
        return
    name, number = _name(one.name), plural(one.errors, "answer")
    if one.accuracy is None:
        yield f"error: '{name}' gave no verdict on {number}, more than {MOST_ERRORS:.0%}: it is not compared"
    else:
        yield f"warning: '{name}' gave no verdict on {number}; no judge is measured on them"
    if one.error is not None:
        yield f"  {one_line(one.error, _LONGEST_ERROR)}"


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


def _accuracy_row(one: ComparedJudge) -> tuple[str, ...]:
    accuracy = one.accuracy
    assert accuracy is not None  # noqa: S101  # callers pass only judges that were measured
    shares = (
        _NONE if found is None else f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"
        for found in (accuracy.accuracy, accuracy.tpr, accuracy.tnr)
    )
    kappa = accuracy.kappa
    shown = _NONE if kappa is None else f"{kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})"
    return (_name(one.name), *shares, shown)


def _comparison_row(one: ComparedJudge, best: ComparedJudge) -> tuple[str, ...]:
    begin = (_name(one.name), _cost(one.cost_usd), _NONE if one.latency_ms is None else duration(one.latency_ms))
    found = one.difference
    if one is best:
        return (*begin, "the best", "", "")
    if found is None:
        return (*begin, _NONE, _NONE, "too few answers")
    p = "<0.001" if found.p_value < 0.001 else f"{found.p_value:.3f}"
    shown = one.verdict if one.verdict in ("inconclusive", "worse") else "not worse"
    return (*begin, _difference(found), p, shown)


def _name(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _difference(found: AccuracyDifference) -> str:
    return f"{_points(found.value)} points ({_points(found.low)} to {_points(found.high)})"


def _points(share: float) -> str:
    return signed(100 * share, 1).replace("-", "−")


def _cost(usd: float | None) -> str:
    return "not known" if usd is None else money(usd * 1000)


def json_of(found: object) -> str:
    """Return results as a JSON object with a key for each field; unknown values are null."""
    return json.dumps(to_builtins(found), ensure_ascii=False, indent=2)


def judge_comparison_json(found: JudgeComparison) -> str:
    """Return a comparison of judges as a JSON object; unknown values are null."""
    assertions = [
        {
            "assertion": one.assertion,
            "model_of_the_run": one.model,
            "answers": one.answers,
            "weighted": one.weighted,
            "notes": one.notes,
            "judges": [_compared_json(judge) for judge in one.judges],
            "best": None if one.reference is None else one.judges[one.reference].name,
            "cheapest_not_worse": None if one.cheapest is None else one.cheapest.name,
            "not_enough_evidence": [judge.name for judge in one.undecided],
        }
        for one in found.assertions
    ]
    return json_of({**to_builtins(found), "assertions": assertions})


def _compared_json(one: ComparedJudge) -> dict[str, object]:
    found = to_builtins(one)
    accuracy = found.pop("accuracy") or dict.fromkeys(("accuracy", "tpr", "tnr", "kappa"))
    named = {"judge": found.pop("name"), "model": found.pop("model") or None}
    return {**named, "confusion_matrix": found.pop("matrix"), **accuracy, **found}


SHOWN = 20
_LONGEST_NOTE = 120
_NOT_DRAWN = "no label was drawn at random from this run, so that TPR, TNR and accuracy cannot be estimated"


def render_judge_check(found: JudgeCheck) -> str:
    """Render a block for each judge."""
    return "\n\n".join("\n".join(_judge(one, found.run)) for one in found.judges)


def _judge(found: CheckedJudge, run: str | None) -> Iterator[str]:
    counts = found.counts
    name = f"judge '{one_line(found.judge)}' ({one_line(found.model)})" if found.judge else one_line(found.model)
    by = f" by {counts.people} people" if counts.people > 1 else ""
    if found.matrix.total:
        yield _headline(found)
        yield ""
    yield f"{one_line(found.assertion)}, {name}: {plural(counts.labels, 'label')}{by}"
    yield from _notes(found)
    if not found.matrix.total:
        yield from _without_labels(found, run)
        return
    yield from _warnings(found, run)
    yield ""
    line = f"pass rate {percent(found.judge_rate[0])} by the judge"
    if found.corrected is not None:
        line += f"; {_interval(found.corrected)} corrected by {plural(found.matrix.total, 'labelled answer')}"
    yield line
    yield from _transferred(found)
    yield ""
    matrix = found.matrix
    yield f"{'labelled answers':<17}{'person passes':>14}{'person fails':>14}"
    yield f"{'judge passes':<17}{matrix.true_passes:>14}{matrix.false_passes:>14}"
    yield f"{'judge fails':<17}{matrix.false_failures:>14}{matrix.true_failures:>14}"
    accuracy = found.accuracy
    if accuracy is None:
        yield _NOT_DRAWN
    else:
        yield ""
        yield _line("TPR", accuracy.tpr, "of what people pass, the judge passes", "no labelled answer passes")
        yield _line("TNR", accuracy.tnr, "of what people fail, the judge fails", "no labelled answer fails")
        yield _line("accuracy", accuracy.accuracy, "of all answers, both say the same", "")
        kappa, shown = accuracy.kappa, "undefined: people or the judge say the same of all labelled answers"
        if kappa is not None:
            shown = f"{kappa.value:.2f} (95% CI {kappa.low:.2f} to {kappa.high:.2f})"
        yield f"Cohen's kappa     {shown}"
    yield from _people(found)
    if found.disagreements:
        yield ""
        yield from _disagreements(found.disagreements)


_TRUSTED = 0.8
"""Share of the answers that people pass, and of those that they fail, on which a trusted judge agrees with them."""


def _headline(found: CheckedJudge) -> str:
    """Return a sentence on how far the judge can be trusted, by the labelled answers."""
    matrix, who = found.matrix, "people" if found.counts.people > 1 else "you"
    good, bad = matrix.true_passes + matrix.false_failures, matrix.false_passes + matrix.true_failures
    wrongs = [
        (matrix.false_passes, bad, "passed", "failed"),
        (matrix.false_failures, good, "failed", "passed"),
    ]
    wrong, of, said, meant = max(wrongs, key=lambda one: one[0] / one[1] if one[1] else 0.0)
    if of and wrong / of > 1 - _TRUSTED:
        return f"Do not trust this judge yet: it {said} {wrong} of the {plural(of, 'answer')} that {who} {meant}."
    agreed = matrix.true_passes + matrix.true_failures
    if matrix.total < FEW or not good or not bad:
        missing = "" if good and bad else f", and none that {who} {'failed' if good else 'passed'}"
        return f"Too few labels to trust this judge: {plural(matrix.total, 'answer')}{missing}. Label more answers."
    return f"This judge agreed with {who} on {agreed} of {plural(matrix.total, 'answer')}."


def _warnings(found: CheckedJudge, run: str | None) -> Iterator[str]:
    """Yield warnings about few labels, and about a verdict of the judge that no labelled answer has."""
    matrix = found.matrix
    if not matrix.total:
        return
    if matrix.total < FEW:
        yield f"warning: only {plural(matrix.total, 'labelled answer')}; the intervals say how little that shows"
    passed, failed = matrix.true_passes + matrix.false_passes, matrix.true_failures + matrix.false_failures
    for number, rate, verdict in ((passed, found.judge_rate[0], "passes"), (failed, 1 - found.judge_rate[0], "fails")):
        if not number and (rate or run is None):
            yield f"warning: no labelled answer is one that the judge {verdict}, so that TPR and TNR are hardly known"


def _notes(found: CheckedJudge) -> Iterator[str]:
    counts = found.counts
    for number, why in (
        (counts.unsure, "unsure"),
        (counts.other_judge, "given beside another judge model or judge prompt"),
        (counts.other_rubric, "by a rubric that has changed since"),
    ):
        if number:
            yield f"note: {plural(number, 'label')} not counted: {why}"
    if found.unlabelled is not None:
        yield f"warning: no label counts for {found.unlabelled}, so the pass rate is not corrected; label its answers"
    if counts.not_drawn:
        labels = plural(counts.not_drawn, "label")
        yield f"note: {labels} not used to correct the pass rate: not drawn at random from this run"
    if counts.ties:
        yield f"note: {plural(counts.ties, 'answer')} not counted: as many people pass as fail"
    if counts.other_outputs and found.matrix.total:
        yield f"note: {plural(counts.other_outputs, 'label')} not counted: of answers that are not in this run"


def _without_labels(found: CheckedJudge, run: str | None) -> Iterator[str]:
    yield f"pass rate {percent(found.judge_rate[0])} by the judge, which was never checked on this run"
    yield from _transferred(found)
    command = shlex.join(["agentv", "label", run or "RUN", "--assertion", found.assertion])
    yield f"label answers: {one_line(command)}"


def _transferred(found: CheckedJudge) -> Iterator[str]:
    labels = plural(found.transferred_answers, "labelled answer")
    if found.transferred is not None:
        by = f"corrected by {labels} of other runs"
        yield f"{_interval(found.transferred)} {by}, if the judge errs as often here as there"
    elif found.transferred_answers:
        yield f"{labels} of other runs do not show that the judge is better than chance"


def _line(name: str, found: Estimated | None, meaning: str, missing: str) -> str:
    shown = f"cannot be estimated: {missing}" if found is None else f"{_interval(found)}: {meaning}"
    return f"{name:<18}{shown}"


def _people(found: CheckedJudge) -> Iterator[str]:
    people = found.people
    if people is not None:
        yield f"people agree      {percent(people.agreement)} of pairs of labels, on {plural(people.answers, 'answer')}"


def _disagreements(found: Sequence[Disagreement]) -> Iterator[str]:
    passes = sum(one.kind == "false-pass" for one in found)
    kinds = f"{passes} false {'pass' if passes == 1 else 'passes'}, {plural(len(found) - passes, 'false failure')}"
    yield f"{plural(len(found), 'disagreement')}: {kinds}"
    for one in found[:SHOWN]:
        show = shlex.join(["agentv", "results", "show", one.run, "--case", one.case])
        yield f"  {one.kind.replace('-', ' ')}: {one_line(show)}"
        for said in one.labels:
            if said.note:
                yield f"    {one_line(said.person)} ({said.label}): {one_line(said.note, _LONGEST_NOTE)}"
    if len(found) > SHOWN:
        yield f"  and {len(found) - SHOWN} more; --json lists all"


def _interval(found: Estimated) -> str:
    return f"{percent(found.value)} ({interval_words(found.interval)})"


def judge_check_json(found: JudgeCheck) -> str:
    """Return a check of judges as a JSON object."""
    return json_of(judge_check_content(found))


def judge_check_content(found: JudgeCheck) -> dict[str, Json]:
    """Return the content of that JSON object; values that cannot be estimated are null."""
    judges = [_judge_json(one, found.run) for one in found.judges]
    content: dict[str, Json] = to_builtins({"run": found.run, "judges": judges})
    return content


def _judge_json(found: CheckedJudge, run: str | None) -> dict[str, object]:
    by_judge, interval = found.judge_rate
    lines = [*_notes(found), *_warnings(found, run)]
    if not found.matrix.total:
        lines += list(_without_labels(found, run))[:-1]
    elif found.accuracy is None:
        lines += [_NOT_DRAWN, *_transferred(found)]
    lines += _people(found)
    return {
        "assertion": found.assertion,
        "judge": found.judge or None,
        "model": found.model,
        "sentence": _headline(found) if found.matrix.total else "",
        "labels": found.counts,
        "notes": [line.removeprefix("note: ") for line in lines],
        "confusion_matrix": found.matrix,
        "judge_pass_rate": by_judge,
        "judge_pass_rate_interval": interval,
        "corrected_pass_rate": found.corrected,
        "transferred_pass_rate": found.transferred,
        **(to_builtins(found.accuracy) or dict.fromkeys(("tpr", "tnr", "accuracy", "kappa"))),
        "people": found.people,
        "disagreements": found.disagreements,
    }
