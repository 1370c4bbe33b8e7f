import json

import pytest

from agentv.errors import StoreError
from agentv.store.rows.reading import replaced_rows

ROW = {"test_id": "a", "target": "t", "status": "failed", "key": "k-1", "cost_usd": 0.5}


def test_a_torn_end_is_passed_over_since_its_row_still_stands_in_the_index(tmp_path):
    whole = json.dumps(ROW)
    (tmp_path / "history.jsonl").write_text(whole + "\n" + whole[:30])
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a"]


def test_a_damaged_row_in_the_middle_is_told(tmp_path):
    whole = json.dumps(ROW)
    (tmp_path / "history.jsonl").write_text(whole[:30] + "\n" + whole + "\n")
    with pytest.raises(StoreError, match=r"history.jsonl:1"):
        list(replaced_rows(tmp_path))


def test_a_row_that_is_in_the_index_too_or_twice_counts_once(tmp_path):
    rows = [json.dumps(ROW | {"test_id": case}) + "\n" for case in "abca"]
    (tmp_path / "history.jsonl").write_text("".join(rows))
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "index.jsonl").write_text(rows[1])
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a", "c"]
