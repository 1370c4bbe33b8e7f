"""What is searched in an index: ids and words."""

import sqlite3
from contextlib import closing

import pytest

from agentv.extensions.view.index import case_search
from agentv.extensions.view.index.case_schema import SCHEMA
from agentv.extensions.view.index.case_search import CaseIds, CaseTexts

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


TEXTS = [
    "The lamp was not used", "Lamps, and a lamp-shade", "lam", "Lampe für Gäste", "lampion LAMP lämpchen", "nothing",
    "ﬁne lamp1 lamp2 lamp3", "用户 lamp",
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["being written", "written"])
def texts(request):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(SCHEMA)
        database.execute("BEGIN")
        for number, text in enumerate(TEXTS, 1):
            database.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (number, text))
        if request.param:
            database.execute("COMMIT")
        yield CaseTexts(database)


@pytest.mark.parametrize("most", [0, 2, 64])
@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
def test_words_are_found_from_their_beginning_however_they_are_looked_up(texts, monkeypatch, most, at_once):
    monkeypatch.setattr(case_search, "_MOST_TERMS", most)
    monkeypatch.setattr(case_search, "_AT_ONCE", at_once)
    expected = {
        ("lamp",): [1, 2, 4, 5, 7, 8],
        ("LAMP",): [1, 2, 4, 5, 7, 8],
        ("lam",): [1, 2, 3, 4, 5, 7, 8],
        ("lämp",): [1, 2, 4, 5, 7, 8],
        ("fur",): [4],
        ("für",): [4],
        ("lamps",): [2],
        ("lamp2",): [7],
        ("用户",): [8],
        ("z",): [],
        ("amp",): [],
        ("lamp", "was"): [1],
        ("lamp", "nothing"): [],
    }
    found = {words: sorted(set(texts.trials_with(words, len(TEXTS) + 1))) for words in expected}
    assert found == expected
