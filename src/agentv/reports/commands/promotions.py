"""Results of promotions, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from agentv.model.suite.library import Covered, Promotion, called
from agentv.reports.run.exam_attempts import gate_json, reason_lines
from agentv.reports.text.escaping import one_line
from agentv.reports.text.paths import shown_from


def promotion_lines(done: Promotion, *, here: str) -> Iterator[str]:
    """One line where the status was written or would be, else every reason why not."""
    name = one_line(done.prompt)
    if done.gate.to is None:
        yield f"{name} is {done.before} already"
    elif done.refused:
        yield f"{name} stays {done.before}: it cannot become {done.gate.to}"
        yield from reason_lines(done.gate)
    elif done.written:
        place = f", written to {one_line(shown_from(done.path, here))}" if done.path else ""
        yield f"{name}: {done.before} → {done.gate.to}{place}"
    else:
        yield f"{name}: {done.before} → {done.gate.to} would be written; nothing was (--dry-run)"
    if done.evidence is not None:
        yield from _covered_lines(done.evidence)


def _covered_lines(covered: Covered) -> Iterator[str]:
    """What the evidence covers: each text with its digests in the latest exam and now."""
    exam = "no exam on record" if covered.ts is None else f"exam of {covered.ts}"
    yield f"  evidence: {exam} | now"
    for path in sorted(covered.recorded.keys() | covered.now.keys()):
        before, now = covered.recorded.get(path), covered.now.get(path)
        digests = (one[:12] if one else "-" for one in (before, now))
        yield f"    {' | '.join(f'{one:<12}' for one in digests)}  {one_line(called(path))}"


def promotions_json(done: Iterable[Promotion], *, here: str) -> str:
    """A JSON array with an object for each prompt."""
    rows = [
        {
            "prompt": one.prompt,
            "path": shown_from(one.path, here) if one.path else None,
            "before": one.before,
            "written": one.written,
            **gate_json(one.gate),
            **({"recorded": one.evidence.recorded, "now": one.evidence.now} if one.evidence is not None else {}),
        }
        for one in done
    ]
    return json.dumps(rows, indent=2)
