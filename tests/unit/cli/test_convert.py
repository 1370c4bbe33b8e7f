import os
from pathlib import Path

import pytest

from agentv.authoring.dialects.recognition import AGENTV, dialects, named_by
from agentv.cli.main import run
from agentv.errors import ExitStatus


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    return run(["convert", *arguments]), capsys.readouterr().err


def test_a_configuration_of_promptfoo_needs_no_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "prompts: a\nproviders: echo\ntests: [{assert: [{type: contains, value: a}]}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    assert said(capsys, "promptfooconfig.yaml") == (ExitStatus.PASSED, "wrote promptfoo.eval.yaml\n")
    (project / "promptfooconfig.yaml").write_text(f"{text}sharing: true\n")
    status, text = said(capsys, "promptfooconfig.yaml", "-o", "other.eval.yaml")
    assert status == ExitStatus.PASSED
    assert "promptfooconfig.yaml:4:1: hint[no-equivalent]: 'sharing' is omitted" in text


def test_nothing_is_written_where_something_has_no_equivalent(project, capsys):
    text = "prompts: a\nproviders: echo\ntests:\n  - assert: [{type: moderation}]\n  - assert: [{type: human}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    status, told = said(capsys, "promptfooconfig.yaml")
    assert status == ExitStatus.WRONG
    assert "promptfooconfig.yaml:4:21: error[no-equivalent]: 'moderation' has no equivalent" in told
    assert "promptfooconfig.yaml:5:21: error[no-equivalent]: 'human' has no equivalent" in told
    assert not (project / "promptfoo.eval.yaml").exists()


def test_what_cannot_be_rows_is_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.eval.yaml").write_text("tests: [{id: a, input: a, repeat: 2, tags: [b], assert: [contains: a]}]\n")
    assert said(capsys, "a.eval.yaml", "--to", "csv") == (
        ExitStatus.WRONG,
        (
            "error: 1 case cannot be written as rows; nothing was written\n"
            "  case 'a': 'repeat' has no form in a row\n"
            "  case 'a': 'tags' has no form in a row\n"
        ),
    )


def test_a_suite_in_python_is_made_and_a_mapping_that_people_edit_comes_out(project: Path) -> None:
    (project / "made.eval.py").write_text(
        "suite = {'target': 'echo', 'tests': [{'id': n, 'input': 'x', 'assert': [{'equals': 'x\\ny'}]} for n in 'ab']}\n"
    )
    assert run(["convert", "made.eval.py", "--to", "python", "-o", "out.eval.py"]) == ExitStatus.PASSED
    assert (project / "out.eval.py").read_text() == (
        '"""Cases for agentv."""\n\n'
        "suite = {\n"
        "    'name': 'made',\n"
        "    'target': 'echo',\n"
        "    'tests': [\n"
        + "".join(
            "        {\n"
            f"            'id': '{name}',\n"
            "            'input': 'x',\n"
            "            'assert': [\n"
            "                {\n"
            "                    'equals': (\n"
            "                        'x\\n'\n"
            "                        'y'\n"
            "                    ),\n"
            "                },\n"
            "            ],\n"
            "        },\n"
            for name in "ab"
        )
        + "    ],\n}\n"
    )


def test_a_dataset_says_what_it_is_checked_with(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "samples.jsonl").write_text('{"input": "2+2?", "ideal": ["4", "four"]}\n')
    status, text = said(capsys, "samples.jsonl")
    assert status == ExitStatus.WRONG
    assert text == (
        "error: samples.jsonl contains samples of OpenAI evals, which do not say how answers are checked\n"
        "  add --assert TYPE (repeatable): equals, contains, icontains, starts-with, ends-with, choice, "
        "similar, rouge-n, bleu, factuality, llm-rubric, answer-relevance, context-recall, "
        "context-faithfulness, context-relevance\n"
    )
    shown = said(capsys, "samples.jsonl", "--assert", "contains", "--assert", "llm-rubric")
    assert shown == (ExitStatus.PASSED, "wrote samples.eval.yaml\n  1 case, checked by contains and llm-rubric\n")
    assert said(capsys, "samples.jsonl", "--assert", "contains", "--to", "jsonl") == (
        ExitStatus.PASSED,
        "wrote samples.cases.yaml\nwrote samples.cases.jsonl\n  1 case, checked by contains\n",
    )
    assert run(["validate", "samples.eval.yaml", "samples.cases.jsonl"]) == ExitStatus.PASSED


