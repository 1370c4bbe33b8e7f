import pytest
from msgspec.structs import replace

from agentv.app.compare.gathering import cases_of
from agentv.app.compare.matching import ChosenCases
from agentv.store.files.encoding import to_json
from agentv.store.rows.reading import row_in
from agentv.store.rows.rows import RelativePaths, row_of
from doubles.trials import ROOT, errored_score, finished, graded, scored, trial


def cases(results, cluster=None):
    lines = (to_json(row_of(result, RelativePaths(ROOT))) for result in results)
    return cases_of(enumerate(map(row_in, lines), 1), cluster)


def only(results, cluster=None):
    (case,) = outcomes(cases(results, cluster))
    return case


def outcomes(held):
    return [held.outcome(number) for number in range(len(held))]


def chosen(held):
    return ChosenCases(held, range(len(held)))


def sample(number, score, status=None, **given):
    subject = trial(sample=number, repeat=2, **given)
    return finished(status or ("passed" if score >= 0.8 else "failed"), trial=subject, score=score)


def test_the_verdict_is_the_one_that_the_suite_asked_for():
    assert only([sample(1, 1.0, aggregate="pass_any"), sample(2, 0.0, aggregate="pass_any")]).status == "passed"


def test_a_gate_that_fails_in_the_mean_fails_the_case():
    gated = [
        finished("passed", trial=trial(sample=number, repeat=2), score=1.0, scores=[scored(number == 1, required=True)])
        for number in (1, 2)
    ]
    assert only(gated).status == "failed"


@pytest.mark.parametrize(
    ("required", "scores", "status"),
    [
        (True, ((True, 1.0), (True, 1.0)), "passed"),
        (True, ((True, 1.0), (False, 0.0)), "failed"),
        (0.5, ((True, 0.9), (True, 0.6)), "passed"),
        (0.5, ((True, 0.7), (False, 0.1)), "failed"),
        (0.5, ((True, 0.9), (False, 0.1)), "passed"),
    ],
)
def test_a_gate_holds_for_a_case_where_it_holds_in_the_mean_of_its_samples(required, scores, status):
    gated = [
        finished(
            "passed", trial=trial(sample=number, repeat=2), score=1.0, scores=[graded(score, passed, required=required)]
        )
        for number, (passed, score) in enumerate(scores, 1)
    ]
    assert only(gated).status == status


@pytest.mark.parametrize(
    ("results", "status", "score"),
    [
        ([sample(1, 1.0), finished("errored", trial=trial(sample=2, repeat=2))], "errored", 1.0),
        ([finished("errored", trial=trial(sample=number, repeat=2)) for number in (1, 2)], "errored", None),
        ([sample(1, 1.0)], "skipped", None),
    ],
    ids=["one sample errored", "all samples errored", "one sample is missing"],
)
def test_a_case_without_all_its_samples_has_no_verdict(results, status, score):
    case = only(results)
    assert (case.status, case.score, case.rate, case.judged) == (status, score, score, False)


def test_a_required_grade_without_a_score_counts_as_none_at_all():
    scores = ([graded(0.9, True, required=0.5)], [errored_score(required=0.5)])
    both = [
        finished("passed", trial=trial(sample=number, repeat=2), score=1.0, scores=one)
        for number, one in enumerate(scores, 1)
    ]
    assert only(both).status == "failed"


def test_cases_are_told_apart_by_suite_file_prompt_and_target():
    first = trial("a")
    others = [
        trial("b"),
        trial("a", suite="orders"),
        trial("a", prompt_id="short"),
        trial("a", target="claude"),
        replace(first, suite=replace(first.suite, path="/repo/evals/other.eval.yaml")),
    ]
    assert len(cases(finished(trial=one) for one in [first, *others])) == 6


def test_a_case_on_two_targets_is_one_distinct_case_and_one_of_another_suite_is_another():
    first = trial("a")
    elsewhere = replace(first, suite=replace(first.suite, path="/repo/evals/other.eval.yaml"))
    both = [first, trial("b"), trial("a", target="claude"), trial("a", prompt_id="short")]
    for trials, distinct in (([first], 1), (both[:2], 2), (both, 2), ([*both, elsewhere], 3), ([first, elsewhere], 2)):
        found = chosen(cases(finished(trial=one) for one in trials))
        assert (found.distinct, len(found)) == (distinct, len(trials))


def test_a_run_that_was_given_a_cluster_keeps_it_unless_another_key_is_given():
    case = replace(trial().case, cluster_key="customer", cluster="7", conversation_id="c1")
    row = finished(trial=replace(trial(), case=case), metadata={"region": "north"})
    assert only([row]).cluster == only([row], "customer").cluster == "7"
    assert only([row], "region").cluster == '"north"'
