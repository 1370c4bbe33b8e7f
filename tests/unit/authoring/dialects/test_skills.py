"""The tests of a skill as an exam (agentskills.io, Anthropic's skill-creator). `tests/cases` covers errors.

With agents: workspaces with the skill's files, with and without the skill.
"""

import json

import pytest

from agentv.authoring.dialects.skills import place_of
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


AGENTS = """\
targets:
  - {name: agent, provider: acp, command: [python3, agent.py]}
  - {name: other, provider: acp, command: [python3, other.py]}
  - {name: model, provider: echo}
defaults: {target: agent, judge: 'mock:YES'}
"""
AGENT_EVALS = {
    "skill_name": "csv",
    "evals": [
        {"id": 1, "prompt": "Sum {{ it }}", "files": ["evals/files/a.csv", "b.csv"], "expectations": ["It sums"]},
        {"id": 2, "prompt": "Go", "expected_output": "It goes."},
    ],
}
AGENT_FILES = {
    ".agentv/targets.yaml": AGENTS,
    "lib/csv/SKILL.md": SKILL,
    "lib/csv/scripts/sum.py": "print(1)",
    "lib/csv/__pycache__/sum.pyc": "",
    "lib/csv/b.csv": "1",
    "lib/csv/evals/files/a.csv": "2",
    "lib/csv/evals/expected.md": "what is expected",
}


def suite_of(folder, evals=AGENT_EVALS, name="lib/csv/evals/evals.json", files=AGENT_FILES):
    repository(folder, {**files, name: json.dumps(evals)})
    suites, found = outcome(folder / name)
    return suites[0] if suites else None, [(one.code, one.severity) for one in found]


def test_agents_work_with_the_files_of_an_eval_and_are_asked_its_prompt_alone(tmp_path):
    suite, found = suite_of(tmp_path)
    assert found == []
    first, second = suite.cases
    assert [(one.role, one.text) for one in first.input] == [("user", "Sum {{ it }}")]
    assert [one.path for one in first.workspace.files] == ["a.csv", "b.csv"]
    assert first.workspace.files[0].source == str(tmp_path / "lib/csv/evals/files/a.csv")
    assert (second.workspace.files, second.workspace.template) == ((), None)
    shown = [(one.type, one.settings.required) for one in (*first.assertions, *second.assertions)]
    assert shown == [("llm-rubric", True), ("llm-rubric", True)]


def test_the_skill_without_its_tests_is_one_variant_and_its_absence_the_base(tmp_path):
    suite, _ = suite_of(tmp_path)
    base, candidate = suite.variants
    assert (base.name, base.overlays) == ("without-skill", ())
    assert candidate.name == "with-skill"
    assert sorted(one.path for one in candidate.overlays) == [
        ".agents/skills/csv/SKILL.md",
        ".agents/skills/csv/b.csv",
        ".agents/skills/csv/scripts",
        ".claude/skills/csv/SKILL.md",
        ".claude/skills/csv/b.csv",
        ".claude/skills/csv/scripts",
    ]
    assert suite.exam is None, "half of the trials are without the skill, so that they are no exam of it"


@pytest.mark.parametrize("name", ["lib/csv/evals.json", "lib/csv/tests/deep/evals.json"])
def test_evals_elsewhere_in_the_skill_are_no_part_of_it_either(tmp_path, name):
    evals = {"evals": [{"prompt": "Go", "expected_output": "It goes."}]}
    suite, found = suite_of(tmp_path, evals, name, {**AGENT_FILES, "lib/csv/tests/deep/key.md": "what is expected"})
    assert [code for code, severity in found if severity == "error"] == []
    inner = {one.path.removeprefix(".claude/skills/csv/") for one in suite.variants[1].overlays}
    assert inner.isdisjoint({"evals.json", "evals", "__pycache__"})
    assert ("tests" in inner) == (name == "lib/csv/evals.json")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("evals/files/a.csv", "a.csv"),
        ("evals/files/data/a.csv", "data/a.csv"),
        ("evals/a.csv", "a.csv"),
        ("data/a.csv", "data/a.csv"),
        ("../other/a.csv", "other/a.csv"),
        ("/a.csv", "a.csv"),
        ("evals", "evals"),
    ],
)
def test_places_of_input_files(path, place):
    assert place_of(path) == place


def test_two_files_of_one_place_are_reported(tmp_path):
    evals = {"evals": [{"prompt": "x", "files": ["evals/files/a.csv", "a.csv"], "expectations": ["y"]}]}
    suite, found = suite_of(tmp_path, evals, files={**AGENT_FILES, "lib/csv/a.csv": "root"})
    assert (suite, [code for code, _ in found]) == (None, ["bad-value"])