def test_what_a_dataset_loses_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = '{"role": "user", "content": "2+2?", "weight": 1}'
    (project / "samples.jsonl").write_text(f'{{"input": [{message}], "ideal": "4"}}\n' * 2)
    status, text = said(capsys, "samples.jsonl", "--assert", "equals")
    assert status == ExitStatus.FAILED
    assert "samples.jsonl:1:1: warning[no-equivalent]: 'weight' of a message is omitted" in text
    assert "also at line 2" in text
    assert text.endswith("wrote samples.eval.yaml\n  2 cases, checked by equals\n")


AMBIGUOUS = '[{"input": "a", "expected_output": "b"}]'
NAMES = named_by((AGENTV, *dialects()))


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("a.json", AMBIGUOUS, [], f"a.json is not recognized: its first entry has the keys 'input', 'expected_output'\n  {NAMES}"),
        ("a.jsonl", '{"q": 1, "a": 2, "b": 3, "c": 4, "d": 5, "e": 6}', [], f"a.jsonl is not recognized: its first entry has the keys 'q', 'a', 'b', 'c', 'd' and more\n  {NAMES}"),
        ("a.jsonl", '{"input": "a", "ideal": "b", "target": "c"}', [], f"a.jsonl may contain samples of OpenAI evals or samples of Inspect\n  {NAMES}"),
        ("a.jsonl", '{"id": "a", "input": "b", "assert": [{"contains": "b"}]}', [], "a.jsonl is an eval file, so --to must name the format to write\n  add --to yaml, --to jsonl, --to csv or --to python; to rewrite older spellings: agentv validate --fix a.jsonl"),
        ("a.yaml", "tests: []", [], "a.yaml is an eval file, so --to must name the format to write\n  add --to yaml, --to jsonl, --to csv or --to python; to rewrite older spellings: agentv validate --fix a.yaml; if it is a promptfoo configuration, add --from promptfoo"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}', ["--assert", "equal"], "--assert does not know 'equal'"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}', ["--assert", "equals", "--to", "csv"], "a dataset is converted to yaml or jsonl, not to csv"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}', ["--assert", "equals", "-o", "b.txt"], "b.txt must end in .yaml"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}', ["--assert", "equals", "-o", "."], ". is a directory; --out names the file to write"),
        ("a.eval.yaml", "tests: []", ["--assert", "equals"], "--assert is for datasets of deepeval, OpenAI evals and Inspect\n  if a.eval.yaml is one, name its format: --from deepeval, --from openai-evals or --from inspect"),
        ("a.eval.yaml", "tests: []", ["--in-place"], "--in-place is for the directory of an AgentV project\n  for one file: agentv validate --fix a.eval.yaml"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}', ["--assert", "equals", "-o", "no/b.eval.yaml"], "no does not exist\n  create the directory first"),
        ("a.txt", '{"input": "a", "ideal": "b"}', ["--to", "yaml"], "a.txt is not an eval file\n  eval files end in .yaml, .yml, .jsonl, .csv, .json, .parquet, .arrow, .feather, .ipc, .xlsx, .xlsm or .eval.py"),
        ("promptfooconfig.js", "", [], "promptfooconfig.js is a promptfoo configuration in JavaScript or TypeScript, which agentv does not read\n  export it after a run (promptfoo export eval latest -o promptfoo.json), then: agentv eval promptfoo.json"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_says_what_to_do(name, content, arguments, message, project, capsys):
    (project / name).write_text(content)
    status, text = said(capsys, name, *arguments)
    assert status == ExitStatus.WRONG
    assert text.startswith(f"error: {message}\n")
    assert [path.name for path in project.iterdir()] == [name]


def test_the_evals_of_a_skill_need_no_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "evals.json").write_text('{"evals": [{"id": 1, "prompt": "a", "expected_output": "b"}]}')
    status, printed = said(capsys, "evals.json")
    assert (status, printed.splitlines()[-1]) == (ExitStatus.PASSED, "wrote evals.eval.yaml")
    assert said(capsys, "evals.json", "--to", "csv")[0] == ExitStatus.WRONG


