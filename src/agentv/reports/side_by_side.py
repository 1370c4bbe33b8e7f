"""Output of `agentv results show --matrix`: answers side by side, in a row per case or, with `--answers`, whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from agentv.model.run.cases import sample_of
from agentv.model.run.runs import CaseAnswers, Place, SideBySide
from agentv.model.run.trial import Status, TrialResult
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.run.matrix import column_label
from agentv.reports.run.trial_view import STATUS_WORDS, check, trial_view
from agentv.reports.stored_run import STYLES, ShowOptions
from agentv.reports.text import GAP, TAB, Cell, cells, fitted, isolated, one_line, paint, safe
from agentv.stats.samples.deciding import rule_of, verdict_over


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text, safe to show and wrapped to `width`, between words where possible.

    Args:
        text: any text.
        width: terminal columns, at least 2, since a wide character takes two.
    """
    from rich.console import Console
    from rich.text import Text

    lines = Text(safe(text).replace("\t", TAB)).wrap(Console(), max(width, 2))
    yield from (line.plain.rstrip() for line in lines)


NARROWEST = 28
"""Smallest width of an answer in terminal columns; answers that do not fit beside the others go below them."""

WIDEST = 80

LINES = 8
"""Lines shown of an answer without `--full`."""

CHECKS = 3
"""Failed checks shown of an answer without `--full`."""

LONGEST = 2000
_NAME = 200
_WORST_FIRST: Sequence[Status] = ("errored", "failed", "skipped", "shown", "passed")


def render_case(case: CaseAnswers, found: SideBySide, options: ShowOptions) -> str:
    """A case with the answers of all targets and variants, for each prompt.

    Args:
        case: one of `found.cases`.
        found: all answers of the run that are shown.
        options: output options.
    """
    suite = f" ({one_line(case.suite, _NAME)})" if case.suite else ""
    lines = [paint(f"{one_line(case.case_id, _NAME)}{suite}", "bold", color=options.color)]
    pairs = [(target, variant) for target in found.targets for variant in found.variants]
    pairs = [
        pair
        for pair in pairs
        if any((pair[0], prompt, pair[1]) in one.answers for one in found.cases for prompt in found.prompts)
    ]
    if len(pairs) == 1:
        ((target, variant),) = pairs
        places = [(target, prompt, variant) for prompt in found.prompts]
        lines += _blocks(case, [(column_label((place[1],)), place) for place in places], options)
        return "\n".join(lines)
    for prompt in found.prompts:
        if not any(place[1] == prompt for place in case.answers):
            continue
        if len(found.prompts) > 1:
            head = "no prompt" if prompt is None else f"with {one_line(prompt, _NAME)}"
            lines.append(f"  {paint(head, 'bold', color=options.color)}")
        columns = [(column_label(_names(found, *pair)), (pair[0], prompt, pair[1])) for pair in pairs]
        lines += _blocks(case, columns, options)
    return "\n".join(lines)


def render_rest(found: SideBySide) -> str:
    """How many of the cases are shown, or an empty string if all are."""
    if not found.matching:
        return "no matching trials in this run"
    if len(found.cases) >= found.matching:
        return ""
    return f"{len(found.cases)} of {plural(found.matching, 'case')} shown; --limit N shows more"


def _names(found: SideBySide, target: str, variant: str | None) -> tuple[str | None, ...]:
    """The names that distinguish a column: the target and the variant, each if there are several."""
    names = ((target, found.targets), (variant, found.variants))
    return tuple(name for name, of in names if len(of) > 1)


