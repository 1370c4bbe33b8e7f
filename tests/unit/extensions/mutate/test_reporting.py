import json

from msgspec.structs import replace

from agentv.extensions.mutate.reporting import (
    IdleAssertion,
    MutationReport,
    OperatorCount,
    OriginalFailure,
    Survivor,
    mutation_json,
    render_mutation,
)

ONE = Survivor("refunds", "late", "shop", None, None, 1, "change-number", '"30 days" became "60 days"', True)
REPORT = MutationReport("run-1", 4, {"change-number": OperatorCount(3, 1, 2), "negate": OperatorCount()}, (ONE,))


def lines(report, *, shows_all=False):
    return render_mutation(report, shows_all=shows_all).split("\n")


def test_twenty_survivors_are_shown_and_the_rest_is_counted():
    many = replace(REPORT, survivors=(ONE,) * 25)
    assert "and 5 more survivors: --all or --json lists them" in lines(many)
    assert sum(line.startswith("late") for line in lines(many, shows_all=True)) == 25


def test_what_does_not_count_is_shown_only_on_request_and_apart():
    other = replace(ONE, counts=False, change="the answer became a refusal")
    report = replace(REPORT, survivors=(ONE, other))
    assert not any("refusal" in line for line in lines(report))
    assert "  late: the answer became a refusal" in lines(report, shows_all=True)


def test_hostile_text_stays_on_its_line():
    hostile = "a\x1b[2J\nb\u202e"
    report = replace(
        REPORT,
        survivors=(replace(ONE, case=hostile, change=hostile, line=hostile, outvoted=(hostile,)),),
        idle=(IdleAssertion("refunds", hostile, 3),),
        failing=(OriginalFailure("refunds", hostile, hostile),),
        notes=(hostile,),
    )
    text = render_mutation(report, shows_all=True)
    assert not set(text) & {"\x1b", "\u202e"}
    assert "\nb" not in text
    assert json.loads(mutation_json(report))["survivors"][0]["test_id"] == hostile


def test_a_score_below_the_minimum_fails_and_none_is_no_success():
    assert replace(REPORT, min_score=0.75).status == 0
    low = replace(REPORT, min_score=0.8)
    assert low.status == 1
    assert lines(low)[-1].endswith("score 75.0%; required: 80.0%")
    none = replace(REPORT, operators={"negate": OperatorCount(others_killed=2)}, survivors=())
    assert (none.score, none.status) == (None, 3)
    assert lines(none)[-1].endswith("so there is no score")
    nothing = replace(none, operators={"negate": OperatorCount()})
    assert lines(nothing)[-1] == "4 answers, no mutant: the operators fit none of the answers"
    ungraded = replace(REPORT, operators={"negate": OperatorCount(killed=1, not_graded=2)})
    assert ungraded.status == 3
    assert "2 mutants not graded: a judge gave no verdict, or the budget is used up" in lines(ungraded)


def test_several_targets_and_suites_are_told_apart():
    other = replace(ONE, target="new", suite="other", sample=2)
    _, _, *shown = lines(replace(REPORT, survivors=(ONE, other)))
    assert shown[0].startswith("refunds › late (shop): ")
    assert shown[1].startswith("other › late (new, sample 2): ")
