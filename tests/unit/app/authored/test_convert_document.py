from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.authored.convert_document import convert_document
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError
from agentv.model.suite.suite import Suite

VALID = Path(__file__).parents[3] / "cases" / "valid"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / ".git").mkdir()
    shutil.copytree(VALID / "skill-evals" / "csv", tmp_path / "csv")
    with chdir(tmp_path):
        yield tmp_path


def loaded(path: Path) -> Suite:
    (suite,) = load(LoadRequest((str(path),), for_run=False, makes=True), registries()).suites
    return suite


@pytest.mark.parametrize("out", [None, "all.eval.yaml", "csv/all.eval.yaml"])
def test_an_eval_file_means_what_the_evals_mean(out: str | None, project: Path) -> None:
    source = project / "csv" / "evals" / "evals.json"
    path = convert_document(source, "agent-skills", project / out if out else None, {}).path
    assert path == (project / out if out else source.with_name("evals.eval.yaml"))
    before = replace(loaded(source), exam=None)
    assert meaning(loaded(path)) == meaning(before)


@pytest.mark.parametrize("out", ["all.eval.yaml", "elsewhere/all.eval.yaml"])
def test_a_function_is_the_same_one_however_its_path_is_written(out: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "provider.py").write_text("def call_api(prompt, options, context):\n    return {'output': prompt}\n")
    source = tmp_path / "promptfooconfig.yaml"
    source.write_text("prompts: [hi]\nproviders: [{id: file://provider.py, label: mine}]\ntests: [{vars: {a: b}}]\n")
    path = convert_document(source, "promptfoo", tmp_path / out, {}).path
    assert loaded(path).targets[0].settings == loaded(source).targets[0].settings


def test_evals_without_their_skill_are_a_suite(project: Path) -> None:
    (project / "csv" / "SKILL.md").unlink()
    source = project / "csv" / "evals" / "evals.json"
    suite = loaded(source)
    assert (suite.exam, suite.name) == (None, "csv-analyzer")
    assert [message.role for message in suite.cases[0].input] == ["user"]
    path = convert_document(source, "agent-skills", None, {}).path
    assert meaning(loaded(path)) == meaning(suite)
    assert "role: system" not in path.read_text()


@pytest.mark.parametrize("name", ["exam", "exam-triggering", "exam-models", "exam-inputs-from-both-places"])
def test_an_eval_file_means_what_the_exam_means(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    shutil.copytree(VALID / name, tmp_path, dirs_exist_ok=True)
    with chdir(tmp_path):
        source = tmp_path / "prompts" / "diff" / "eval.yml"
        path = convert_document(source, "eva", None, {}).path
        assert meaning(loaded(path)) == meaning(replace(loaded(source), exam=None))
        assert "sections: true" in path.read_text()


def test_a_file_outside_is_not_read(project: Path) -> None:
    source = project / "csv" / "evals" / "evals.json"
    source.write_text(json.dumps({"evals": [{"prompt": "a", "expected_output": "b", "files": ["../../../x.md"]}]}))
    with pytest.raises(LoadError, match="outside"):
        convert_document(source, "agent-skills", None, {})
    assert not list(project.rglob("*.eval.yaml"))
