"""Totals of pushed runs, computed at once or by a process of their own."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from agentv.app.results.listing import totals_of_upload
from agentv.errors import StoreError
from agentv.extensions.team.replica import UploadTotals
from doubles.stored_runs import scoring, write_run
from doubles.waiting import until

PUSHED = json.dumps({"run_id": "r", "pass_rate": 1.0}).encode()


def test_a_process_of_its_own_computes_what_is_computed_at_once(tmp_path):
    run = Path(write_run(tmp_path / "a", scoring({"good": 1.0, "bad": 0.0})))
    at_once = UploadTotals().of(run, PUSHED).result(0)
    with closing(UploadTotals(large=0)) as totals:
        assert totals.of(run, PUSHED).result() == at_once == totals_of_upload(run, PUSHED)
        assert json.loads(at_once)["pass_rate"] == 0.5
        (run / "index.jsonl").write_bytes(b"{}\n")
        with pytest.raises(StoreError, match="ended with 1"):
            totals.of(run, PUSHED).result()


def test_the_end_of_the_server_ends_the_process(tmp_path):
    run = Path(write_run(tmp_path / "a", scoring({"good": 1.0})))
    (run / "index.jsonl").unlink()
    os.mkfifo(run / "index.jsonl")  # whoever reads it waits
    totals = UploadTotals(large=0)
    running, waiting = totals.of(run, PUSHED), totals.of(run, PUSHED)
    until(lambda: totals._process)
    totals.close()
    assert "ended with -9" in str(running.exception(0))
    assert waiting.cancelled()
