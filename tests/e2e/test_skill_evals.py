"""The evals of a skill end to end: one command runs them with and without the skill and compares in pairs."""

import json
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "agents"
EVALS = "skills/rounding/evals/evals.json"


@pytest.fixture
def shop(project):
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    return project


@pytest.mark.libraries
def test_one_command_runs_a_skill_with_and_without_itself(shop):
    words = ("eval", EVALS, "--target", "price-agent", "--variant", "with-skill", "--variant", "without-skill")
    shop.run(*words, "--sandbox", "none", "--out", "out", timeout=120, status=1)
    rows = {(row["test_id"], row["variant"]): row for row in shop.rows("out")}
    assert {key: row["status"] for key, row in rows.items()} == {
        ("with-tax", "with-skill"): "passed",
        ("with-tax", "without-skill"): "failed",
        ("total", "with-skill"): "passed",
        ("total", "without-skill"): "passed",
    }
    diff = (shop.path / "out" / rows["with-tax", "with-skill"]["diff_path"]).read_text()
    assert "a/prices.py" in diff
    assert "evals" not in diff
    compared = json.loads(shop.run("compare", "out", "--by", "variant", "--json").stdout)
    assert [compared["base"]["variants"], compared["candidate"]["variants"]] == [["without-skill"], ["with-skill"]]
