from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.compare.gathering import with_comparisons
from agentv.model.run.comparison import ComparisonSettings
from agentv.model.run.matrix import UsageDifference
from agentv.model.run.trial import StoredWork
from agentv.model.values.usage import TokenUsage
from agentv.store.rows.reading import read_rows
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.stored_runs import scored_trials, write_run
from doubles.trials import finished, trial

RECORD = {
    "suites": [
        {"targets": [{"name": "small"}, {"name": "big"}, {"name": "huge"}], "prompts": [{"id": "q"}, {"id": "p"}]}
    ]
}
WEAK = {f"c{number}": float(number % 3 == 0) for number in range(30)}
STRONG = {f"c{number}": float(number % 6 < 5) for number in range(30)}


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """Return a function that writes a run of these trials and returns its comparisons and name."""
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)

    def found(*results, name="run", cut=None):
        path = write_run(tmp_path / name, [one for group in results for one in group], RECORD)
        index = Path(path) / "index.jsonl"
        summary = summarize(read_rows(index), run_id=name, planned=PlannedCounts(), duration_ms=1.0)
        return with_comparisons(replace(summary, cut=cut), index, RECORD).matrix

    return found


def errored(scores, target):
    return [finished("errored", trial=trial(case_id, target=target)) for case_id in scores]


def test_each_target_is_compared_with_the_first_of_the_run(compared):
    found = compared(
        scored_trials(STRONG, target="big"), scored_trials(WEAK, target="small"), scored_trials(WEAK, target="huge")
    )
    assert found.targets == ("small", "big", "huge")  # suite order, though others finished first
    shown = [(one.base, one.candidate, one.verdict) for one in found.comparisons]
    assert shown == [("small", "big", "better"), ("small", "huge", "inconclusive")]
    assert found.comparisons[0].measures[0].measure == "pass rate"
    assert found.comparisons[0].measures[0].delta == pytest.approx(0.5)
    assert (found.comparisons[0].cases, found.comparisons[0].shown_by) == (30, ("pass rate", "mean score"))


def test_two_targets_have_the_numbers_of_the_command(compared):
    matrix = compared(scored_trials(STRONG, target="big"), scored_trials(WEAK, target="small"))
    whole = compare(CompareRequest(("run",)), ComparisonSettings()).whole
    (one,) = matrix.comparisons
    (rate, score), told = one.measures, whole.score
    assert (rate.delta, rate.interval, rate.p_value) == (score.delta, score.interval, score.p_value)
    assert (score.delta, score.interval, score.p_value) == (told.delta, told.interval, told.p)


def used(case_id, target, cost, tokens=100, *, sample=1, **given):
    tokens = None if tokens is None else TokenUsage(total=tokens)
    one = trial(case_id, target=target, sample=sample, repeat=2)
    return finished(trial=one, cost_usd=cost, token_usage=tokens, **{"duration_ms": 50.0, **given})


def test_what_a_case_takes_is_compared_by_case_over_its_repeats_and_an_unknown_cost_is_never_0(compared):
    small = [used(f"c{case}", "small", 0.1 * case, sample=sample) for case in (1, 2, 3) for sample in (1, 2)]
    big = [
        used("c1", "big", 0.2, 150),
        used("c1", "big", 0.4, 250, sample=2),
        used("c2", "big", 0.5, 100),
        used("c2", "big", 0.5, 100, sample=2),
        used("c3", "big", None, 100),  # one of two prices is unknown, so the case's cost is too
        used("c3", "big", 9.0, 100, sample=2, stored=StoredWork(agent_turns=4)),
    ]
    (one,) = compared(small, big).comparisons
    cost, tokens, took = one.usage
    # not turns: only one sample has them
    assert [each.resource for each in one.usage] == ["cost_usd", "tokens", "duration_ms"]
    assert (cost.cases, cost.unknown, cost.before, cost.after) == (2, 1, pytest.approx(0.15), pytest.approx(0.4))
    assert cost.delta == pytest.approx(0.25)
    assert cost.interval == pytest.approx((0.25 - 12.706205 * 0.05, 0.25 + 12.706205 * 0.05))  # R: t.test(c(.2, .3))
    assert (tokens.before, tokens.after, tokens.cases, took.delta) == (100, pytest.approx(400 / 3), 3, 0)
    assert compare(CompareRequest(("run",), ("small", "big")), ComparisonSettings()).whole.usage == one.usage
    mirrored = compare(CompareRequest(("run",), ("big", "small")), ComparisonSettings()).whole
    assert [each.delta for each in mirrored.usage] == [-each.delta for each in one.usage]


def test_a_cost_that_is_known_of_no_case_is_there_as_unknown_beside_tokens(compared):
    pairs = [(target, sample) for target in ("small", "big") for sample in (1, 2)]
    found = compared([used("c1", target, None, sample=sample) for target, sample in pairs])
    assert found.comparisons[0].usage[0] == UsageDifference("cost_usd", 0, 1)
    found = compared([used("c1", target, None, None, sample=sample) for target, sample in pairs], name="none")
    assert [each.resource for each in found.comparisons[0].usage] == ["duration_ms"]


