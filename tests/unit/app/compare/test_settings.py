from dataclasses import replace

from agentv.app.compare.settings import setting_notes
from agentv.model.comparison import CaseKey, CaseOutcome, Pair

CASE = CaseOutcome("passed", 1.0, 1, 0.8, "sha", 1, 1)


def pair(number, after=CASE, before=CASE):
    key = CaseKey("refunds", f"case-{number}", None, "gpt")
    return Pair(key, key, before, after)


def test_cases_that_were_judged_and_sampled_alike_need_no_word():
    assert list(setting_notes([pair(1), pair(2)])) == []


def test_a_setting_that_a_flag_changed_is_told_with_its_numbers():
    notes = list(setting_notes([pair(1), pair(2, replace(CASE, threshold=0.5)), pair(3, replace(CASE, threshold=0.5))]))
    assert notes == ["the pass mark differs: 0.8 → 0.5 in 2 of 3 cases, which by itself may move the pass rate"]
    before, after = replace(CASE, repeat=3, aggregate="pass_any"), replace(CASE, repeat=5, aggregate="pass_all")
    assert list(setting_notes([pair(1, after, before)])) == [
        "the repeat differs: 3 → 5 in 1 of 1 cases, which by itself may move the pass rate",
        "the aggregate differs: pass_any → pass_all in 1 of 1 cases, which by itself may move the pass rate",
    ]


def test_it_is_told_that_verdicts_are_compared_where_samples_ended_early():
    until = replace(CASE, repeat=30, alpha=0.05)
    first, second = setting_notes([pair(1, until), pair(2)])
    assert (
        first
        == "the repeat differs: 1 → at most 30 until decided at 0.05 in 1 of 2 cases, which by itself may move the pass rate"
    )
    assert second.startswith("1 of 2 cases were sampled until decided")
    (only,) = setting_notes([pair(1, until, until)])
    assert only.startswith("1 of 1 cases were sampled until decided")
