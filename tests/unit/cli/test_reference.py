"""`agentv schema`."""

import json

import pytest

from agentv.app.authored.reference import schema_text
from agentv.authoring.json_schema.schema import KINDS
from agentv.cli import reference
from agentv.cli.main import run
from agentv.errors import ExitStatus


def test_it_prints_the_schema_of_eval_files(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # in a project, the schema includes its assertion types
    assert run(["schema"]) == ExitStatus.PASSED
    assert capsys.readouterr().out == schema_text("eval")


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_every_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "--kind", kind]) == ExitStatus.PASSED
    assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")


def test_an_unknown_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "--kind", "evals"]) == ExitStatus.WRONG
    assert "eval" in capsys.readouterr().err


def test_the_command_knows_every_kind() -> None:
    assert set(reference.KINDS) == set(KINDS)
