from agentv.app.compare.gathering import differences

RECORD = {
    "agentv": "0.1.0",
    "settings": {"judge": None},
    "suites": [{"judge": "gpt"}, {"judge": "gpt"}, {"judge": None}],
}


def test_another_judge_is_told_and_a_forced_one_wins():
    assert list(differences(RECORD, {**RECORD, "settings": {"judge": "opus"}})) == ["the judge differs: gpt → opus"]
    assert list(differences(RECORD, {**RECORD, "suites": []})) == ["the judge differs: gpt → none named"]


def test_another_version_is_told():
    assert list(differences(RECORD, {**RECORD, "agentv": "0.2.0"})) == ["the agentv differs: 0.1.0 → 0.2.0"]
    assert list(differences(RECORD, {**RECORD, "agentv": None})) == ["the agentv differs: 0.1.0 → unknown"]
