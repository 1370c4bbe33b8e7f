"""`agentv results show --matrix --answers`: whole answers side by side, in as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from agentv.model.run.runs import CaseAnswers, Place, SideBySide
from agentv.model.run.trial import Status, TrialResult
from agentv.model.values.formatting import plural
from agentv.reports.commands.stored_run import ShowOptions
from agentv.reports.run.formatting import STATUS_WORDS, check
from agentv.reports.run.matrix import column_label
from agentv.reports.run.trial_view import trial_view
from agentv.reports.text.escaping import TAB, cells, one_line, safe
from agentv.reports.text.tables import paint


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text, safe and none wider than `width`; broken between words where one fits.

    Args:
        text: any text.
        width: columns, at least 2: a wide letter takes two.
    """
    for line in safe(text).replace("\t", TAB).split("\n"):
        yield from _broken(line.rstrip(), max(width, 2))


def _broken(line: str, width: int) -> Iterator[str]:
    while cells(line) > width:
        end = _fitting(line, width)
        space = line.rfind(" ", 1, end + 1)
        end = space if space > 0 else end
        yield line[:end].rstrip()
        line = line[end:].lstrip()
    yield line


def _fitting(line: str, width: int) -> int:
    """Number of letters that fit, at least one."""
    taken = 0
    for place, letter in enumerate(line):
        taken += cells(letter)
        if taken > width:
            return max(place, 1)
    return len(line)


NARROWEST = 28
"""Columns of a terminal that an answer gets at least; if there is no room for all, some stand below the others."""

WIDEST = 80

LINES = 8
"""Lines of an answer that are shown where not all is asked for."""

CHECKS = 3
"""Failed checks that are shown of an answer."""

LONGEST = 2000
_NAME = 200
_GAP = "  "
STYLES: dict[Status, str] = {
    "passed": "passed",
    "failed": "failed",
    "errored": "errored",
    "skipped": "tested",
    "shown": "tested",
}
_WORST_FIRST: Sequence[Status] = ("errored", "failed", "skipped", "shown", "passed")

Line = tuple[str, str | None]
"""Text and the name of its style."""


def render_case(case: CaseAnswers, found: SideBySide, options: ShowOptions) -> str:
    """The case, and for each prompt the answers of all targets and variants.

    Args:
        case: one of `found.cases`.
        found: what is shown, which says what differs.
        options: of the output.
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
            lines.append(f"  {paint(_prompt(prompt), 'bold', color=options.color)}")
        columns = [(_label(found, *pair), (pair[0], prompt, pair[1])) for pair in pairs]
        lines += _blocks(case, columns, options)
    return "\n".join(lines)


def render_rest(found: SideBySide) -> str:
    """How many cases are not shown; empty if all are shown."""
    if not found.matching:
        return "no matching trials in this run"
    if len(found.cases) >= found.matching:
        return ""
    return f"{len(found.cases)} of {plural(found.matching, 'case')} shown; --limit N shows more"


def _prompt(prompt: str | None) -> str:
    return "no prompt" if prompt is None else f"with {one_line(prompt, _NAME)}"


def _label(found: SideBySide, target: str, variant: str | None) -> str:
    names = ((target, found.targets), (variant, found.variants))
    return column_label(tuple(name for name, of in names if len(of) > 1))


def _blocks(case: CaseAnswers, columns: Sequence[tuple[str, Place]], options: ShowOptions) -> Iterator[str]:
    """The columns, as many beside each other as have room."""
    room = options.width - len(_GAP)
    beside = max(1, min(len(columns), (room + len(_GAP)) // (NARROWEST + len(_GAP))))
    width = min(WIDEST, (room + len(_GAP)) // beside - len(_GAP))
    for begun in range(0, len(columns), beside):
        shown = [
            [(label, "bold"), *_answer(case.answers.get(place, ()), width, full=options.full)]
            for label, place in columns[begun : begun + beside]
        ]
        for row in zip_longest(*shown, fillvalue=("", None)):
            padded = [paint(text, style, color=options.color) + " " * (width - cells(text)) for text, style in row[:-1]]
            text, style = row[-1]
            yield f"{_GAP}{_GAP.join([*padded, paint(text, style, color=options.color)])}".rstrip()


def _answer(samples: Sequence[TrialResult], width: int, *, full: bool) -> Iterator[Line]:
    """The status, the answer, and what failed; of several samples the worst one."""
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
    """The sample that did worst."""
    return min(samples, key=lambda sample: (_WORST_FIRST.index(sample.status), sample.score or 0.0))


def _status(one: TrialResult, samples: Sequence[TrialResult]) -> str:
    score = f" {one.score:.2f}" if one.score is not None else ""
    word = f"{STATUS_WORDS[one.status]}{score}"
    if len(samples) == 1:
        return word
    passed = sum(sample.status == "passed" for sample in samples)
    return f"{word} (sample {one.trial.sample}; {passed} of {len(samples)} passed)"


def _failed(one: TrialResult) -> Iterator[str]:
    """What an answer lacks: failed checks, and assertions that errored; then that it was cut."""
    view = trial_view("failed" if one.status == "failed" else "noted", one)
    for finding in view.findings:
        if finding.state != "noted":
            says_more = finding.evidence and finding.text in {finding.name, finding.type}
            yield f"{check(finding)}: {finding.evidence}" if says_more else check(finding)
    if view.cut is not None:
        yield view.cut
