""""""

from __future__ import annotations

import json
import re

import pytest

from agentv.cli.main import run
from agentv.errors import UsageError
from agentv.extensions.labels.judges.probing import PROBES, ProbeRequest, probe_judges
from doubles.judge_models import JudgeModels, evaluated, write_project

pytestmark = pytest.mark.libraries


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    running = []

    def made(cases=12, rubric=None, **rules):
        models = JudgeModels(**rules)
        models.server.__enter__()
        running.append(models.server)
        write_project(tmp_path, models.server, cases, **(rubric or {}))
        evaluated()
        return models

    yield made
    for server in running:
        server.__exit__(None, None, None)


def probed(*probes, **options):
    found = probe_judges(ProbeRequest("last", probes, **options))
    (judge,) = found.judges
    return found, {one.probe: one for one in judge.probes}


def counts(outcome):
    return [(one.flipped, one.answers) for one in (outcome.fail_to_pass, outcome.pass_to_fail)]


def vain(_number, good, text):
    """Passes what is sure of itself, and fails lists."""
    return (good or "absolutely certain" in text) and "## Answer" not in text


def test_a_judge_of_the_form_is_found_out_and_one_of_the_content_is_not(project, capsys):
    models = project(small=vain)
    before = sum(models.asked.values())
    found, outcomes = probed("all")
    assert {name: counts(one) for name, one in outcomes.items()} == {
        "repeat": [(0, 4), (0, 8)],
        "order": [(0, 0), (0, 0)],
        "longer": [(0, 4), (0, 8)],
        "markdown": [(0, 4), (8, 8)],
        "confident": [(4, 4), (0, 8)],
        "other-model": [(0, 4), (0, 8)],
        "own-model": [(0, 4), (0, 8)],
    }
    assert outcomes["order"].does_not_fit == 12
    assert outcomes["confident"].fail_to_pass.interval == pytest.approx((0.5101, 1.0), abs=1e-4), "Wilson's of 4 of 4"
    assert found.new_calls == sum(models.asked.values()) - before == 6 * 12, "the first verdicts are those of the run"
    assert found.spent_usd == pytest.approx(0.072)
    again, same = probed("all")
    assert (again.new_calls, same) == (0, outcomes)
    assert any("This answer was written by small." in text for text in models.texts)

    assert run(["judge", "check", "last", "--probe", "confident,markdown"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"confident +4 of 4: 100.0% \(51.0% to 100.0%\) +0 of 8", shown)
    assert re.search(r"confident, fail → pass: agentv results show \S+ --case c\d+\n +the judge then: says True", shown)
    assert "markdown: 5 more; --json lists all" in shown
    assert run(["judge", "check", "last", "--probe", "confident", "--json"]) == 0
    (judge,) = json.loads(capsys.readouterr().out)["judges"]
    flip = judge["probes"][0]["flips"][0]
    assert flip["before"] == "fail"
    assert flip["changed_output"].startswith("I am absolutely certain of the following.\n\nANSWER")


def test_added_text_is_between_the_markers_of_the_answer(project):
    models = project()
    probed("longer", "own-model")
    changed = [text for text in models.texts if "I hope that this answer" in text or "was written by" in text]
    assert len(changed) == 24
    for text in changed:
        shown = re.search(r"<answer-(\w+)>\n(.*?)\n</answer-\1>", text, re.DOTALL)[2]
        assert "ANSWER" in shown
        assert ("I hope that this answer" in shown) or ("was written by small" in shown)


def test_the_order_of_items_and_a_judge_by_chance(project):
    rubric = {"value": ["Is polite", "Is short"]}

    def first_counts(_number, good, text):
        ids = re.findall(r"^\[(\w+)\]", text, re.MULTILINE)
        rows = [{"id": one, "satisfied": good or (ids[0] == "r2")} for one in ids]
        return json.dumps({"checks": rows})

    seen = {}

    def by_chance(number, good, _text):
        seen[number] = seen.get(number, 0) + 1
        said = good if seen[number] == 1 else not good
        return json.dumps({"checks": [{"id": one, "satisfied": said} for one in ("r1", "r2")]})

    project(rubric=rubric, small=first_counts, middle=by_chance)
    _, outcomes = probed("order", "repeat")
    assert counts(outcomes["order"]) == [(4, 4), (0, 8)]
    assert counts(outcomes["repeat"]) == [(0, 4), (0, 8)]
    _, outcomes = probed("repeat", judge="middle")
    assert counts(outcomes["repeat"]) == [(4, 4), (8, 8)]


def test_missing_verdicts_are_no_flips(project, capsys):
    project(
        middle=lambda number, good, text: "no idea" if number == 3 and "certain" in text else good,
        large=lambda *_: "no idea",
    )
    found, outcomes = probed("confident", judge="middle")
    assert (outcomes["confident"].errors, counts(outcomes["confident"])) == (1, [(0, 3), (0, 8)])
    assert found.is_complete
    assert run(["judge", "check", "last", "--probe", "repeat", "--judge", "large"]) == 2
    assert "so the judge is not probed" in capsys.readouterr().out


def test_wrong_options_are_refused_before_any_call(project, capsys):
    models = project(cases=3)
    before = dict(models.asked)
    for probes, options, says in (
        (("confidnt",), {}, "no probe 'confidnt'"),
        (("all",), {"judge": "small,votes=3"}, "a probe asks for one vote"),
        (("all",), {"assertion": "polit"}, "no judged assertion 'polit'"),
    ):
        with pytest.raises(UsageError, match=says):
            probed(*probes, **options)
    for words, says in (
        (["--sample", "5"], "--sample needs --probe"),
        (["--probe", ","], "--probe has no name"),
    ):
        assert run(["judge", "check", "last", *words]) == 2
        assert says in capsys.readouterr().err
    assert dict(models.asked) == before


PROSE = "We refund within 30 days. Please send it back, e.g. by post! Is that fine?"


def words(text):
    return [one for one in text.replace("#", " ").replace("- ", " ").split() if one != "Answer"]


@pytest.mark.parametrize("name", ["longer", "markdown", "confident", "other-model", "own-model"])
def test_a_change_of_the_form_keeps_every_word_in_its_order(name):
    change = PROBES[name].answer
    changed = change(PROSE, "openai:gpt-5-mini")
    assert changed == change(PROSE, "openai:gpt-5-mini") != PROSE
    kept = iter(words(changed))
    assert all(word in kept for word in words(PROSE))
    assert change('{"days": 30}', "openai:gpt-5-mini") is None
    assert change("42", "openai:gpt-5-mini") is None
    assert change("```python\nprint(1)\n```", "openai:gpt-5-mini") is None
    assert change("  ", "openai:gpt-5-mini") is None
