from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest

from agentv.model.secrets.redaction import Redactor
from agentv.model.values.response import TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.store.cassettes.cache import AnswerCache
from doubles.stores import call

ANSWER = TargetResponse("yes", metadata={"docs": ["a"]}, context=(RetrievedText("a", "a.md"),))


class Clock:
    def monotonic(self) -> float:
        return 0.0

    def utc(self) -> datetime:
        return datetime(2026, 11, 22, tzinfo=UTC)


def opened(path):
    return AnswerCache(path, Redactor(), Clock(), repairs=True)


@pytest.fixture
def path(tmp_path):
    with opened(tmp_path / "cache" / "answers.sqlite") as cache:
        cache.keep(call("k"), ANSWER)
    return tmp_path / "cache" / "answers.sqlite"


def test_an_entry_that_was_changed_is_none(path):
    for column, value in (("answer", b"{}"), ("target", "x"), ('"case"', "x"), ("kept", "x"), ("sum", None)):
        with sqlite3.connect(path) as database:
            database.execute(f"UPDATE answers SET {column} = ?", (value,))
        database.close()
        with opened(path) as cache:
            assert cache.stored_answer(call("k")) is None
            cache.keep(call("k"), TargetResponse("yes"))
        with opened(path) as cache:
            assert cache.stored_answer(call("k")).output == "yes"


def test_a_full_disk_stops_caching_and_nothing_else(path):
    with opened(path) as cache:
        pages = cache._open.execute("PRAGMA page_count").fetchone()[0]
        cache._open.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(300):
            cache.keep(call(f"n{number}"), TargetResponse("long" * 1000))
        cache.flush()
        assert len(cache.notes) == 1
        assert "is full; the run continues without it" in cache.notes[0]
        assert cache.stored_answer(call("k")) is None
    with opened(path) as cache:
        assert cache.stored_answer(call("k")).output == "yes"


def test_a_file_that_is_torn_is_set_aside(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with opened(path) as cache:
        assert "moved it to answers.sqlite.damaged" in cache.notes[0]
        assert cache.stored_answer(call("k")) is None
        cache.keep(call("k"), TargetResponse("again"))
    with opened(path) as cache:
        assert cache.stored_answer(call("k")).output == "again"
