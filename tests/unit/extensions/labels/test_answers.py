from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.extensions.labels.answers import GradedAnswer, draw, graded_answers
from doubles.judged_runs import ASKED, judge_grade, judged_run
from doubles.stored_runs import write_run
from doubles.trials import errored_score, finished, scored, trial


def answers(root, verdicts, **given):
    return graded_answers(open_run(judged_run(root, verdicts, **given), action="label"))


def stratum_of(one):
    return (*one.judge, one.passed)


def answer_of(place, judge, asked, passed, trials=1):
    return GradedAnswer("s", f"c{place}", "t", f"a{judge}", "", "", "e" * 64, "", (), asked, passed, (), trials)


@st.composite
def graded(draw_):
    """Draw answers of one to three judges, some to several trials; alternate answers of a judge may be failures."""
    found = []
    for judge in range(draw_(st.integers(1, 3))):
        for verdict in (True, False):
            for place in range(draw_(st.integers(0, 12))):
                asked = replace(ASKED, model=f"m{judge % 2}")
                trials = draw_(st.integers(1, 3))
                found.append(answer_of(place, judge, asked, verdict, trials))
    return found


@settings(max_examples=60)
@given(graded(), st.integers(1, 40), st.integers(0, 30), st.integers(-5, 5), st.randoms())
def test_draws(found, sample, more, seed, chance):
    drawn = draw(found, sample, seed)
    assert len(drawn) == len({one.answer for one in drawn}) == min(sample, len(found))
    strata = {stratum: [one for one in found if stratum_of(one) == stratum] for stratum in map(stratum_of, found)}
    sizes = Counter(stratum_of(one.answer) for one in drawn)
    for stratum, members in strata.items():
        wanted = (sizes[stratum] / len(members), sum(one.trials for one in members))
        assert {(one.probability, one.drawn_from) for one in drawn if stratum_of(one.answer) == stratum} <= {wanted}
        assert sizes[stratum] == len(members) or sizes[stratum] >= max(sizes.values()) - 1, (
            "evenly, while there are any"
        )
    shuffled = chance.sample(found, len(found))
    assert draw(shuffled, sample, seed) == drawn, "the order of the answers does not matter"
    assert {one.answer for one in drawn} <= {one.answer for one in draw(found, sample + more, seed)}
    alone = {one.answer for one in draw([one for one in found if one.assertion == "a0"], sample, seed)}
    of_first = {one.answer for one in drawn if one.answer.assertion == "a0"}
    assert of_first <= alone, "one assertion alone goes on with what was drawn of all"


def test_every_answer_of_a_stratum_is_drawn_as_often_as_another():
    """Chi-squared over seeds, for a draw from two judges and for a larger draw that extends it."""
    found = [answer_of(place, judge, ASKED, place % 3 > 0) for judge in (0, 1) for place in range(15)]
    for sample in (8, 14):
        drawn: Counter[GradedAnswer] = Counter()
        expected: Counter[GradedAnswer] = Counter()
        for seed in range(600):
            sizes = Counter()
            for one in draw(found, sample, seed):
                drawn[one.answer] += 1
                sizes[stratum_of(one.answer)] = one.probability
            expected.update({one: sizes[stratum_of(one)] for one in found})
        squares = sum((drawn[one] - expected[one]) ** 2 / expected[one] for one in found)
        assert squares < 45, f"30 answers; {squares}"


def test_the_order_does_not_tell_the_verdict(tmp_path):
    drawn = draw(answers(tmp_path, [True] * 50 + [False] * 50), 60, 0)
    changes = sum(one.answer.passed is not other.answer.passed for one, other in pairwise(drawn))
    assert 18 < changes < 42


def test_samples_with_one_answer_are_one_and_count_as_trials(tmp_path):
    run = tmp_path / ".agentv" / "results" / "r"
    (tmp_path / ".git").mkdir()
    write_run(
        run,
        [finished(trial=trial("a", sample=number), scores=[judge_grade(True)], output="same") for number in (1, 2, 3)],
    )
    (found,) = graded_answers(open_run("r", action="label"))
    assert (found.trials, found.asked, found.passed) == (3, ASKED, True)


def test_a_run_without_such_answers_says_why(tmp_path):
    (tmp_path / ".git").mkdir()
    results = tmp_path / ".agentv" / "results"
    for name, scores, says in (
        ("plain", [scored()], "no judge graded an answer"),
        ("errored", [errored_score(kind="llm-rubric")], "no judge graded an answer"),
    ):
        write_run(results / name, [finished(scores=scores)])
        with pytest.raises(UsageError, match=says):
            graded_answers(open_run(name, action="label"))
    write_run(results / "judged", [finished(scores=[judge_grade(True)])])
    with pytest.raises(UsageError, match="no judged assertion 'polit'") as found:
        graded_answers(open_run("judged", action="label"), "polit")
    assert found.value.hint == "did you mean 'polite'?"
