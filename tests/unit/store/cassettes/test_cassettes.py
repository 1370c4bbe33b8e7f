"""Lines of a cassette, edited by hand or merged, and the database of the cache."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.ports import Call, TargetRequest
from agentv.store.cassettes.cache import AnswerCache
from agentv.store.cassettes.cassette import Cassette, header, replacing
from doubles.run_contexts import FixedClock
from doubles.stores import call

CALL = Call("k", "t", TargetRequest("a", "hello", (Message("user", "hello"),)))
FULL = TargetResponse(
    output="hi",
    messages=(
        Message("user", (TextBlock("a"), FileBlock("b", "/b", "B"), ImageBlock("c"), DocumentBlock("d", "/d", "00"))),
        Message("user", {"question": 1}),
        Message("assistant", "hi", "me", (ToolCall("find", {"x": [1]}, "1", 2.5, "found"),)),
    ),
    token_usage=TokenUsage(1, 2, 3, 0, 0),
    cost_usd=0.5,
    duration_ms=12.0,
    finish_reason="stop",
    metadata={"some": {"thing": None}},
    attempts=(Attempt("timeout", "too long", 3.0, 4.0),),
    context=(RetrievedText("a"), RetrievedText("b", "b.md", 0.5, {"page": 1})),
)


@pytest.fixture
def cassette(tmp_path):
    made = Cassette(tmp_path / "run.jsonl", Redactor())
    made.keep(CALL, FULL)
    made.write()
    return made.path


def test_two_who_add_at_once_lose_nothing_of_each_other(cassette):
    both = [Cassette.load(cassette, Redactor()) for _ in range(8)]
    for number, one in enumerate(both):
        one.keep(structs.replace(CALL, key=f"k{number}"), FULL)
        one.keep(structs.replace(CALL, key="same"), structs.replace(FULL, output=str(number)))
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(Cassette.add, both))
    assert sorted(counts) == list(range(3, 11))
    assert len(cassette.read_bytes().splitlines()) == 1 + 1 + 8 + 1
    assert [path.name for path in cassette.parent.iterdir()] == ["run.jsonl"]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"output": 42}, "$.answer.output"),
        ({"duration_ms": -1}, "$.answer.duration_ms"),
        ({"cost_usd": -0.1}, "$.answer.cost_usd"),
        ({"token_usage": {"input": "a"}}, "$.answer.token_usage.input"),
        ({"token_usage": {"inputs": 1}}, "inputs"),
        ({"metadata": None}, "$.answer.metadata"),
        ({"messages": [{"role": "bot", "content": "", "name": None, "tool_calls": []}]}, "$.answer.messages[0].role"),
        ({"messages": [{"role": "user", "content": 1, "name": None, "tool_calls": []}]}, "$.answer.messages[0]"),
        ({"messages": [{"role": "user", "content": [{"value": 1}], "name": None, "tool_calls": []}]}, "content"),
        (
            {"messages": [{"role": "user", "content": "", "name": None, "tool_calls": [{"name": "x"}]}]},
            "$.answer.messages[0].tool_calls",
        ),
        ({"attempts": [{"code": 1}]}, "$.answer.attempts"),
    ],
)
def test_an_answer_of_a_wrong_shape_is_refused_where_it_stands(cassette, changed, place):
    row = json.loads(cassette.read_bytes().splitlines()[1])
    row["answer"] |= changed
    cassette.write_bytes(header() + json.dumps(row).encode())
    with pytest.raises(StoreError, match=r"run.jsonl:2: not a cassette call") as refused:
        Cassette.load(cassette, Redactor())
    assert place in str(refused.value)


def test_an_interrupt_leaves_the_old_cassette_and_nothing_of_a_new_one(tmp_path):
    def interrupted(path):
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a.jsonl", b"old")]


ANSWER = TargetResponse("yes", metadata={"docs": ["a"]}, context=(RetrievedText("a", "a.md"),))


def opened(path):
    return AnswerCache(path, Redactor(), FixedClock(), repairs=True)


@pytest.fixture
def path(tmp_path):
    with opened(tmp_path / "cache" / "answers.sqlite") as cache:
        cache.keep(call("k"), ANSWER)
    return tmp_path / "cache" / "answers.sqlite"


def test_an_entry_that_was_changed_is_none(path):
    for column, value in (("answer", b"{}"), ("target", "x"), ('"case"', "x"), ("kept", "x"), ("sum", "x")):
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
        pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
        cache._connection.execute(f"PRAGMA max_page_count = {pages}")
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
