import pytest
from msgspec.structs import replace

from agentv.app.compare import matching
from agentv.app.compare.gathering import cases_of
from agentv.app.compare.matching import ChosenCases, Pairs
from agentv.model.run.comparison import CaseKey, CaseOutcome
from agentv.store.files.encoding import to_json
from agentv.store.rows.reading import row_in
from agentv.store.rows.rows import row_of
from doubles.compared import keyed_cases
from doubles.trials import ROOT, errored_score, finished, graded, scored, trial

PASSED = CaseOutcome("passed", 1.0, 1, 0.8, 1, 1, 1)
FAILED = replace(PASSED, status="failed", score=0.0)
ERRORED = replace(PASSED, status="errored", score=None)
SKIPPED = replace(PASSED, status="skipped", score=None)
SHOWN = replace(PASSED, status="shown", score=None)


def key(case_id, target="gpt", prompt=None, suite="refunds", variant=None):
    return CaseKey(suite, case_id, prompt, target, variant)


def run(*keys, outcome=PASSED):
    return dict.fromkeys(keys, outcome)


def match(base, candidate, **question):
    return matching.match(keyed_cases(base), keyed_cases(candidate), **question)


def test_cases_are_matched_by_suite_and_id():
    found = match(run(key("a"), key("b"), key("a", suite="orders")), run(key("a"), key("c")))
    assert [(pair.before_key, pair.after_key) for pair in found.pairs] == [(key("a"), key("a"))]
    assert found.left_out.only_base == (key("b"), key("a", suite="orders"))
    assert found.left_out.only_candidate == (key("c"),)


def test_where_one_run_alone_has_one_target_or_one_prompt_names_are_matched():
    one, two = run(key("a", target="x")), run(key("a", target="x"), key("a", target="y"))
    other = run(key("a", target="z"))
    assert (match(one, two).common, match(two, one).common) == (1, 1)
    assert (match(other, two).common, match(two, other).common) == (0, 0)
    one, two = run(key("a", prompt="p")), run(key("a", prompt="p"), key("a", prompt="q"))
    other = run(key("a", prompt="r"))
    assert (match(one, two).common, match(two, one).common) == (1, 1)
    assert (match(other, two).common, match(two, other).common) == (0, 0)


@pytest.mark.parametrize(("within", "name"), [("target", "y"), ("prompt", "q"), ("variant", "w")])
def test_parts_of_one_run_are_matched_by_all_but_what_they_are_parts_of(within, name):
    base = key("a", target="x", prompt="p", variant="v")
    assert match(run(base), run(base._replace(**{within: name})), within=within).common == 1
    for other in {"target", "prompt", "variant"} - {within}:
        assert match(run(base), run(base._replace(**{other: "else"})), within=within).common == 0, other


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"input": 2}, ("input",)),
        ({"checks": 2}, ("checks",)),
        ({"input": 2, "threshold": 0.5}, ("input", "threshold")),
        ({}, ("text",)),
    ],
)
def test_an_edited_case_is_left_out_and_told(changed, told):
    other = replace(PASSED, text=2, **changed)
    found = match(run(key("a")), run(key("a"), outcome=other))
    assert not found.pairs
    assert (found.common, found.left_out.edited) == (1, {key("a"): told})


def test_an_edited_case_is_compared_where_that_is_asked_for_and_counted():
    found = match(run(key("a")), run(key("a"), outcome=replace(PASSED, text=2)), edited=True)
    assert (len(found.pairs), found.edited, found.left_out.edited) == (1, 1, {})


def test_of_an_errored_case_it_is_not_said_that_its_checks_differ():
    errored = replace(ERRORED, text=2, checks=0)
    assert match(run(key("a")), run(key("a"), outcome=errored)).left_out.edited == {key("a"): ("text",)}


@pytest.mark.parametrize(
    ("base", "candidate", "fate"),
    [
        (PASSED, ERRORED, "errored"),
        (ERRORED, FAILED, "errored"),
        (ERRORED, SKIPPED, "errored"),
        (SKIPPED, PASSED, "unfinished"),
        (PASSED, SKIPPED, "unfinished"),
        (PASSED, SHOWN, "unfinished"),
        (ERRORED, SHOWN, "errored"),
    ],
)
def test_a_pair_of_which_one_side_was_not_judged_is_left_out(base, candidate, fate):
    found = match(run(key("a"), outcome=base), run(key("a"), outcome=candidate))
    assert not found.pairs
    assert getattr(found.left_out, fate) == (key("a"),)


