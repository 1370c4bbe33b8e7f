"""The evals of a skill where agents work on them: workspaces with their files, with the skill and without it."""

import json

import pytest

from agentv.authoring.dialects.skills import place_of
from doubles.loading import outcome, repository

SKILL = "---\nname: csv\ndescription: Reads CSV files.\n---\n\nSay June.\n"
TARGETS = """\
targets:
  - {name: agent, provider: acp, command: [python3, agent.py]}
  - {name: other, provider: acp, command: [python3, other.py]}
  - {name: model, provider: echo}
defaults: {target: agent, judge: 'mock:YES'}
"""
EVALS = {
    "skill_name": "csv",
    "evals": [
        {"id": 1, "prompt": "Sum {{ it }}", "files": ["evals/files/a.csv", "b.csv"], "expectations": ["It sums"]},
        {"id": 2, "prompt": "Go", "expected_output": "It goes."},
    ],
}
FILES = {
    ".agentv/targets.yaml": TARGETS,
    "lib/csv/SKILL.md": SKILL,
    "lib/csv/scripts/sum.py": "print(1)",
    "lib/csv/__pycache__/sum.pyc": "",
    "lib/csv/b.csv": "1",
    "lib/csv/evals/files/a.csv": "2",
    "lib/csv/evals/expected.md": "what is expected",
}


def suite_of(folder, evals=EVALS, name="lib/csv/evals/evals.json", files=FILES, **request):
    repository(folder, {**files, name: json.dumps(evals)})
    suites, found = outcome(folder / name, **request)
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
    suite, found = suite_of(tmp_path, evals, name, {**FILES, "lib/csv/tests/deep/key.md": "what is expected"})
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
    suite, found = suite_of(tmp_path, evals, files={**FILES, "lib/csv/a.csv": "root"})
    assert (suite, [code for code, _ in found]) == (None, ["bad-value"])
