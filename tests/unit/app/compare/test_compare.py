from msgspec.structs import replace

from agentv.app.compare.judging import Settings, same_rate, same_rule
from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair

CASE = CaseOutcome("passed", 1.0, 1, 0.8, 1, 1, 1)


def pair(number, after=CASE, before=CASE):
    key = CaseKey("refunds", f"case-{number}", None, "gpt")
    return CasePair(key, key, before, after)


def setting_notes(pairs):
    settings = Settings()
    for one in pairs:
        settings.add(one)
    return settings.notes()


def test_it_is_told_that_verdicts_are_compared_where_samples_ended_early():
    until = replace(CASE, repeat=30, alpha=0.05)
    first, second = setting_notes([pair(1, until), pair(2)])
    assert first == (
        "the repeat differs in 1 of 2 cases (1 → at most 30 until decided at 0.05); case verdicts are not compared"
    )
    assert second.startswith("1 of 2 cases were sampled until decided")
    (only,) = setting_notes([pair(1, until, until)])
    assert only.startswith("1 of 1 cases were sampled until decided")
    assert only.endswith("so their verdicts are compared instead, as 1 or 0")
    *_, mixed = setting_notes([pair(1, until, until), pair(2, until, replace(until, repeat=10))])
    assert mixed.startswith("2 of 2 cases were sampled until decided")
    assert mixed.endswith("as 1 or 0, which requires the same rule in both runs")


def test_samples_are_compared_by_rate_though_there_are_more_of_them_and_not_by_another_threshold():
    before, after = replace(CASE, repeat=1), replace(CASE, repeat=5)
    assert (same_rate(pair(1, after, before)), same_rule(pair(1, after, before))) == (True, False)
    assert not same_rate(pair(1, replace(CASE, threshold=0.5)))
    assert not same_rate(pair(1, replace(CASE, repeat=30, alpha=0.05)))
    assert same_rate(pair(1))
    assert same_rule(pair(1))
