"""Contract of run stores, on disk and in memory."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, CallFailure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.journal import Journal
from doubles.stores import MemoryStore, call
from doubles.trials import ROOT, finished, trial

NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else Journal(RunDirectory.create(tmp_path, NOW), ROOT)
    yield made
    made.close()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
plain = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
objects = st.dictionaries(
    texts, st.recursive(plain, lambda inner: st.lists(inner, max_size=3), max_leaves=5), max_size=3
)
blocks = st.one_of(
    st.builds(TextBlock, texts),
    st.builds(FileBlock, texts, texts, texts),
    st.builds(ImageBlock, texts, st.none() | texts),
    st.builds(DocumentBlock, texts, texts, texts),
)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    texts | objects | st.lists(blocks, max_size=3).map(tuple),
    st.none() | texts,
    st.lists(st.builds(ToolCall, texts, objects, st.none() | texts), max_size=2).map(tuple),
)
counts = st.none() | st.integers(0, 2**60)
answers = st.builds(
    TargetResponse,
    st.none() | texts,
    st.lists(messages, max_size=3).map(tuple),
    st.none() | st.builds(TokenUsage, counts, counts, counts, counts, counts),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(0, 1e9),
    st.none() | texts,
    objects,
    st.lists(st.builds(Attempt, texts, texts, st.floats(0, 1e9), st.floats(0, 1e9)), max_size=2).map(tuple),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(answers, max_size=3))
def test_an_answer_comes_back_as_it_was_given(store, kept):
    for number, answer in enumerate(kept):
        store.keep(call(f"key-{number}"), answer)
    store.load_answers()
    assert [store.stored_answer(call(f"key-{number}")) for number in range(len(kept))] == kept


def test_of_several_answers_under_one_key_the_last_counts(store):
    for text in ("one", "two"):
        store.keep(call("key"), TargetResponse(text))
    store.load_answers()
    assert store.stored_answer(call("key")) == TargetResponse("two")


def test_answers_of_this_run_do_not_count_and_those_of_others_are_not_found(store):
    store.keep(call("key"), TargetResponse("yes"))
    assert store.stored_answer(call("key")) is None
    assert store.load_answers() == 1
    assert store.stored_answer(call("another")) is None


@pytest.mark.parametrize("status", ["passed", "failed", "errored"])
def test_a_finished_trial_is_named_by_its_key(store, status):
    store.finish(finished(status, trial=trial("one", key="k1")))
    store.finish(finished(status, trial=trial("two", key="k2")))
    assert list(store.finished()) == ["k1", "k2"]


def test_a_trial_that_stopped_its_target_is_not_finished(store):
    """The cause of the refusal is assumed to be fixed before the run is resumed."""
    store.finish(finished("errored", error=CallFailure("http-status", "HTTP 401", stops=True)))
    assert list(store.finished()) == []
