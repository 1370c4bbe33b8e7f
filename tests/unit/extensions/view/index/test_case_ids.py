"""Ids of cases that are searched for a text."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agentv.extensions.view.index import case_search
from agentv.extensions.view.index.case_schema import SCHEMA
from agentv.extensions.view.index.case_search import CaseIds

IDS = ["case-1", "CASE-12", "Größe", "two\nlines", "", "100 %", "case-1"]


@pytest.fixture
def database():
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(SCHEMA)
        yield made


def numbers(ids, text):
    found = ids.containing(text)
    assert len(found) == len(IDS) + 1
    return [at for at, there in enumerate(found) if there]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 8])
def test_a_text_is_found_in_every_block_also_after_the_index_was_opened_again(database, monkeypatch, block):
    monkeypatch.setattr(case_search, "_BLOCK", block)
    ids = CaseIds(database)
    for at, one in enumerate(IDS):
        ids.add(one)
        if at % 2:
            ids.write()
        if at == 3:
            ids.write()
            ids = CaseIds(database)
    for _ in range(2):
        assert numbers(ids, "case-1") == [1, 2, 7]
        assert numbers(ids, "Case-12") == [2]
        assert numbers(ids, "GRÖSSE") == []
        assert numbers(ids, "größe") == [3]
        assert numbers(ids, "two\nlines") == numbers(ids, "O L") == [4]
        assert numbers(ids, "%") == [6]
        assert numbers(ids, "1case") == []
        ids.write()
        ids = CaseIds(database)
