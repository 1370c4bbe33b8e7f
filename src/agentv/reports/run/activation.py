"""Skills that queries loaded, of `activation` suites and of a prompt's `triggering`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import to_builtins

from agentv.model.run.matrix import MeasuredShare
from agentv.model.run.summary import Activation, SkillShares
from agentv.model.values.values import Json
from agentv.reports.run.rates import interval_words
from agentv.reports.text import one_line, percent

NONE = "none"
"""Name of the row and the column for no skill."""

_NAME = 40


def triggering_lines(found: Activation) -> list[str]:
    """The results of a prompt's queries, with a line for each measure; empty if it has no queries."""
    if not found.queries:
        return []
    (skill,) = found.skills
    return [f"triggering: {_judged(found)}", *(f"  {one}" for one in measure_words(skill))]


def activation_lines(found: Activation) -> Iterator[str]:
    """The results of queries for several skills: a sentence, measures of each skill, and the confusion matrix."""
    yield sentence(found)
    for skill in found.skills:
        yield f"  {one_line(skill.skill, _NAME)}: {', '.join(measure_words(skill))}"
    if found.judged:
        header, *rows = matrix(found)
        widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
        yield "  queries by the skill that they should load (rows) and the one that they loaded:"
        for row in (header, *rows):
            cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            yield f"    {'  '.join((row[0].ljust(widths[0]), *cells))}"


def sentence(found: Activation) -> str:
    """`activation with claude: 26 of 30 queries right; the most frequent mistake: 2 queries of 'a' loaded 'b'`."""
    who = one_line(" ".join(one for one in (found.target, found.variant) if one), _NAME)
    worst = next(iter(mistakes(found)), None)
    return f"activation with {who}: {_judged(found)}{f'; the most frequent mistake: {worst}' if worst else ''}"


def mistakes(found: Activation) -> list[str]:
    """`2 queries of 'refund' loaded 'returns'`, the most frequent first."""
    wrong = sorted((one for one in found.confusion if one.expected != one.loaded), key=lambda cell: -cell.queries)
    return [f"{_queries(one.queries)} of {_named(one.expected)} loaded {_named(one.loaded)}" for one in wrong]


def matrix(found: Activation) -> list[list[str]]:
    """The confusion matrix with a header: rows are the skills that should load, columns those that did."""
    names = [*(skill.skill for skill in found.skills), None]
    cells = {(cell.expected, cell.loaded): cell.queries for cell in found.confusion}
    rows = [[one_line(row or NONE, _NAME), *(str(cells.get((row, name), 0)) for name in names)] for row in names]
    return [["", *(one_line(name or NONE, _NAME) for name in names)], *rows]


def measure_words(skill: SkillShares) -> list[str]:
    """`precision 75.0% (3 of 4 that load it should; 95% CI 30.1% to 95.4%)`, recall and F1 likewise."""
    right = skill.true_positives
    loaded = f"{right} of {right + skill.false_positives} that load it should"
    wanted = f"{right} of {right + skill.false_negatives} that should load it do"
    return [
        f"precision {_share(skill.precision, loaded, 'none loads it')}",
        f"recall {_share(skill.recall, wanted, 'none should')}",
        f"F1 {_share(skill.f1, '', 'none loads it and none should')}",
    ]


def triggering_json(found: Activation) -> dict[str, Json]:
    """The counts, and each measure as `{"value", "interval": [low, high]}` in 0..1, as a JSON object.

    A measure that is not defined is null.
    """
    counts = {key: getattr(found, key) for key in ("queries", "judged", "errored", "not_run")}
    shares: dict[str, Json] = to_builtins(found.skills[0])
    return {**counts, **{key: value for key, value in shares.items() if key != "skill"}}


def _queries(number: int) -> str:
    return f"{number} quer{'y' if number == 1 else 'ies'}"


def _named(skill: str | None) -> str:
    return "no skill" if skill is None else f"'{one_line(skill, _NAME)}'"


def _judged(found: Activation) -> str:
    parts = [f"{found.right} of {_queries(found.judged)} right"] if found.judged else []
    parts += [f"{found.errored} errored"] if found.errored else []
    parts += [f"{found.not_run} not run"] if found.not_run else []
    return ", ".join(parts)


def _share(measured: MeasuredShare | None, counts: str, why: str) -> str:
    if measured is None:
        return f"undefined: {why}"
    interval = interval_words(measured.interval)
    return f"{percent(measured.value)} ({counts}; {interval})" if counts else f"{percent(measured.value)} ({interval})"
