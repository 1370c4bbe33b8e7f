from __future__ import annotations

from agentv.reports.run.triggering import Confusion, triggering_json, triggering_lines
from agentv.stats.intervals.classification import Classified


def test_people_are_told_every_count_that_a_share_rests_on():
    assert triggering_lines(Confusion(Classified(8, 2, 4, 6), errored=1, not_run=3)) == [
        "triggering: 14 of 20 queries right, 1 errored, 3 not run",
        "  precision 80.0% (8 of 10 that load it should; 95% CI 49.0% to 94.3%)",
        "  recall    66.7% (8 of 12 that should load it do; 95% CI 39.1% to 86.2%)",
        "  F1        72.7% (95% CI 49.2% to 88.0%)",
    ]


def test_what_is_not_defined_is_neither_0_nor_1():
    assert triggering_lines(Confusion(Classified(true_negatives=1))) == [
        "triggering: 1 of 1 query right",
        "  precision undefined: none loads it",
        "  recall    undefined: none should",
        "  F1        undefined: none loads it and none should",
    ]
    found = triggering_json(Confusion(Classified(true_negatives=1)))
    assert (found["precision"], found["recall"], found["f1"]) == (None, None, None)


def test_nothing_is_said_where_nothing_was_asked_and_errors_are_told_where_all_broke():
    assert triggering_lines(Confusion(Classified())) == []
    assert triggering_lines(Confusion(Classified(), errored=2))[0] == "triggering: 2 errored"
