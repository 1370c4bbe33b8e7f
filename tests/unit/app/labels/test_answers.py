from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from agentv.app.labels.answers import draw, graded_answers
from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from doubles.judged_runs import ASKED, judged, judged_run
from doubles.stored_runs import write_run
from doubles.trials import errored_score, finished, scored, trial


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def answers(root, verdicts, **given):
    return graded_answers(open_run(judged_run(root, verdicts, **given), action="label"))


def test_an_answer_is_drawn_with_the_probability_that_its_label_says(tmp_path):
    found = answers(tmp_path, [True] * 30 + [False] * 10)
    drawn = Counter()
    for seed in range(400):
        sample = draw(found, 8, seed)
        assert len({one.answer.key for one in sample}) == 8
        drawn.update(one.answer.case for one in sample)
        assert {(one.answer.passed, one.probability, one.drawn_from) for one in sample} == {
            (True, 4 / 30, 30),
            (False, 0.4, 10),
        }
    assert all(abs(drawn[one.case] / 400 - (4 / 30 if one.passed else 0.4)) < 0.1 for one in found)


def test_the_same_seed_draws_the_same_and_a_larger_sample_adds_to_it(tmp_path):
    found = answers(tmp_path, [True] * 30 + [False] * 10)
    keys = [[one.answer.key for one in draw(list(reversed(found)) if turned else found, size, 3)] for size, turned in ((8, 0), (8, 1), (20, 0))]  # fmt: skip
    assert keys[0] == keys[1]
    assert set(keys[0]) < set(keys[2])
    assert len(draw(found, 500, 0)) == 40


def test_the_order_does_not_tell_the_verdict(tmp_path):
    drawn = draw(answers(tmp_path, [True] * 50 + [False] * 50), 60, 0)
    changes = sum(one.answer.passed is not other.answer.passed for one, other in pairwise(drawn))
    assert 18 < changes < 42


def test_samples_with_one_answer_are_one_and_count_as_trials(tmp_path):
    run = tmp_path / ".agentv" / "results" / "r"
    (tmp_path / ".git").mkdir()
    write_run(
        run, [finished(trial=trial("a", sample=number), scores=[judged(True)], output="same") for number in (1, 2, 3)]
    )
    (found,) = graded_answers(open_run("r", action="label"))
    assert (found.trials, found.asked, found.reason, found.passed) == (3, ASKED, "as I see it", True)


def test_the_opposite_of_a_rubric_is_another_rubric(tmp_path):
    run = tmp_path / ".agentv" / "results" / "r"
    (tmp_path / ".git").mkdir()
    write_run(run, [finished(scores=[judged(True, kind="not-llm-rubric")])])
    (found,) = graded_answers(open_run("r", action="label"))
    assert found.asked.rubric == "The opposite must hold of:\nIs polite"
    assert found.asked.rubric_sha256 != ASKED.rubric_sha256


def test_a_run_without_such_answers_says_why(tmp_path):
    (tmp_path / ".git").mkdir()
    results = tmp_path / ".agentv" / "results"
    old = replace(judged(True), grade=replace(judged(True).grade, asked_judge=None))
    for name, scores, says in (
        ("plain", [scored()], "no judge graded an answer"),
        ("old", [old], "an older agentv wrote it"),
        ("errored", [errored_score(kind="llm-rubric")], "no judge graded an answer"),
    ):
        write_run(results / name, [finished(scores=scores)])
        with pytest.raises(UsageError, match=says):
            graded_answers(open_run(name, action="label"))
    write_run(results / "judged", [finished(scores=[judged(True)])])
    with pytest.raises(UsageError, match="no judged assertion 'polit'") as found:
        graded_answers(open_run("judged", action="label"), "polit")
    assert found.value.hint == "did you mean 'polite'?"
