from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.authored.equivalence import meaning
from agentv.app.authored.from_skill import from_skill
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError
from agentv.model.suite.suite import Suite

VALID = Path(__file__).parents[3] / "cases" / "valid"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / ".git").mkdir()
    shutil.copytree(VALID / "skill-evals" / "csv", tmp_path / "csv")
    with chdir(tmp_path):
        yield tmp_path


def loaded(path: Path) -> Suite:
    (suite,) = load(LoadRequest((str(path),), for_run=False), registries()).suites
    return suite


@pytest.mark.parametrize("out", [None, "all.eval.yaml", "csv/all.eval.yaml"])
def test_an_eval_file_means_what_the_evals_mean(out: str | None, project: Path) -> None:
    source = project / "csv" / "evals" / "evals.json"
    path = from_skill(source, project / out if out else None, {})
    assert path == (project / out if out else source.with_name("evals.eval.yaml"))
    before = replace(loaded(source), exam=None)
    assert meaning(loaded(path)) == meaning(before)


def test_evals_without_their_skill_are_a_suite(project: Path) -> None:
    (project / "csv" / "SKILL.md").unlink()
    source = project / "csv" / "evals" / "evals.json"
    suite = loaded(source)
    assert (suite.exam, suite.name) == (None, "csv-analyzer")
    assert [message.role for message in suite.cases[0].input] == ["user"]
    path = from_skill(source, None, {})
    assert meaning(loaded(path)) == meaning(suite)
    assert "role: system" not in path.read_text()


def test_queries_are_run_as_they_are(project: Path) -> None:
    source = project / "csv" / "evals" / "queries.json"
    source.write_text(json.dumps([{"query": "Read my CSV", "should_trigger": True}]))
    with pytest.raises(UsageError, match="contains queries that test the description of a skill") as caught:
        from_skill(source, None, {})
    assert caught.value.hint == f"run them as they are: agentv eval {source}"


def test_a_file_outside_is_not_read(project: Path) -> None:
    source = project / "csv" / "evals" / "evals.json"
    source.write_text(json.dumps({"evals": [{"prompt": "a", "expected_output": "b", "files": ["../../../x.md"]}]}))
    with pytest.raises(LoadError, match="outside"):
        from_skill(source, None, {})
    assert not list(project.rglob("*.eval.yaml"))
