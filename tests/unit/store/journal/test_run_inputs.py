from __future__ import annotations

import json

import pytest

from agentv.errors import StoreError
from agentv.model.run.sampling import SamplingStop
from agentv.stats.samples.stopped import unbiased_rate
from agentv.store.journal.run_inputs import read_suite_inputs

ROW = {"test_id": "a", "suite": "s", "target": "t", "score": 0.5, "case_sha256": "1"}


def write(path, *rows, end="\n"):
    path.write_text("\n".join(json.dumps(ROW | row) for row in rows) + end)
    return path


def test_what_each_suite_was_asked(tmp_path):
    rows = ({}, {"score": 1.0, "target": "u"}, {"prompt_id": "p", "score": None}, {"suite": "other", "test_id": "b"})
    found = read_suite_inputs(write(tmp_path / "index.jsonl", *rows))
    assert found.keys() == {"s", "other"}
    asked = found["s"]
    assert (asked.hashes, asked.targets) == ({("a", None): "1", ("a", "p"): "1"}, {"t", "u"})
    assert (asked.means, asked.ends_early, asked.is_reused) == ([0.75], False, False)


def test_early_ends_and_answers_that_were_there(tmp_path):
    early = {"alpha": 0.05, "repeat": 5, "reused": True}
    (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", early, {"reused": True})).values()
    assert (asked.ends_early, asked.is_reused) == (True, True)
    (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", {"alpha": 0.05, "reused": True}, {})).values()
    assert (asked.ends_early, asked.is_reused) == (False, False)


def test_a_torn_end_is_passed_over_and_another_line_refused(tmp_path):
    path = write(tmp_path / "index.jsonl", {})
    with path.open("a") as file:
        file.write('{"test_id": "b", ')
    assert len(read_suite_inputs(path)["s"].hashes) == 1
    assert read_suite_inputs(tmp_path / "none.jsonl") == {}
    path.write_text('{"test_id": 1}\n')
    with pytest.raises(StoreError, match=r"index\.jsonl:1: not a row of a run"):
        read_suite_inputs(path)
    with pytest.raises(StoreError, match="written by a newer agentv"):
        read_suite_inputs(write(path, {"schema_version": 99}))


def test_what_was_judged_of_each_case_by_its_hash_and_threshold(tmp_path):
    rows = (
        {"status": "passed", "score": 1.0},
        {"status": "failed", "score": 0.25, "target": "u"},
        {"status": "errored", "score": None},
        {"status": "skipped", "score": None},
        {"status": "passed", "score": None, "case_sha256": "2"},
        {"status": "passed", "score": 0.5, "threshold": 0.5},
        {"status": "failed", "score": 0.5, "prompt_id": "p"},
        {"score": 0.5, "test_id": "b"},
    )
    (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", *rows)).values()
    found = {case: (one.judged, one.passed, one.score, one.rate, one.mean) for case, one in asked.judged.items()}
    assert found == {
        ("a", None, "1", 0.8): (2, 1, 1.25, 0.5, 0.625),
        ("a", None, "2", 0.8): (1, 1, 0.0, 1.0, 0.0),
        ("a", None, "1", 0.5): (1, 1, 0.5, 1.0, 0.5),
        ("a", "p", "1", 0.8): (1, 0, 0.5, 0.0, 0.5),
    }
    assert asked.scores == {"a": (4, 2.25), "b": (1, 0.5)}
    assert asked.rules == {"threshold": {"0.8", "0.5"}, "repeat": {"1"}, "rule": {"mean"}}


def test_a_rate_of_samples_that_ended_early_is_unbiased_and_one_of_each_target(tmp_path):
    stopped = {"why": "above", "samples": 4, "passed": 4, "low": 0.9, "high": 1.0}
    early = {"status": "passed", "score": 1.0, "repeat": 10, "alpha": 0.05, "threshold": 0.5}
    ended = early | {"stopped": stopped}
    rows = (early, early, early, ended, *({"target": "u"} | one for one in (early, ended)))
    (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", *rows)).values()
    (samples,) = asked.judged.values()
    rate = unbiased_rate(SamplingStop(**stopped), threshold=0.5, alpha=0.05, repeat=10)
    assert rate is not None
    assert samples.rates == (rate, rate)
    assert samples.rate == rate
    assert asked.ends_early
    for without in ({"alpha": None}, {"stopped": None}):
        (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", ended | without)).values()
        assert [one.rates for one in asked.judged.values()] == [()]


def test_one_sample_ends_no_earlier_than_another(tmp_path):
    for row, early in (
        ({"alpha": 0.05, "repeat": 1}, False),
        ({"repeat": 2}, False),
        ({"alpha": 0.05, "repeat": 2}, True),
    ):
        (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", row, {})).values()
        assert asked.ends_early == early
    for reused in ((True, False), (False, True)):
        rows = [{"reused": one} for one in reused]
        (asked,) = read_suite_inputs(write(tmp_path / "index.jsonl", *rows)).values()
        assert not asked.is_reused


def test_rows_of_one_target_may_be_read_alone_and_names_are_held_once(tmp_path):
    path = write(tmp_path / "index.jsonl", {}, {"target": "u", "test_id": "b", "status": "passed"})
    assert read_suite_inputs(path, target="u")["s"].hashes == {("b", None): "1"}
    assert read_suite_inputs(path, target="none") == {}
    cache = {}
    first, second = (read_suite_inputs(path, cache)["s"] for _ in range(2))
    assert [one is other for one, other in zip(first.hashes, second.hashes, strict=True)] == [True, True]
    assert [one is other for one, other in zip(first.judged, second.judged, strict=True)] == [True]
