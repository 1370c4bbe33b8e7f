"""Corrected rates of stored runs, as shown in views."""

import json

import pytest
from msgspec.structs import replace

from agentv.app.labelled_runs import shown_run
from agentv.app.results.stored import open_run
from agentv.extensions.labels.checking import check_judges
from agentv.extensions.labels.gates import CheckedMinimums
from agentv.extensions.labels.labelled_runs import StoredLabels, rated_trials
from agentv.extensions.labels.labelling import open_session
from agentv.extensions.labels.posterior import JudgedAnswer, Observation, corrected_rate, estimated, judge_counts
from agentv.extensions.labels.reporting import render_judge_check
from agentv.extensions.labels.run_rates import (
    NESTED,
    SEVERAL,
    TURNS,
    UNCLEAR,
    JudgedPart,
    RunLabels,
    RunParts,
    _design_effect,
    rated_trial,
    run_rate_draws,
)
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.run.verdict import combined
from agentv.model.suite.suite import JudgeMinimums
from agentv.model.values.response import TargetResponse
from agentv.reports.run.totals import totals
from agentv.store.totals.summary import summary_in
from doubles.judged_runs import ASKED, judge_grade, judged_run
from doubles.stored_runs import write_run
from doubles.trials import entry, finished, trial


def by_judge(score, passed=None, *, own=False, kind="llm-rubric", **settings):
    grade = Grade(score, score >= 0.8 if passed is None else passed, asked_judge=ASKED, has_own_threshold=own)
    return Score(entry(kind, **{"name": "polite", **settings}), grade, 0.1)


def check(passed, score=None, **settings):
    return Score(
        entry("contains", **{"name": "check", **settings}),
        Grade(float(passed) if score is None else score, passed),
        0.1,
    )


def rated(*scores, threshold=0.8, **given):
    verdict = combined(scores, threshold)
    subject = replace(trial(), threshold=threshold)
    status = "passed" if verdict.passed else "failed"
    return rated_trial(finished(status, trial=subject, scores=scores, score=verdict.score, **given), "run")


@pytest.mark.parametrize(
    ("scores", "depends"),
    [
        ([by_judge(1.0)], True),
        ([by_judge(1.0), check(passed=False)], False),  # 0.5 < 0.8 for either verdict
        ([by_judge(0.0), check(passed=True, weight=5)], False),  # 5/6 passes without the judge
        ([by_judge(0.0, required=True), check(passed=True, weight=5)], True),
        ([by_judge(1.0, weight=0), check(passed=True)], False),
        ([by_judge(1.0), check(passed=False, required=True, weight=0)], False),
        ([by_judge(0.7), check(passed=True)], False),  # even if a label fails it, the judge's 0.7 is kept: 0.85 passes
        ([by_judge(0.75, passed=True, own=True)], True),  # on a scale, the verdict counts, not the points
        ([by_judge(0.75, passed=False, own=True), check(passed=True, score=0.9)], True),
        ([check(passed=True)], False),
    ],
)  # fmt: skip
def test_the_verdict_is_made_again_with_the_label(scores, depends):
    found = rated(*scores)
    assert found.problem is None
    assert (found.decided_by is not None) is depends
    if depends:
        assert found.decided_by.passed is found.passed, "where a label decides, the verdict is the judge's"


def test_what_cannot_be_known_is_said():
    nested = check(passed=True, name="set")
    inner = {"threshold": 0.8, "scores": [{"name": "x", "type": "llm-rubric", "weight": 1}]}
    nested = replace(nested, entry=replace(nested.entry, type="assert-set"), grade=replace(nested.grade, details=inner))
    assert rated(by_judge(1.0), nested).problem == NESTED
    assert rated(by_judge(1.0), by_judge(1.0, name="kind")).problem == SEVERAL
    assert rated(by_judge(1.0), turns=(TargetResponse("hello"),)).problem == TURNS
    aggregated = replace(nested, grade=replace(nested.grade, details={"aggregator": "llm", "scores": []}))
    assert rated(by_judge(1.0), aggregated).problem == NESTED
    wrong = finished("failed", scores=[by_judge(1.0)], score=0.4)
    assert rated_trial(wrong, "run").problem == UNCLEAR


def test_trials_without_a_verdict_are_left_out():
    assert rated_trial(finished("errored", scores=[by_judge(1.0)]), "run") is None


VERDICTS = [True] * 80 + [False] * 20


def give(says, *, run="last", sample=40, assertion=None, person="ada"):
    session = open_session(run, assertion, sample, 0, person)
    for drawn in session.drawn:
        session.label(drawn, "pass" if says(int(drawn.answer.case[1:]), drawn.answer.passed) else "fail")


def honest(number, passed):
    return passed and number % 4 != 0


