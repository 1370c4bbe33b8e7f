import random

import pytest

from agentv.stats.judges.annotators import alternative_annotator


def labelled(judge_errs, count=200, people=("ada", "bob", "eve"), person_errs=0.1):
    chance = random.Random(1)
    found = []
    for _ in range(count):
        truth = chance.random() < 0.6
        labels = {person: truth ^ (chance.random() < person_errs) for person in people}
        found.append((truth ^ (chance.random() < judge_errs), labels))
    return found


def test_a_judge_that_errs_as_people_do_may_stand_in_and_a_random_one_may_not():
    good, bad = alternative_annotator(labelled(0.1)), alternative_annotator(labelled(0.5))
    assert (good.winning_rate, good.passed) == (1, True)
    assert (bad.winning_rate, bad.passed) == (0, False)
    assert bad.advantage < good.advantage
    assert [one.person for one in good.against] == ["ada", "bob", "eve"]
    assert {one.answers for one in good.against} == {200}


def test_shares_count_ties_for_both():
    # each other person alone decides: the judge agrees with both others, or with one, or with none
    rows = [(True, {"a": True, "b": True, "c": True})] * 30 + [(False, {"a": True, "b": True, "c": True})] * 10
    found = alternative_annotator(rows)
    assert [(one.judge, one.people) for one in found.against] == [(pytest.approx(0.75), 1)] * 3


def test_people_who_all_agree_with_the_judge_have_no_variance():
    found = alternative_annotator([(True, dict.fromkeys("abc", True))] * 30)
    assert (found.winning_rate, found.advantage) == (1, 1)


def test_the_test_needs_three_people_with_thirty_shared_answers():
    assert alternative_annotator(labelled(0.1, people=("ada", "bob"))) is None
    assert alternative_annotator(labelled(0.1, count=29)) is None
    assert alternative_annotator([]) is None
