import json
import shutil
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.app.authored.convert import convert, convert_document
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError
from agentv.model.suite.suite import Suite
from doubles.thorough import each_third

VALID = Path(__file__).parents[3] / "cases" / "valid"
SUITES = sorted(folder.name for folder in VALID.iterdir() if (folder / "suite.eval.yaml").is_file())


def suite_of(path: Path) -> Suite:
    (suite,) = load(LoadRequest((str(path),), makes=True, for_run=False), registries()).suites
    return suite


def loaded(path: Path) -> object:
    return meaning(suite_of(path))


def copied(name: str, project: Path) -> Path:
    """Copy a folder into a project and return its eval file."""
    shutil.copytree(VALID / name, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.yaml"))
    return project / "suite.eval.yaml"


NO_WORD_FOR = {
    "evaluators-replace-in-evalcases": "a rule that hangs on how the key of the cases is spelled",
    "yaml-1.2-scalars": "octal and hexadecimal numbers, and infinity",
    "yaml-1.2-values": "infinity, and what is no number",
}
"""Suites that JSON Lines cannot express → reason."""


ELSEWHERE = ("tests-as-a-glob", "git-files", "transcripts")
"""The glob of the first would match the output file; the others need git hosts or are not case files."""


@pytest.mark.parametrize("name", [*each_third(sorted({*SUITES} - {*NO_WORD_FOR, *ELSEWHERE}), 0)])
def test_every_suite_survives_the_way_to_json_lines_and_back(name: str, project: Path) -> None:
    source = copied(name, project)
    lines, _ = convert(source, "jsonl", project / "lines.jsonl", {})
    (back,) = convert(lines, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(lines) == loaded(source)


@pytest.mark.parametrize("name", NO_WORD_FOR)
def test_what_json_lines_cannot_say_is_refused_and_nothing_is_left_behind(name: str, project: Path) -> None:
    source = copied(name, project)
    with pytest.raises(UsageError, match="would change meaning in jsonl"):
        convert(source, "jsonl", project / "lines.jsonl", {})
    assert not list(project.glob("lines.*"))


def test_nothing_is_overwritten(project: Path) -> None:
    source = project / "suite.yaml"
    source.write_text("tests: [{id: a, input: b, assert: [{contains: b}]}]\n")
    with pytest.raises(UsageError, match="overwritten"):
        convert(source, "jsonl", None, {})
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.yaml"]


def test_a_source_that_is_wrong_is_refused(project: Path) -> None:
    source = project / "suite.eval.yaml"
    source.write_text("tests: [{id: a, input: b, assert: [{contians: b}]}]\n")
    with pytest.raises(LoadError):
        convert(source, "jsonl", None, {})
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.eval.yaml"]


NO_PYTHON_FOR = {
    "message-forms": "a number that is written 1.50",
    "tests-as-json": "a number that is written 1.50",
    "yaml-1.2-scalars": "words that YAML reads as numbers, and are compared as text",
    "yaml-1.2-values": "infinity, and what is no number",
}
"""Suites that Python cannot express → reason."""


@pytest.mark.parametrize("name", NO_PYTHON_FOR)
def test_what_python_cannot_say_is_refused(name: str, project: Path) -> None:
    source = copied(name, project)
    with pytest.raises(UsageError, match=r"in python|to python"):
        convert(source, "python", None, {})


@pytest.mark.parametrize("name", [*each_third(sorted({*SUITES} - {*ELSEWHERE, *NO_PYTHON_FOR}), 1)])
def test_every_suite_survives_the_way_to_python_and_back(name: str, project: Path) -> None:
    source = copied(name, project)
    (made,) = convert(source, "python", project / "made.eval.py", {})
    (back,) = convert(made, "yaml", project / "back.eval.yaml", {})
    assert loaded(back) == loaded(made) == loaded(source)


@pytest.fixture
def convert_document_project(project: Path) -> Path:
    shutil.copytree(VALID / "skill-evals" / "csv", project / "csv")
    return project


@pytest.mark.parametrize("out", [None, "all.eval.yaml", "csv/all.eval.yaml"])
def test_an_eval_file_means_what_the_evals_mean(out: str | None, convert_document_project: Path) -> None:
    source = convert_document_project / "csv" / "evals" / "evals.json"
    path = convert_document(source, "agent-skills", convert_document_project / out if out else None, {}).path
    assert path == (convert_document_project / out if out else source.with_name("evals.eval.yaml"))
    before = replace(suite_of(source), exam=None)
    assert loaded(path) == meaning(before)


@pytest.mark.parametrize("out", ["all.eval.yaml", "elsewhere/all.eval.yaml"])
def test_a_function_is_the_same_one_however_its_path_is_written(out: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "provider.py").write_text("def call_api(prompt, options, context):\n    return {'output': prompt}\n")
    source = tmp_path / "promptfooconfig.yaml"
    source.write_text("prompts: [hi]\nproviders: [{id: file://provider.py, label: mine}]\ntests: [{vars: {a: b}}]\n")
    path = convert_document(source, "promptfoo", tmp_path / out, {}).path
    assert suite_of(path).targets[0].settings == suite_of(source).targets[0].settings


def test_evals_without_their_skill_are_a_suite(convert_document_project: Path) -> None:
    (convert_document_project / "csv" / "SKILL.md").unlink()
    source = convert_document_project / "csv" / "evals" / "evals.json"
    suite = suite_of(source)
    assert (suite.exam, suite.name) == (None, "csv-analyzer")
    assert [message.role for message in suite.cases[0].input] == ["user"]
    path = convert_document(source, "agent-skills", None, {}).path
    assert loaded(path) == meaning(suite)
    assert "role: system" not in path.read_text()


@pytest.mark.parametrize("name", ["exam", "exam-triggering", "exam-models", "exam-inputs-from-both-places"])
def test_an_eval_file_means_what_the_exam_means(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    shutil.copytree(VALID / name, tmp_path, dirs_exist_ok=True)
    with chdir(tmp_path):
        source = tmp_path / "prompts" / "diff" / "eval.yml"
        path = convert_document(source, "eva", None, {}).path
        assert loaded(path) == meaning(replace(suite_of(source), exam=None))
        assert "sections: true" in path.read_text()


def test_a_file_outside_is_not_read(convert_document_project: Path) -> None:
    source = convert_document_project / "csv" / "evals" / "evals.json"
    source.write_text(json.dumps({"evals": [{"prompt": "a", "expected_output": "b", "files": ["../../../x.md"]}]}))
    with pytest.raises(LoadError, match="outside"):
        convert_document(source, "agent-skills", None, {})
    assert not list(convert_document_project.rglob("*.eval.yaml"))


NOT_AS_CSV = ("tests-as-a-glob", "git-files")
"""The glob of the first would match the output file, and the second needs git hosts."""


def facts(path: Path) -> list[tuple[object, ...]]:
    """Return what a table keeps of each case."""
    return [
        (it.id, it.input, it.description, it.metadata, it.threshold, [repr(fingerprint(one)) for one in it.assertions])
        for it in suite_of(path).cases
    ]


KEPT = """
target: echo
threshold: 0.5
input: [{role: system, content: Be brief.}]
assert: [contains: e]
tests:
  - id: one
    description: First, of all
    input: "Say hello,\\nAnn"
    metadata: {area: support, tags: [a, "b,c"]}
    threshold: 0.7
    assert:
      - {contains: hello, name: greets}
      - {type: contains-any, value: [hello, bye], name: greets}
  - id: "2"
    input: price 1.50
    assert:
      - contains: 1.50
      - {type: levenshtein, value: price 1.51, threshold: 3}
      - {type: not-equals, value: "=cmd|' /C calc'!A0"}
      - is-json: {type: object, required: [a]}
"""


def test_ids_inputs_assertions_metadata_and_thresholds_survive_the_way_to_csv_and_back(project: Path) -> None:
    source = project / "suite.eval.yaml"
    source.write_text(KEPT)
    rows, sidecar = convert(source, "csv", None, {})
    assert (rows.name, sidecar.name) == ("suite.csv", "suite.yaml")
    (back,) = convert(rows, "yaml", project / "back.eval.yaml", {})
    assert facts(back) == facts(rows) == facts(source)
    shown = [(case["id"], case["vars"]["input"]) for case in yaml.safe_load(back.read_text())["tests"]]
    assert shown == [("one", "Say hello,\nAnn"), ("2", "price 1.50")]


@pytest.mark.parametrize("name", [*each_third(sorted({*SUITES} - {*NOT_AS_CSV}), 2)])
def test_every_suite_is_the_same_as_rows_or_is_refused_and_leaves_nothing_behind(name: str, project: Path) -> None:
    source = copied(name, project)
    try:
        rows, _ = convert(source, "csv", project / "made.csv", {})
    except UsageError as error:
        assert "rows" in str(error) or "as csv" in str(error)  # noqa: PT017  # either outcome is right
        assert not list(project.glob("made.*"))
    else:
        assert [one[0] for one in facts(rows)] == [one[0] for one in facts(source)]


def test_what_has_no_column_is_listed_case_by_case(project: Path) -> None:
    source = project / "suite.eval.yaml"
    source.write_text(
        "target: echo\ntests:\n"
        "  - {id: a, input: x, target: echo, repeat: 2, metadata: {deep: {er: 1}}, assert: [{contains: x}]}\n"
        "  - id: b\n    input: [{role: user, content: x}]\n"
        "    assert: [Is polite, {contains: x, weight: 2}, {contains-any: ['a,b']}, {contains: ' x'}]\n"
        "  - {id: c, input: x, vars: {n: 5, t: x}, assert: [{contains: x}]}\n"
    )
    with pytest.raises(UsageError, match="3 cases cannot be written as rows; nothing was written") as caught:
        convert(source, "csv", None, {})
    assert (caught.value.hint or "").splitlines() == [
        f"{'  ' * (number > 0)}case '{case}': '{key}' has no form in a row"
        for number, (case, key) in enumerate(
            [
                *(("a", key) for key in ("target", "repeat", "metadata.deep", "vars.t")),
                *(("b", key) for key in ("assert[0]", "assert[1]", "assert[2]", "assert[3]", "vars.t", "input")),
                ("c", "vars.n"),
            ]
        )
    ]
    assert sorted(path.name for path in project.iterdir()) == [".git", "suite.eval.yaml"]


TEXTS = (
    st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4),
    st.sampled_from(["contains", "equals", "not-regex"]),
)
@settings(max_examples=40)
def test_any_text_is_kept_or_refused(texts: list[tuple[str, str, str]], kind: str) -> None:
    with TemporaryDirectory() as folder, chdir(folder):
        source = Path(folder) / "suite.eval.yaml"
        tests = [
            {"id": f"case-{number}", "input": asked, "metadata": {"k": kept}, "assert": [{kind: value}]}
            for number, (asked, value, kept) in enumerate(texts)
        ]
        source.write_bytes(msgspec.json.encode({"target": "echo", "tests": tests}))
        try:
            before = facts(source)
        except Exception:  # noqa: BLE001  # an invalid pattern, or a placeholder without a variable
            return
        try:
            rows, _ = convert(source, "csv", None, {})
        except UsageError:
            assert not list(Path(folder).glob("suite.csv"))
        else:
            assert facts(rows) == before
