from agentv.app.compare.gathering import differences

RECORD = {
    "agentv": "0.1.0",
    "settings": {"judge": None},
    "suites": [{"judge": "gpt"}, {"judge": "gpt"}, {"judge": None}],
}


def test_another_judge_is_told_and_a_forced_one_wins():
    assert list(differences(RECORD, {**RECORD, "settings": {"judge": "opus"}})) == ["the judge differs: gpt → opus"]
    assert list(differences(RECORD, {**RECORD, "suites": []})) == ["the judge differs: gpt → none named"]
