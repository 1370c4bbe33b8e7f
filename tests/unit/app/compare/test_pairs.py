from msgspec.structs import replace

from agentv.app.compare.pairs import Pairs
from agentv.model.run.comparison import CaseKey, CaseOutcome
from doubles.compared import held

PASSED = CaseOutcome("passed", 1.0, 1, 0.8, 1, 1, 1)
KEYS = [CaseKey("refunds", case, prompt, "gpt") for case in "abc" for prompt in ("p", "q")]


def pairs(*, filled=False):
    base = held({key: replace(PASSED, score=number / 10) for number, key in enumerate(KEYS)})
    candidate = held(dict.fromkeys(KEYS, replace(PASSED, status="errored", score=None)))
    found = Pairs(base, candidate, filled=filled)
    for number in range(len(KEYS)):
        found.add(number, number)
    return found


def test_pairs_are_read_one_by_one_in_parts_and_in_another_order():
    found = pairs()
    keys = [one.before_key for one in found]
    assert (len(found), keys, found[1].before.score) == (6, KEYS, 0.1)
    for part in (slice(1, 3), slice(None, None, -2), slice(4, None)):
        assert isinstance(found[part], Pairs)
        assert [one.before_key for one in found[part]] == KEYS[part]
    assert [one.before_key for one in found.chosen([5, 0])] == [KEYS[5], KEYS[0]]


def test_a_case_with_two_prompts_is_one():
    assert pairs().distinct() == 3
    assert pairs()[:3].distinct() == 2


def test_errored_samples_count_as_failed_in_every_part_where_the_setting_says_so():
    assert [one.after.status for one in pairs(filled=True)[:2]] == ["failed", "failed"]
    assert [one.after.status for one in pairs()[:2]] == ["errored", "errored"]