def shown(run="last"):
    return shown_run(open_run(run, action="show")).summary


def written(root, run, results):
    (root / ".git").mkdir(exist_ok=True)
    write_run(root / ".agentv" / "results" / run, results)
    return run


def test_of_labels_that_contradict_each_other_none_counts(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give(lambda *_: True, person="ada")
    give(lambda *_: False, person="bob")
    found = shown().corrected
    assert (found.run, found.reason) == (None, "no label counts for the judge 'strict'")


def test_the_number_is_that_of_judge_check(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give(honest)
    found = shown().corrected
    (checked,) = check_judges("last").judges
    told = (found.run.rate, *found.run.interval)
    assert told == pytest.approx((checked.corrected.value, checked.corrected.low, checked.corrected.high))
    assert (found.run.by_judge, found.run.labels, found.run.transferred) == (0.8, 40, False)
    assert found.assertions[0].corrected == found.run
    assert found.unchecked == ()
    (line,) = [one for one in totals(shown(), 0, "there") if "corrected by" in one]
    assert line.startswith("pass rate 80.0% by the judge; ")
    assert line.endswith("corrected by 40 labelled answers")


def test_with_several_judged_assertions_there_are_only_their_own_rates(tmp_path):
    results = []
    for number in range(40):
        good = number % 10 != 0
        scores = [judge_grade(good), judge_grade(good, replace(ASKED, rubric_sha256="c" * 64), name="kind")]
        one = finished("passed" if good else "failed", trial=trial(f"c{number}"), scores=scores)
        results.append(replace(one, output=f"answer {number}"))
    written(tmp_path, "run", results)
    give(lambda _, passed: passed, sample=80)
    found = shown().corrected
    assert found.run is None
    assert "several judged assertions" in found.reason
    assert [one.corrected.labels for one in found.assertions] == [40, 40]
    lines = totals(shown(), 0, "there")
    assert any(line.startswith("no corrected pass rate of the run: ") for line in lines)
    assert sum("corrected by 40 labelled answers" in line for line in lines) == 2


def test_assertions_of_one_judge_are_one_part_unless_labels_leave_one_out(tmp_path):
    """As in a suite whose cases have their own rubrics: most of their assertions have no label."""
    asked = [replace(ASKED, rubric_sha256=f"{number:064x}") for number in range(100)]
    for run, names in (("own", [f"r{number}" for number in range(100)]), ("two", ["a", "b"] * 50)):
        results = [
            replace(
                finished(
                    "passed", trial=trial(f"c{number}"), scores=[judge_grade(True, asked[number], name=names[number])]
                ),
                output=f"answer {number}",
            )
            for number in range(100)
        ]
        written(tmp_path, run, results)
    give(lambda number, _: number % 5 != 0, run="own", sample=40)
    found = shown("own").corrected.run
    assert found.labels == 40
    assert found.interval[0] < 0.8 < found.interval[1]
    give(lambda number, _: number % 5 != 0, run="two", sample=30, assertion="a")
    two = shown("two").corrected
    assert (two.run, two.reason) == (None, "no label counts for 'b'")


def test_labels_of_another_run_are_told_apart_and_outdated_ones_do_not_count(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give(honest, sample=100)
    other = judged_run(tmp_path, [True] * 60 + [False] * 40, run="other", answer="something else {}")
    found = shown(other).corrected
    assert found.run.transferred
    assert found.run.interval[0] < 0.45 < found.run.interval[1]
    assert any(
        "labelled answers of other runs, if the judge errs as often here as there" in one
        for one in totals(shown(other), 0, "")
    )
    for changed in (
        replace(ASKED, model="openai:large"),
        replace(ASKED, prompt_sha256="e" * 64),
        replace(ASKED, rubric_sha256="e" * 64),
    ):
        for answer in ("answer {}", "new answer {}"):  # the same answers and different ones
            run = judged_run(tmp_path, VERDICTS, run=f"{hash((changed, answer))}", asked=changed, answer=answer)
            found = shown(run).corrected
            assert (found.run, found.unchecked, found.outdated) == (None, ("strict",), ("strict",)), (changed, answer)
            (checked,) = check_judges(run).judges
            assert (checked.corrected, checked.transferred) == (None, None), (changed, answer)


def test_samples_of_a_case_count_as_the_pass_rate_counts_them(tmp_path):
    results = []
    for number in range(40):
        for sample in (1, 2, 3):
            passed = number % 4 != 0
            subject = trial(f"c{number}", sample=sample, repeat=3)
            one = finished("passed" if passed else "failed", trial=subject, scores=[judge_grade(passed)])
            results.append(replace(one, output=f"answer {number}"))
    written(tmp_path, "run", results)
    give(lambda _, passed: passed, sample=40)
    summary = shown()
    assert summary.corrected.run.by_judge == summary.pass_rate == 0.75
    low, high = summary.corrected.run.interval
    assert high - low > 0.2, "40 cases tell no more than 40 cases, however often each ran"


def test_without_labels_the_judge_is_said_to_be_unchecked_once_and_without_a_judge_nothing(tmp_path):
    written(tmp_path, "run", [finished(trial=trial("a"))])
    summary = shown("run")
    assert summary.corrected is None
    judges = replace(summary, judges=("strict", "second"))
    assert not any("people" in line for line in totals(summary, 0, "there"))
    judged_run(tmp_path, [True, False], run="judged")
    found = StoredLabels().with_rates(judges, open_run("judged", action="show"))
    note = "the judges 'strict' and 'second' were never checked against people; label answers: agentv label there"
    assert [line for line in totals(found, 0, "there") if "people" in line] == [f"note: {note}"]


def test_a_corrected_rate_that_someone_wrote_into_the_summary_is_not_believed(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give(honest)
    summary = shown()
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(summary.as_json()))
    assert "corrected" in json.loads(path.read_text())
    assert summary_in(path, path.read_bytes()) == replace(summary, corrected=None)


def rubrics_run(root, run, numbers, *, shared=True):
    """Write a run graded by one assertion, in which odd cases have the rubric "Hard", shared or one per case."""
    results = []
    for number in numbers:
        which = number % 2 if shared else number
        asked = replace(ASKED, rubric="Hard" if number % 2 else "Easy", rubric_sha256=f"{which:064x}")
        subject = trial(f"c{number}")
        passed = number % 10 > 1
        one = finished("passed" if passed else "failed", trial=subject, scores=[judge_grade(passed, asked)])
        results.append(replace(one, output=f"{run} {number}"))
    return written(root, run, results)


def test_labels_of_one_rubric_correct_no_verdicts_by_another(tmp_path):
    """The judge errs on half of the hard cases; labels of the easy ones alone must not show it to be right."""
    right = "no label counts for the rubric \"Hard\" of 'polite'"
    rubrics_run(tmp_path, "first", range(0, 200, 2))
    give(lambda _, passed: passed, run="first", sample=60)
    both = rubrics_run(tmp_path, "second", range(200))
    assert (shown(both).corrected.run, shown(both).corrected.reason) == (None, right), "labels of another run"
    (checked,) = check_judges(both).judges
    assert (checked.transferred, checked.unlabelled) == (None, "the rubric \"Hard\" of 'polite'")
    session = open_session(both, None, 60, 0, "ada")
    for drawn in session.drawn:
        if drawn.answer.asked.rubric == "Easy":
            session.label(drawn, "pass" if drawn.answer.passed else "fail")
    assert (shown(both).corrected.run, shown(both).corrected.reason) == (None, right), "drawn, and half left out"
    (checked,) = check_judges(both).judges
    assert (checked.corrected, checked.unlabelled) == (None, "the rubric \"Hard\" of 'polite'")
    assert "warning: no label counts for the rubric" in render_judge_check(check_judges(both))
    trials = rated_trials(open_run(both, action="show"))
    labels = RunLabels.of(trials, StoredLabels().of_suites({trials[0].part[0]}, tmp_path).labels, both)
    gate = CheckedMinimums.of([one for trial in trials for one in trial.judged], labels, JudgeMinimums(0.5, 0.5))
    assert gate.unknown, "a judge that is right by one rubric is not known to be right"
    assert "no label counts for the rubric" in gate.refusal
    give(lambda number, passed: passed and number % 4 != 1, run=both, sample=60)
    assert shown(both).corrected.run.interval[1] < 0.8, "drawn from all, they show that it errs"
    assert check_judges(both).judges[0].corrected is not None


def answers(passed, failed, labelled=0, *, agrees=0.9, clusters=None):
    """Return answers of a judge, with labels on the first ones of each verdict."""
    found = []
    for verdict, number in ((True, passed), (False, failed)):
        for place in range(number):
            person = None if place >= labelled else verdict == (place < agrees * labelled)
            cluster = None if clusters is None else (verdict, place // clusters)
            found.append(JudgedAnswer(verdict, person, cluster))
    return found


@pytest.mark.parametrize("clusters", [None, 4])
def test_where_every_verdict_is_the_judges_it_is_the_corrected_rate(clusters):
    found = answers(80, 20, 20, clusters=clusters)
    rate = estimated(run_rate_draws(RunParts([JudgedPart(found)], always_judged=True)))
    expected = corrected_rate(judge_counts(found))
    assert (rate.value, rate.low, rate.high) == pytest.approx((expected.value, expected.low, expected.high), abs=1e-9)


def test_two_judges_are_two_parts():
    good, bad = JudgedPart(answers(95, 5, 5, agrees=1)), JudgedPart(answers(95, 5, 5, agrees=0.2))
    rates = [estimated(run_rate_draws(RunParts([one], always_judged=True))).value for one in (good, bad)]
    both = estimated(run_rate_draws(RunParts([good, bad], always_judged=True)))
    assert both.value == pytest.approx(sum(rates) / 2, abs=0.03)


def labelled(passed, failed, right_of_passed, right_of_failed, weight=1.0):
    """Return labelled answers; this many of those that the judge passed and failed are right."""
    return [
        JudgedAnswer(verdict, verdict == (place < right), weight=weight)
        for verdict, number, right in ((True, passed, right_of_passed), (False, failed, right_of_failed))
        for place in range(number)
    ]


def test_the_rate_is_the_sum_of_each_parts_rate_by_its_share_of_the_trials():
    first, second = labelled(200, 100, 180, 80), labelled(60, 40, 30, 30)
    decided = [Observation(place < 150) for place in range(200)]
    people = [180 + 20, 30 + 10, 150]
    rate = estimated(run_rate_draws(RunParts([JudgedPart(first), JudgedPart(second)], decided)))
    assert rate.value == pytest.approx(sum(people) / 600, abs=0.005)
    both = estimated(run_rate_draws(RunParts([JudgedPart(first), JudgedPart(second)], always_judged=True)))
    assert both.value == pytest.approx(sum(people[:2]) / 400, abs=0.005)


def test_trials_that_stand_for_several_count_so_often():
    judged = JudgedPart(labelled(200, 100, 180, 80))
    for weight in (0.5, 3.0):
        decided = [Observation(place < 30, weight=weight) for place in range(120)]
        rate = estimated(run_rate_draws(RunParts([judged], decided)))
        assert rate.value == pytest.approx((200 + 30 * weight) / (300 + 120 * weight), abs=0.01), weight


def test_the_design_effect_of_a_run_is_that_of_its_linearized_rate_by_hand():
    judged = [
        JudgedAnswer(True, True, "a"), JudgedAnswer(True, False, "a", 2.0), JudgedAnswer(True, None, "b"),
        JudgedAnswer(False, False, "b"), JudgedAnswer(False, True, "c", 1.0, 3.0), JudgedAnswer(False, None, "c"),
    ]  # fmt: skip
    decided = [Observation(True, "a"), Observation(False, "b"), Observation(True, "c", 2.0), Observation(False)]
    total = 12.0
    # 1 of 3 labelled trials passes among those that the judge passed, 3 of 4 among those that it failed
    rates, shares, labelled = {True: 1 / 3, False: 3 / 4}, {True: 4 / total, False: 3 / total}, {True: 3.0, False: 4.0}
    truth = (4 * rates[True] + 3 * rates[False] + 3.0) / total
    summed, alone = {}, 0.0
    for one in judged:
        rate = rates[one.judge]
        label = 0.0 if one.person is None else one.label_weight * shares[one.judge] * (one.person - rate)
        influence = one.weight * (rate - truth) / total + label / labelled[one.judge]
        summed[one.cluster] = summed.get(one.cluster, 0.0) + influence
        alone += influence**2
    for place, one in enumerate(decided):
        influence = one.weight * (one.passed - truth) / total
        cluster = one.cluster or place
        summed[cluster] = summed.get(cluster, 0.0) + influence
        alone += influence**2
    effect = sum(one**2 for one in summed.values()) / alone
    assert _design_effect(RunParts([JudgedPart(judged)], decided)) == pytest.approx(max(1.0, effect))
    assert effect > 1.01
    alike = [JudgedAnswer(True, True, place // 2) for place in range(6)]
    assert _design_effect(RunParts([JudgedPart(alike)], [Observation(True)])) == 1.0, "nothing moves the rate"
    apart = [("a", True, True), ("b", True, False), ("b", False, None), ("b", False, None)]
    half = [JudgedAnswer(judge, person, cluster) for cluster, judge, person in apart]
    # people pass half of what the judge passes, and are assumed to fail what it fails: 0.1875 against its opposite
    assert _design_effect(RunParts([JudgedPart(half)])) == pytest.approx(2 * 0.1875**2 / (0.1875**2 + 3 * 0.0625**2))
    unlabelled = [JudgedAnswer(place < 4, None, "a" if place < 3 else "b") for place in range(8)]
    # without labels, people are assumed to agree with the judge, who passes half
    assert _design_effect(RunParts([JudgedPart(unlabelled)])) == pytest.approx((3**2 + 3**2) / 8)
    apart = [JudgedAnswer(one.judge, one.person, None, one.weight, one.per_label) for one in judged]
    assert _design_effect(RunParts([JudgedPart(apart)], [Observation(True)])) == 1.0
