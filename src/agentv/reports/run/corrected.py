"""Corrected pass rates in words, and whether a judge was ever checked: one module, so that all views say the same."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from agentv.model.run.summary import CorrectedRate, CorrectedRates, GateResult
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, percent

SHOWN = 10
"""Assertions whose rates are listed; `--json` holds all."""

_NAME = 80
_LONGEST = 300


def corrected_words(found: CorrectedRate) -> str:
    """`81.0% by the judge; 74.2% (95% CI 67.9% to 80.1%) corrected by 60 labelled answers`."""
    return f"{percent(found.by_judge)} by the judge; {rate_words(found)}"


def rate_words(found: CorrectedRate) -> str:
    """`74.2% (95% CI 67.9% to 80.1%) corrected by 60 labelled answers`; of other runs with what is assumed."""
    low, high = found.interval
    labels = plural(found.labels, "labelled answer")
    if found.transferred:
        labels = f"{labels} of other runs, if the judge errs as often here as there"
    return f"{percent(found.rate)} (95% CI {percent(low)} to {percent(high)}) corrected by {labels}"


def corrected_lines(found: CorrectedRates) -> Iterator[str]:
    """The corrected rate of the run, or why it cannot be computed and the rates of single assertions."""
    if found.run is not None:
        yield f"pass rate {corrected_words(found.run)}"
        return
    if found.reason is None:
        return
    yield f"no corrected pass rate of the run: {one_line(found.reason, _LONGEST)}"
    known = [(one.assertion, one.corrected) for one in found.assertions if one.corrected is not None]
    for name, rate in known[:SHOWN]:
        yield f"  {one_line(name, _NAME)}: {corrected_words(rate)}"
    if len(known) > SHOWN:
        yield f"  and {len(known) - SHOWN} more assertions; --json lists all"


def unchecked_words(found: CorrectedRates | None) -> str:
    """Which judges were never checked against people; empty where all were, or none graded."""
    if found is None or not found.unchecked:
        return ""
    outdated = [name for name in found.unchecked if name in found.outdated]
    never = [name for name in found.unchecked if name not in found.outdated]
    parts = [f"{_judges(never)} {'was' if len(never) == 1 else 'were'} never checked against people"] if never else []
    if outdated:
        parts.append(f"no label counts for {_judges(outdated)} with the present model, prompt and rubric")
    return "; ".join(parts)


def unchecked_line(found: CorrectedRates | None, run: str) -> str:
    """The same as a note, with the command that labels answers of the run; empty as there."""
    words = unchecked_words(found)
    return f"note: {words}; label answers: agentv label {quote(run)}" if words else ""


def gate_line(found: GateResult) -> str:
    """What a gate came to."""
    state = "passed" if found.passed else "failed"
    warning = f"; warning: {one_line(found.warning, _LONGEST)}" if found.warning else ""
    return f"gate {state}: {found.title} of {one_line(found.suite, _NAME)}: {one_line(found.why, _LONGEST)}{warning}"


def _judges(names: list[str]) -> str:
    quoted = [f"'{one_line(name, _NAME)}'" for name in names]
    if len(quoted) == 1:
        return f"the judge {quoted[0]}"
    return f"the judges {', '.join(quoted[:-1])} and {quoted[-1]}"
