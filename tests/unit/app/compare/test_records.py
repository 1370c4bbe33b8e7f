from agentv.app.compare.records import differences

RECORD = {
    "agentv": "0.1.0",
    "settings": {"judge": None},
    "suites": [{"judge": "gpt"}, {"judge": "gpt"}, {"judge": None}],
}


def test_records_that_say_the_same_differ_in_nothing():
    assert list(differences(RECORD, RECORD)) == []


def test_another_judge_is_told_and_a_forced_one_wins():
    assert list(differences(RECORD, {**RECORD, "settings": {"judge": "opus"}})) == ["the judge differs: gpt → opus"]
    assert list(differences(RECORD, {**RECORD, "suites": []})) == ["the judge differs: gpt → none named"]


def test_another_version_is_told():
    assert list(differences(RECORD, {**RECORD, "agentv": "0.2.0"})) == ["the agentv differs: 0.1.0 → 0.2.0"]


def test_a_record_of_another_shape_is_no_error():
    assert list(differences({"settings": 1, "suites": [1]}, {"suites": "x"})) == []