def test_what_errored_samples_count_as():
    half = replace(ERRORED, score=0.5, rate=0.5, samples=1, repeat=2)
    sides = run(key("a")), run(key("a"), outcome=half)
    bounds, fail, drop = (match(*sides, errored=errored) for errored in ("bounds", "fail", "drop"))
    assert ([one.after.score for one in bounds.pairs], bounds.left_out.errored) == ([0.5], ())
    assert [(one.after.score, one.after.status) for one in fail.pairs] == [(0.25, "failed")]
    assert (len(drop.pairs), len(drop.errored), drop.left_out.errored) == (0, 0, (key("a"),))
    lone = match(run(key("a")), run(key("a"), outcome=ERRORED))
    assert (len(lone.pairs), len(lone.errored)) == (0, 1)
    # kept as is: both bounds are computed later
    assert (lone.errored[0].after, lone.errored[0].errored) == (ERRORED, True)
    (before,) = match(run(key("a"), outcome=half), run(key("a")), errored="fail").pairs
    assert (before.before.score, before.before.status, before.after) == (0.25, "failed", PASSED)
    (alike,) = match(run(key("a"), outcome=half), run(key("a"), outcome=half), errored="fail").pairs
    assert (alike.before.score, alike.after.score, alike.delta) == (0.25, 0.25, 0.0)


@pytest.mark.parametrize(
    ("candidate", "edited", "loss"),
    [
        (FAILED, False, "failed"),
        (ERRORED, False, "errored"),
        (SKIPPED, False, "skipped"),
        (replace(FAILED, text=2), False, "failed"),
        (replace(FAILED, text=2), True, "failed"),
        (replace(ERRORED, text=2), False, "errored"),
    ],
)
def test_what_passed_and_does_not_pass_any_more_is_lost_whether_or_not_it_is_compared(candidate, edited, loss):
    assert match(run(key("a")), run(key("a"), outcome=candidate), edited=edited).lost == {key("a"): loss}


def test_what_passed_and_is_gone_is_lost_and_what_never_passed_is_not():
    found = match({**run(key("a")), **run(key("b"), key("c"), outcome=FAILED)}, run(key("c"), key("d"), outcome=FAILED))
    assert found.lost == {key("a"): "missing"}
    assert match(run(key("a")), run(key("a"), outcome=replace(PASSED, text=2))).lost == {}


@pytest.mark.parametrize("until", [("base",), ("candidate",), ("base", "candidate")])
def test_where_one_side_was_sampled_until_decided_verdicts_are_compared_and_not_means(until):
    base, candidate = (replace(PASSED, score=score, samples=9) for score in (0.9, 0.7))
    base = replace(base, alpha=0.05) if "base" in until else base
    candidate = replace(candidate, alpha=0.05) if "candidate" in until else candidate
    (pair,) = match(run(key("a"), outcome=base), run(key("a"), outcome=candidate)).pairs
    assert (pair.before.score, pair.after.score, pair.delta) == (1.0, 1.0, 0.0)
    (pair,) = match(run(key("a"), outcome=base), run(key("a"), outcome=replace(candidate, status="failed"))).pairs
    assert pair.delta == -1.0
    (plain,) = match(run(key("a"), outcome=replace(base, alpha=None)), run(key("a"), outcome=FAILED)).pairs
    assert plain.before.score == 0.9


@pytest.mark.parametrize("side", ["before", "after"])
def test_samples_of_an_undecided_case_that_errored_are_no_verdict(side):
    """Nine samples passed and one errored: a case sampled until decided has neither passed nor failed."""
    until = replace(PASSED, alpha=0.05, repeat=30, samples=9, rate=1.0)
    errored = replace(until, status="errored")
    base, candidate = (errored, until) if side == "before" else (until, errored)
    found = match(run(key("a"), outcome=base), run(key("a"), outcome=candidate))
    assert (len(found.pairs), found.left_out.errored) == (0, (key("a"),))
    (pair,) = found.errored
    broken = getattr(pair, side)
    assert (broken.status, broken.score, broken.rate, broken.samples) == ("errored", None, None, 0)
    assert [one.score for one in (broken.filled(0), broken.filled(1))] == [0.0, 1.0]


KEYS = [CaseKey("refunds", case, prompt, "gpt") for case in "abc" for prompt in ("p", "q")]


def pairs(*, filled=False):
    base = keyed_cases({key: replace(PASSED, score=number / 10) for number, key in enumerate(KEYS)})
    found = Pairs(base, keyed_cases(dict.fromkeys(KEYS, replace(PASSED, status="errored", score=None))), filled=filled)
    for number in range(len(KEYS)):
        found.add(number, number)
    return found


def test_errored_samples_count_as_failed_in_every_part_where_the_setting_says_so():
    assert [one.after.status for one in pairs(filled=True)[:2]] == ["failed", "failed"]
    assert [one.after.status for one in pairs()[:2]] == ["errored", "errored"]


def cases(results, cluster=None):
    lines = (to_json(row_of(result, ROOT)) for result in results)
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
