"""Totals of pushed runs, computed at once or by a process of their own."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from agentv.app.results.totals import totals_of_upload
from agentv.errors import StoreError
from agentv.extensions.team.server.upload_totals import UploadTotals
from doubles.stored_runs import scoring, write_run
from doubles.team_servers import wait_for

PUSHED = json.dumps({"run_id": "r", "pass_rate": 1.0}).encode()


def run_in(directory, scores):
    return Path(write_run(directory, scoring(scores)))


def computed(totals, run, pushed=PUSHED):
    found = []

    def is_known():
        content = totals(run, pushed)
        found.append(content)
        return content is not None

    wait_for(is_known)
    return found[-1]


def test_rows_that_come_meanwhile_are_in_the_totals(tmp_path):
    run, both = run_in(tmp_path / "a", {"good": 1.0}), run_in(tmp_path / "b", {"good": 1.0, "bad": 0.0})
    with closing(UploadTotals(large=0)) as totals:
        assert totals(run, PUSHED) is None
        (run / "index.jsonl").write_bytes((both / "index.jsonl").read_bytes())
        assert totals(run, PUSHED) is None
        assert json.loads(computed(totals, run))["cases"]["total"] == 2


def test_one_process_at_a_time_computes_and_a_deleted_run_is_in_the_way_of_none(tmp_path):
    first, second = (run_in(tmp_path / name, {"good": 1.0}) for name in "ab")
    with closing(UploadTotals(large=0)) as totals:
        assert [totals(first, PUSHED), totals(second, PUSHED)] == [None, None]
        assert list(totals._jobs) == [first]
        first.rename(tmp_path / "elsewhere")
        assert computed(totals, second) == totals_of_upload(second, PUSHED)
        assert list(totals._jobs) == []


def test_rows_that_are_none_are_an_error_once_and_the_end_of_the_server_ends_the_process(tmp_path):
    run = run_in(tmp_path / "a", {"good": 1.0})
    (run / "index.jsonl").write_bytes(b"{}\n")
    totals = UploadTotals(large=0)
    with pytest.raises(StoreError, match="ended with 1"):
        computed(totals, run)
    assert totals(run, PUSHED) is None
    job = totals._jobs[run]
    totals.close()
    assert job.process.returncode is not None
