"""Totals of pushed runs, computed at once or by a process of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentv.app.results.totals import totals_of_upload
from agentv.errors import StoreError
from agentv.extensions.team.server.upload_totals import totals_of_copy
from doubles.stored_runs import scoring, write_run

PUSHED = json.dumps({"run_id": "r", "pass_rate": 1.0}).encode()


def test_a_process_of_its_own_computes_what_is_computed_at_once(tmp_path):
    run = Path(write_run(tmp_path / "a", scoring({"good": 1.0, "bad": 0.0})))
    at_once = totals_of_copy(run, PUSHED)
    assert totals_of_copy(run, PUSHED, large=0) == at_once == totals_of_upload(run, PUSHED)
    assert json.loads(at_once)["pass_rate"] == 0.5
    (run / "index.jsonl").write_bytes(b"{}\n")
    with pytest.raises(StoreError, match="ended with 1"):
        totals_of_copy(run, PUSHED, large=0)