def _blocks(case: CaseAnswers, columns: Sequence[tuple[str, Place]], options: ShowOptions) -> Iterator[str]:
    """The columns in blocks of as many as fit beside each other."""
    room = options.width - len(GAP)
    beside = max(1, min(len(columns), (room + len(GAP)) // (NARROWEST + len(GAP))))
    width = min(WIDEST, (room + len(GAP)) // beside - len(GAP))
    for begun in range(0, len(columns), beside):
        shown = [
            [(label, "bold"), *_answer(case.answers.get(place, ()), width, full=options.full)]
            for label, place in columns[begun : begun + beside]
        ]
        for row in zip_longest(*shown, fillvalue=("", None)):
            padded = [paint(text, style, color=options.color) + " " * (width - cells(text)) for text, style in row[:-1]]
            text, style = row[-1]
            yield f"{GAP}{GAP.join([*padded, paint(text, style, color=options.color)])}".rstrip()


def _answer(samples: Sequence[TrialResult], width: int, *, full: bool) -> Iterator[Cell]:
    """The status, the answer and the failed checks of the worst sample."""
    if not samples:
        yield "did not run", "dim"
        return
    one = worst(samples)
    for line in wrapped(_status(one, samples), width):
        yield line, STYLES[one.status]
    text = one.output or ""
    lines = list(wrapped(text[: None if full else LONGEST], width)) if text else []
    shown = lines if full else lines[:LINES]
    yield from ((line, None) for line in shown)
    if len(lines) > len(shown) or (not full and len(text) > LONGEST):
        yield "… --full shows all", "dim"
    if one.error is not None:
        error = f"{one.error.code}: {one.error.message}"
        yield from ((line, "errored") for line in list(wrapped(error, width))[: None if full else LINES])
    for found in list(_failed(one))[: None if full else CHECKS]:
        for line in list(wrapped(f"- {one_line(found, LONGEST)}", width))[: None if full else 2]:
            yield line, "failed"


def worst(samples: Sequence[TrialResult]) -> TrialResult:
    """The worst sample, by status and then by score."""
    return min(samples, key=lambda sample: (_WORST_FIRST.index(sample.status), sample.score or 0.0))


def _status(one: TrialResult, samples: Sequence[TrialResult]) -> str:
    score = f" {one.score:.2f}" if one.score is not None else ""
    word = f"{STATUS_WORDS[one.status]}{score}"
    if len(samples) == 1:
        return word
    passed = sum(sample.status == "passed" for sample in samples)
    return f"{word} (sample {one.trial.sample}; {passed} of {len(samples)} passed)"


def _failed(one: TrialResult) -> Iterator[str]:
    """Failed checks and errored assertions, and a note if the answer was cut."""
    view = trial_view("failed" if one.status == "failed" else "noted", one)
    for finding in view.findings:
        if finding.state != "noted":
            says_more = finding.evidence and finding.text in {finding.name, finding.type}
            yield f"{check(finding)}: {finding.evidence}" if says_more else check(finding)
    if view.cut is not None:
        yield view.cut


NARROWEST_ANSWER = 16
"""Smallest width of an answer in terminal columns; answers that do not fit go in another table below."""

_ID = 28
_VARIABLE = 20
_MARKS: Mapping[Status, str] = {"passed": "✓", "failed": "✗", "errored": "!", "skipped": "–", "shown": "·"}


def render_grid(found: SideBySide, options: ShowOptions) -> str:
    """A row for each case: its id and variables, then verdict, score and beginning of each answer."""
    places = [
        place
        for prompt in found.prompts
        for target in found.targets
        for variant in found.variants
        if any((place := (target, prompt, variant)) in case.answers for case in found.cases)
    ]
    suites = len({one.suite for one in found.cases}) > 1
    named = [f"{case.suite}: {case.case_id}" if suites else case.case_id for case in found.cases]
    ids = _column("case", named, min(_ID, options.width // 3))
    left = options.width - cells(ids[0])
    beside = max(1, min(len(places), left // (NARROWEST_ANSWER + len(GAP))))
    heads = [ids]
    for name in dict.fromkeys(name for case in found.cases for name in _vars(case)):
        if any(isinstance(_vars(case).get(name), Mapping | list) for case in found.cases):
            continue
        column = _column(name, [_text(_vars(case).get(name)) for case in found.cases], _VARIABLE)
        if left - cells(column[0]) - len(GAP) >= beside * (NARROWEST_ANSWER + len(GAP)):
            heads.append(column)
            left -= cells(column[0]) + len(GAP)
    width = left // beside - len(GAP)
    lines: list[str] = []
    for begun in range(0, len(places), beside):
        shown = places[begun : begun + beside]
        lines += [""] if begun else []
        lines.append(
            _line(
                [column[0] for column in heads], [(_place_label(found, one), "bold") for one in shown], width, options
            )
        )
        for at, case in enumerate(found.cases, 1):
            answers = [_cell(case.answers.get(place, ())) for place in shown]
            lines.append(_line([column[at] for column in heads], answers, width, options, bold=False))
    return "\n".join(lines)


def _column(head: str, texts: Sequence[str], widest: int) -> list[str]:
    """The head and the texts, padded to the same width, which is at most `widest`."""
    cut = [fitted(one_line(text[: 4 * widest]), widest) for text in (head, *texts)]
    width = max(map(cells, cut))
    return [isolated(text) + " " * (width - cells(text)) for text in cut]


def _line(heads: Sequence[str], answers: Sequence[Cell], width: int, options: ShowOptions, *, bold: bool = True) -> str:
    """A row of the table, with each answer cut to `width`; only its verdict is colored."""
    parts = [paint(text, "bold" if bold else None, color=options.color) for text in heads]
    for text, style in answers:
        shown = fitted(text, width)
        verdict, space, rest = (shown, "", "") if bold else shown.partition("  ")
        padding = " " * (width - cells(shown))
        parts.append(f"{paint(verdict, style, color=options.color)}{space}{isolated(rest)}{padding}")
    return GAP.join(parts).rstrip()


def _cell(samples: Sequence[TrialResult]) -> Cell:
    """A cell such as `✓ 1.00  30 days`: the case's verdict, its mean score or error code, and one answer."""
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
    answer = one.output or (one.error.message if one.error is not None else "")
    return f"{' '.join(words)}  {one_line(' '.join(answer[:1000].split()))}".rstrip(), STYLES[verdict]


def _place_label(found: SideBySide, place: Place) -> str:
    """Label that distinguishes a column from the others: `brief, gpt as skilled`."""
    target, prompt, variant = place
    names = _names(found, target, variant)
    parts = ([column_label((prompt,))] if len(found.prompts) > 1 else []) + ([column_label(names)] if names else [])
    return ", ".join(parts) or column_label((target,))


def _vars(case: CaseAnswers) -> Mapping[str, Json]:
    samples = next(iter(case.answers.values()))
    return samples[0].trial.case.vars


def _text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    return json.dumps(value, ensure_ascii=False)
