from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.run.cases import (
    RequiredGrade,
    Sample,
    TrialCluster,
    case_verdict,
    cluster_of,
    disagree,
    key_of_cluster,
    sample_of,
)
from agentv.model.run.grade import Grade

AGGREGATES = ("mean", "pass_any", "pass_all", "majority")


def passed(score=1.0, *gates):
    return Sample("passed", score, gates)


def failed(score=0.0, *gates):
    return Sample("failed", score, gates)


SKIPPED = Sample("skipped", None)


def verdict(samples, aggregate="mean", *, repeat=None, threshold=0.8):
    wanted = len(samples) if repeat is None else repeat
    return case_verdict(samples, repeat=wanted, threshold=threshold, aggregate=aggregate)


def test_the_mean_decides_unless_another_rule_is_named():
    assert case_verdict([passed(1.0), failed(0.7)], repeat=2, threshold=0.8) == "passed"


@pytest.mark.parametrize(
    ("aggregate", "outcomes", "expected"),
    [
        ("pass_any", "100", "passed"),
        ("pass_any", "000", "failed"),
        ("pass_all", "111", "passed"),
        ("pass_all", "110", "failed"),
        ("majority", "110", "passed"),
        ("majority", "100", "failed"),
        ("majority", "10", "failed"),
        ("mean", "111110", "passed"),
        ("mean", "11110", "passed"),
        ("mean", "1110", "failed"),
    ],
)
def test_the_aggregates(aggregate, outcomes, expected):
    assert verdict([passed() if outcome == "1" else failed() for outcome in outcomes], aggregate) == expected


@pytest.mark.parametrize("sample", [passed(0.1), failed(0.9)])
def test_the_verdict_of_a_single_sample_is_that_of_the_case(sample):
    assert verdict([sample]) == sample.status


def test_the_mean_forgives_rounding_at_the_threshold():
    assert verdict([passed(0.9), failed(0.7)], threshold=0.8) == "passed"


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([RequiredGrade(1.0, 1.0), RequiredGrade(1.0, 1.0)], "passed"),
        ([RequiredGrade(1.0, 1.0), RequiredGrade(1.0, 0.0)], "failed"),
        ([RequiredGrade(0.5, 0.9), RequiredGrade(0.5, 0.1)], "passed"),
        ([RequiredGrade(0.5, 0.8), RequiredGrade(0.5, 0.1)], "failed"),
    ],
)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_gates_look_at_the_mean(gates, expected, aggregate):
    samples = [passed(1.0, gate) if gate.value >= gate.mark else failed(1.0, gate) for gate in gates]
    assert verdict(samples, aggregate) == expected


@pytest.mark.parametrize(("values", "expected"), [((0.9, 0.9), "passed"), ((0.9, 0.8), "failed")])
def test_of_two_marks_of_a_gate_the_higher_counts(values, expected):
    shown = verdict([passed(1.0, RequiredGrade(mark, value)) for mark, value in zip((0.5, 0.9), values, strict=True)])
    assert shown == expected


def test_a_gate_that_one_sample_lacks_counts_nothing_there():
    assert verdict([passed(1.0, RequiredGrade(0.6, 1.0)), passed(1.0)]) == "failed"


@given(st.lists(st.sampled_from([passed(), failed()]), max_size=4), st.sampled_from(AGGREGATES))
def test_an_errored_sample_errs_the_case(samples, aggregate):
    assert verdict([*samples, Sample("errored", None)], aggregate) == "errored"


@given(
    st.lists(st.sampled_from([passed(), failed(), SKIPPED]), max_size=5), st.sampled_from(AGGREGATES), st.integers(1, 6)
)
def test_a_missing_sample_is_never_a_pass(samples, aggregate, repeat):
    judged = sum(sample.status != "skipped" for sample in samples)
    assert (verdict(samples, aggregate, repeat=repeat) == "skipped") == (judged < repeat)


@pytest.mark.parametrize(
    ("required", "gate"),
    [
        (False, None),
        (True, RequiredGrade(1.0, 0.0)),
        (0.5, RequiredGrade(0.5, 0.6)),
        (0.0, RequiredGrade(0.0, 0.6)),
        (1, RequiredGrade(1.0, 0.6)),
    ],
)
def test_what_required_means(required, gate):
    assert RequiredGrade.of(required, 0.6, passed=False) == gate


@pytest.mark.parametrize(("shown", "expected"), [(2, "shown"), (1, "skipped"), (0, "skipped")])
def test_a_case_that_checks_nothing_is_shown_once_all_its_samples_are(shown, expected):
    samples = [Sample("shown", None)] * shown + [SKIPPED] * (2 - shown)
    assert verdict(samples) == expected


def test_a_sample_has_the_gates_of_its_required_grades():
    required = ((False, 1.0), (True, 1.0), (0.5, 0.7))
    scores = [
        SimpleNamespace(entry=SimpleNamespace(settings=SimpleNamespace(required=one)), grade=Grade(score, True))
        for one, score in required
    ]
    result = SimpleNamespace(status="passed", score=0.9, scores=scores)
    assert sample_of(result) == Sample("passed", 0.9, (RequiredGrade(1.0, 1.0), RequiredGrade(0.5, 0.7)))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(["passed", "failed"], True), (["passed", "errored"], True), (["passed", "passed", "skipped"], False)],
)
def test_columns_disagree_where_a_case_came_out_differently(verdicts, expected):
    assert disagree(verdicts) is expected


@pytest.mark.parametrize(
    ("given", "cluster", "key"),
    [
        ((None, None, None), ("case", "e.yaml", "suite", "a"), None),
        (("talk", None, None), ("conversation", "e.yaml", "suite", "talk"), "conversation_id"),
        (("talk", "customer", "7"), ("cluster", "customer", "7"), "customer"),
        ((None, "customer", None), ("case", "e.yaml", "suite", "a"), None),
    ],
)
def test_a_cluster_is_formed_by_the_key_else_the_conversation_else_the_case(given, cluster, key):
    row = TrialCluster("a", "suite", "e.yaml", *given)
    assert (cluster_of(row), key_of_cluster(row)) == (cluster, key)
