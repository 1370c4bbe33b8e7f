import pytest

from agentv.app.compare.evidence import moved_cases, worst_first
from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair
from agentv.model.run.grade import Check
from doubles.trials import errored_score, finished, graded, scored, trial

KEY = CaseKey("refunds", "case-1", None, "gpt")


def outcome(score, places):
    return CaseOutcome("passed" if score >= 0.8 else "failed", score, len(places), 0.8, 1, 1, 1, places=places)


def pair(before, after, places=(1,), case_id="case-1"):
    key = KEY._replace(case_id=case_id)
    return CasePair(key, key, outcome(before, places), outcome(after, places))


def run(results):
    """What reads the rows of a run that holds these, their numbers standing for places."""
    return lambda places: [results[number - 1] for number in places]


def changes(before, after):
    (found,) = moved_cases([pair(1, 0)], run([finished(scores=before)]), run([finished("failed", scores=after)]))
    return found.changes


def sampled(*scores):
    return [
        finished("passed" if score >= 0.8 else "failed", trial=trial(sample=number, repeat=3), score=score)
        for number, score in enumerate(scores, 1)
    ]


def test_the_worst_comes_first():
    broken, lost, won, fixed = pair(0.9, 0.7), pair(0.5, 0.0), pair(0.2, 0.4), pair(0.0, 1.0)
    assert worst_first([fixed, won, lost, broken]) == [3, 2, 1, 0]


def test_what_moved_alike_stands_in_the_order_of_its_names():
    assert worst_first([pair(1.0, 0.0, case_id=one) for one in "bca"]) == [2, 0, 1]
    for field, names in (("variant", ("w", "v", None)), ("prompt", ("q", "p", None)), ("target", ("z", "y", "x"))):
        keys = [KEY._replace(**{field: name}) for name in names]
        moved = [CasePair(key, key, outcome(1.0, (1,)), outcome(0.0, (1,))) for key in keys]
        assert worst_first(moved) == [2, 1, 0], field


def test_both_answers_are_shown():
    (found,) = moved_cases([pair(1, 0)], run([finished(output="Yes.")]), run([finished("failed", output="No.")]))
    assert (found.before.output, found.after.output) == ("Yes.", "No.")


@pytest.mark.parametrize(("scores", "shown"), [((0.9, 0.3), (1.0, 0.1)), ((0.3, 0.9), (0.9, 1.0))])
def test_of_several_samples_those_are_shown_that_are_furthest_apart(scores, shown):
    samples = sampled(0.9, 1.0, 0.9), sampled(0.5, 0.1, 1.0)
    (found,) = moved_cases([pair(*scores, places=(1, 2, 3))], *map(run, samples))
    assert (found.before.score, found.after.score) == shown


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (("failed", 0.9), ("passed", 0.5), (0.9, 1.0)),
        (("passed", 0.5), ("failed", 0.9), (1.0, 0.1)),
        (("passed", 0.9), ("passed", 0.8), (1.0, 0.1)),
        (("passed", 0.8), ("passed", 0.9), (0.9, 1.0)),
    ],
)
def test_a_verdict_that_changed_decides_which_samples_are_shown_else_the_score(before, after, shown):
    """A case may pass that scores less: a gate, or a lower threshold."""
    samples = sampled(0.9, 1.0, 0.9), sampled(0.5, 0.1, 1.0)
    places = (1, 2, 3)
    sides = [CaseOutcome(status, score, 3, 0.8, 1, 1, 1, places=places) for status, score in (before, after)]
    (found,) = moved_cases([CasePair(KEY, KEY, *sides)], *map(run, samples))
    assert (found.before.score, found.after.score) == shown


def test_only_assertions_that_did_not_end_alike_are_shown():
    kind = graded(0.9, True, name="is kind")
    (change,) = changes([kind, scored(True)], [kind, scored(False, evidence="No.")])
    assert (change.type, change.passed_before, change.passed_after, change.evidence) == (
        "contains",
        True,
        False,
        "No.",
    )


def test_assertions_of_one_name_are_told_apart_by_their_order():
    (change,) = changes([scored(True), scored(True)], [scored(False), scored(True)])
    assert (change.passed_before, change.passed_after) == (True, False)


def test_an_assertion_that_one_run_lacks_is_a_change():
    (change,) = changes([scored(True)], [scored(True), scored(False, name="new")])
    assert (change.name, change.passed_before, change.before) == ("new", None, None)
    (change,) = changes([scored(True), scored(True, name="old")], [scored(True)])
    assert (change.name, change.passed_after, change.evidence) == ("old", None, None)


def test_a_score_that_moved_without_its_verdict_is_a_change_and_rounding_is_none():
    (change,) = changes([graded(0.9, True)], [graded(0.85, True)])
    assert (change.before, change.after) == (0.9, 0.85)
    assert changes([graded(0.9, True)], [graded(0.9 + 1e-12, True)]) == ()
    (change,) = changes([graded(0.9, True)], [graded(0.9, False)])
    assert (change.before, change.after, change.passed_before, change.passed_after) == (0.9, 0.9, True, False)


def test_an_assertion_says_why_by_its_error_else_its_first_check_that_agrees_with_it_else_its_reason():
    (broke,) = changes([scored(True)], [errored_score()])
    checks = (Check("is short", True), Check("is kind", False, "calls the user names"), Check("is right", False))
    (failed,) = changes([graded(1.0, True)], [graded(0.2, False, *checks)])
    assert broke.evidence == "the script ended with status 2"
    assert failed.evidence == "calls the user names"


def test_every_case_gets_its_own_samples():
    results = [finished(output=f"{number}") for number in range(6)]
    first, second = moved_cases([pair(1, 0, (5,)), pair(1, 0, (2,), "b")], run(results), run(results))
    assert (first.before.output, second.before.output) == ("4", "1")