def test_a_project_says_what_became_of_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "old" / "node_modules").mkdir(parents=True)
    (project / "old" / "circle").symlink_to("circle")
    suite = "target: echo\nassert: [{contains: b}]\nevalcases:\n  - {id: a, input: b}\n"
    (project / "old" / "a.eval.yaml").write_text(suite)
    replacing = "target: echo\nassert: [{contains: b}]\nevalcases:\n  - {id: a, input: b, evaluators: [{equals: b}]}\n"
    (project / "old" / "b.eval.yaml").write_text(replacing)
    assert said(capsys, "old")[1].startswith(
        "error: a project needs --out or --in-place\n  add --out NEW_DIRECTORY, or --in-place"
    )
    status, text = said(capsys, "old", "--out", "new")
    assert status == ExitStatus.FAILED
    assert text == (
        "wrote new\n"
        "left out:\n  node_modules\n"
        "rewrote 1 older spelling in a.eval.yaml\n"
        "older spellings that stay, since rewriting them would change a verdict:\n"
        "  b.eval.yaml:3: 'evalcases' is an older spelling of 'tests'\n"
        "  b.eval.yaml:4: 'evaluators' is an older spelling of 'assert'\n"
    )
    assert said(capsys, "old", "--out", "new")[1].startswith("error: new would be overwritten\n")
    assert said(capsys, "old", "--out", "x", "--in-place")[0] == ExitStatus.WRONG
    assert said(capsys, "old", "--in-place", "--to", "csv")[0] == ExitStatus.WRONG
    assert said(capsys, "old", "--from", "inspect", "--out", "x")[0] == ExitStatus.WRONG
    assert said(capsys, "new", "--in-place")[0] == ExitStatus.FAILED


def test_a_pipe_is_not_waited_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(project / "samples.jsonl")
    message = "error: samples.jsonl is a device or a pipe, expected a file\n  save its content to a file first\n"
    assert said(capsys, "samples.jsonl", "--from", "inspect") == (ExitStatus.WRONG, message)
    assert run(["validate", "samples.jsonl"]) == ExitStatus.WRONG


def test_a_project_with_a_wrong_file_is_not_written_in_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "evals").mkdir()
    (project / "evals" / "a.eval.yaml").write_text("evalcases: [{id: a, input: b, assert: [contains: b]}]\n")
    (project / "evals" / "b.eval.yaml").write_text("evalcases: [{id: a, input: b, assert: [contians: b]}]\n")
    status, text = said(capsys, ".", "--in-place")
    assert status == ExitStatus.WRONG
    assert "evals/b.eval.yaml:1:40: error[unknown-assertion]" in text
    assert text.endswith("nothing was written: 1 of 2 eval files invalid; fix the errors above, then convert again\n")
    assert (project / "evals" / "a.eval.yaml").read_text().startswith("evalcases")


def test_what_a_project_needs_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".agentv").mkdir()
    (project / ".agentv" / "targets.yaml").write_text("targets: [{id: a, provider: echo}]\n")
    assert said(capsys, ".agentv/targets.yaml") == (
        ExitStatus.WRONG,
        "error: .agentv/targets.yaml is converted with its project\n  agentv convert . --in-place\n",
    )
