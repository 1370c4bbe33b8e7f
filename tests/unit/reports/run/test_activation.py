from __future__ import annotations

from msgspec.structs import replace

from agentv.reports.run.activation import activation_lines, triggering_json, triggering_lines
from agentv.stats.intervals.classification import activation_of


def queries(right: int, wrong: int, missed: int, out: int, **counts: int):
    """Those of one prompt: loaded rightly and wrongly, not loaded wrongly and rightly."""
    found = [("p", ["p"])] * right + [(None, ["p"])] * wrong + [("p", [])] * missed + [(None, [])] * out
    return replace(activation_of("p", found, ["p"]), **counts)


def test_people_are_told_every_count_that_a_share_rests_on():
    assert triggering_lines(queries(8, 2, 4, 6, errored=1, not_run=3)) == [
        "triggering: 14 of 20 queries right, 1 errored, 3 not run",
        "  precision 80.0% (8 of 10 that load it should; 95% CI 49.0% to 94.3%)",
        "  recall    66.7% (8 of 12 that should load it do; 95% CI 39.1% to 86.2%)",
        "  F1        72.7% (95% CI 49.2% to 88.0%)",
    ]


def test_what_is_not_defined_is_neither_0_nor_1():
    assert triggering_lines(queries(0, 0, 0, 1)) == [
        "triggering: 1 of 1 query right",
        "  precision undefined: none loads it",
        "  recall    undefined: none should",
        "  F1        undefined: none loads it and none should",
    ]
    found = triggering_json(queries(0, 0, 0, 1))
    assert (found["precision"], found["recall"], found["f1"]) == (None, None, None)


def test_nothing_is_said_where_nothing_was_asked_and_errors_are_told_where_all_broke():
    assert triggering_lines(queries(0, 0, 0, 0)) == []
    assert triggering_lines(queries(0, 0, 0, 0, errored=2))[0] == "triggering: 2 errored"


def test_several_skills_have_a_sentence_their_measures_and_a_matrix():
    found = [("refund", ["refund"])] * 3 + [("refund", ["returns"])] * 2 + [("returns", ["returns"]), (None, [])]
    found += [(None, ["refund", "returns"])]
    shown = activation_of("shop", found, ["refund", "returns"])
    assert list(activation_lines(replace(shown, target="claude", errored=1))) == [
        (
            "activation with claude: 5 of 8 queries right, 1 errored; the most frequent mistake: 2 queries of 'refund' "
            "loaded 'returns'"
        ),
        (
            "  refund: precision 75.0% (3 of 4; 95% CI 30.1% to 95.4%), recall 60.0% (3 of 5; 95% CI 23.1% to 88.2%), "
            "F1 66.7% (95% CI 31.6% to 89.6%)"
        ),
        (
            "  returns: precision 25.0% (1 of 4; 95% CI 4.6% to 69.9%), recall 100.0% (1 of 1; 95% CI 20.7% to 100.0%), "
            "F1 40.0% (95% CI 8.7% to 82.3%)"
        ),
        "  queries by the skill that they should load (rows) and the one that they loaded:",
        "             refund  returns  none",
        "    refund        3        2     0",
        "    returns       0        1     0",
        "    none          1        1     1",
    ]
