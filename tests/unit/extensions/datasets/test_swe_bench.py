import json
import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentv import sdk
from agentv.app.settings import EvalSettings
from agentv.cli.main import cli
from agentv.errors import LoadError, UsageError
from agentv.extensions.agents.commands.checking import check_cases
from agentv.extensions.datasets.converting import DatasetRequest
from agentv.extensions.datasets.swe_bench import COMMAND, from_swe_bench
from doubles.git_remotes import Hosts
from doubles.swe_tasks import patch, rows, write_rows
from needs import require

TESTED = COMMAND.replace("-q", "-q -p no:agentv")


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Write the rows to `shop.jsonl` in the working directory; their repository is on a git host faked by a
    directory."""
    (tmp_path / ".git").mkdir()
    hosts = Hosts(tmp_path / "hosts")
    found = rows(hosts)
    for name, value in hosts.env.items():
        monkeypatch.setenv(name, value)
    with chdir(tmp_path):
        write_rows(Path("shop.jsonl"), found)
        yield found


def converted(source: str) -> Path:
    return from_swe_bench(
        DatasetRequest(Path(source), "swe-bench", (), "yaml", None, command=TESTED), dict(os.environ)
    ).paths[0]


def test_solutions_pass_and_an_untouched_workspace_fails(tasks: list[dict[str, Any]]) -> None:
    require("bwrap")
    write_rows(Path("shop.jsonl"), tasks[:1])
    report = check_cases(EvalSettings(paths=(str(converted("shop.jsonl")),)), oracle=True)
    assert (report.cases, report.solved, report.problems) == (1, 1, ())


def test_a_good_agent_and_rows_that_do_not_fit(tasks: list[dict[str, Any]]) -> None:
    """The agent sees neither hidden tests nor later commits. A test patch that does not apply errors before the agent
    runs."""
    wrong = {**tasks[0], "instance_id": "wrong", "test_patch": patch("tests/test_prices.py", "no\n", "such\n")}
    lost = {**tasks[0], "instance_id": "lost", "base_commit": "0" * 40}
    write_rows(Path("shop.jsonl"), [*tasks, wrong, lost])
    suite, looked = converted("shop.jsonl").absolute(), "ls shop; git log --format=%H; grep -r test_new . | wc -l"
    good = f"git apply {suite.parent}/shop.tasks/acme__shop-*.patch --include='shop/*' && {looked}"
    run = sdk.evaluate(str(suite), target={"name": "agent", "provider": "cli", "command": good}, sandbox="none")
    found = {one.trial.case.id: one for one in run.results}
    bad = [found.pop("wrong"), found.pop("lost")]
    assert [(one.error.code, one.output) for one in bad if one.error] == [("workspace-failed", None)] * 2
    assert {one.status for one in found.values()} == {"passed"}
    answer = (found["acme__shop-dates"].output or "").split()
    assert tasks[0]["base_commit"] in answer
    assert answer[-1] == "0"
    assert len(answer) == 3 + 1 + 1, "a later commit is there"


def test_the_command_converts_what_it_recognizes(tasks: list[dict[str, Any]]) -> None:
    done = CliRunner().invoke(cli, ["convert", "shop.jsonl"])
    assert (done.exit_code, done.stderr) == (0, "wrote shop.eval.yaml\n  2 cases, checked by the tests of each row\n")
    text = Path("shop.eval.yaml").read_text()
    assert "python3 -m pytest -q -p no:cacheprovider --junit-xml swe-bench-report.xml tests/test_prices.py" in text
    assert Path("shop.tasks/acme__shop-prices.patch").read_text() == tasks[0]["patch"]
    with pytest.raises(UsageError, match=r"shop\.tasks exists"):
        converted("shop.jsonl")


def test_rows_of_parquet_and_of_hugging_face_are_those_of_json_lines(tasks, tmp_path, monkeypatch):
    require("pyarrow", "huggingface_hub")
    import pyarrow as pa
    from huggingface_hub import constants
    from pyarrow import parquet

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    cached = tmp_path / "hub/datasets--acme--shop"
    for folder in ("refs", f"snapshots/{'a' * 40}/data"):
        (cached / folder).mkdir(parents=True)
    (cached / "refs/main").write_text("a" * 40)
    for row in tasks:
        row["FAIL_TO_PASS"] = json.loads(row["FAIL_TO_PASS"])
    table = pa.Table.from_pylist(tasks)
    for path in (Path("table.parquet"), cached / f"snapshots/{'a' * 40}/data/test-00000-of-00001.parquet"):
        parquet.write_table(table, path)
    expected = converted("shop.jsonl").read_text()
    assert converted("table.parquet").read_text().replace("table", "shop") == expected
    done = CliRunner().invoke(cli, ["convert", "hf://acme/shop/test", "--test-command", TESTED])
    assert (done.exit_code, done.stderr.splitlines()[0]) == (0, "wrote shop-test.eval.yaml")
    assert Path("shop-test.eval.yaml").read_text().replace("shop-test", "shop") == expected


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"patch": None}, "bad-value", "'patch' must be text, found null"),
        ({"repo": "shop"}, "bad-value", "'repo' must be ORG/NAME, found \"shop\""),
        ({"instance_id": "../x"}, "bad-value", "'instance_id' must be letters, digits, '.', '-' and '_', found \"../x\""),
        ({"base_commit": "--upload-pack=x"}, "bad-value", "'base_commit' must be the hash of a commit, found \"--upload-pack=x\""),
        ({"PASS_TO_PASS": "no"}, "bad-value", "'PASS_TO_PASS' must be a list of names, or JSON of one"),
        ({"FAIL_TO_PASS": "[]"}, "checks-nothing", "'FAIL_TO_PASS' is empty, so an agent that does nothing would pass"),
        ({"FAIL_TO_PASS": '["test_x (a.B)"]'}, "no-equivalent", "the tests of acme/shop are those of unittest, which pytest does not name so"),
        ({}, "duplicate-id", "two rows have the instance_id 'acme__shop-prices'; the first is at line 1"),
    ],
)  # fmt: skip
def test_rows_that_are_wrong(tasks: list[dict[str, Any]], change: dict[str, Any], code: str, message: str) -> None:
    write_rows(Path("shop.jsonl"), [tasks[0], {**tasks[0], **change}])
    with pytest.raises(LoadError) as caught:
        from_swe_bench(DatasetRequest(Path("shop.jsonl"), "swe-bench", (), "yaml", None), {})
    (found,) = caught.value.diagnostics
    assert (found.span and found.span.line, found.code, found.message) == (2, code, message)
    assert sorted(one.name for one in Path().iterdir()) == [".git", "hosts", "shop.jsonl"]
