import pytest
from msgspec.structs import replace

from agentv.extensions.labels.depending import NESTED, SEVERAL, TURNS, UNCLEAR, rated_trial
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.run.verdict import combined
from agentv.model.values.response import TargetResponse
from doubles.judged_runs import ASKED
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
        ([by_judge(0.0)], True),
        ([by_judge(1.0), check(passed=True)], True),
        ([by_judge(1.0), check(passed=False)], False),  # 0.5 < 0.8 whatever the judge says
        ([by_judge(0.0), check(passed=True, weight=5)], False),  # 5/6 passes without the judge
        ([by_judge(0.0, required=True), check(passed=True, weight=5)], True),
        ([by_judge(1.0, weight=0), check(passed=True)], False),
        ([by_judge(1.0), check(passed=False, required=True, weight=0)], False),
        ([by_judge(1.0, kind="not-llm-rubric")], True),
        ([by_judge(0.7), check(passed=True)], False),  # a label that fails it, too, leaves the judge's 0.7: 0.85 passes
        ([by_judge(0.75, passed=True, own=True)], True),  # a scale: the verdict counts, not the points
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


def test_alone_is_a_grade_beside_which_nothing_counts():
    assert rated(by_judge(1.0), check(passed=True, weight=0)).alone
    assert not rated(by_judge(1.0), check(passed=True)).alone


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


def test_several_judged_assertions_that_cannot_change_the_verdict_are_no_problem():
    found = rated(by_judge(1.0), by_judge(0.0, name="kind"), check(passed=False, required=True))
    assert (found.problem, found.decided_by, len(found.judged)) == (None, None, 2)


def test_trials_without_a_verdict_are_left_out():
    assert rated_trial(finished("errored", scores=[by_judge(1.0)]), "run") is None
