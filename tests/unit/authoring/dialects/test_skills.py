"""The tests of a skill as an exam (agentskills.io, Anthropic's skill-creator). What is wrong is in `tests/cases`."""

import json

import pytest

from agentv.model.suite.exam import DESCRIPTION
from doubles.loading import outcome, repository

SKILL = "---\nname: csv\ndescription: >\n  Analyses\n  CSV files.\n---\n\n# CSV\n\nRead first.\n"
TARGETS = "targets: [{name: e, provider: echo}]\ndefaults: {target: e, judge: 'mock:YES'}\n"
MODELS = ("targets.yaml#e", "targets.yaml#mock:YES")
QUERIES = json.dumps([{"query": "chart it", "should_trigger": True}, {"query": "weather", "should_trigger": False}])
EVALS = json.dumps(
    {
        "evals": [{"id": 1, "prompt": "Sum {{ it }}", "files": ["files/a.csv"], "expectations": ["It sums"]}],
        "version": 2,
    }
)
FILES = {"lib/csv/SKILL.md": SKILL, ".agentv/targets.yaml": TARGETS, "lib/csv/files/a.csv": b"a\r\nb\r\n"}


def exam_of(folder, name, text, files=FILES, **request):
    repository(folder, {**files, name: text})
    suites, found = outcome(folder / name, **request)
    assert suites, found
    return suites[0], [one.code for one in found]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_skill_is_read_whatever_ends_its_lines(tmp_path, ends):
    text = "\ufeff" + SKILL.replace("\n", ends)
    suite, _ = exam_of(tmp_path, "lib/csv/evals.json", EVALS, {**FILES, "lib/csv/SKILL.md": text})
    system, user = next(iter(suite.cases)).input
    assert (system.role, system.text.splitlines()) == ("system", ["# CSV", "", "Read first."])
    assert user.text.endswith("Sum {{ it }}")
    assert suite.exam.texts["files/a.csv"] == b"a\nb\n"
    assert suite.metadata == {"version": 2}


def test_a_skill_without_instructions_has_no_system_message(tmp_path):
    text = "---\nname: csv\ndescription: x\n---"
    suite, _ = exam_of(tmp_path, "lib/csv/evals.json", EVALS, {**FILES, "lib/csv/SKILL.md": text})
    assert [message.role for message in next(iter(suite.cases)).input] == ["user"]


def test_the_skills_beside_it_are_shown_and_are_no_part_of_its_evidence(tmp_path):
    beside = {
        "lib/weather/SKILL.md": "---\nname: weather\ndescription: Tells the weather.\n---\n",
        "lib/empty/SKILL.md": "---\nname: empty\n---\n",
        "lib/broken/SKILL.md": "nothing",
        "lib/note.md": "no skill",
        "other/SKILL.md": "---\nname: far\ndescription: Is far away.\n---\n",
    }
    suite, found = exam_of(tmp_path, "lib/csv/eval_queries.json", QUERIES, {**FILES, **beside})
    text = next(iter(suite.cases)).input[0].text
    assert "name: weather\ndescription: Tells the weather." in text
    assert "far away" not in text
    assert "name: empty" not in text
    assert found == []
    assert set(suite.exam.texts) == {DESCRIPTION, "SKILL.md", "eval_queries.json", *MODELS}


def test_nothing_above_the_repository_is_looked_at(tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/SKILL.md").write_text("---\nname: b\ndescription: Is outside.\n---\n")
    suite, _ = exam_of(tmp_path / "csv", "eval_queries.json", QUERIES, {"SKILL.md": SKILL}, judge="mock:YES")
    assert "Is outside" not in next(iter(suite.cases)).input[0].text
