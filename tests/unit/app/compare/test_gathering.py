from agentv.app.compare.gathering import differences, planned_cases, planned_names

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
    assert list(differences(RECORD, {**RECORD, "agentv": None})) == ["the agentv differs: 0.1.0 → unknown"]


def test_a_record_of_another_shape_is_no_error():
    assert list(differences({"settings": 1, "suites": [1]}, {"suites": "x"})) == []


def test_how_much_was_planned_is_0_where_the_record_does_not_say():
    assert planned_cases({"planned": {"cases": 7}}) == 7
    assert [planned_cases(record) for record in ({}, {"planned": 3}, {"planned": {"cases": "x"}})] == [0, 0, 0]


def test_variants_are_in_the_order_of_the_suites_whatever_ended_first():
    suites = [
        {"variants": [{"name": "with-skill"}, {"name": "bare"}]},
        {},
        {"variants": [{"name": "bare"}, {"name": "z"}]},
    ]
    assert planned_names({"suites": suites}, "variant") == ("with-skill", "bare", "z")
    assert planned_names({"suites": None}, "variant") == ()
    suites = [{"targets": ["name", {"name": "a"}, {}, None, {"name": "a"}], "prompts": [{"id": "p"}]}, 7]
    assert planned_names({"suites": suites}, "target") == ("a",)
    assert planned_names({"suites": suites}, "prompt") == ("p",)
