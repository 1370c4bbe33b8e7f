from __future__ import annotations

import pytest

from agentv.app.prompts.reporting import confusion
from agentv.model.suite.exam import Exam
from agentv.stats.intervals.classification import Classified

QUERIES = {"trigger: a": True, "trigger: b": True, "trigger: c": True, "trigger: d": False, "trigger: e": False}
EXAM = Exam("diff", "/prompts/diff", queries=QUERIES)


@pytest.mark.parametrize(
    ("verdicts", "table", "errored", "not_run"),
    [
        ("passed passed failed passed failed", Classified(2, 1, 1, 1), 0, 0),
        ("passed errored failed errored passed", Classified(1, 0, 1, 1), 2, 0),
        ("skipped passed passed", Classified(2, 0, 0, 0), 0, 3),
        ("", Classified(), 0, 5),
    ],
)
def test_each_query_counts_once_and_what_was_not_judged_in_no_share(verdicts, table, errored, not_run):
    outcomes = dict(zip(QUERIES, verdicts.split(), strict=False))
    found = confusion(EXAM, {**outcomes, "a case": "failed"})
    assert (*found.skills, found.errored, found.not_run) == (table.of_skill("diff"), errored, not_run)