def test_more_comparisons_make_each_less_sure(compared):
    two = compared(scored_trials(WEAK, target="small"), scored_trials(STRONG, target="big"), name="two")
    half = {name: score if int(name[1:]) % 2 else 1 - score for name, score in STRONG.items()}
    three = compared(
        scored_trials(WEAK, target="small"),
        scored_trials(STRONG, target="big"),
        scored_trials(half, target="huge"),
        name="three",
    )
    assert (two.tests, three.tests) == (1, 2)
    assert two.comparisons[0].measures[0].confidence == 0.95 == three.comparisons[0].measures[0].confidence
    assert two.comparisons[0].measures[0].interval == three.comparisons[0].measures[0].interval
    assert two.comparisons[0].measures[0].p_value < three.comparisons[0].measures[0].p_value


def test_errored_trials_never_count_as_better(compared):
    easy = {name: score for name, score in STRONG.items() if score == 1.0}
    hard = {name: score for name, score in STRONG.items() if score == 0.0}
    weak = {name: 0.0 if name in list(easy)[:4] else 1.0 for name in STRONG}
    found = compared(scored_trials(weak, target="small"), scored_trials(easy, target="big"), errored(hard, "big"))
    (one,) = found.comparisons
    assert one.measures[0].delta > 0
    assert (one.verdict, one.errored, one.cases) == ("inconclusive", 5, 25)
    assert one.measures[0].bounds[0] < 0
    whole = compared(scored_trials(WEAK, target="small"), errored(WEAK, "big"), name="none")
    assert [(one.verdict, one.errored, one.measures) for one in whole.comparisons] == [(None, 30, ())]


def test_errors_that_could_decide_it_withhold_the_verdict(compared):
    strong = dict.fromkeys(list(WEAK)[:12], 1.0)
    found = compared(
        scored_trials(dict.fromkeys(WEAK, 0.0) | dict.fromkeys(list(WEAK)[12:], 1.0), target="small"),
        scored_trials(strong, target="big"),
        errored(list(WEAK)[12:], "big"),
    )
    (one,) = found.comparisons
    assert (one.verdict, one.withheld) == ("inconclusive", "errors")
    assert one.measures[0].interval[0] > 0  # the graded pairs alone would have looked better


def test_targets_without_a_common_case_are_not_compared(compared):
    others = {f"other-{number}": 1.0 for number in range(10)}
    found = compared(
        scored_trials(WEAK, target="small"),
        scored_trials(others, target="big"),
        scored_trials(dict.fromkeys(others, 0.0), target="huge"),
    )
    assert [(one.base, one.candidate, one.verdict) for one in found.comparisons] == [("big", "huge", "worse")]


def test_a_target_is_not_compared_by_another_prompt(compared):
    """As two runs they would be compared, since each has one target and one prompt."""
    assert (
        compared(
            scored_trials(WEAK, target="small", prompt_id="p"), scored_trials(STRONG, target="big", prompt_id="q")
        ).comparisons
        == ()
    )


def test_cases_that_were_sampled_until_decided_have_one_measure(compared):
    found = compared(scored_trials(WEAK, target="small", alpha=0.05), scored_trials(STRONG, target="big", alpha=0.05))
    (one,) = found.comparisons
    assert [each.measure for each in one.measures] == ["share of cases that passed"]
    assert (one.verdict, one.shown_by) == ("better", ("share of cases that passed",))
    (measure,) = one.measures
    assert (measure.before, measure.after) == (pytest.approx(1 / 3), pytest.approx(5 / 6))


def test_a_case_with_two_prompts_is_one_cluster(compared):
    found = compared(
        *(scored_trials(WEAK, target="small", prompt_id=prompt) for prompt in "pq"),
        *(scored_trials(STRONG, target="big", prompt_id=prompt, sha256=prompt * 64) for prompt in "pq"),
    )
    assert found.prompts == ("q", "p")
    target, prompt = found.comparisons
    assert (target.by, target.cases, target.pairs, target.clusters) == ("target", 30, 60, 30)
    assert (prompt.by, prompt.base, prompt.candidate, prompt.verdict) == ("prompt", "q", "p", "inconclusive")
    once = compared(scored_trials(WEAK, target="small"), scored_trials(STRONG, target="big"), name="once").comparisons[
        0
    ]
    assert target.measures[0].delta == once.measures[0].delta
    assert target.measures[0].p_value >= once.measures[0].p_value  # the same answers twice add no evidence


def test_totals_that_have_no_matrix_or_its_comparisons_already_stay_as_they_are(tmp_path):
    path = write_run(
        tmp_path / "run", [*scored_trials(WEAK, target="small"), *scored_trials(STRONG, target="big")], RECORD
    )
    index = Path(path) / "index.jsonl"
    summary = summarize(read_rows(index), run_id="run", planned=PlannedCounts(), duration_ms=1.0)
    found = with_comparisons(summary, index, RECORD)
    assert found.matrix.comparisons
    assert with_comparisons(found, tmp_path / "none", RECORD) is found
    alone = replace(summary, matrix=None)
    assert with_comparisons(alone, tmp_path / "none", RECORD) is alone


def test_a_run_that_its_results_cut_short_is_not_compared(compared):
    found = compared(scored_trials(WEAK, target="small"), scored_trials(STRONG, target="big"), cut="fail-fast")
    assert found.comparisons is None
    assert found.targets == ("small", "big")
