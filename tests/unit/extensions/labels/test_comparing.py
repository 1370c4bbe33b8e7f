import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentv.cli.main import run
from agentv.errors import BudgetSpentError, ExitStatus, LoadError, UsageError
from agentv.extensions.labels.checking import check_judges
from agentv.extensions.labels.comparing import ComparedJudge, CompareRequest, compare_judges
from agentv.extensions.labels.posterior import ConfusionMatrix, Estimated, JudgeAccuracy
from doubles.judge_models import JudgeModels, label_answers, run_project, write_project

pytestmark = pytest.mark.libraries

CASES = 60


@pytest.fixture
def project(tmp_path):
    with ExitStack() as running:

        def made(cases=CASES, sample=CASES, rubric=None, **rules):
            models = JudgeModels(**rules)
            running.enter_context(models.server)
            write_project(tmp_path, models.server, cases, **(rubric or {}))
            run_project()
            if sample:
                label_answers(sample)
            return models

        yield made


def compared(*judges, **options):
    return compare_judges(CompareRequest(judges, **options))


def wrong_on(*numbers):
    return lambda number, good, _text: good ^ (number in numbers)


def test_judges_are_measured_on_the_same_answers_and_the_cheapest_that_is_not_worse_is_named(project):
    models = project(small=wrong_on(3, 6), middle=wrong_on(*range(0, 60, 4)), large=wrong_on(1))
    before = dict(models.asked)
    found = compared("large", "small", "middle", margin=0.15)
    (one,) = found.assertions
    large, small, middle = one.judges
    assert (large.matrix, small.matrix) == (ConfusionMatrix(39, 0, 1, 20), ConfusionMatrix(40, 2, 0, 18))
    assert middle.matrix == ConfusionMatrix(30, 5, 10, 15)
    assert one.judges[one.reference] is large
    assert (small.difference.only_this, small.difference.only_other) == (1, 2)
    assert (small.verdict, middle.verdict) == ("equivalent", "inconclusive")
    # corrected for all 3 pairs of the three; McNemar's p of 1 and 15 of 16
    assert middle.difference.p_value == pytest.approx(3 * 2 * 17 * 0.5**16)
    right = {one.name: one.accuracy.accuracy.value for one in one.judges}
    assert small.difference.value == pytest.approx(right["small"] - right[large.name])
    assert one.cheapest is small
    assert large.cost_usd > middle.cost_usd > small.cost_usd == pytest.approx(0.001)
    assert found.new_calls == 120
    assert found.spent_usd == pytest.approx(60 * (large.cost_usd + middle.cost_usd))
    assert models.asked["small"] == before["small"], "its verdicts are those of the run"
    of_check = check_judges("last").judges[0].accuracy
    assert small.accuracy == of_check

    again = compared("large", "small", "middle", margin=0.15)
    assert (again.new_calls, again.assertions) == (0, found.assertions)


def test_the_text_says_what_to_use_and_of_what_the_labels_show_too_little(project, capsys):
    project(small=wrong_on(3, 6), large=wrong_on(1))
    assert run(["judge", "compare", "large", "small"]) == 0
    shown = capsys.readouterr().out
    assert "polite: 60 labelled answers, graded by openai:small in the run" in shown
    assert "Use 'large': the most accurate on these labels" in shown
    assert "inconclusive for 'small': −1.7 points" in shown
    assert "60 new calls, $1.2000" in shown
    assert run(["judge", "compare", "large", "small", "--margin", "15", "--json"]) == 0
    content = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert content["assertions"][0]["cheapest_not_worse"] == "small"
    assert content["new_calls"] == 0
    assert run(["judge", "compare", "large", "small", "--margin", "15"]) == 0
    found = "Use 'small': the cheapest judge that is not worse than 'large' by more than 15 points"
    assert found in capsys.readouterr().out


def test_a_failed_verdict_is_no_agreement_and_too_many_are_no_result(project, capsys):
    models = project(
        middle=lambda number, good, _text: "no idea" if number in (4, 5) else good,
        large=lambda _number, _good, _text: "no idea",
    )
    found = compared("small", "middle")
    (one,) = found.assertions
    assert (one.answers, [judge.errors for judge in one.judges]) == (58, [0, 2])
    assert [judge.matrix.total for judge in one.judges] == [58, 58]
    assert found.is_complete
    assert run(["judge", "compare", "small", "large"]) == 2
    shown = capsys.readouterr().out
    assert "more than 10%: it is not compared" in shown
    assert "no readable verdict" in shown
    assert models.asked["large"] < 2 * CASES / 2, "it is not asked about all answers"
    assert run(["judge", "compare", "large", "large,votes=3"]) == 2
    assert "no judge gave enough verdicts" in capsys.readouterr().out


def test_on_a_scale_a_reply_without_points_is_no_verdict_though_it_fails_the_answer(project):
    rule = lambda number, good, _text: "hm" if number == 4 else f"SCORE={5 if good else 1} REASON=tone"  # noqa: E731
    project(cases=12, rubric={"scale": "1-5"}, small=lambda *given: rule(0, *given[1:]), large=rule)
    (one,) = compared("small", "large").assertions
    assert (one.answers, [judge.errors for judge in one.judges]) == (11, [0, 1])
    assert [judge.matrix for judge in one.judges] == [ConfusionMatrix(7, 0, 0, 4)] * 2


