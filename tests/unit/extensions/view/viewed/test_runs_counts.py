"""Rows of growing files."""

from __future__ import annotations

import pytest

from agentv.errors import StoreError
from agentv.extensions.view.viewed.runs import RowCounts
from doubles.read_files import bytes_read


def test_only_what_was_appended_is_read_and_another_file_is_read_whole(tmp_path):
    index, counts = tmp_path / "index.jsonl", RowCounts()
    assert counts.count(index) == 0
    index.write_bytes(b"{}\n" * 100_000 + b'{"half')
    assert counts.count(index) == 100_000
    with index.open("ab") as file:
        file.write(b'": 1}\n{}\n')
    found = []
    assert bytes_read(lambda: found.append(counts.count(index))) < 10_000
    assert found == [100_002]
    index.write_bytes(b"{}\n")  # shorter
    assert counts.count(index) == 1
    other = tmp_path / "new"
    other.write_bytes(b"{}\n" * 5)
    other.rename(index)
    assert counts.count(index) == 5
    (tmp_path / "directory").mkdir()
    with pytest.raises(StoreError):
        counts.count(tmp_path / "directory")
