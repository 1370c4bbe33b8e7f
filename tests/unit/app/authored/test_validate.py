import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.authored.validate import Fixed, fix
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError
from doubles.thorough import examples

SUITE = """
# the whole
{name}: greetings # its name
{run}:
  # few
  {workers}: 3
{assert_}:
  - type: {judge}
    {metric}: polite # not rude
  - {regex}: hello
{tests}:
  # the first
  - {id}: greeting
    {input}: |
      Say hello.
      # not a comment
    {criteria}: Greets
    {metadata}: {{language: en}}
    execution: # mine
      target: echo
      # strictly
      {threshold}: 0.9

      {case_assert}:
        - type: {set}
          {inner}:
            - contains: hello
  - id: other
    input: Say bye
    {criteria}: Waves
    {own}: [{{contains: bye}}]
"""
CHOICES = {
    "name": ["name", "dataset", "suite"],
    "run": ["run", "evaluate_options", "evaluateOptions", "execution"],
    "workers": ["workers", "max_concurrency"],
    "assert_": ["assert", "assertions", "evaluators", '"evaluators"'],
    "judge": ["llm-rubric", "llm_judge", "llm-grader", "'g-eval'"],
    "metric": ["name", "metric"],
    "regex": ["regex", "matches", "not-matches", "not_regex"],
    "tests": ["tests", "evalcases", "eval_cases", "cases"],
    "id": ["id", "name"],
    "input": ["input", "input_messages"],
    "criteria": ["criteria", "expected_outcome", "outcome"],
    "metadata": ["metadata", "sidecar"],
    "threshold": ["threshold"],
    "case_assert": ["assert", "assertions", "evaluators"],
    "set": ["assert-set", "composite", "not-composite"],
    "inner": ["assert", "assertions"],
    "own": ["assert", "assertions", "evaluators"],
}
COMMENT = re.compile(r"# [^\n]*")


def meaning(path: Path) -> list[tuple[object, ...]]:
    (suite,) = load(LoadRequest((str(path),), judge="mock:no", targets=("echo",)), registries()).suites
    return [(suite.name, suite.run.workers), *((it.id, it.sha256, it.threshold, it.metadata) for it in suite.cases)]


@settings(max_examples=examples(60, 20))
@given(st.fixed_dictionaries({key: st.sampled_from(values) for key, values in CHOICES.items()}))
def test_a_suite_means_the_same_and_keeps_its_comments(spelling: dict[str, str]) -> None:
    with TemporaryDirectory() as directory:
        (Path(directory) / ".git").mkdir()
        path = Path(directory) / "suite.eval.yaml"
        path.write_text(SUITE.format(**spelling))
        before, comments = meaning(path), COMMENT.findall(path.read_text())
        fixed = fix((str(path),), {})
        assert meaning(path) == before
        assert sorted(COMMENT.findall(path.read_text())) == sorted(comments)
        again = fix((str(path),), {})
        assert again.files == {}
        assert again.left == fixed.left
        if spelling["tests"] == "tests":
            assert fixed.left == ()


def test_files_with_errors_are_left_alone(project: Path) -> None:
    path = project / "suite.eval.yaml"
    path.write_text("cases:\n  - id: a\n    assertions: [{contians: x}]\n")
    with pytest.raises(LoadError):
        fix((str(path),), {})
    assert path.read_text().startswith("cases:")


def test_json_lines_are_rewritten_in_place(project: Path) -> None:
    path = project / "cases.jsonl"
    right = '{"id": "b", "input": "b",  "assert": [{"contains": "b"}]}'
    path.write_text(
        '{"name": "a", "input_messages": "b", "assertions": [{"type": "matches", "value": "b"}]}\n\n' + right + "\n"
    )
    assert fix((str(path),), {}) == Fixed({str(path): 4}, ())
    shown = path.read_text()
    assert shown == '{"id": "a", "input": "b", "assert": [{"type": "regex", "value": "b"}]}\n\n' + right + "\n"


def test_a_file_and_a_link_to_it_are_rewritten_once(project: Path) -> None:
    path = project / "a.eval.yaml"
    path.write_text("target: echo\nevalcases: [{id: a, input: b, assert: [{contains: b}]}]\n")
    (project / "b.eval.yaml").symlink_to(path)
    fix((str(path), str(project / "b.eval.yaml")), {})
    assert path.read_text().splitlines()[1].startswith("tests:")
    assert (project / "b.eval.yaml").is_symlink()
