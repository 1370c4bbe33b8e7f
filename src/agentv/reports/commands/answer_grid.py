"""`agentv results show --matrix`: a line for each case, with its variables and every answer in a column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from agentv.model.run.cases import sample_of
from agentv.model.run.runs import CaseAnswers, Place, SideBySide
from agentv.model.run.trial import Status, TrialResult
from agentv.model.values.values import Json
from agentv.reports.commands.side_by_side import STYLES
from agentv.reports.commands.stored_run import ShowOptions
from agentv.reports.run.matrix import column_label
from agentv.reports.text.escaping import cells, isolated, one_line
from agentv.reports.text.tables import GAP, Cell, fitted, paint
from agentv.stats.samples.deciding import rule_of, verdict_over

NARROWEST = 16
"""Columns of a terminal that an answer gets at least; what has no room stands in a further table below."""

_ID = 28
_VARIABLE = 20
_MARKS: Mapping[Status, str] = {"passed": "✓", "failed": "✗", "errored": "!", "skipped": "–", "shown": "·"}


def render_grid(found: SideBySide, options: ShowOptions) -> str:
    """A line for each case: its id and variables, then verdict, score and the beginning of each answer."""
    places = [
        place
        for prompt in found.prompts
        for target in found.targets
        for variant in found.variants
        if any((place := (target, prompt, variant)) in case.answers for case in found.cases)
    ]
    ids = _column("case", [_id(case, found) for case in found.cases], min(_ID, options.width // 3))
    left = options.width - cells(ids[0])
    beside = max(1, min(len(places), left // (NARROWEST + len(GAP))))
    heads = [ids]
    for name in _variables(found.cases):
        column = _column(name, [_text(_vars(case).get(name)) for case in found.cases], _VARIABLE)
        if left - cells(column[0]) - len(GAP) >= beside * (NARROWEST + len(GAP)):
            heads.append(column)
            left -= cells(column[0]) + len(GAP)
    width = left // beside - len(GAP)
    lines: list[str] = []
    for begun in range(0, len(places), beside):
        shown = places[begun : begun + beside]
        lines += [""] if begun else []
        lines.append(
            _line([column[0] for column in heads], [(_label(found, one), "bold") for one in shown], width, options)
        )
        for at, case in enumerate(found.cases, 1):
            answers = [_cell(case.answers.get(place, ())) for place in shown]
            lines.append(_line([column[at] for column in heads], answers, width, options, bold=False))
    return "\n".join(lines)


def _column(head: str, texts: Sequence[str], widest: int) -> list[str]:
    """The head and the texts, all as wide as the widest of them, which is cut to fit."""
    cut = [fitted(one_line(text[: 4 * widest]), widest) for text in (head, *texts)]
    width = max(map(cells, cut))
    return [isolated(text) + " " * (width - cells(text)) for text in cut]


def _line(heads: Sequence[str], answers: Sequence[Cell], width: int, options: ShowOptions, *, bold: bool = True) -> str:
    """Heads and answers, each answer cut to a width; only its verdict is painted."""
    parts = [paint(text, "bold" if bold else None, color=options.color) for text in heads]
    for text, style in answers:
        shown = fitted(text, width)
        verdict, space, rest = (shown, "", "") if bold else shown.partition("  ")
        padding = " " * (width - cells(shown))
        parts.append(f"{paint(verdict, style, color=options.color)}{space}{isolated(rest)}{padding}")
    return GAP.join(parts).rstrip()


def _cell(samples: Sequence[TrialResult]) -> Cell:
    """`✓ 1.00  30 days`; of several samples the case's verdict, the mean score and an answer; of an error its code."""
    if not samples:
        return "did not run", "dim"
    verdict = verdict_over([sample_of(one) for one in samples], rule_of(samples[0].trial))
    one = next((one for one in samples if one.status == verdict), samples[0])
    scores = [sample.score for sample in samples if sample.score is not None]
    words = [_MARKS[verdict]]
    if len(samples) > 1:
        words.append(f"{sum(sample.status == 'passed' for sample in samples)}/{len(samples)}")
    if one.error is not None:
        words.append(one_line(one.error.code))
    elif scores:
        words.append(f"{sum(scores) / len(scores):.2f}")
    said = one.output or (one.error.message if one.error is not None else "")
    return f"{' '.join(words)}  {one_line(' '.join(said[:1000].split()))}".rstrip(), STYLES[verdict]


def _id(case: CaseAnswers, found: SideBySide) -> str:
    suites = len({one.suite for one in found.cases}) > 1
    return f"{case.suite}: {case.case_id}" if suites else case.case_id


def _label(found: SideBySide, place: Place) -> str:
    """What tells a column from the others: `brief, gpt as skilled`."""
    target, prompt, variant = place
    names = tuple(name for name, of in ((target, found.targets), (variant, found.variants)) if len(of) > 1)
    parts = ([column_label((prompt,))] if len(found.prompts) > 1 else []) + ([column_label(names)] if names else [])
    return ", ".join(parts) or column_label((target,))


def _variables(cases: Sequence[CaseAnswers]) -> Iterator[str]:
    """The names of the variables of the cases, without those that have objects or lists."""
    names = dict.fromkeys(name for case in cases for name in _vars(case))
    return (name for name in names if not any(isinstance(_vars(case).get(name), Mapping | list) for case in cases))


def _vars(case: CaseAnswers) -> Mapping[str, Json]:
    samples = next(iter(case.answers.values()))
    return samples[0].trial.case.vars


def _text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    return json.dumps(value, ensure_ascii=False)
