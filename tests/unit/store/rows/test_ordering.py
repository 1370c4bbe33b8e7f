from __future__ import annotations

from array import array

import pytest

from agentv.errors import StoreError
from agentv.store.files.encoding import to_json
from agentv.store.rows.ordering import places_in_order, variable_names
from agentv.store.rows.results import read_results_at
from agentv.store.rows.rows import RelativePaths, row_of
from doubles.trials import ROOT, finished, trial

RECORD = {
    "suites": [
        {
            "name": "refunds",
            "path": "evals/refund.eval.yaml",
            "targets": [{"name": "gpt"}, {"name": "claude"}],
            "prompts": [{"id": "long"}, {"id": "brief"}],
        }
    ]
}


def written(path, *trials):
    rows = (row_of(finished(trial=one), RelativePaths(ROOT)) for one in trials)
    path.write_bytes(b"".join(to_json(row) + b"\n" for row in rows))
    return path


def test_rows_have_the_order_of_suites_cases_prompts_targets_and_samples(tmp_path):
    wanted = [
        trial("z", position=1, prompt_id="long", target="gpt"),
        trial("z", position=1, prompt_id="long", target="claude", sample=1),
        trial("z", position=1, prompt_id="long", target="claude", sample=2),
        trial("z", position=1, prompt_id="brief", target="gpt"),
        trial("a", position=2, prompt_id="long", target="gpt"),
        trial("a", position=10, prompt_id="long", target="gpt"),
    ]
    path = written(tmp_path / "index.jsonl", *reversed(wanted))
    found = [result.trial for result in read_results_at(path, ROOT, places_in_order(path, RECORD))]
    assert [(one.case.position, one.case.prompt_id, one.target.name, one.sample) for one in found] == [
        (one.case.position, one.case.prompt_id, one.target.name, one.sample) for one in wanted
    ]


def test_a_run_without_rows_has_none(tmp_path):
    assert places_in_order(tmp_path / "index.jsonl", {}) == array("q")
    assert variable_names(tmp_path / "index.jsonl", ()) == []


def test_a_damaged_row_is_named(tmp_path):
    path = written(tmp_path / "index.jsonl", trial("a"))
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(StoreError, match="jsonl:2: not a row of a run"):
        places_in_order(path, RECORD)
