import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.errors import UsageError
from agentv.extensions.labels.checking import check_judges
from agentv.extensions.labels.labelling import open_session
from agentv.extensions.labels.posterior import ConfusionMatrix
from agentv.extensions.labels.reporting import judge_check_json, render_judge_check
from doubles.judged_runs import ASKED, judged_run

VERDICTS = [True] * 80 + [False] * 20


def give(person, says, *, run="last", sample=40, seed=0):
    """Label a run; `says` gets the case's number and the judge's verdict."""
    session = open_session(run, None, sample, seed, person)
    for drawn in session.drawn:
        verdict = says(int(drawn.answer.case[1:]), drawn.answer.passed)
        session.label(drawn, verdict, note="look \x1b[2J" if verdict == "fail" else "")
    return session


def agreeing_but(*wrong):
    return lambda number, passed: "pass" if passed ^ (number in wrong) else "fail"


def test_a_judge_and_a_person(tmp_path):
    run = judged_run(tmp_path, VERDICTS)
    session = give("ada", lambda number, passed: "pass" if passed and number % 4 else "fail")
    (found,) = check_judges("last").judges
    wrong = sum(one.answer.passed and int(one.answer.case[1:]) % 4 == 0 for one in session.drawn)
    assert found.matrix == ConfusionMatrix(20 - wrong, wrong, 0, 20)
    assert found.judge_rate[0] == 0.8
    assert found.corrected.low < 0.6 < found.corrected.high < 0.8, "the judge passes 0.8, people 0.6"
    assert found.accuracy.tpr.value > 0.9 > found.accuracy.tnr.value
    assert [one.kind for one in found.disagreements] == ["false-pass"] * wrong
    text = render_judge_check(check_judges("last"))
    assert f"agentv results show {run} --case c" in text
    assert "pass rate 80.0% by the judge; " in text
    assert "corrected by 40 labelled answers" in text
    assert "\x1b" not in text
    assert r"ada (fail): look \x1b[2J" in text
    shown = json.loads(judge_check_json(check_judges("last")))["judges"][0]
    assert shown["confusion_matrix"]["false_passes"] == wrong
    assert text.startswith(shown["sentence"])
    assert shown["corrected_pass_rate"]["interval"] == [found.corrected.low, found.corrected.high]


def test_labels_beside_one_verdict_of_the_judge_are_told(tmp_path):
    judged_run(tmp_path, VERDICTS)
    session = give("ada", agreeing_but())
    path = Path(session.store.places(session.suites)[0])
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"judge_pass":true' in line))
    for named in ("last", str(path)):
        shown = render_judge_check(check_judges(named))
        assert "warning: no labelled answer is one that the judge fails, so that TPR and TNR are hardly known" in shown


def test_labels_that_do_not_count_are_told(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give("ada", agreeing_but())
    for what, changed in (
        ("other_judge", replace(ASKED, model="openai:large")),
        ("other_judge", replace(ASKED, prompt_sha256="e" * 64)),
        ("other_rubric", replace(ASKED, rubric_sha256="e" * 64)),
    ):
        run = judged_run(
            tmp_path, VERDICTS, run=f"2026-{what}-{changed.model[-5:]}-{changed.prompt_sha256[0]}", asked=changed
        )
        (found,) = check_judges(run).judges
        assert getattr(found.counts, what) == 40, what
        assert (found.matrix.total, found.corrected, found.transferred) == (0, None, None)
        assert "never checked on this run" in render_judge_check(check_judges(run))


def test_the_later_label_of_a_person_counts(tmp_path):
    judged_run(tmp_path, [True] * 6 + [False] * 6)
    give("ada", lambda *_: "fail", sample=12)
    session = open_session("last", None, 12, 0, "ada")
    assert session.left == 0
    session.label(session.drawn[0], "pass")
    found = check_judges("last")
    assert found.judges[0].matrix.true_passes + found.judges[0].matrix.false_failures == 1


@pytest.mark.parametrize("verdict", ["pass", "fail", "unsure"])
@pytest.mark.parametrize("verdicts", [[True] * 5, [False] * 5, [True] * 4 + [False] * 3])
def test_labels_that_are_all_alike_give_numbers_and_a_warning(tmp_path, verdict, verdicts):
    judged_run(tmp_path, verdicts)
    give("ada", lambda *_: verdict)
    give("bob", lambda *_: verdict)
    checked = check_judges("last")
    text = render_judge_check(checked)
    json.loads(judge_check_json(checked), parse_constant=pytest.fail)
    if verdict == "unsure":
        assert f"{2 * len(verdicts)} labels not counted: unsure" in text
        assert checked.judges[0].corrected is None
    else:
        assert f"warning: only {len(verdicts)} labelled answers" in text
        assert 0 < checked.judges[0].corrected.low < checked.judges[0].corrected.high < 1
        assert "Cohen's kappa     undefined" in text


def test_nothing_to_check_is_said(tmp_path):
    judged_run(tmp_path, [True])
    for named, says in (("last", "no labels of the run"), ("none.jsonl", "no file of labels")):
        with pytest.raises(UsageError, match=says):
            check_judges(named)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UsageError, match="has no labels"):
        check_judges(str(tmp_path / "empty.jsonl"))


def test_labels_of_a_run_that_shares_only_some_answers_are_no_random_part_of_this_one(tmp_path):
    judged_run(tmp_path, VERDICTS)
    give("ada", agreeing_but(1, 90))
    same = judged_run(tmp_path, VERDICTS, run="same")
    assert check_judges(same).judges[0].corrected is not None, "all answers are the same, as after --regrade"
    for run, verdicts in (("longer", [*VERDICTS, True]), ("shorter", VERDICTS[20:])):
        (found,) = check_judges(judged_run(tmp_path, verdicts, run=run)).judges
        assert found.corrected is None, run
        assert found.counts.not_drawn == found.matrix.total > 0, run
        assert found.transferred_answers == 40, run
        assert found.transferred.low < 0.8 < found.transferred.high, run
    text = render_judge_check(check_judges("longer"))
    assert "40 labels not used to correct the pass rate: not drawn at random from this run" in text
    assert "corrected by 40 labelled answers of other runs, if the judge errs as often here as there" in text
