"""`agentv check`, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agentv.model.run.case_check import CaseProblem, CheckReport
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line

_MOST_DETAILS = 10
_MOST_NAMES = 20


def render_check(found: CheckReport) -> str:
    """The problems by suite, then a line with what was checked."""
    return "\n".join([*map(one_line, found.notes), *_problems(found.problems), *_unsolved(found), _closing(found)])


def _problems(problems: Sequence[CaseProblem]) -> Iterator[str]:
    several = len({one.suite for one in problems}) > 1
    for one in problems:
        name = f"{one.suite} › {one.name}" if several else one.name
        yield f"{one_line(name)}: {one_line(one.message)}"
        for line in one.detail[:_MOST_DETAILS]:
            yield f"  {one_line(line)}"
        if len(one.detail) > _MOST_DETAILS:
            yield f"  and {len(one.detail) - _MOST_DETAILS} more"


def _unsolved(found: CheckReport) -> Iterator[str]:
    names = found.without_solution
    if names:
        shown = ", ".join(names[:_MOST_NAMES]) + (
            f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        )
        yield f"{plural(len(names), 'case')} without 'solution' or 'expected_output': {one_line(shown)}"


def _closing(found: CheckReport) -> str:
    tried = f", {plural(found.solved, 'solution')} tried" if found.solved else ""
    if found.interrupted:
        return f"interrupted, so that not all of {plural(found.cases, 'case')} are checked"
    return f"{plural(found.cases, 'case')} checked{tried}: {found.sound} without a problem"


def check_json(found: CheckReport) -> str:
    """The same as one JSON object."""
    return json.dumps(
        {
            "cases": found.cases,
            "solutions": found.solved,
            "problems": [
                {
                    "suite": one.suite,
                    "test_id": one.case,
                    "variant": one.variant,
                    "problem": one.problem,
                    "message": one.message,
                    "detail": list(one.detail),
                }
                for one in found.problems
            ],
            "without_solution": list(found.without_solution),
            "interrupted": found.interrupted,
        },
        ensure_ascii=False,
        indent=2,
    )