def test_a_spent_budget_keeps_what_was_paid_for(project):
    models = project()
    before = models.asked["large"]
    with pytest.raises(BudgetSpentError, match="budget") as spent:
        compared("small", "large", budget_usd=0.4)
    assert spent.value.status == ExitStatus.ERRORED, "as with agentv eval"
    first = models.asked["large"] - before
    assert 15 <= first <= 20, "calls of 0.02 dollars"
    found = compared("small", "large")
    assert (found.new_calls, models.asked["large"] - before) == (CASES - first, CASES)


def test_a_judge_with_more_votes_is_another_judge(project):
    seen = Counter()

    def one_of_three_is_wrong(number, good, _text):
        seen[number] += 1
        return good ^ (seen[number] == 1 + number % 3)

    project(middle=one_of_three_is_wrong)
    found = compared("middle,votes=3", "middle,votes=1")
    three, single = found.assertions[0].judges
    assert (three.votes, single.votes) == (3, 1)
    assert three.accuracy.accuracy.value > 0.95
    assert single.accuracy.accuracy.value < 0.8
    assert three.matrix == ConfusionMatrix(40, 0, 0, 20)


def test_stored_votes_of_a_rubric_are_not_paid_for_again(project):
    models = project(cases=12, rubric={"votes": 3})
    before = dict(models.asked)
    found = compared("small", "small,votes=1")
    assert found.new_calls == 0
    assert dict(models.asked) == before
    assert [judge.votes for judge in found.assertions[0].judges] == [3, 1]


def test_another_prompt_is_another_judge(project, tmp_path):
    models = project(cases=12)
    Path("strict.md").write_text("STRICT: grade {{ output }} by {{ criteria }}.")
    found = compared("small", "small,prompt=strict.md")
    assert [one.name for one in found.assertions[0].judges] == ["small", "small,prompt=strict.md"]
    assert found.new_calls == 12
    assert sum("STRICT: grade" in text for text in models.texts) == 12


def test_labels_that_do_not_count_are_told_and_none_at_all_is_an_error(project):
    project(cases=12, sample=None)
    with pytest.raises(UsageError, match="no labels of the run"):
        compared("small", "large")
    label_answers(12, says=lambda _: "unsure")
    with pytest.raises(UsageError, match="12 labels unsure"):
        compared("small", "large")
    label_answers(6, "bob", says=lambda _: "pass")
    (one,) = compared("small", "large").assertions
    assert one.answers == 6
    assert one.judges[0].accuracy.tnr is None, "no labelled answer fails"
    assert one.judges[0].accuracy.kappa is None
    assert "12 labels not counted: unsure" in one.notes
    suite = Path("polite.eval.yaml")
    suite.write_text(suite.read_text().replace("Is polite", "Is very polite"))
    with pytest.raises(UsageError, match="6 answers whose input, target or rubric changed"):
        compared("small", "large")


def test_answers_that_were_not_drawn_count_alike_and_that_is_told(project):
    project(cases=12, sample=None, small=wrong_on(3))
    label_answers(12)
    labels = Path(".agentv/labels/polite.jsonl")
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    lines = [{key: value for key, value in line.items() if key != "probability"} for line in lines]
    labels.write_text("".join(json.dumps(line | {"drawn_from": 4}) + "\n" for line in lines[:8]))
    (one,) = compared("small", "large").assertions
    assert (one.answers, one.weighted) == (8, False)
    assert any("not drawn at random from this run" in note for note in one.notes)


def test_one_judge_is_measured_and_one_that_is_given_twice_is_no_worse_than_itself(project):
    project(cases=12)
    (alone,) = compared("small").assertions
    assert [(one.name, one.verdict, one.accuracy is None) for one in alone.judges] == [("small", None, False)]
    (twice,) = compared("small", "small").assertions
    first, second = twice.judges
    assert first.matrix == second.matrix
    assert second.difference is None or second.difference.value == 0


def test_wrong_judges_are_refused_before_any_call(project, tmp_path):
    models = project(cases=6)
    before = dict(models.asked)
    Path("criteria.md").write_text("Is it polite?")
    Path("blind.md").write_text("Grade {{ output }}.")
    for judges, says in (
        (("small", "large,vote=3"), "not an option of a judge"),
        (("small", "large,votes=2"), "have no majority"),
        (("small", "large,votes=3,votes=5"), "has 'votes' twice"),
        (("small", "large,temperature=hot"), "must be a number from 0 to 2"),
        (("small", "large,prompt=none.md"), "cannot read the judge prompt none.md"),
        (("small", "large,prompt=judge.py"), "is code"),
        (("small", "large,prompt=criteria.md"), "has no placeholder"),
        (("small", "large,prompt=blind.md"), "does not contain the rubric"),
        (("small", ",votes=3"), "names no judge"),
    ):
        with pytest.raises(UsageError, match=says):
            compared(*judges)
    with pytest.raises(LoadError, match="no target 'larg'"):
        compared("small", "larg")
    assert dict(models.asked) == before


ACCURATE = JudgeAccuracy(None, None, Estimated(0.9, (0.8, 0.95)), None)


def judge(name, cost, verdict=None, accuracy=ACCURATE):
    return ComparedJudge(name, "m", 1, 0, None, accuracy=accuracy, cost_usd=cost, verdict=verdict)
