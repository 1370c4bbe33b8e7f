"""`agentv judge check --probe`, as text for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from agentv.extensions.labels.judges.comparing import MOST_ERRORS
from agentv.extensions.labels.judges.probing import Flips, JudgeProbing, ProbedJudge, ProbeOutcome
from agentv.extensions.labels.reports.judge_compare import calls_line, table
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, percent

SHOWN = 3
"""Changed verdicts that are shown of each probe."""

_LONGEST = 160


def render_judge_probing(found: JudgeProbing) -> str:
    """A block for each assertion, then what the calls cost."""
    blocks = ["\n".join(_judge(one, found.run)) for one in found.judges]
    return "\n\n".join([*blocks, calls_line(found.new_calls, found.spent_usd)])


def _judge(found: ProbedJudge, run: str) -> Iterator[str]:
    verdicts = f"it passes {found.passed} and fails {found.answers - found.passed}"
    name = f"judge '{one_line(found.judge)}' ({one_line(found.model)})"
    yield f"{one_line(found.assertion)}, {name}: {plural(found.answers, 'answer')}, of which {verdicts}"
    for note in found.notes:
        yield f"note: {one_line(note)}"
    if found.errors:
        kind = "warning" if found.probes else "error"
        yield f"{kind}: the judge gave no verdict on {plural(found.errors, 'answer')}"
        yield f"  {one_line(found.error or '', _LONGEST)}"
    if not found.probes:
        yield f"more than {MOST_ERRORS:.0%} of the answers have no verdict, so the judge is not probed"
        return
    yield ""
    yield from table(("probe", "fail → pass", "pass → fail", ""), [_row(one) for one in found.probes])
    yield ""
    yield from _flips(found.probes, run)


def _row(found: ProbeOutcome) -> tuple[str, ...]:
    notes = []
    if found.does_not_fit:
        notes.append(f"does not fit {plural(found.does_not_fit, 'answer')}")
    if found.errors:
        notes.append(f"no verdict on {plural(found.errors, 'answer')}")
    return (found.probe, _share(found.fail_to_pass), _share(found.pass_to_fail), "; ".join(notes))


def _share(found: Flips) -> str:
    if found.share is None:
        return "-"
    interval = "" if found.interval is None else f" ({percent(found.interval[0])} to {percent(found.interval[1])})"
    return f"{found.flipped} of {found.answers}: {percent(found.share)}{interval}"


def _flips(probes: Sequence[ProbeOutcome], run: str) -> Iterator[str]:
    if not any(one.flips for one in probes):
        yield "no verdict changed"
        return
    yield "changed verdicts:"
    for one in probes:
        for flip in one.flips[:SHOWN]:
            direction = "pass → fail" if flip.before == "pass" else "fail → pass"
            show = one_line(shlex.join(["agentv", "results", "show", run, "--case", flip.case]))
            yield f"  {one.probe}, {direction}: {show}"
            if flip.reason:
                yield f"    the judge then: {one_line(flip.reason, _LONGEST)}"
        if len(one.flips) > SHOWN:
            yield f"  {one.probe}: {len(one.flips) - SHOWN} more; --json lists all, with the changed answers"
